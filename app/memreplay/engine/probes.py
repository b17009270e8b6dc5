"""Questions asked by hand of memory in its state at a past position of the cursor.

Stores hold only their present content, and a recording holds no stores. So a probe replays the conversation up to
the position to separate memories in a separate namespace, and asks these. The session's own memories stay
untouched, and the replay is not recorded: only the question, the reply and its score are emitted, marked
``by_hand``. Memories are deterministic, so they recall what the session's own would have recalled there; beside a
recording, they recall what the present version of the program recalls.

At the frontier of a live session, ``ReplaySession.ask(…, by_hand=True)`` does the same without a replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b

from memory_backends.base import MemoryBackend, Namespace
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.events import AnswerScored, AskEvent, EventSink, QuestionAsked, ReplayEvent
from memreplay.engine.session import Answerer, ReplayPlan, ReplaySession

TYPED = "typed"
"""The type of a question that the user typed in."""

Progress = Callable[[str, int, int], None]
"""Called with a memory's name, its position and its target position."""


def typed_question(text: str) -> Question:
    """Return a question that the user typed in. Its right answer is unknown, so replies to it are not scored."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Question(id=f"{TYPED}-{digest}", kind="recall", type=TYPED, text=text, expected="")


class Probe:
    """Memories that are replayed to any position of one conversation to be asked there.

    ``make`` creates a memory by its name; ``forget`` removes what a closed one left on servers. A memory before the
    position is played forward to it; one after it is replaced.
    """

    def __init__(
        self,
        conversation: Conversation,
        make: Callable[[str], MemoryBackend],
        answerer: Answerer,
        plan: ReplayPlan,
        emit: EventSink,
        forget: Callable[[Namespace], Awaitable[None]] | None = None,
    ) -> None:
        self.conversation = conversation
        self._make = make
        self._forget = forget
        self._answerer = answerer
        self._plan = replace(plan, run_id=f"{plan.run_id}-side")
        self._emit = emit
        self._sessions: dict[str, ReplaySession] = {}
        self._lock = asyncio.Lock()
        self._asking: Question | None = None

    async def ask_at(
        self,
        position: int,
        question: Question,
        backends: Sequence[str],
        models: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Ask these memories in their state at a position, through these models (default: all of the plan's).

        Failures of a memory or provider become replies with an error. A cancelled call leaves no trace except the
        events that it already emitted.
        """
        position = max(0, min(position, len(self.conversation.turns)))
        async with self._lock:
            self._asking = question
            for backend in backends:
                session = await self._session_at(backend, position, progress)
                for model in session.models_asked_of(backend, self._plan.models if models is None else models):
                    await session.ask(question, backend, model, by_hand=True)

    async def close(self) -> None:
        """Close the memories."""
        async with self._lock:
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
                # Embedded stores never yield to the event loop: without this the screen would freeze.
                await asyncio.sleep(0)
        except BaseException:
            # After half a step, the memory may have ingested half a turn.
            await self._drop(name)
            raise
        return session

    async def _opened(self, name: str) -> ReplaySession:
        memory = self._make(name)
        plan = replace(self._plan, perceive=memory.perceive_changes_recall)
        session = self._sessions[name] = ReplaySession(
            self.conversation, {name: memory}, self._answerer, plan, self._forward_asks
        )
        await session.open()
        return session

    async def _drop(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            with suppress(Exception):
                await session.close("cancelled")
            if self._forget is not None:
                with suppress(Exception):
                    await self._forget(
                        Namespace(run_id=self._plan.run_id, conversation_id=self.conversation.id, backend=name)
                    )

    def _forward_asks(self, event: ReplayEvent) -> None:
        """Forward events of asks only. A typed question has no right answer, so its score is dropped."""
        typed = self._asking if self._asking is not None and self._asking.type == TYPED else None
        if isinstance(event, QuestionAsked) and typed is not None:
            self._emit(event.model_copy(update={"typed": typed.text}))
        elif isinstance(event, AskEvent) and not (isinstance(event, AnswerScored) and typed is not None):
            self._emit(event)
