"""A run imports what it uses: libraries that take long are left alone by memories that do not need them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
    "aiohttp",
    "distributed",
)

PROGRAM = """
import json, sys
from memreplay.__main__ import main
sys.argv = ["memreplay", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([name for name in {slow} if name in sys.modules]))
"""


def imported_by(folder: Path, backend: str) -> set[str]:
    """Those of the slow libraries that a batch run of one conversation imports."""
    outputs = ["--recording", str(folder / "r.sqlite3"), "--output", str(folder / "r.json")]
    command = [sys.executable, "-c", PROGRAM.format(slow=SLOW), "--batch", "--dataset", "identity-01"]
    done = subprocess.run([*command, "--backend", backend, *outputs], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("backend", "needed"),
    [("closed_book", set[str]()), ("full_context", {"fakeredis", "redis"}), ("rag", {"qdrant_client"})],
)
def test_a_run_imports_no_library_that_its_memory_does_not_need(
    tmp_path: Path, backend: str, needed: set[str]
) -> None:
    beside = {"onnxruntime", "httpx"} if backend == "rag" else set[str]()
    assert imported_by(tmp_path, backend) - beside == needed
