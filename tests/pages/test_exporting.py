"""``memreplay export``: pages and casts as files, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.errors import UsageError
from memreplay.pages.replay import MOST_TURNS, Stretch, replay_data
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline
from tests.cli.conftest import run_cli as run_cli
from tests.tui.builder import conversation, record, timeline


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two conversations; the first has a note at turn 5."""
    path = record(tmp_path / "r.sqlite3", "tiny-01", "tiny-02")
    with closing(Recording.open(path)) as known:
        run = known.run().id
    annotations_of(path, run, "tiny-01").set_bookmark(Bookmark(mark="a", turn=5, note="Girona, not Barcelona."))
    return path


def test_a_cast_plays_the_screen_of_every_turn_with_its_notes_as_markers(
    run_cli: Any, recording: Path, tmp_path: Path
) -> None:
    pyte = pytest.importorskip("pyte")
    path = tmp_path / "r.cast"
    ran = run_cli("export", recording, "--cast", path, "--conversation", "tiny-01")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    header, *events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert (header["version"], header["width"], header["height"]) == (2, 120, 36)
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    seen, noted = [], []
    for time, code, text in events[:-1]:
        if code == "m":
            noted.append((time, text))
            continue
        stream.feed(text)
        seen.append(screen.display[0])
    assert [f"turn {turn}/8" in seen[turn] for turn in range(9)] == [True] * 9
    assert noted == [(5.0, "Girona, not Barcelona.")]
    assert [time for time, _, _ in events] == sorted(time for time, _, _ in events)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ((), "give --html PATH or --cast PATH"),
        (("--html", "x.html", "--turns", "5"), "--turns 5: expected two turn numbers"),
        (("--html", "x.html", "--turns", "5-2"), "--turns 5-2: expected two turn numbers"),
        (("--html", "x.html", "--turns", "90-99"), "expected turns between 1 and "),
        (("--html", "x.html", "--conversation", "none"), "--conversation none: expected tiny-01, tiny-02"),
        (("--html", "x.html", "--run", "none"), "no run none"),
        (("--html", "absent/x.html"), "memreplay: absent/x.html: cannot be written: not a file"),
        (("--html", "r.sqlite3"), "would overwrite the input"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence_and_exit_code_2(
    run_cli: Any, recording: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(recording.parent)
    ran = run_cli("export", recording.name, *more)
    assert (ran.code, ran.out) == (2, "") and says in ran.err and "Traceback" not in ran.err
    assert not Path("x.html").exists()


def test_a_part_of_a_conversation_starts_from_what_was_there(run_cli: Any, recording: Path) -> None:
    with closing(Recording.open(recording)) as known:
        whole = known.timeline(known.run().id, "tiny-01")
        part = replay_data(whole, (), Stretch.of(whole, (4, 6)), whole.backends)
        everything = replay_data(whole, (), Stretch.of(whole, None), whole.backends)
    assert (part["first"], part["last"]) == (3, 6)
    for panel, same in zip(part["panels"], everything["panels"], strict=True):
        assert _texts(part, panel, 3) == _texts(everything, same, 6)


def _texts(data: Any, panel: Any, index: int) -> list[Any]:
    """The texts of a panel after some steps."""
    lines: list[int] = []
    for step in panel["marked"][: index + 1]:
        if step:
            start, removed, *added = step
            lines[start : start + removed] = added
    return [data["texts"][data["lines"][line][0]] for line in lines]


def test_too_long_a_conversation_is_refused_with_what_to_do() -> None:
    class Long(Timeline):
        reached = 20_000

        def __init__(self) -> None:
            self.conversation = conversation()

    with pytest.raises(UsageError, match=f"at most {MOST_TURNS:,}: it would take long to open; .* --turns 1-"):
        Stretch.of(Long(), None)
    assert Stretch.of(Long(), (19_001, 20_000)) == Stretch(19_000, 20_000)
    assert Stretch.of(timeline(), None).first == 0


def test_a_report_replays_the_conversations_that_are_chosen(run_cli: Any, recording: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "report.html"
    assert run_cli("report", recording, "--output", page, "--replay", "tiny-01").code == 0
    text = page.read_text(encoding="utf-8")
    assert 'data-replay="replay-data-0"' in text and 'id="replay-data-0"' in text
    assert run_cli("report", recording, "--output", page, "--replay", "none").code == 2
    ran = run_cli("report", recording, "--output", tmp_path / "r.json", "--replay", "tiny-01")
    assert ran.code == 2 and "--replay needs an HTML report" in ran.err
