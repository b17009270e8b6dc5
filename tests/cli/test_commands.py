"""Commands beside the run itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.stubs.launcher import Launcher


def test_help_loads_neither_screen_nor_models() -> None:
    script = (
        "import sys; sys.argv = ['memreplay', '--help']\n"
        "from memreplay.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('textual', 'litellm') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert "--batch" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_batch_never_loads_the_screen(launcher: Launcher, tmp_path: Path) -> None:
    asked = ("--batch", "--dataset", "identity-01", "--backend", "closed_book")
    log, modules = tmp_path / "log", tmp_path / "modules"
    code = launcher.run(log, *asked, "--recording", tmp_path / "r.sqlite3", modules=modules)
    assert code == 0, log.read_text()
    loaded = modules.read_text().splitlines()
    assert "litellm" in loaded and "textual" not in loaded


def test_a_batch_without_redis_never_loads_it(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("redis", "redis.asyncio", "redis.exceptions", "fakeredis"):
        monkeypatch.setitem(sys.modules, name, None)
    asked = ("--batch", "--dataset", "identity-01", "--backend", "rag")
    ran = run_cli(*asked, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 0, ran.err


def test_doctor_finds_the_embedded_defaults_ok(run_cli: RunCli) -> None:
    ran = run_cli("doctor")
    assert ran.code == 0
    assert all(subject in ran.out for subject in ("Redis", "Qdrant", "embedder", "memreplay/extractive"))
    assert "MISSING" not in ran.out


def test_doctor_says_what_is_missing_and_how_to_fix_it(run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_REDIS_URL", "redis://user:hunter2@127.0.0.1:1/0")
    ran = run_cli("doctor", "--model", "openai/gpt-4o-mini")
    assert ran.code == 4
    assert "127.0.0.1:1" in ran.out and "OPENAI_API_KEY" in ran.out and "fix: start it" in ran.out
    assert "hunter2" not in ran.out + ran.err


def test_recordings_are_listed_and_shown(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite3"
    run_cli("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path)
    shown = run_cli("recordings", "show", path)
    assert shown.code == 0
    assert "conversation identity-01: 18 turns, 5 questions, 5 answers" in shown.out
    listed = run_cli("recordings")
    assert listed.code == 0 and "demo.sqlite3" in listed.out
    absent = run_cli("recordings", "show", tmp_path / "absent.sqlite3")
    assert absent.code == 2 and "no such recording" in absent.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--fail-under", "0.5"), "--batch"),
        (("--top-k", "3", "doctor"), "--top-k"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_options_out_of_place_are_refused(run_cli: RunCli, arguments: tuple[str, ...], says: str) -> None:
    ran = run_cli(*arguments)
    assert ran.code == 2
    assert says in ran.err
