"""Asks the writing model of a recorded run again about facts that it never wrote, under one change at a time.

Nothing is stored: what a reply names is what the library would have been given. Replies are cached.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memory_backends.stores.trace import Extraction, ModelCall
from memreplay.errors import UsageError
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm.counting import Estimate
from memreplay.llm.model import MOST_TOKENS, AnswerModel, AnswerRequest
from memreplay.llm.parameters import HARMLESS
from memreplay.llm.ports import text_of_call
from memreplay.numbers import finite_count
from memreplay.recording.reader import Recording
from memreplay.runtime.changes import is_wrong
from memreplay.runtime.models import RunModels
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.evidence_trail import Trail
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.writer import Finding, facts_of, reading_of
from memreplay.settings import Settings
from memreplay.timeline.timeline import Answer, Timeline

WriterChange = Literal["unchanged", "larger_limit", "other_model", "edited_prompt"]

_AGAIN: Final = 1_000
"""Added to the repetition of a request, so that it is not answered from the cache of the run."""


@dataclass(frozen=True)
class WriterChanges:
    """The changes to try: ``limit`` of a reply in tokens (twice the recorded one if None), another ``model``, and
    an ``instructions`` text in place of the recorded one.
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
    """The outcome of a call under a change: the ``facts`` that a library would have been given."""

    change: WriterChange
    facts: tuple[str, ...]
    reading: str
    holds: bool
    cost_usd: float | None
    problem: str | None = None

    @property
    def failed(self) -> bool:
        """Return whether no reply came."""
        return self.reading == "failed"


def lost_facts(recording: Recording, run_id: str) -> Iterator[LostFact]:
    """Yield the facts of wrong answers that a writing model was called for and that were never written."""
    for conversation_id in recording.conversation_ids(run_id):
        timeline = recording.timeline(run_id, conversation_id)
        attributor = Attributor(timeline)
        seen: set[tuple[str, str]] = set()
        for answer in filter(is_wrong, timeline.answers()):
            for fact in facts_lost_by(timeline, answer, attributor):
                if (fact.backend, fact.turn) not in seen:
                    seen.add((fact.backend, fact.turn))
                    yield fact


def facts_lost_by(timeline: Timeline, answer: Answer, attributor: Attributor | None = None) -> Iterator[LostFact]:
    """Yield the facts of one answer that its memory's writing model was called for and that were never written."""
    asked, found = answer.asked, attributor or Attributor(timeline)
    question = timeline.question(asked.question_id)
    for trail in _trails(found, answer) if question is not None else ():
        call = _call_of(trail, timeline.calls_at(asked.backend, _position(trail)))
        if question is not None and call is not None and trail.writer is not None:
            answerable = found.answerable(question)
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
    """Return the request of a recorded call under a change.

    Of the recording only texts, calls of tools and :data:`HARMLESS` parameters are taken: anything else could name
    an address, a file or a key.
    """
    parameters = {name: value for name, value in _object(call.parameters).items() if name in HARMLESS}
    messages = [_as_sent(message.role, message.text, message.more) for message in call.messages]
    model = call.model
    match change:
        case "larger_limit":
            limit = finite_count(parameters.get("max_tokens"), MOST_TOKENS) or call.cut_at or 0
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
    beside = _object(more)
    parts = beside.get("content")
    if isinstance(parts, list):
        texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        text = "\n".join(each for each in texts if isinstance(each, str))
    kept: dict[str, Any] = {
        name: value for name, value in beside.items() if name in ("name", "tool_calls", "tool_call_id")
    }
    return {"role": role, "content": text, **kept}


def _object(recorded: str | None) -> dict[str, Any]:
    """Return a recorded JSON object; empty for anything else."""
    try:
        value = json.loads(recorded or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def estimate_of(facts: Sequence[LostFact], wanted: WriterChanges) -> dict[str, Estimate]:
    """Return what asking again takes, by model: as many tokens as the recorded calls took."""
    rows: dict[str, Estimate] = {}
    for fact in facts:
        for change in wanted.names:
            row, more = (
                rows.setdefault(model_of(fact, change, wanted), Estimate()),
                estimate_of_change(fact, change),
            )
            row.asked += 1
            row.calls += 1
            row.prompt_tokens += more.prompt_tokens
            row.reply_tokens += more.reply_tokens
    return rows


def estimate_of_change(fact: LostFact, change: WriterChange) -> Estimate:
    """Return what one call takes: as many tokens as the recorded one, and twice the reply with a larger limit."""
    reply_tokens = fact.call.completion_tokens * (2 if change == "larger_limit" else 1)
    return Estimate(calls=1, prompt_tokens=fact.call.prompt_tokens, reply_tokens=reply_tokens)


def model_of(fact: LostFact, change: WriterChange, wanted: WriterChanges) -> str:
    """Return the model that is asked under a change."""
    return wanted.model if change == "other_model" and wanted.model else fact.call.model


async def ask_again(
    fact: LostFact, change: WriterChange, wanted: WriterChanges, model: AnswerModel, settings: Settings
) -> Rewritten:
    """Ask the writer again about one fact under one change.

    An event may name any model; only the run's writer is asked, and the one that the user names.
    """
    request = request_of(fact.call, change, wanted, settings.api_base)
    if request.model not in (settings.extractor, wanted.model):
        problem = f"{request.model} is not the writer of the run's settings, and is not asked"
        return Rewritten(change, (), "failed", False, None, problem)
    reply = await model.answer(request)
    made = ModelCall(purpose="chat", model=request.model, error=reply.error, **text_of_call(request, reply))
    facts = facts_of(made)
    pieces = [Piece(text, frozenset([fact.turn])) for text in facts]
    holds = bool(facts) and fact.answerable.part_held_by(fact.turn, pieces)
    return Rewritten(change, facts, reading_of(made)[0], holds, reply.cost_usd, reply.error)


class WriterAgain:
    """The writing model of a recorded run, opened at the first call. ``settings`` are those of the run."""

    def __init__(self, settings: Settings, run_id: str) -> None:
        if settings.extractor is None:
            raise UsageError("the run names no --extractor, so that its writer cannot be called")
        self._settings, self._run_id = settings, run_id
        self._models: RunModels | None = None

    async def ask(self, fact: LostFact, change: WriterChange, wanted: WriterChanges) -> Rewritten:
        """Ask about one fact under one change. Raises what the model raises where it is not available."""
        if self._models is None:
            self._models = RunModels(self._settings, lambda: self._run_id, lambda sentence: None)
            await self._models.warm_up()
        model = self._models.writing_model
        assert model is not None
        return await ask_again(fact, change, wanted, model, self._settings)

    def close(self) -> None:
        """Release the cache of replies."""
        if self._models is not None:
            self._models.close()
            self._models = None
