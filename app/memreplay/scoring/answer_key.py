"""The answer-key overlay: corrections of published answers that are wrong.

A JSON file that maps a question's id to its correction::

    {"conv-26_q12": {"answer": "8 May 2023", "evidence": ["D1:3"], "reason": "She says so in D1:3."}}

``reason`` is required, and so is ``answer`` (the correct answer) or ``evidence`` (the turns that contain it) or
both. An ``answer`` of null means that no answer is correct: the adjusted score excludes the question. It also
excludes a multiple-choice question without the corrected answer among its options. Raw scores never change;
adjusted scores are reported next to them. A ``question``, the text of the question, is compared with the dataset's.

The corrections of LoCoMo that others published (``errors.json``) are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import read_json
from memreplay.conversations.models import NOT_ANSWERABLE, Conversation, Frozen, Question
from memreplay.conversations.validation_errors import (
    ErrorCollector,
    Place,
    TextOrInteger,
    entries,
    shown,
    validated,
)
from memreplay.engine.events import QuestionAsked
from memreplay.grading import Outcome, Score
from memreplay.grading.judge import score_recall
from memreplay.llm.model import Reply
from memreplay.scoring.evidence_trail import turns_in_prompt
from memreplay.text import normalised

CONVERSATIONS = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
"""The numbers in the ids of LoCoMo's conversations, in the order of the published file."""

_ID = re.compile(r"locomo_(?P<conversation>\d+)_qa(?P<question>\d+)")


class _Audited(BaseModel):
    model_config = ConfigDict(strict=True)

    question_id: str
    question: Annotated[str, Field(min_length=1)]
    golden_answer: TextOrInteger
    correct_answer: TextOrInteger
    correct_evidence: list[str] = []
    error_type: str
    reasoning: str


def as_overlay_entry(entry: Any, place: Place) -> tuple[str, dict[str, Any]]:
    """Return the id of a question, and its correction as a field of our own format.

    Raises:
        DatasetError: it is no entry of the audit.
    """
    audited = validated(_Audited, entry, place)
    found = _ID.fullmatch(audited.question_id)
    if found is None or int(found["conversation"]) >= len(CONVERSATIONS):
        expected = f'"locomo_N_qaM" with N below {len(CONVERSATIONS)} ({entries(len(CONVERSATIONS))} in LoCoMo)'
        raise place.at("question_id").error(f"is {shown(audited.question_id)}", expected)
    correction: dict[str, Any] = {
        "reason": f"{audited.error_type}: {audited.reasoning}",
        "question": audited.question,
    }
    if normalised(audited.correct_answer) != normalised(audited.golden_answer):
        correction["answer"] = audited.correct_answer
    if audited.correct_evidence or "answer" not in correction:
        correction["evidence"] = audited.correct_evidence
    number = CONVERSATIONS[int(found["conversation"])]
    return f"conv-{number}_q{int(found['question'])}", correction


class Correction(Frozen):
    """The correct answer, or the correct evidence."""

    reason: str
    answer: str | None = None
    evidence: tuple[str, ...] | None = None
    question: str | None = None

    @property
    def voids(self) -> bool:
        """Return whether no answer can be correct."""
        return "answer" in self.model_fields_set and self.answer is None


class Adjusted(Frozen):
    """An answer by the corrected key. ``outcome`` is null if the adjusted score excludes the question."""

    reason: str
    expected: str | None
    outcome: Outcome | None
    evidence: tuple[str, ...]
    evidence_in_prompt: bool | None


class AnswerKey:
    """Corrections by question id, read from ``path``."""

    def __init__(self, path: Path, corrections: Mapping[str, Correction]) -> None:
        self.path = path
        self.corrections = corrections

    @property
    def reasons(self) -> dict[str, str]:
        """Return the reason of each correction."""
        return {id_: correction.reason for id_, correction in self.corrections.items()}

    def check(self, conversations: Iterable[Conversation]) -> None:
        """Check that the corrections are about these questions, and cite turns of their conversations.

        Raises:
            DatasetErrors: a question has another text, or a turn does not exist.
        """
        errors = ErrorCollector()
        for conversation in conversations:
            for question in conversation.questions:
                correction = self.corrections.get(question.id)
                about = correction.question if correction else None
                if about is not None and normalised(about) != normalised(question.text):
                    place = Place(self.path).at(question.id, "question")
                    errors.add(
                        place.error(f"is {shown(about)}", f"the text of the question, {shown(question.text)}")
                    )
                for index, turn in enumerate((correction and correction.evidence) or ()):
                    if turn not in conversation.turns_by_id:
                        place = Place(self.path).at(question.id, "evidence", index)
                        errors.add(place.error(f"is {shown(turn)}", f"a turn id of conversation {conversation.id}"))
        errors.raise_all()

    def adjusted(self, question: Question, asked: QuestionAsked, reply: Reply, score: Score) -> Adjusted | None:
        """Score an answer by the corrected key; None if the key does not correct the question."""
        correction = self.corrections.get(question.id)
        if correction is None:
            return None
        published = question.evidence if question.evidence_role == "supports" else ()
        evidence = published if correction.evidence is None else correction.evidence
        expected = question.expected if correction.answer is None else correction.answer
        return Adjusted(
            reason=correction.reason,
            expected=None if correction.voids else expected,
            outcome=_outcome(question, correction, reply, score),
            evidence=evidence,
            evidence_in_prompt=turns_in_prompt(asked).issuperset(evidence) if evidence else None,
        )


def read_answer_key(path: Path) -> AnswerKey:
    """Read an overlay.

    Raises:
        DatasetError: the file is missing or is not JSON, or a correction is invalid.
    """
    data, place = read_json(path), Place(path)
    if isinstance(data, list) and data:
        data = dict(as_overlay_entry(entry, place.at(index)) for index, entry in enumerate(data))
    if not isinstance(data, dict):
        raise place.error(f"is {shown(data)}", "an object that maps question ids to corrections")
    errors, corrections = ErrorCollector(), {}
    for question_id, entry in data.items():
        with errors.collecting():
            correction = validated(Correction, entry, place.at(question_id))
            if not correction.model_fields_set & {"answer", "evidence"}:
                raise place.at(question_id).error("corrects nothing", "an answer, or evidence, or both")
            if not correction.reason.strip():
                raise place.at(question_id, "reason").error("is blank", "why the published answer is wrong")
            corrections[question_id] = correction
    errors.raise_all()
    return AnswerKey(path, corrections)


def _outcome(question: Question, correction: Correction, reply: Reply, score: Score) -> Outcome | None:
    if correction.voids:
        return None
    if correction.answer is None:
        return score.outcome
    if question.kind == "choice":
        return _choice_outcome(question, correction.answer, score)
    if score.outcome in ("error", "refused"):
        return score.outcome
    corrected = question.model_copy(
        update={
            "expected": correction.answer,
            "expected_entities": (),
            "abstain": normalised(correction.answer) == normalised(NOT_ANSWERABLE),
        }
    )
    return score_recall(corrected, reply.text or "").outcome


def _choice_outcome(question: Question, answer: str, score: Score) -> Outcome | None:
    """Uses the option that the reply was parsed as: the reply itself may number the options differently."""
    right = [index for index, option in enumerate(question.choices) if normalised(option) == normalised(answer)]
    if not right:
        return None
    if score.outcome not in ("correct", "wrong"):
        return score.outcome
    return "correct" if score.predicted_index in right else "wrong"
