"""A copy of an agent's recording that can be shown to others: no personal data, the same verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import memreplay
from memreplay.capture.marks import add_mark
from memreplay.capture.redacting import Redaction, named, redacted_copy
from memreplay.errors import UsageError
from tests.stubs.agents import SAYS, USER, converse, recorded_notebook

PRIVATE = (
    "Write to ann.miller@corp.io or call 6045551234.",
    "The code of https://corp.io/door is 90210, says Ben.",
)


def test_equal_things_stay_equal_and_verdicts_stay(tmp_path: Path):
    path, copy = tmp_path / "agent.sqlite3", tmp_path / "copy.sqlite3"
    converse(recorded_notebook(path), says=(*SAYS, *PRIVATE), marked=True)
    add_mark(path, USER, 11, "lead engineer", ["3"])
    add_mark(path, USER, 9, "Lyon", ["7"])
    redacted_copy(path, copy, named(["Ann=Zoe"]))
    with memreplay.open(path) as original, memreplay.open(copy) as redacted:
        assert [row.failure for row in redacted.questions] == [row.failure for row in original.questions]
        assert redacted.settings["redacted"] is True
        (owner,) = redacted.conversations
        said = "\n".join(turn.text for turn in redacted.conversation(owner).turns)
    written = copy.read_bytes()
    for private in (b"Girona", b"Lyon", b"Bruno", b"Ann", b"Ben", b"miller", b"corp.io", b"6045551234", b"90210"):
        assert private not in written, private
    assert owner == "person-1"
    assert "My name is Zoe" in said and "person1@example.com" in said and "https://example.com/" in said


def test_a_name_is_replaced_however_it_is_written_and_a_word_that_only_looks_like_one_is_not():
    redaction = Redaction(digits=1, keeps_years=True)
    for text in ("I gave Tommy's bike to Zoé.", "We saw La Rosa.", "He took la otra, and la bici.", "Odile came."):
        redaction.learn(text)
    said = redaction.of("Tommy, tommy and TOMMY's La bici of 2019: 7 or 12. Odile")
    assert said.startswith("Alba, alba and ALBA's ")
    assert "ommy" not in said.casefold() and "La bici of 2019" in said
    assert redaction.numbers_left_in("2019: 7 or 12") == ["2019"]
    assert redaction.names_in("Tommy's Zoé, La") == ["Tommy", "Zoé"] and redaction.doubtful_in(said) == ["Odile"]


def test_a_name_behind_an_abbreviation_is_replaced_and_a_title_is_not():
    redaction = Redaction()
    says = "My dentist is Dr. Okonkwo. I work for Mrs. Quillan, St. Andrews branch. Ing. Novak and J. Ferrer left."
    redaction.learn(says)
    said = redaction.of(says)
    assert not [name for name in ("Okonkwo", "Quillan", "Andrews", "Novak", "Ferrer") if name in said], said
    assert [title for title in ("Dr.", "Mrs.", "St.", "J.") if title not in said] == [], said


def test_what_is_no_recording_of_an_agent_is_refused(tmp_path: Path):
    path = tmp_path / "run.sqlite3"
    converse(recorded_notebook(path))
    with pytest.raises(UsageError, match="exists already"):
        redacted_copy(path, path, {})
    with pytest.raises(UsageError, match="expected NAME=OTHER"):
        named(["Girona"])
