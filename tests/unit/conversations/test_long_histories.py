"""Histories in dated sessions, with named evidence and options."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.formats.test_conversation import ordered_options, thirds
from memreplay.conversations.models import Conversation
from memreplay.conversations.option_style import option_style
from memreplay.conversations.registry import default_datasets, load, named_files
from memreplay.conversations.validation import Tally, errors_in_files
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import Json, boat_conversation, recall_question, written

LONG = [f"long-{number:02}" for number in range(1, 5)]


def history() -> Json:
    """Two sessions of a lock keeper; a question with options, and one that cannot be answered."""
    return {
        "id": "tide-01",
        "speakers": {"user": "Ada", "assistant": "Bot"},
        "sessions": [
            {
                "date": "2025-01-14T19:05",
                "summary": "Ada keeps a lock.",
                "turns": [
                    {"role": "user", "content": "I keep the sea lock. They pay me 900."},
                    {"role": "assistant", "content": "Grease the hinge with tallow."},
                ],
            },
            {
                "date": "2025-03-02",
                "turns": [
                    {"role": "user", "content": "They pay me 1,140 now."},
                    {"role": "assistant", "content": "Well deserved."},
                ],
            },
        ],
        "recallQuestions": [
            {
                "question": "What does the keeper earn?",
                "expectedAnswer": "1,140",
                "expectedEntities": ["1,140"],
                "type": "update",
                "evidence": ["D2:1"],
                "supersedes": ["900"],
                "options": ["1,140", "900", "1,410", "Not answerable"],
            },
            {
                "question": "Which boat does she own?",
                "expectedAnswer": "Not answerable",
                "expectedEntities": [],
                "type": "adversarial",
                "evidence": ["D1:1"],
            },
        ],
    }


def loaded(folder: Path, data: Json) -> Conversation:
    (conversation,) = load([str(written(folder / f"{data['id']}.json", data))])
    return conversation


def test_turns_have_the_date_the_id_and_the_speaker_of_their_session(tmp_path: Path) -> None:
    conversation = loaded(tmp_path, history())
    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert [turn.number for turn in conversation.turns] == [1, 2, 3, 4]
    assert [str(conversation.date_of(turn)) for turn in conversation.turns[1:3]] == [
        "2025-01-14 19:05:00",
        "2025-03-02 00:00:00",
    ]
    assert [conversation.label_of(turn) for turn in conversation.turns[:2]] == ["Ada", "Bot"]
    assert conversation.sessions[0].summary == "Ada keeps a lock."


def test_a_question_with_options_is_asked_as_recall_and_as_multiple_choice(tmp_path: Path) -> None:
    recall, choice, adversarial = loaded(tmp_path, history()).questions
    assert (recall.id, recall.kind, recall.type, recall.choices) == ("tide-01-q1", "recall", "update", ())
    assert (choice.id, choice.kind, choice.text) == ("tide-01-q1-mc", "choice", recall.text)
    assert choice.correct_index is not None and choice.choices[choice.correct_index] == "1,140"
    assert recall.supersedes == choice.supersedes == ("900",)
    assert (recall.evidence, recall.evidence_role, recall.info_location) == (("D2:1",), "supports", "middle")
    assert (adversarial.abstain, adversarial.evidence_role, adversarial.info_location) == (
        True,
        "tempting",
        "early",
    )


def test_the_order_of_the_options_in_the_file_tells_nothing() -> None:
    options = ["a", "b", "c", "d", "e"]
    assert ordered_options("q1", options) == ordered_options("q1", options[::-1])
    first = Counter(ordered_options(f"q{number}", options)[0] for number in range(500))
    assert set(first) == set(options) and max(first.values()) < 150


@pytest.mark.parametrize("turns", [1, 2, 3, 4, 10, 442])
def test_every_turn_of_a_history_lies_in_one_third(turns: int) -> None:
    assert [number for numbers in thirds(turns).values() for number in numbers] == list(range(1, turns + 1))


def test_a_short_conversation_can_use_the_new_fields_too(tmp_path: Path) -> None:
    data = boat_conversation()
    data["recallQuestions"] = [
        recall_question(options=["Petrel", "Skua", "Not answerable"], evidence=["1"], type="single_fact")
    ]
    recall, choice = loaded(tmp_path, data).questions
    assert (recall.id, choice.id) == ("harbour-07-q1", "harbour-07-q1-mc")
    assert (recall.type, recall.evidence, recall.info_location) == ("single_fact", ("1",), "early")


@pytest.mark.parametrize("field", ["infoLocation", "salienceLevel"])
def test_location_and_salience_are_required_without_sessions(tmp_path: Path, field: str) -> None:
    data = boat_conversation()
    del data["recallQuestions"][0][field]
    with pytest.raises(DatasetError) as caught:
        loaded(tmp_path, data)
    assert (caught.value.pointer, caught.value.problem) == (f"/recallQuestions/0/{field}", "is missing")


def test_long_histories_are_run_only_if_they_are_named() -> None:
    default = {entry.id for entry in default_datasets()}
    assert len(default) == 34 and default.isdisjoint(LONG)
    assert [path.stem for path in named_files([])] == sorted(default)
    assert [path.stem for path in named_files(["long-*"])] == LONG


def test_the_shipped_histories_ask_everything_that_a_long_history_can_be_asked() -> None:
    histories = list(load(["long-*"]))
    assert [history.language for history in histories].count("es") == 1
    for conversation in histories:
        recall = [question for question in conversation.questions if question.kind == "recall"]
        assert len(conversation.sessions) >= 12 and len(conversation.turns) >= 250 and len(recall) >= 40
        assert len({question.type for question in recall}) == 7
        style = option_style(conversation.questions)
        assert style is not None and style.questions == len(recall) and style.blind_guesser < 0.15


def test_the_shipped_histories_spread_salience_over_the_locations() -> None:
    counts = Counter(
        (question.info_location, question.salience)
        for conversation in load(["long-*"])
        for question in conversation.questions
        if question.kind == "recall"
    )
    for location in ("early", "middle", "recent"):
        of_location = {salience: n for (place, salience), n in counts.items() if place == location}
        assert all(count >= 0.2 * sum(of_location.values()) for count in of_location.values()), location


def errors_of(folder: Path, data: Any) -> list[tuple[str, str]]:
    path = written(folder / "long-01.json", data)
    return [(error.pointer, error.problem) for error in errors_in_files([path], Tally(), by_design=lambda _: True)]


@pytest.fixture
def shipped() -> Json:
    (path,) = named_files(["long-01"])
    data: Json = json.loads(path.read_text(encoding="utf-8"))
    return data


def question_of(data: Json, question_type: str) -> tuple[int, Json]:
    return next((i, q) for i, q in enumerate(data["recallQuestions"]) if q["type"] == question_type)


def test_a_history_that_is_too_short_is_reported(shipped: Json, tmp_path: Path) -> None:
    shipped["sessions"] = shipped["sessions"][:3]
    shipped["recallQuestions"] = [
        question
        for question in shipped["recallQuestions"]
        if all(turn.startswith(("D1:", "D2:", "D3:")) for turn in question["evidence"])
    ]
    found = dict(errors_of(tmp_path, shipped))
    assert found["/sessions"].startswith("hold ") and found["/recallQuestions"].startswith("has ")


@pytest.mark.parametrize(
    ("question_type", "changes", "field", "problem"),
    [
        ("single_fact", {"type": None}, "type", "is missing"),
        ("single_fact", {"evidence": None}, "evidence", "is missing"),
        ("single_fact", {"salienceLevel": None}, "salienceLevel", "is missing"),
        ("single_fact", {"options": None}, "options", "has 0 entries"),
        ("single_fact", {"expectedEntities": []}, "expectedEntities", "is empty"),
        ("update", {"supersedes": None}, "supersedes", "is missing"),
        ("assistant_said", {"evidence": ["D1:1"]}, "evidence", "names only turns of the user"),
        ("multi_session", {"evidence": ["D1:1", "D1:3"]}, "evidence", "lies in one session"),
    ],
)
def test_a_question_that_lacks_what_a_history_needs_is_reported(
    shipped: Json, tmp_path: Path, question_type: str, changes: Json, field: str, problem: str
) -> None:
    index, question = question_of(shipped, question_type)
    shipped["recallQuestions"][index] = {k: v for k, v in (question | changes).items() if v is not None}
    assert (f"/recallQuestions/{index}/{field}", problem) in errors_of(tmp_path, shipped)


def test_options_that_give_the_answers_away_are_reported(shipped: Json, tmp_path: Path) -> None:
    for question in shipped["recallQuestions"]:
        answer = question["expectedAnswer"]
        variations = [f"{answer} {letter}" for letter in "abcdefgh"]
        question["options"] = list(dict.fromkeys([answer, "Not answerable", *variations, "Another"]))[:10]
    found = dict(errors_of(tmp_path, shipped))
    assert "a guesser that sees nothing else picks" in found["/recallQuestions"]


def test_an_entity_that_the_evidence_does_not_hold_is_reported(shipped: Json, tmp_path: Path) -> None:
    index, question = question_of(shipped, "single_fact")
    question["evidence"] = ["D1:2"] if question["evidence"] != ["D1:2"] else ["D1:4"]
    problems = dict(errors_of(tmp_path, shipped))
    assert "does not occur in the evidence" in problems[f"/recallQuestions/{index}/expectedEntities/0"]
