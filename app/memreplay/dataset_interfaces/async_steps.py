"""Drive a scheduler from asynchronous code.

Datasets are synchronous, and some call a model within a step. So each step runs in a thread, and its model calls
are awaited on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from memreplay.dataset_interfaces.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.dataset_interfaces.scheduler import Scheduler
from memreplay.dataset_interfaces.steps import AgentReply, Step


class AsyncSteps:
    """Awaits the steps of a scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._steps = scheduler.steps()

    async def next(self, reply: AgentReply | None = None) -> Step | None:
        """The step after the one that ``reply`` answers (None unless that was a ``Say``); None at the end."""
        return await asyncio.to_thread(self._advance, reply)

    def _advance(self, reply: AgentReply | None) -> Step | None:
        try:
            return self._steps.send(reply)
        except StopIteration:
            return None


def on_loop(ask: Callable[[LLMRequest], Awaitable[LLMReply]], loop: asyncio.AbstractEventLoop) -> LanguageModel:
    """Wrap an asynchronous model so that a step's thread can call it."""

    async def answered(request: LLMRequest) -> LLMReply:
        return await ask(request)

    def blocking(request: LLMRequest) -> LLMReply:
        return asyncio.run_coroutine_threadsafe(answered(request), loop).result()

    return blocking
