"""A run imports what it uses: libraries that take long are left alone by memories that do not need them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SLOW = (
    "litellm",
    "openai",
    "textual",
    "qdrant_client",
    "fakeredis",
    "redis",
    "scipy",
    "onnxruntime",
    "httpx",
    "urllib3",
    "aiohttp",
    "distributed",
)

PROGRAM = """
import json, os, sys
from memreplay.__main__ import main
from memreplay.cli import batch, program
for backend in sys.argv[1:]:
    if not (child := os.fork()):
        written = ["--recording", f"{{backend}}.sqlite3", "--output", f"{{backend}}.json"]
        sys.argv = ["memreplay", "--batch", "--dataset", "identity-01", "--backend", backend, *written]
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
        print(json.dumps([backend, [name for name in {slow} if name in sys.modules]]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, backend
"""


def test_a_run_imports_no_library_that_its_memory_does_not_need(tmp_path: Path) -> None:
    """Each memory in a fork of one process, which has imported what every run needs."""
    needed = {"closed_book": set[str](), "full_context": {"fakeredis", "redis"}, "rag": {"qdrant_client"}}
    beside = {"rag": {"onnxruntime"}}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(slow=SLOW), *needed], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imported = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert {name: set(libraries) - beside.get(name, set()) for name, libraries in imported.items()} == needed


COLD_ONLY = (
    "onnxruntime",
    "tokenizers",
    "tiktoken",
    "tenacity",
    "memreplay.llm.extractive",
)
"""What vectors, token counts and replies are made with, which an earlier run kept."""

WARM_RUN = """
import json, sys
from memreplay.__main__ import main
written = ["--recording", sys.argv[1], "--output", "results.json"]
sys.argv = ["memreplay", "--batch", "--dataset", "identity-01", *written]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([name for name in {names} if name in sys.modules]))
"""


def test_a_run_whose_vectors_counts_and_replies_are_kept_loads_nothing_that_makes_them(tmp_path: Path) -> None:
    program = WARM_RUN.format(names=(*COLD_ONLY, "httpx", "urllib3", "litellm", "scipy", "textual"))
    for recording in ("cold.sqlite3", "warm.sqlite3"):
        done = subprocess.run(
            [sys.executable, "-c", program, recording], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_numpy_is_left_alone_by_runs_without_vectors_and_there_for_whoever_wants_it(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from memreplay.__main__ import main\n"
        "sys.argv = ['memreplay', '--batch', '--dataset', 'identity-01', '--backend', 'full_context',\n"
        "    '--recording', 'r.sqlite3', '--output', 'r.json']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "print([name for name in ('numpy', 'fakeredis', 'sqlite_utils') if name in sys.modules])\n"
        "import numpy; numpy.array([1])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['fakeredis', 'sqlite_utils']"


def test_the_names_of_memories_are_checked_without_the_libraries_that_fill_them() -> None:
    program = (
        "import sys\n"
        "from memreplay.engine.remote.addresses import refuse_unknown_backends\n"
        "refuse_unknown_backends(['hybrid', 'rag:fused', 'http://localhost/run_turn'])\n"
        f"print([name for name in (*{SLOW!r}, 'numpy', 'tenacity') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
