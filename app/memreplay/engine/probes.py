"""Questions asked by hand, of memory as it stood at a position of the cursor.

A store holds what it holds now, and a recording holds no store. So the conversation is played again up to the
position, to memories of their own in a namespace of their own, and these are asked. The session's own memories are
not touched, and nothing of this playing is recorded: only the question, the reply and its score are emitted, marked
``by_hand``. Memories are deterministic, so what they recall is what the session's own would have recalled there;
beside a recording it is what this program's memories recall today.

At the frontier of a live session no detour is needed: ``ReplaySession.ask(…, by_hand=True)`` asks the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b

from memory_backends.base import MemoryBackend
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.events import AnswerScored, AskEvent, EventSink, QuestionAsked, ReplayEvent
from memreplay.engine.session import Answerer, ReplayPlan, ReplaySession

TYPED = "typed"
"""The type of a question that the user typed in."""

Progress = Callable[[str, int, int], None]
"""Told how far a memory is: its name, the position it is at, and the position it goes to."""


def typed_question(text: str) -> Question:
    """A question that the user typed in. Nobody knows its right answer, so its replies are not scored."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Question(id=f"{TYPED}-{digest}", kind="recall", type=TYPED, text=text, expected="")


class Probe:
    """Memories that are played to any position of one conversation, to be asked there.

    ``make`` gives a fresh memory by its name. A memory that stands before a position is played on to it; one that
    stands after it begins anew.
    """

    def __init__(
        self,
        conversation: Conversation,
        make: Callable[[str], MemoryBackend],
        answerer: Answerer,
        plan: ReplayPlan,
        emit: EventSink,
    ) -> None:
        self.conversation = conversation
        self._make = make
        self._answerer = answerer
        self._plan = replace(plan, run_id=f"{plan.run_id}-side")
        self._emit = emit
        self._sessions: dict[str, ReplaySession] = {}
        self._at_work = asyncio.Lock()
        self._asking: Question | None = None

    async def ask_at(
        self,
        position: int,
        question: Question,
        backends: Sequence[str],
        models: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Ask these memories, as they stood at a position, through these models (all of the plan's).

        What fails in a memory or at a provider ends in the reply, as it does for any question. A cancelled call
        leaves nothing behind but what was emitted before.
        """
        position = max(0, min(position, len(self.conversation.turns)))
        async with self._at_work:
            self._asking = question
            for backend in backends:
                session = await self._session_at(backend, position, progress)
                for model in session.models_asked_of(backend, self._plan.models if models is None else models):
                    await session.ask(question, backend, model, by_hand=True)

    async def close(self) -> None:
        """Let go of the memories."""
        async with self._at_work:
            for name in list(self._sessions):
                await self._drop(name)

    async def _session_at(self, name: str, position: int, progress: Progress | None) -> ReplaySession:
        session = self._sessions.get(name)
        if session is not None and session.position > position:
            await self._drop(name)
            session = None
        try:
            if session is None:
                session = await self._opened(name)
            while session.position < position:
                await session.step()
                if progress is not None:
                    progress(name, session.position, position)
                # Embedded stores never wait for anything: without this the screen would stand still.
                await asyncio.sleep(0)
        except BaseException:
            # Half a step is a memory that half heard a turn.
            await self._drop(name)
            raise
        return session

    async def _opened(self, name: str) -> ReplaySession:
        memory = self._make(name)
        plan = replace(self._plan, perceive=memory.perceive_changes_recall)
        session = self._sessions[name] = ReplaySession(
            self.conversation, {name: memory}, self._answerer, plan, self._only_asks
        )
        await session.open()
        return session

    async def _drop(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            with suppress(Exception):
                await session.close("cancelled")

    def _only_asks(self, event: ReplayEvent) -> None:
        """Pass on what was asked and answered. What was typed in has no right answer to be scored against."""
        typed = self._asking if self._asking is not None and self._asking.type == TYPED else None
        if isinstance(event, QuestionAsked) and typed is not None:
            self._emit(event.model_copy(update={"typed": typed.text}))
        elif isinstance(event, AskEvent) and not (isinstance(event, AnswerScored) and typed is not None):
            self._emit(event)
