"""What is written in a format comes back from it, whatever the texts are."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memreplay.conversations.export import as_locomo_text, as_test_conversation, lost_in_locomo
from memreplay.conversations.formats.test_conversation import BANDS
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from memreplay.text import occurs_in
from tests.unit.conversations.samples import Json, longmemeval_entry, mc10_row, written, written_lines

# How long a file takes to write and read says nothing where tests run side by side.
UNTIMED = settings(deadline=None)

# Half of a surrogate pair is no text, and JSON parsers refuse it.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ROLE = st.sampled_from(["user", "assistant"])
SALIENCE = st.sampled_from(["high", "medium", "low"])
LOCATION = st.sampled_from(["early", "middle", "recent"])
NAME = st.text(string.ascii_letters, min_size=1, max_size=12)
DATE = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda date: date.replace(second=0, microsecond=0)
)


def loaded(name: str, data: Any, write: Callable[[Path, Any], Path] = written) -> list[Conversation]:
    with TemporaryDirectory() as folder:
        return list(load([str(write(Path(folder) / name, data))]))


METADATA = st.fixed_dictionaries(
    {"containsKeyInfo": st.booleans()},
    optional={
        "keyInfoType": st.sampled_from(["identity", "preference", "fact", "instruction"]),
        "salienceLevel": SALIENCE,
    },
)
CONVERSATION = st.fixed_dictionaries(
    {
        "id": NAME,
        "turns": st.lists(
            st.fixed_dictionaries({"role": ROLE, "content": TEXT}, optional={"metadata": METADATA}),
            min_size=1,
            max_size=12,
        ),
        "recallQuestions": st.lists(
            st.fixed_dictionaries(
                {
                    "question": TEXT,
                    "expectedAnswer": TEXT,
                    "expectedEntities": st.lists(TEXT, max_size=3),
                    "infoLocation": LOCATION,
                    "salienceLevel": SALIENCE,
                }
            ),
            max_size=4,
        ),
    },
    optional={"language": TEXT, "tags": st.lists(TEXT, min_size=1, max_size=3)},
)


@UNTIMED
@given(CONVERSATION)
def test_a_test_conversation_is_exported_as_it_was_written(data: Json) -> None:
    (conversation,) = loaded(f"{data['id']}.json", data)
    assert as_test_conversation(conversation) == data


@UNTIMED
@given(CONVERSATION)
def test_derived_evidence_lies_in_key_turns_of_the_location_and_holds_an_entity(data: Json) -> None:
    (conversation,) = loaded("any.json", data)
    is_marked = any(turn.key_info is not None and turn.key_info.contains_key_info for turn in conversation.turns)
    for question in conversation.questions:
        assert question.info_location is not None
        entities = question.expected_entities or (question.expected,)
        for turn in (conversation.turns_by_id[turn_id] for turn_id in question.evidence):
            assert turn.number in BANDS[question.info_location]
            assert not is_marked or (turn.key_info is not None and turn.key_info.contains_key_info)
            assert any(occurs_in(entity, turn.text) for entity in entities)


SPOKEN = st.lists(st.tuples(st.booleans(), TEXT), min_size=1, max_size=5)


@UNTIMED
@given(st.dictionaries(st.integers(1, 40), st.tuples(DATE, SPOKEN), min_size=1, max_size=4), st.data())
def test_locomo_keeps_who_said_what_when_and_the_evidence(
    sessions: dict[int, tuple[datetime, list[tuple[bool, str]]]], data: st.DataObject
) -> None:
    published: Json = {"speaker_a": "Ada", "speaker_b": "Bo"}
    expected: list[tuple[str, str, str, datetime]] = []
    for number, (date, said) in sessions.items():
        published[f"session_{number}_date_time"] = f"{date:%I:%M %p on %d %B, %Y}".lower().lstrip("0")
        published[f"session_{number}"] = [
            {"speaker": "Ada" if is_ada else "Bo", "dia_id": f"D{number}:{place}", "text": text}
            for place, (is_ada, text) in enumerate(said, start=1)
        ]
    for number in sorted(sessions):
        for turn in published[f"session_{number}"]:
            expected.append((turn["dia_id"], turn["speaker"], turn["text"], sessions[number][0]))
    evidence = data.draw(st.lists(st.sampled_from([turn[0] for turn in expected]), max_size=3, unique=True))
    asked = {"question": data.draw(TEXT), "answer": data.draw(TEXT), "category": 4, "evidence": evidence}
    (conversation,) = loaded("l.json", [{"sample_id": "s", "conversation": published, "qa": [asked]}])
    found = [(turn.id, turn.speaker, turn.text, conversation.date_of(turn)) for turn in conversation.turns]
    assert found == expected
    (question,) = conversation.questions
    assert (question.text, question.expected, question.evidence) == (
        asked["question"],
        asked["answer"],
        tuple(evidence),
    )


HAYSTACK = st.lists(
    st.tuples(DATE, st.lists(st.tuples(ROLE, TEXT), min_size=1, max_size=4)), min_size=1, max_size=4
)


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
@UNTIMED
@given(HAYSTACK, st.lists(TEXT, min_size=10, max_size=10), st.integers(0, 9), TEXT)
def test_locomo_mc10_keeps_the_haystack_and_the_choices(
    write: Callable[[Path, Any], Path],
    haystack: list[tuple[datetime, list[tuple[str, str]]]],
    choices: list[str],
    index: int,
    asked: str,
) -> None:
    row = mc10_row(
        question=asked,
        choices=choices,
        correct_choice_index=index,
        answer=choices[index],
        num_sessions=len(haystack),
        haystack_session_ids=[f"session_{number}" for number in range(1, len(haystack) + 1)],
        haystack_session_summaries=[None] * len(haystack),
        haystack_session_datetimes=[date.isoformat() for date, _ in haystack],
        haystack_sessions=[
            [{"role": role, "content": f"[ZOE]: {text}"} for role, text in said] for _, said in haystack
        ],
    )
    (conversation,) = loaded("rows.json", [row], write)
    assert [(turn.role, turn.speaker, turn.text, conversation.date_of(turn)) for turn in conversation.turns] == [
        (role, "Zoe", text, date) for date, said in haystack for role, text in said
    ]
    (question,) = conversation.questions
    assert (question.text, list(question.choices), question.correct_index) == (asked, choices, index)


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
@UNTIMED
@given(HAYSTACK, TEXT, st.data())
def test_longmemeval_keeps_the_haystack_in_the_order_of_its_dates(
    write: Callable[[Path, Any], Path],
    haystack: list[tuple[datetime, list[tuple[str, str]]]],
    asked: str,
    data: st.DataObject,
) -> None:
    sessions = [[{"role": role, "content": text} for role, text in said] for _, said in haystack]
    marked: Json = data.draw(st.sampled_from([message for session in sessions for message in session]))
    marked["has_answer"] = True
    entry = longmemeval_entry(
        question=asked,
        question_date=None,
        haystack_session_ids=[f"s{index}" for index in range(len(haystack))],
        haystack_dates=[f"{date:%Y/%m/%d} (Day) {date:%H:%M}" for date, _ in haystack],
        haystack_sessions=sessions,
        answer_session_ids=[],
    )
    (conversation,) = loaded("h.json", [entry], write)
    assert [(turn.role, turn.text, conversation.date_of(turn)) for turn in conversation.turns] == [
        (role, text, date) for date, said in sorted(haystack, key=lambda session: session[0]) for role, text in said
    ]
    (question,) = conversation.questions
    (evidence,) = question.evidence
    assert (question.text, conversation.turns_by_id[evidence].text) == (asked, marked["content"])


@UNTIMED
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)
    )
)
def test_any_other_json_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(DatasetError) as caught:
        loaded("any.json", json.loads(json.dumps(value)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["long-02", "identity-01"])
def test_a_history_written_as_locomo_keeps_what_is_said_when_and_what_is_asked(name: str) -> None:
    (original,) = load([name])
    (again,) = loaded("locomo10.json", json.loads(as_locomo_text([original])))
    assert [(turn.role, turn.text) for turn in again.turns] == [(turn.role, turn.text) for turn in original.turns]
    assert [session.date for session in again.sessions] == [session.date for session in original.sessions]
    asked = [question for question in original.questions if question.kind == "recall"]
    numbers = {turn.id: turn.number for one in (original, again) for turn in one.turns}
    assert [(each.text, each.expected, each.abstain) for each in again.questions] == [
        (each.text, each.expected, each.abstain) for each in asked
    ]
    for before, after in zip(asked, again.questions, strict=True):
        assert [numbers[turn] for turn in after.evidence] == [numbers[turn] for turn in before.evidence]
    assert ("the options" in " ".join(lost_in_locomo(original))) == (name == "long-02")


def test_locomo_written_as_locomo_is_the_same(tmp_path: Path) -> None:
    turns = [{"speaker": who, "dia_id": f"D1:{n}", "text": f"Word {n}."} for n, who in ((1, "Ana"), (2, "Bo"))]
    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
        },
        "qa": [
            {"question": "Which word?", "answer": "1", "evidence": ["D1:1"], "category": 1},
            {"question": "Why?", "evidence": ["D1:2"], "category": 5},
        ],
    }
    (conversation,) = loaded("locomo10.json", [sample])
    assert json.loads(as_locomo_text([conversation])) == [sample]
    assert lost_in_locomo(conversation) == ()
