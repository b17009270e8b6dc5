"""``git bisect`` for memory: when each memory of a recorded run learnt the answer of a question, and forgot it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, get_args

from memory_backends.base import Recall
from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.lifetime import (
    IsKnown,
    Lifetime,
    given_holds,
    has_written,
    heard_at,
    lifetime,
    stored_at,
    stores_are_seen,
)
from memreplay.engine.answers import choice_order, is_for_a_judge, score_by_rules, with_order
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import MemreplayError
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm import AGENT_MODEL
from memreplay.llm.prompt_templates import prompt_template
from memreplay.llm.prompts import build_request
from memreplay.llm.tokens import context_budget
from memreplay.runtime.changes import AskableMemory
from memreplay.runtime.reasking import Reasking
from memreplay.timeline.timeline import Timeline

By = Literal["stored", "prompt", "answer"]
BY: tuple[By, ...] = get_args(By)
"""The test of knowing an answer: what is stored holds the answer, by the recording alone; what the rebuilt memory
returns holds it; the model gives it."""


class BisectError(MemreplayError):
    """A memory or a model failed, so that it cannot be said what was known."""


def question_in(conversation: Conversation, wanted: str) -> Question | None:
    """Return the question with this id, or the one whose id ends in it."""
    questions = conversation.questions
    exact = next((question for question in questions if question.id == wanted), None)
    ending = [question for question in questions if question.id.endswith(wanted)]
    return exact or (ending[0] if len(ending) == 1 else None)


def memories_in(timeline: Timeline, chosen: Sequence[str] = ()) -> list[str]:
    """Return the memories of a recording that can be bisected; what an agent remembers is not known."""
    return [
        name
        for name in timeline.backends
        if name not in CONTROLS and not is_agent(name) and (not chosen or name in chosen)
    ]


def last_turn(timeline: Timeline, by: By) -> int:
    """Return the last turn to search: the last one played."""
    played = timeline.played
    return played if by == "stored" and 0 < played < timeline.last_turn else timeline.last_turn


async def lifetimes(
    timeline: Timeline, question: Question, backends: Sequence[str], by: By, reasking: Reasking | None
) -> Mapping[str, Lifetime | str]:
    """Return, by backend, from when to when the answer is known, or a sentence on why that cannot be said.

    Only ``stored`` needs no ``reasking``.
    """
    last = last_turn(timeline, by)
    heard = min(heard_at(question, timeline), last)
    if by == "stored":
        return {name: await _stored_from_to(timeline, name, question, heard, last) for name in backends}
    assert reasking is not None
    found: dict[str, Lifetime | str] = {}
    async with reasking.rebuilding(timeline.conversation) as memory_of:
        for name in backends:
            probe = _Probe(timeline, question, memory_of(name), reasking)
            found[name] = await _lifetime(probe.is_given if by == "prompt" else probe.is_answered, heard, last)
    return found


async def _stored_from_to(
    timeline: Timeline, backend: str, question: Question, heard: int, last: int
) -> Lifetime | str:
    if not has_written(timeline, backend):
        return "nothing it wrote is recorded; --by prompt rebuilds it"
    found = await _lifetime(_stored(timeline, backend, question), heard, last)
    if isinstance(found, Lifetime) and found.learnt is None and not stores_are_seen(timeline, backend, last):
        return "not seen in what is recorded; not all that it stored could be listed"
    return found


async def _lifetime(is_known: IsKnown, heard: int, last: int) -> Lifetime | str:
    try:
        return await lifetime(is_known, heard, last)
    except BisectError as error:
        return str(error)


def _stored(timeline: Timeline, backend: str, question: Question) -> IsKnown:
    async def is_stored(turn: int) -> bool:
        with _looking_after(turn):
            return stored_at(timeline, backend, question, turn)

    return is_stored


@contextmanager
def _looking_after(turn: int) -> Iterator[None]:
    """Raise BisectError where the rules fail that look for the answer."""
    try:
        with grading_one_answer():
            yield
    except GradingError as error:
        raise BisectError(f"after turn {turn}: {error}") from error


class _Probe:
    """One memory, asked at any turn under the limits of its run."""

    def __init__(self, timeline: Timeline, question: Question, memory: AskableMemory, reasking: Reasking) -> None:
        self._timeline, self._question, self._memory, self._reasking = timeline, question, memory, reasking
        self._model = next(model for model in reasking.settings.model if model != AGENT_MODEL)

    async def is_given(self, turn: int) -> bool:
        """Return whether it returns the answer after a turn."""
        recall = await self._recall(turn)
        with _looking_after(turn):
            return given_holds(self._timeline, self._question, recall)

    async def is_answered(self, turn: int) -> bool:
        """Return whether the model answers correctly after a turn, by the run's judge if it had one."""
        settings = self._reasking.settings
        order = choice_order(self._question, settings.seed if settings.shuffle_choices else None)
        shown = with_order(self._question, order)
        recall = await self._recall(turn)
        template = prompt_template(settings.prompt)
        request = build_request(shown, recall.context, self._model, settings.api_base, template=template)
        reply = await self._reasking.reply(request)
        if reply.error is not None:
            raise BisectError(f"after turn {turn}: {reply.error}")
        judge = self._reasking.judge
        if judge is None or not is_for_a_judge(shown, reply):
            score = score_by_rules(self._question, request.messages, order, reply)
            if score.error is not None:
                raise BisectError(f"after turn {turn}: {score.error}")
            return score.outcome == "correct"
        judgement = await judge.judge(shown, reply.text or "")
        if judgement.verdict is None:
            raise BisectError(f"after turn {turn}: {judgement.problem}")
        return judgement.verdict == "right"

    async def _recall(self, turn: int) -> Recall:
        settings = self._reasking.settings
        budget = context_budget(self._model, settings.context_tokens, self._memory.limited_by_top_k)
        recall = await self._memory.recall(self._question.text, settings.top_k, budget, self._model, turn)
        if isinstance(recall, str):
            raise BisectError(recall)
        return recall
