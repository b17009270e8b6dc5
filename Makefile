# Needs only Python 3.11 and make; installs with uv if it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

.PHONY: run test lint bench demo pictures clean
.DEFAULT_GOAL := run

ifdef UV
CREATE = uv venv --quiet --python '>=3.11' $(VENV)
INSTALL = uv pip install --compile-bytecode --python $(BIN)/python --constraint constraints.txt
else
CREATE = $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --constraint constraints.txt
endif

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "memreplay needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	@$(CREATE)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing memreplay and its dependencies into $(VENV): once, in a minute or a few"
	@$(INSTALL) --editable '.[report]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the development tools into $(VENV): once"
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run
	@$(BIN)/memreplay

test: lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache

bench: $(VENV)/.dev
	$(BIN)/python -m pytest tests/benchmarks -p no:cacheprovider -o addopts="--import-mode=importlib -q -s"

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist

# The shipped recordings: a small budget for long conversations, so that the architectures disagree; then three stories.
demo: $(VENV)/.run
	rm -f recordings/demo.sqlite3
	$(BIN)/memreplay --batch --perceive --no-cache --top-k 3 --context-tokens 500 \
		--dataset identity-01 --dataset multi-01 --dataset multi-08 \
		--recording recordings/demo.sqlite3 --output recordings/demo.results.json
	$(BIN)/python recordings/make_demos.py

# Redraws the screenshots of the README.
pictures: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python recordings/pictures/draw.py
	PYTHONPATH=. $(BIN)/python recordings/pictures/draw_pages.py
