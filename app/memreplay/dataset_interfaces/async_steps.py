"""A scheduler driven from asynchronous code.

Datasets are synchronous, and some ask a model in the middle of a step: each step runs in a thread, and a model that
is asked there is awaited on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from memreplay.dataset_interfaces.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.dataset_interfaces.scheduler import Scheduler
from memreplay.dataset_interfaces.steps import AgentReply, Step


class AsyncSteps:
    """The steps of a scheduler, one at a time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._steps = scheduler.steps()

    async def next(self, reply: AgentReply | None = None) -> Step | None:
        """The step after the one that ``reply`` answers (None for all but a ``Say``); None when the run is over."""
        return await asyncio.to_thread(self._advance, reply)

    def _advance(self, reply: AgentReply | None) -> Step | None:
        try:
            return self._steps.send(reply)
        except StopIteration:
            return None


def on_loop(ask: Callable[[LLMRequest], Awaitable[LLMReply]], loop: asyncio.AbstractEventLoop) -> LanguageModel:
    """A model that is asked from a step's thread and answers on the loop."""

    async def answered(request: LLMRequest) -> LLMReply:
        return await ask(request)

    def blocking(request: LLMRequest) -> LLMReply:
        return asyncio.run_coroutine_threadsafe(answered(request), loop).result()

    return blocking
