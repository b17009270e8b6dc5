"""Asks the writing model of a recorded run again about facts that it never wrote, under one change at a time.

Nothing is stored: what a reply names is what the library would have been given. Replies are cached.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memory_backends.stores.trace import Extraction, ModelCall
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm.counting import Estimate
from memreplay.llm.model import AnswerModel, AnswerRequest
from memreplay.llm.ports import text_of_call
from memreplay.recording.reader import Recording
from memreplay.runtime.changes import is_wrong
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import Trail
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.writer import Finding, facts_of, reading_of
from memreplay.timeline.timeline import Answer

WriterChange = Literal["unchanged", "larger_limit", "other_model", "edited_prompt"]

_AGAIN: Final = 1_000
"""Added to the repetition of a request, so that it is not answered from the cache of the run."""


@dataclass(frozen=True)
class WriterChanges:
    """What to try: ``limit`` of a reply in tokens (twice the recorded one if None), another ``model``, and an
    ``instructions`` text in place of the recorded one.
    """

    limit: int | None = None
    model: str | None = None
    instructions: str | None = None

    @property
    def names(self) -> tuple[WriterChange, ...]:
        """Return the changes in the order of asking."""
        others: list[WriterChange] = ["unchanged", "larger_limit"]
        if self.model is not None:
            others.append("other_model")
        if self.instructions is not None:
            others.append("edited_prompt")
        return tuple(others)


@dataclass(frozen=True)
class LostFact:
    """An evidence turn that was never written, and the call that should have named it."""

    question_id: str
    backend: str
    turn: str
    finding: Finding
    call: ModelCall | Extraction
    answerable: Answerable


@dataclass(frozen=True)
class Rewritten:
    """What came of a call under a change: the ``facts`` that a library would have been given."""

    change: WriterChange
    facts: tuple[str, ...]
    reading: str
    holds: bool
    cost_usd: float | None


def lost_facts(recording: Recording, run_id: str) -> Iterator[LostFact]:
    """Yield the facts of wrong answers that a writing model was called for and that were never written."""
    for conversation_id in recording.conversation_ids(run_id):
        timeline = recording.timeline(run_id, conversation_id)
        attributor = Attributor(timeline)
        seen: set[tuple[str, str]] = set()
        for answer in filter(is_wrong, timeline.answers()):
            asked = answer.asked
            question = timeline.question(asked.question_id)
            if question is None:
                continue
            for trail in _trails(attributor, answer):
                call = _call_of(trail, timeline.calls_at(asked.backend, _position(trail)))
                if call is None or trail.writer is None or (asked.backend, trail.turn) in seen:
                    continue
                seen.add((asked.backend, trail.turn))
                answerable = attributor.answerable(question)
                yield LostFact(asked.question_id, asked.backend, trail.turn, trail.writer, call, answerable)


def _trails(attributor: Attributor, answer: Answer) -> list[Trail]:
    """Return the trails of an answer; none where the rules fail on it."""
    try:
        with grading_one_answer():
            return attributor.trails(answer)
    except GradingError:
        return []


def _position(trail: Trail) -> int:
    return -1 if trail.writer is None or trail.writer.at is None else trail.writer.at


def _call_of(trail: Trail, calls: Sequence[ModelCall | Extraction]) -> ModelCall | Extraction | None:
    """Return the first call for a turn; the last one where the update step lost it.

    None where the writer named the fact, and the library alone lost it.
    """
    made = [call for call in calls if call.messages]
    if not made or (trail.writer is not None and trail.writer.cause == "not_stored"):
        return None
    is_update = trail.writer is not None and trail.writer.cause == "removed_by_update"
    return made[-1] if is_update else made[0]


def request_of(
    call: ModelCall | Extraction, change: WriterChange, wanted: WriterChanges, base: str | None
) -> AnswerRequest:
    """Return the request of a recorded call under a change."""
    parameters: dict[str, Any] = json.loads(call.parameters or "{}")
    messages = [_as_sent(message.role, message.text, message.more) for message in call.messages]
    model = call.model
    match change:
        case "larger_limit":
            limit = int(parameters.get("max_tokens") or call.cut_at or 0)
            parameters["max_tokens"] = wanted.limit or limit * 2
        case "other_model":
            model = wanted.model or model
        case "edited_prompt":
            first = messages[0]
            if first["role"] == "system":
                messages[0] = {**first, "content": wanted.instructions}
            else:
                messages.insert(0, {"role": "system", "content": wanted.instructions})
    return AnswerRequest(
        model=model,
        api_base=base,
        messages=(),
        parameters=parameters,
        repeat=call.repeat + _AGAIN,
        raw_messages=tuple(messages),
        accepts_cut_reply=True,
    )


def _as_sent(role: str, text: str, more: str | None) -> dict[str, Any]:
    return {"role": role, "content": text, **(json.loads(more) if more else {})}


def estimate_of(facts: Sequence[LostFact], wanted: WriterChanges) -> dict[str, Estimate]:
    """Return what asking again takes, by model: as many tokens as the recorded calls took."""
    rows: dict[str, Estimate] = {}
    for fact in facts:
        for change in wanted.names:
            model = wanted.model if change == "other_model" and wanted.model else fact.call.model
            row = rows.setdefault(model, Estimate())
            row.asked += 1
            row.calls += 1
            row.prompt_tokens += fact.call.prompt_tokens
            row.reply_tokens += fact.call.completion_tokens * (2 if change == "larger_limit" else 1)
    return rows


async def ask_again(
    fact: LostFact, change: WriterChange, wanted: WriterChanges, model: AnswerModel, base: str | None
) -> Rewritten:
    """Ask the writer again about one fact under one change."""
    request = request_of(fact.call, change, wanted, base)
    reply = await model.answer(request)
    made = ModelCall(purpose="chat", model=request.model, error=reply.error, **text_of_call(request, reply))
    facts = facts_of(made)
    pieces = [Piece(text, frozenset([fact.turn])) for text in facts]
    holds = bool(facts) and fact.answerable.part_held_by(fact.turn, pieces)
    return Rewritten(change, facts, reading_of(made)[0], holds, reply.cost_usd)
