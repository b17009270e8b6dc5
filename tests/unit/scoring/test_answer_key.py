"""The answer-key overlay: what it may hold, and what it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Question
from memreplay.conversations.validation_errors import individual_errors
from memreplay.engine.answers import score_reply
from memreplay.engine.events import QuestionAsked
from memreplay.errors import DatasetError
from memreplay.llm.model import PromptMessage, Reply
from memreplay.scoring.aggregates import adjusted_of
from memreplay.scoring.answer_key import Adjusted, read_answer_key
from tests.unit.scoring.planted import conversation
from tests.unit.scoring.planted import question as planted
from tests.unit.scoring.samples import MODEL, choice, hit, recall, reply, row


def adjusted(tmp_path: Path, question: Question, said: Reply, **correction: Any) -> Adjusted | None:
    """An answer by a key that corrects this question so."""
    path = tmp_path / "errors.json"
    path.write_text(json.dumps({question.id: {"reason": "It says otherwise.", **correction}}))
    asked = QuestionAsked(
        conversation="c", turn=4, backend="rag", model=MODEL, question_id=question.id, hits=(hit(1, "t1"),), cut=(),
        context_tokens=3, prompt=(PromptMessage(role="user", segments=("x",)),), recall_ms=1.0,
    )  # fmt: skip
    return read_answer_key(path).adjusted(question, asked, said, score_reply(question, said))


def outcome(*arguments: Any, **correction: Any) -> str | None:
    found = adjusted(*arguments, **correction)
    assert found is not None
    return found.outcome


@pytest.mark.parametrize(
    ("said", "outcome_by_it"), [("3", "wrong"), ("1", "correct"), ("0", "wrong"), ("who knows", "unparsed")]
)
def test_a_choice_is_right_where_it_chose_the_corrected_option(
    tmp_path: Path, said: str, outcome_by_it: str
) -> None:
    assert outcome(tmp_path, choice(), reply(said), answer="Banana!") == outcome_by_it


def test_a_question_none_of_whose_options_is_right_is_left_out(tmp_path: Path) -> None:
    assert outcome(tmp_path, choice(), reply("3"), answer="durian") is None


def test_a_recall_answer_is_scored_against_the_corrected_one(tmp_path: Path) -> None:
    assert outcome(tmp_path, recall(), reply("Ida and Bo"), answer="Zoe") == "wrong"
    assert outcome(tmp_path, recall(), reply("It was Zoe."), answer="Zoe") == "correct"
    assert outcome(tmp_path, recall(), reply("It was not mentioned."), answer="Not answerable") == "correct"


def test_an_error_stays_an_error_and_a_refusal_a_refusal(tmp_path: Path) -> None:
    assert outcome(tmp_path, recall(), reply(None, error="timed out"), answer="Zoe") == "error"
    assert outcome(tmp_path, recall(), reply("Zoe", refused=True), answer="Zoe") == "refused"


def test_where_nothing_can_be_right_the_question_is_left_out(tmp_path: Path) -> None:
    found = adjusted(tmp_path, recall(), reply("Ida and Bo"), answer=None)
    assert found is not None and (found.outcome, found.expected) == (None, None)


def test_a_corrected_citation_changes_whether_the_evidence_was_there_and_not_the_score(tmp_path: Path) -> None:
    question = choice(evidence=("t9",), evidence_role="supports")
    found = adjusted(tmp_path, question, reply("3"), evidence=["t1"])
    assert found is not None
    assert (found.outcome, found.evidence, found.evidence_in_prompt) == ("correct", ("t1",), True)
    unchanged = adjusted(tmp_path, question, reply("3"), answer="quince")
    assert unchanged is not None and (unchanged.evidence, unchanged.evidence_in_prompt) == (("t9",), False)


def test_a_question_that_is_not_in_the_key_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "errors.json"
    path.write_text('{"another": {"reason": "r", "answer": "x"}}')
    question = choice()
    asked = QuestionAsked(
        conversation="c", turn=4, backend="rag", model=MODEL, question_id="q", hits=(), cut=(), context_tokens=0,
        prompt=(), recall_ms=1.0,
    )  # fmt: skip
    assert read_answer_key(path).adjusted(question, asked, reply("3"), score_reply(question, reply("3"))) is None


def test_raw_and_adjusted_scores_stand_side_by_side(tmp_path: Path) -> None:
    by_key = {
        answer: adjusted(tmp_path, choice(), reply(answer), answer="banana") for answer in ("3", "1", "who knows")
    }
    rows = [row(choice(), reply(answer)).model_copy(update={"adjusted": key}) for answer, key in by_key.items()]
    left_out = adjusted(tmp_path, choice(), reply("3"), answer=None)
    rows.append(row(choice(), reply("3")).model_copy(update={"adjusted": left_out}))
    rows.append(row(choice(), reply("3")))
    found = adjusted_of(rows)
    assert found is not None
    assert (found.corrected, found.changed, found.left_out) == (4, 3, 1)
    assert (found.graded, found.correct, found.accuracy) == (4, 2, 0.5)
    assert adjusted_of(rows[-1:]) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "/: is a list of 0; expected an object that maps question ids to corrections"),
        ("{", "is not valid JSON"),
        ('{"q/1": {"answer": "x"}}', "/q~11/reason: is missing"),
        ('{"q": {"reason": "r"}}', "/q: corrects nothing; expected an answer, or evidence, or both"),
        ('{"q": {"reason": " ", "answer": "x"}}', "/q/reason: is blank"),
        ('{"q": {"reason": "r", "answer": 3}}', "/q/answer: is 3; expected text"),
        ('{"q": {"reason": "r", "evidence": "D1:3"}}', '/q/evidence: is "D1:3"; expected a list'),
        ('{"q": {"reason": "r", "answer": "x", "note": "y"}}', "/q/note: is not a field of this format"),
        ('{"q": "8 May"}', '/q: is "8 May"; expected an object'),
    ],
)
def test_an_error_names_its_place_and_what_was_expected(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "errors.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match="expected") as raised:
        read_answer_key(path)
    assert says in str(raised.value) and str(path) in str(raised.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="does not exist"):
        read_answer_key(tmp_path / "absent.json")


def test_a_cited_turn_must_be_one_of_the_conversation(tmp_path: Path) -> None:
    path = tmp_path / "errors.json"
    cited = {"q": ["5", "12", "D"], "other": ["99"]}
    path.write_text(json.dumps({id_: {"reason": "r", "evidence": turns} for id_, turns in cited.items()}))
    with pytest.raises(DatasetError) as raised:
        read_answer_key(path).check([conversation(planted())])
    assert [one.pointer for one in individual_errors(raised.value)] == ["/q/evidence/1", "/q/evidence/2"]


_AUDITED = {
    "question_id": "locomo_1_qa3",
    "question": "Where is the kite?",
    "golden_answer": "on the roof",
    "category": 4,
    "error_type": "WRONG_CITATION",
    "cited_evidence": ["D1:1"],
    "correct_evidence": ["D1:2"],
    "reasoning": "She says so in D1:2.",
    "correct_answer": "On the roof.",
}


def test_the_published_audit_of_locomo_is_a_key(tmp_path: Path) -> None:
    path = tmp_path / "errors_conv_1.json"
    wrong = _AUDITED | {
        "question_id": "locomo_1_qa4",
        "correct_answer": "in the attic",
        "error_type": "HALLUCINATION",
    }
    path.write_text(json.dumps([_AUDITED, wrong]))
    key = read_answer_key(path)
    assert list(key.corrections) == ["conv-30_q3", "conv-30_q4"]
    cited, corrected = key.corrections.values()
    assert (cited.answer, cited.voids, cited.evidence) == (None, False, ("D1:2",))
    assert corrected.answer == "in the attic" and corrected.reason.startswith("HALLUCINATION: ")
    asked = planted().model_copy(update={"id": "conv-30_q3", "text": "Where is the boat?"})
    with pytest.raises(DatasetError, match="conv-30_q3/question"):
        key.check([conversation(asked)])


@pytest.mark.parametrize(
    ("change", "says"),
    [({"question_id": "conv-26_q1"}, "/0/question_id"), ({"question_id": "locomo_10_qa1"}, "/0/question_id"),
     ({"correct_answer": None}, "/0/correct_answer"), ({"correct_evidence": "D1:2"}, "/0/correct_evidence")],
)  # fmt: skip
def test_a_broken_audit_is_one_error_with_its_place(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "errors.json"
    path.write_text(json.dumps([_AUDITED | change]))
    with pytest.raises(DatasetError, match=says):
        read_answer_key(path)
