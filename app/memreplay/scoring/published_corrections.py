"""The published corrections of LoCoMo, as an answer key.

Source of the format: github.com/dial481/locomo-audit, ``errors.json``: a list of the questions whose answer or
evidence is wrong. Their ids count the conversations of ``locomo10.json``, and the questions of each, from 0. An
answer that the audit leaves as it was is not corrected, only its evidence.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.validation_errors import Place, TextOrInteger, entries, shown, validated
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
    """The id of a question, and its correction as a field of our own format.

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
