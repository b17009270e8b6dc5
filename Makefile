# Needs only Python 3.11 and make; installs with uv if it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

.PHONY: run test torture lint lock audit bench demo pictures clean
.DEFAULT_GOAL := run

ifdef UV
CREATE = uv venv --quiet --python '>=3.11' $(VENV)
INSTALL = uv pip install --compile-bytecode --python $(BIN)/python
else
CREATE = $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check
endif

# What is installed, exactly: for every platform, with hashes, kept by "make lock".
COMPILE = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 \
	--custom-compile-command "make lock" --constraint constraints.txt $(UPGRADE) pyproject.toml

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "memreplay needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	@$(CREATE)

$(VENV)/.run: pyproject.toml requirements.txt | $(BIN)/python
	@echo "Installing memreplay with $$(grep -c '^[a-z].*==' requirements.txt) packages into $(VENV), about 0.5 GB: once, in a minute or a few"
	@$(INSTALL) --require-hashes --requirement requirements.txt
	@$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements-dev.txt | $(BIN)/python
	@echo "Installing memreplay with the development tools, $$(grep -c '^[a-z].*==' requirements-dev.txt) packages, into $(VENV), about 0.9 GB: once"
	@$(INSTALL) --require-hashes --requirement requirements-dev.txt
	@$(INSTALL) --no-deps --editable .
	@touch $@ $(VENV)/.run

# Run it after a change of the dependencies in pyproject.toml; "make lock UPGRADE=--upgrade" takes newer versions.
lock:
	@command -v uv >/dev/null || { echo "make lock needs uv"; exit 2; }
	$(COMPILE) --extra report --output-file requirements.txt
	$(COMPILE) --group dev $(addprefix --extra ,cluster report mem0 chroma langgraph mcp) --output-file requirements-dev.txt

run: $(VENV)/.run
	@$(BIN)/memreplay

# A process that has run out of tests takes half of what another has left: they take from milliseconds to seconds.
PARALLEL = $(BIN)/python -m pytest -n auto --dist worksteal

test: lint
	$(PARALLEL)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache

# The long rows of the fault matrix: two hundred kills, every failing write, long fuzzing. It takes hours; a part of it:
# make torture ONLY='-k "killed and [3]"'
torture: $(VENV)/.dev
	MEMREPLAY_TEST_TORTURE=50 $(PARALLEL) tests/faults tests/tui/test_random_walk.py $(ONLY)

# Known vulnerabilities of what is installed. Needs pypi.org; says so where that cannot be reached.
audit: $(VENV)/.dev
	@$(BIN)/python -c 'import pip_audit' 2>/dev/null || $(INSTALL) --quiet pip-audit
	@$(BIN)/python tests/audit.py

bench: $(VENV)/.dev
	$(BIN)/python -m pytest tests/benchmarks -p no:cacheprovider -o addopts="--import-mode=importlib -q -s"

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist

# The shipped recordings: a small budget for long conversations, so that the architectures disagree; then four stories.
demo: $(VENV)/.run
	$(BIN)/python recordings/make_demos.py

# Redraws the screenshots of the README.
pictures: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python recordings/pictures/draw.py
	PYTHONPATH=. $(BIN)/python recordings/pictures/draw_pages.py
