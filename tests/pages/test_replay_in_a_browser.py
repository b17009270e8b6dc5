"""The replay page in a real browser: the terminal's keys, and the terminal's panels at every position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memreplay.pages.replay import lines_of
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels.architectures import panels_of
from memreplay.views.text import visible
from tests.pages.browser import Opened, opened, serious_violations
from tests.stubs.in_process import made_in
from tests.tui.builder import HOSTILE, record

pytest.importorskip("vl_convert")

BACKENDS = ("hybrid", "rag", "full_context")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of a shipped conversation, with two notes."""
    folder = tmp_path_factory.mktemp("replay")
    backends = [part for name in BACKENDS for part in ("--backend", name)]
    small = ("--top-k", "3", "--context-tokens", "300")
    made_in(
        folder, "--batch", "--perceive", "--dataset", "multi-01", *backends, *small, "--recording", "run.sqlite3"
    )
    path = folder / "run.sqlite3"
    with closing(Recording.open(path)) as known:
        notes = annotations_of(path, known.run().id, "multi-01")
    notes.set_bookmark(Bookmark(mark="a", turn=3, note="Look at <b>this</b> first."))
    notes.set_bookmark(Bookmark(mark="b", turn=7, note="Here the fact is lost."))
    return path


@pytest.fixture(scope="module")
def pages(recording: Path) -> Path:
    """The folder of ``replay.html``, ``report.html`` and ``hostile.html``."""
    folder = recording.parent
    made_in(folder, "export", recording, "--html", "replay.html")
    made_in(folder, "report", recording, "--output", "report.html", "--replay", "multi-01")
    made_in(folder, "export", record(folder / "hostile.sqlite3", "tiny-01"), "--html", "hostile.html")
    return folder


@pytest.fixture(scope="module")
def timeline(recording: Path) -> Iterator[Timeline]:
    with closing(Recording.open(recording)) as known:
        yield known.timeline(known.run().id, "multi-01")


@pytest.fixture
def seen(browser: Any, pages: Path) -> Iterator[Opened]:
    found = opened(browser, pages / "replay.html", viewport={"width": 1400, "height": 900})
    yield found
    assert found.problems == []
    found.page.context.close()


def shown(page: Any) -> dict[str, list[str]]:
    """The lines of all panels on the page."""
    script = (
        "() => Object.fromEntries([...document.querySelectorAll('[data-panel]')].map((panel) =>"
        " [panel.dataset.panel, [...panel.children].map((row) => row.textContent)]))"
    )
    return dict(page.evaluate(script))


def expected(timeline: Timeline, turn: int, page: Any) -> dict[str, list[str]]:
    """The lines that the terminal shows at a position."""
    return {
        f"{backend}/{panel.name}": [
            "".join(span.text for span in line.spans) for line in lines_of(panel.at(turn))[0]
        ]
        for backend in BACKENDS
        for panel in panels_of(timeline, backend, page)
    }


def test_panels_equal_those_of_the_terminal_at_twenty_positions(seen: Opened, timeline: Timeline) -> None:
    page = seen.page
    last = timeline.reached
    for turn in Random(14).choices(range(last + 1), k=20):
        page.evaluate(f"location.hash = '#turn={turn}'")
        page.locator("output").filter(has_text=f"turn {turn}/" if turn < last else "closed").wait_for()
        assert shown(page) == expected(timeline, turn, "memory"), turn
    page.keyboard.press("v")
    page.locator("[data-panel='hybrid/candidates']").wait_for()
    assert shown(page) == expected(timeline, turn, "retrieval")


def test_the_keys_of_the_terminal_move_diff_search_and_lead_to_the_write(seen: Opened) -> None:
    page = seen.page
    output, said = page.locator("output"), page.locator(".said")

    def at(words: str) -> None:
        output.filter(has_text=words).wait_for()

    at("turn 3/")  # where the first bookmark is
    for keys, words in (
        (("g",), "turn 0/"),
        ((" ", "."), "turn 2/"),
        ((",",), "turn 1/"),
        (("5", "."), "turn 6/"),
        (("g",), "turn 0/"),
        (("]",), "turn 1/"),
        (("G",), "closed"),
        (("4", "G"), "turn 4/"),
    ):
        for key in keys:
            page.keyboard.press(key)
        at(words)

    page.keyboard.press("'")
    at("turn 7/")
    page.locator(".now").filter(has_text="Here the fact is lost.").wait_for()
    assert page.locator(".story [aria-current=true]").inner_text() == "turn 7: Here the fact is lost."
    page.keyboard.press("Backspace")
    at("turn 4/")

    page.keyboard.press("d")
    page.get_by_text("± since the previous turn").wait_for()
    page.locator("[data-panel='hybrid/shared state'] .t-added").first.wait_for()
    for words in ("± since ★ a (turn 3)", "± since ★ b (turn 7)", "± against hybrid"):
        page.keyboard.press("d")
        page.get_by_text(words).wait_for()

    page.keyboard.press("g")
    page.keyboard.press("/")
    page.keyboard.type("kotor")
    page.keyboard.press("Enter")
    said.filter(has_text="match 1 of ").wait_for()
    first = output.inner_text()
    page.keyboard.press("n")
    said.filter(has_text="match 2 of ").wait_for()
    page.keyboard.press("N")
    said.filter(has_text="match 1 of ").wait_for()
    assert output.inner_text() == first and page.locator(".match").count() > 0

    page.keyboard.press("G")
    page.keyboard.press("2")
    page.keyboard.press("j")
    page.locator(".row.chosen").wait_for()
    page.keyboard.press("w")
    said.filter(has_text="written at turn ").wait_for()
    page.keyboard.press("Backspace")
    at("closed")
    page.keyboard.press("p")
    page.get_by_role("button", name="play").filter(has_text="play").wait_for()

    page.get_by_label("turn", exact=True).fill("2")
    at("turn 2/")
    assert "turn=2" in page.url
    page.locator("#list li a").first.click()
    page.get_by_text("The prompt as sent").wait_for()


def test_a_report_steps_the_replay_that_has_the_focus(browser: Any, pages: Path) -> None:
    found = opened(browser, pages / "report.html", "#replay=multi-01&turn=5")
    page, output = found.page, found.page.locator("output")
    output.filter(has_text="turn 5/").wait_for()
    page.locator("h1").click()
    page.keyboard.press(".")
    page.get_by_role("group", name="hybrid: shared state").focus()
    page.keyboard.press(".")
    output.filter(has_text="turn 6/").wait_for()
    page.locator("#list li a").first.click()
    page.get_by_text("The prompt as sent").wait_for()
    assert "turn=6" in page.url and "q=multi-01-q1" in page.url
    assert found.problems == []
    page.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 500)])
def test_no_serious_violation_of_accessibility(browser: Any, pages: Path, scheme: str, width: int) -> None:
    found = opened(
        browser, pages / "replay.html", "#turn=7", color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    assert serious_violations(found.page) == []
    assert found.page.pdf().startswith(b"%PDF-")
    assert found.problems == []
    found.page.context.close()


def test_hostile_text_stays_text(browser: Any, pages: Path) -> None:
    found = opened(browser, pages / "hostile.html", "#turn=7")
    body = found.page.locator(".turn.here .body")
    assert body.evaluate("(box) => box.textContent").endswith(visible(HOSTILE))
    assert found.problems == []
    found.page.context.close()
