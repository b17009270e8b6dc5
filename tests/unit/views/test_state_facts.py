"""A state shows each fact as one line; its JSON stands behind a line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from memreplay.paths import demo_recordings
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Timeline
from memreplay.views.document import LinesDocument
from memreplay.views.panels import MARKED, View
from memreplay.views.panels.stores import state_view
from memreplay.views.subjects import ValueSubject, WholeStateSubject


@pytest.fixture(scope="module")
def timeline() -> Iterator[Timeline]:
    with closing(Recording.open(demo_recordings()[0])) as recording:
        yield recording.timeline(recording.run().id, "identity-01")


def rows_of(view: View) -> list[str]:
    assert isinstance(view.document, LinesDocument)
    return ["".join(span.text for span in each.spans) for each in view.document.lines]


def test_what_is_known_stands_in_a_line_each_with_the_turn_that_said_it_and_its_change(timeline: Timeline) -> None:
    view = state_view("shared state", "shared_state:", timeline, "hybrid", 4, MARKED)
    rows = rows_of(view)
    assert "  user.employer = Cargolada · turn 1" in rows and "+ user.name = Arnau Ferrusola · turn 3" in rows
    name = rows.index("+ user.name = Arnau Ferrusola · turn 3")
    subject = view.document.subject(name)
    assert isinstance(subject, ValueSubject) and subject.path == ("shared_data", "user.name")


def test_the_json_stands_behind_a_line_and_what_changed_stays_in_view(timeline: Timeline) -> None:
    view = state_view("shared state", "shared_state:", timeline, "hybrid", 4, MARKED)
    (behind,) = view.folds
    assert isinstance(behind, WholeStateSubject) and view.document.subject(len(view.document) - 1) == behind
    assert not any('"shared_data"' in row for row in rows_of(view))
    opened = replace(view, in_view=len(view.document) - 1).unfolded({behind})
    assert any('"shared_data"' in row for row in rows_of(opened))
    assert opened.in_view is not None and opened.document.subject(opened.in_view) == behind


def test_before_anything_is_known_a_state_says_so(timeline: Timeline) -> None:
    for name in ("shared", "personal"):
        view = state_view(f"{name} state", f"{name}_state:", timeline, "hybrid", 1, MARKED)
        assert rows_of(view)[0] == "nothing is known yet" and "▸ the whole state as JSON" in rows_of(view)


def test_the_notes_of_an_agent_are_facts(timeline: Timeline) -> None:
    view = state_view("personal state", "personal_state:", timeline, "hybrid", 4, MARKED)
    rows = rows_of(view)
    note = "+ standing: If this turns into a legend I want my name spelt right · turn 3"
    assert note in rows
    subject = view.document.subject(rows.index(note))
    assert isinstance(subject, ValueSubject) and subject.path == ("scratchpad", "standing", "0")
