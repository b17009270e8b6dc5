"""A run survives the loss of its terminal, and every request to end saves it; the exit code says how it ended."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, Signals

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import OpenAIServer, answer, hang

_FULL = Path("/dev/full")


def _batch(folder: Path, *more: object) -> tuple[object, ...]:
    asked = ("--batch", "--dataset", "identity-01", "--backend", "closed_book")
    return (*asked, "--recording", folder / "r.sqlite3", *more)


def _results(folder: Path) -> int:
    return len(json.loads((folder / "r.results.json").read_text())["questions"])


@dataclass(frozen=True)
class LostStream:
    """``streams`` as the launcher takes them; a name alone is a pipe whose reader leaves after its first bytes."""

    name: str
    streams: dict[int, str | None]
    code: int = 0
    said: str = ""


LOST_STREAMS = (
    LostStream("standard error is a pipe that closes", {2: "pipe"}),
    LostStream("standard output is a pipe that closes", {1: "pipe"}),
    LostStream("both are a pipe that closes", {1: "pipe", 2: "pipe"}),
    LostStream("standard error is full", {2: str(_FULL)}),
    LostStream("standard output is full", {1: str(_FULL)}, 5, "standard output: No space left on device"),
    LostStream("standard error is closed", {2: None}),
    LostStream("standard output is closed", {1: None}),
    LostStream("all three are closed", {0: None, 1: None, 2: None}),
)


def _read_and_leave(pipe: Path) -> None:
    with pipe.open("rb", buffering=0) as reading:
        reading.read(1)


@pytest.mark.skipif(not _FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("lost", LOST_STREAMS, ids=lambda lost: lost.name)
def test_a_run_whose_output_is_lost_still_writes_its_results(
    launcher: Launcher, tmp_path: Path, lost: LostStream
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    streams = {number: pipe if name == "pipe" else name and Path(name) for number, name in lost.streams.items()}
    reader = threading.Thread(target=_read_and_leave, args=(pipe,), daemon=True)
    reader.start()
    run = launcher.start(tmp_path / "log", *_batch(tmp_path), streams=streams)
    assert run.wait() == lost.code, run.said
    assert lost.said in run.said and "Traceback" not in run.said
    assert _results(tmp_path) == 5


def _once(number: Signals) -> Callable[[Launcher, Path, OpenAIServer], int]:
    def end(launcher: Launcher, folder: Path, server: OpenAIServer) -> int:
        here = _batch(folder, "--model", "openai/stub", "--api-base", server.url, "--no-cache", "--timeout", 3600)
        run = launcher.start(folder / "log", *here)
        run.wait_until(lambda: server.requests)
        run.signal(number)
        return run.wait()

    return end


ENDING_SIGNALS = (SIGTERM, SIGHUP, SIGQUIT)


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_request_to_end_saves_the_run_and_says_how_to_resume_it(
    launcher: Launcher, run_cli: RunCli, tmp_path: Path, number: Signals
) -> None:
    with OpenAIServer([hang()]) as server:
        assert _once(number)(launcher, tmp_path, server) == 130
        said = (tmp_path / "log").read_text()
        assert "--resume" in said and "Traceback" not in said
        server.behaviour = [answer("Norway")]
        here = _batch(tmp_path, "--model", "openai/stub", "--api-base", server.url, "--no-cache", "--timeout", 3600)
        assert run_cli(*here, "--resume").code == 0
    assert _results(tmp_path) == 5


ATTACK = "\x1b]52;c;aGVsbG8=\x07\x1b[2J\u202egpj"


def _talk(attack: str) -> dict[str, object]:
    """A sample of LoCoMo with this in every text."""
    return {
        "sample_id": f"conv-{attack}",
        "conversation": {
            "speaker_a": f"Ana{attack}",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": f"Ana{attack}", "dia_id": "D1:1", "text": f"I live in Oslo{attack}."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice."},
            ],
        },
        "qa": [{"question": f"Where?{attack}", "answer": f"Oslo{attack}", "evidence": ["D1:1"], "category": 4}],
    }


def test_escape_sequences_of_a_dataset_reach_no_page_no_cast_and_no_test_report(
    run_cli: RunCli, tmp_path: Path
) -> None:
    markup = "</script><img src=x onerror=alert(1)>"
    dataset, recording = tmp_path / "talk.json", tmp_path / "r.sqlite3"
    dataset.write_text(json.dumps([_talk(ATTACK + markup)]))
    outputs = [tmp_path / name for name in ("r.html", "r.xml", "r.csv", "r.md", "r.json")]
    given = [part for output in outputs for part in ("--output", output)]
    batch = ("--batch", "--dataset", dataset, "--recording", recording, *given)
    page, cast, both = tmp_path / "x.html", tmp_path / "x.cast", tmp_path / "both.html"
    for command in (
        batch,
        ("export", recording, "--html", page, "--cast", cast),
        ("compare", recording, recording, "--output", both),
        ("why", recording, "--output", tmp_path / "why.html", "--output", tmp_path / "why.md"),
    ):
        ran = run_cli(*command)
        assert ran.code == 0, ran
    written = [*outputs, page, both, tmp_path / "why.html", tmp_path / "why.md"]
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert text and not {"\x1b", "\x07"} & set(text), path
        assert path.suffix != ".html" or (markup not in text and "<img src=x" not in text), path
    for path in (tmp_path / "r.csv", tmp_path / "r.md", tmp_path / "why.md"):
        assert "\u202e" not in path.read_text(encoding="utf-8"), path
    assert "onerror" in page.read_text(), "the id is there"
    drawn = "".join(json.loads(line)[2] for line in cast.read_text().splitlines()[1:])
    assert "Oslo" in drawn and "\x1b]52" not in drawn and "\u202e" not in drawn


def test_escape_sequences_of_a_dataset_reach_no_terminal(launcher: Launcher, tmp_path: Path) -> None:
    """Standard output and standard error both go to the log; no tables are coloured there."""
    folder = tmp_path / "in\x1b[31m\u202e"
    folder.mkdir()
    dataset = folder / "talk\x1b[1m.json"
    dataset.write_text(json.dumps([_talk(ATTACK)]))
    recording = folder / "r.sqlite3"
    outputs = [folder / name for name in ("r.json", "r.csv", "r.breakdown.csv", "r.md")]
    given = [part for output in outputs for part in ("--output", output)]
    batch = ("--batch", "--dataset", dataset, "--recording", recording, *given, "--by", "category")
    commands: tuple[tuple[object, ...], ...] = (
        batch,
        (*batch, "--resume"),
        ("recordings", "show", recording),
        ("report", recording),
        ("compare", recording, recording),
        ("validate", dataset),
        ("datasets", "--coverage", dataset),
        ("datasets", "export", dataset, "--output", folder / "x.json"),
        ("report", folder / "none\x1b[2J"),
    )
    for number, command in enumerate(commands):
        log = tmp_path / f"log{number}"
        assert launcher.run(log, *command) in (0, 2)
        said = log.read_bytes().decode()
        assert said and all(char.isprintable() or char in "\n\t" for char in said), command
        assert "Traceback" not in said
    for output in outputs:
        written = output.read_text(encoding="utf-8")
        assert "Oslo" in written or output.name.endswith((".breakdown.csv", ".md"))
        assert "\x1b" not in written and "\x07" not in written, output
        assert "\u202e" not in written or output.suffix == ".json", output


def test_ctrl_c_during_the_start_prints_no_traceback(launcher: Launcher, tmp_path: Path) -> None:
    run = launcher.start(tmp_path / "log", "validate")
    run.signal(SIGINT)
    assert run.wait() in (0, 130)
    assert "Traceback" not in run.said


def test_a_line_break_in_an_id_begins_no_line_of_its_own(run_cli: RunCli, tmp_path: Path) -> None:
    dataset = tmp_path / "talk.json"
    dataset.write_text(json.dumps([_talk("\n::error::forged\n")]))
    ran = run_cli("--batch", "--dataset", dataset, "--recording", tmp_path / "r.sqlite3")
    assert "forged" in ran.err
    assert not [line for line in (ran.err + ran.out).splitlines() if line.startswith("::error::")]
