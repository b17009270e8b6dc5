"""A memory that is replayed to any turn of a conversation, and asked there what it recalls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.events import QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.engine.probes import typed_question
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import MemreplayError, UsageError
from memreplay.grading import Outcome, Score
from memreplay.grading.match import contains
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.tokens import token_counter
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.scoring.evidence_trail import STAGES, Stages, lost_as_a_whole, trails_of
from memreplay.scoring.holding import Answerable
from memreplay.scoring.stored import StoredMemory
from memreplay.settings import Settings
from memreplay.text import shortened


@dataclass(frozen=True)
class Recalled:
    """A check that what a memory returned for a question holds the answer: true, or false with the stage that lost
    it.

    ``stage`` is None for what was recalled, else ``not_written``, ``not_visible``, ``not_retrieved`` or ``cut``.
    ``evidence`` are the turns that say the answer.
    """

    question: str
    expected: str
    backend: str
    turn: int
    stage: str | None
    detail: str
    evidence: tuple[str, ...]
    hits: tuple[Hit, ...]

    def __bool__(self) -> bool:
        return self.stage is None

    def __repr__(self) -> str:
        """Return one short line: pytest cuts longer ones."""
        if self.stage is None:
            return f"<{self.backend} recalls {_quoted(self.expected)} at turn {self.turn}>"
        return f"<{self.backend} at turn {self.turn}: {self.stage}. {self.detail}>"

    @property
    def explanation(self) -> str:
        """Return the question, what was expected, where it was lost, and what was retrieved instead."""
        lines = [f"question: {self.question}", f"expected: {self.expected}", f"said in: {', '.join(self.evidence)}"]
        lines.append(f"{self.backend} at turn {self.turn}: {self.stage or 'recalled'}. {self.detail}")
        lines += [f"hit {hit.rank}: {_quoted(hit.text)}" for hit in self.hits[:5]] or ["no hits"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Answered:
    """A check that a model answered a question rightly from a memory."""

    question: str
    expected: str
    reply: str | None
    outcome: Outcome
    recalled: Recalled

    def __bool__(self) -> bool:
        return self.outcome == "correct"

    def __repr__(self) -> str:
        lost = "the prompt held it" if self.recalled else repr(self.recalled)
        return f"<{self.outcome}: {_quoted(self.reply or 'no reply')}; expected {_quoted(self.expected)}; {lost}>"

    @property
    def explanation(self) -> str:
        return f"reply: {self.reply}\noutcome: {self.outcome}\n{self.recalled.explanation}"


def _quoted(text: str) -> str:
    return f"“{shortened(text)}”"


class ReplayedMemory:
    """One memory and one conversation, played forward to the turn of a question; anew for an earlier turn.

    Nothing is recorded. It is used in one event loop.
    """

    def __init__(
        self, conversation: Conversation, backend: str, settings: Settings, warn: Callable[[str], None]
    ) -> None:
        self.conversation = conversation
        self.backend = backend
        self._settings = settings
        self._memories = RunMemories(settings)
        self._models = RunModels(settings, lambda: "test", warn)
        self._session: ReplaySession | None = None
        self._events: list[ReplayEvent] = []

    async def recall(self, question: Question, turn: int | None = None) -> Recalled:
        """Return what memory returns for a question after a turn, by default the last. Calls no model but the
        extractor.

        Raises:
            MemreplayError: the turn does not exist, the memory failed, or the right answer is that it was not said.
        """
        if question.abstain:
            raise UsageError(f"{question.id} asks for something that was never said: nothing can recall it")
        asked, _ = await self._ask(question, turn, EXTRACTIVE_MODEL)
        return self._recalled(question, asked)

    async def answer(self, question: Question, turn: int | None = None) -> Answered:
        """Return the graded reply of the model, from what memory returns after a turn."""
        asked, score = await self._ask(question, turn, self._settings.model[0])
        replies = (event for event in reversed(self._events) if isinstance(event, ReplyReceived))
        reply = next(replies).reply
        if (error := reply.error or score.error) is not None:
            raise MemreplayError(f"{self._settings.model[0]}: {error}")
        recalled = self._recalled(question, asked)
        return Answered(question.text, question.expected, reply.text, score.outcome, recalled)

    def question(self, named: str, expected: str | None) -> Question:
        """Return the question of the dataset with this id or text; with ``expected``, one of the caller's own.

        Raises:
            UsageError: the dataset has none like it, and no answer is expected.
        """
        for question in self.conversation.questions:
            if named in (question.id, question.text):
                return question if expected is None else question.model_copy(update={"expected": expected})
        if expected is None:
            ids = ", ".join(question.id for question in self.conversation.questions) or "none"
            raise UsageError(
                f"{self.conversation.id} has no question {_quoted(named)} (its questions are {ids}); for one of"
                " your own, say what is expected as the second argument"
            )
        return typed_question(named).model_copy(update={"expected": expected})

    async def _ask(self, question: Question, turn: int | None, model: str) -> tuple[QuestionAsked, Score]:
        session = await self._session_at(turn)
        scored = await session.ask(question, self.backend, model)
        asked = next(event for event in reversed(self._events) if isinstance(event, QuestionAsked))
        if not asked.prompt:
            received = next(event for event in reversed(self._events) if isinstance(event, ReplyReceived))
            raise MemreplayError(f"{self.backend} failed at turn {session.position}: {received.reply.error}")
        return asked, scored.score

    def _recalled(self, question: Question, asked: QuestionAsked) -> Recalled:
        turns = self.conversation.turns_by_id
        answerable = Answerable(question, turns, self.conversation.days_by_session)
        events = (event for event in self._events if not isinstance(event, QuestionAsked | ReplyReceived))
        stages = Stages(asked, StoredMemory(events), turns)
        stage, detail = self._lost(answerable, stages)
        evidence = answerable.evidence or self._saying(question.expected)
        if stage is not None and not evidence:
            detail += " No turn says it in these words."
        return Recalled(
            question.text, question.expected, self.backend, asked.turn, stage, detail, evidence, asked.hits
        )

    def _lost(self, answerable: Answerable, stages: Stages) -> tuple[str | None, str]:
        """Return the stage that lost the answer, as in the results of a run, and what happened there."""
        if answerable.held_by(stages.in_prompt):
            return None, "What it returned holds the answer."
        said_in = self._saying(answerable.question.expected)
        if answerable.evidence:
            lost = [
                trail for trail in trails_of(answerable, answerable.evidence, stages) if trail.lost_at is not None
            ]
            first = min(lost, key=lambda trail: STAGES.index(trail.lost_at))
            return first.lost_at, first.sentence
        stage = lost_as_a_whole(answerable, stages)
        later = [id_ for id_ in said_in if self.conversation.turns_by_id[id_].number > stages.asked.turn]
        if stage == "not_written" and later and len(later) == len(said_in):
            return stage, f"It is said in turn {later[0]}, which comes later."
        return stage, _AS_A_WHOLE[stage or "not_written"]

    def _saying(self, expected: str) -> tuple[str, ...]:
        return tuple(turn.id for turn in self.conversation.turns if contains(expected, turn.text))

    async def _session_at(self, turn: int | None) -> ReplaySession:
        last = len(self.conversation.turns)
        position = last if turn is None else turn
        if not 0 <= position <= last:
            raise UsageError(f"{self.conversation.id} has no turn {position}; expected 0 to {last}")
        if self._session is not None and self._session.position > position:
            await self._leave()
        if self._session is None:
            self._session = await self._opened()
        try:
            while self._session.position < position:
                await self._session.step()
        except BaseException:
            # After half a step, the memory may have ingested half a turn.
            await self._leave()
            raise
        return self._session

    async def _opened(self) -> ReplaySession:
        memories = self._memories.fresh(self.conversation, [self.backend])
        plan = ReplayPlan(
            run_id="test",
            models=self._settings.model,
            top_k=self._settings.top_k,
            perceive=memories[self.backend].perceive_changes_recall,
            counter_of=token_counter,
        )
        answerer = self._models.answerer(self._models.answer_model)
        session = ReplaySession(self.conversation, memories, answerer, plan, self._events.append)
        await session.open()
        return session

    async def _leave(self) -> None:
        session, self._session = self._session, None
        self._events.clear()
        if session is not None:
            with suppress(Exception):
                await session.close("cancelled")

    async def close(self) -> None:
        """Close the memory and its stores."""
        await self._leave()
        self._models.close()
        await self._memories.close()


_AS_A_WHOLE = {
    "not_written": "Nothing that it holds has the answer.",
    "not_retrieved": "It holds the answer and did not return it.",
    "cut": "It returned the answer, and the budget of tokens cut it.",
}
