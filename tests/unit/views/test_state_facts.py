"""A state that keeps slots shows each as one line, before its JSON."""

from __future__ import annotations

from contextlib import closing

from memreplay.paths import demo_recordings
from memreplay.recording.reader import Recording
from memreplay.views.panels import MARKED
from memreplay.views.panels.stores import state_view
from memreplay.views.subjects import ValueSubject


def test_what_is_known_stands_first_with_the_turn_that_said_it_and_its_change() -> None:
    with closing(Recording.open(demo_recordings()[0])) as recording:
        timeline = recording.timeline(recording.run().id, "identity-01")
        view = state_view("shared state", "shared_state:", timeline, "hybrid", 4, MARKED)
        rows = [view.document.rows(block, 120)[0].text.rstrip() for block in range(6)]
        assert "  user.employer = Cargolada · turn 1" in rows
        assert "+ user.name = Arnau Ferrusola · turn 3" in rows
        name = rows.index("+ user.name = Arnau Ferrusola · turn 3")
        subject = view.document.subject(name)
        assert isinstance(subject, ValueSubject) and subject.path == ("shared_data", "user.name")


def test_the_notes_of_an_agent_stand_before_its_bookkeeping() -> None:
    with closing(Recording.open(demo_recordings()[0])) as recording:
        timeline = recording.timeline(recording.run().id, "identity-01")
        view = state_view("personal state", "personal_state:", timeline, "hybrid", 4, MARKED)
        rows = [view.document.rows(block, 200)[0].text.rstrip() for block in range(14)]
        note = "+ standing: If this turns into a legend I want my name spelt right · turn 3"
        assert note in rows
        subject = view.document.subject(rows.index(note))
        assert isinstance(subject, ValueSubject) and subject.path == ("scratchpad", "standing", "0")
