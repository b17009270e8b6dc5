"""Has a model draft questions about a conversation, part by part, or estimates what that would take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from memreplay.batch.recorded_run import Ending
from memreplay.conversations.models import Turn
from memreplay.drafting.drafts import DraftBook, DraftedPart, parts_of
from memreplay.drafting.prompts import drafting_request, drafts_in
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.counting import not_asked
from memreplay.llm.model import Reply
from memreplay.llm.rate_limiter import Gate, StoppedError
from memreplay.numbers import counted, dollars
from memreplay.runtime.counting import Counting, Estimates
from memreplay.runtime.models import RunModels
from memreplay.runtime.reasking import together
from memreplay.settings import Settings
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say
from memreplay.text import normalised

_SECONDS_BETWEEN_LINES = 10.0


@dataclass
class DraftingProgress:
    """``done`` of ``parts`` were drafted by this command; ``problems`` are why others were not."""

    parts: int
    done: int = 0
    asked: int = 0
    reused: int = 0
    tokens: int = 0
    paid_usd: float = 0.0
    unpriced: int = 0
    problems: tuple[str, ...] = ()

    def count(self, reply: Reply) -> None:
        self.reused += reply.reused
        self.asked += not reply.reused
        if reply.was_billed and not reply.reused:
            self.tokens += reply.usage.prompt + reply.usage.completion
            self.paid_usd += reply.cost_usd or 0.0
            self.unpriced += reply.cost_usd is None


class Drafting:
    """Drafts what the book lacks: at most ``count`` questions from each part of its conversation."""

    def __init__(self, book: DraftBook, settings: Settings, count: int) -> None:
        """Raises UsageError if a part is left and the settings do not name one language model."""
        self._book, self._settings, self._count = book, settings, count
        self._model = settings.model[0]
        parts = enumerate(parts_of(book.conversation), start=1)
        self.left = [(number, part) for number, part in parts if not book.is_done(part)]
        if self.left and len(settings.model) > 1:
            raise UsageError("drafting takes one --model")
        if self.left and self._model == EXTRACTIVE_MODEL:
            raise UsageError("drafting needs a language model: name it with --model")
        self.progress = DraftingProgress(len(self.left))

    async def run(self) -> Ending:
        """Ask for each part, and keep each reply in the book before the next one is awaited.

        Raises:
            MemreplayError: the model or its key is unusable, or the book cannot be written.
        """
        self._models = RunModels(self._settings, lambda: "drafts", lambda sentence: say(f"warning: {sentence}"))
        try:
            if not self._settings.offline:
                await asyncio.to_thread(ensure_reachable, self._model, self._settings.api_base)
            await self._models.warm_up()
            return await self._ask_all()
        finally:
            self._models.close()

    async def _ask_all(self) -> Ending:
        pace = self._models.rate_limiters.of(self._model)
        self._lane = Gate(lambda: 2 * pace.concurrency)
        self._last_line = monotonic()
        task = asyncio.current_task()
        assert task is not None
        ending: Ending = "complete"

        def finish_calls() -> None:
            nonlocal ending
            ending = "interrupted"
            say("finishing the calls in progress; Ctrl-C again stops at once")
            self._models.rate_limiters.stop()
            self._lane.close()

        def stop_now() -> None:
            nonlocal ending
            ending = "interrupted"
            task.cancel()

        try:
            with two_step_interrupt(finish_calls, stop_now):
                await together([self._ask(number, part) for number, part in self.left])
        except asyncio.CancelledError:
            if ending != "interrupted":
                raise
            task.uncancel()
        given_up = self._models.rate_limiters.unavailable
        for why in given_up.values():
            say(why)
        return "stopped" if ending == "complete" and given_up else ending

    async def _ask(self, number: int, part: Sequence[Turn]) -> None:
        request = drafting_request(self._book.conversation, part, self._count, self._model, self._settings.api_base)
        asked = {normalised(question.text) for question in self._book.conversation.questions}
        while True:
            try:
                async with self._lane:
                    reply = await self._models.answer_model.answer(request)
            except StoppedError:
                return
            self.progress.count(reply)
            found = drafts_in(reply, part, number, self._count, asked)
            if not isinstance(found, str):
                break
            if not reply.reused:
                self.progress.problems += (f"part {number}: {found}",)
                return
            # What cannot be read comes from the cache: ask again.
            request = request.model_copy(update={"repeat": request.repeat + 1})
        drafts, dropped = found
        self._book.add(
            DraftedPart(
                number=number,
                first=part[0].id,
                last=part[-1].id,
                model=self._model,
                drafts=drafts,
                dropped=dropped,
                tokens=reply.usage.prompt + reply.usage.completion,
                cost_usd=reply.cost_usd,
            )
        )
        self.progress.done += 1
        if monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = monotonic()
            say(f"{self.progress.done} of {counted(self.progress.parts, 'part')} drafted")

    async def estimate(self) -> Estimates:
        """Return the calls that are left, without those whose replies are cached."""
        counting = Counting(self._settings)
        models = RunModels(self._settings, lambda: "drafts", say, counting)
        model = counting.model(not_asked)
        try:
            for _, part in self.left:
                model.row.asked += 1
                await model.answer(
                    drafting_request(
                        self._book.conversation, part, self._count, self._model, self._settings.api_base
                    )
                )
        finally:
            models.close()
        return Estimates({("(drafts)", self._model): model.row})


def summary(progress: DraftingProgress, book: DraftBook) -> str:
    """Return what this command did and paid, in one sentence."""
    paid = "unknown" if progress.unpriced and not progress.paid_usd else dollars(progress.paid_usd)
    plus = "+" if progress.unpriced and progress.paid_usd else ""
    calls = f"{counted(progress.asked, 'call')}, {progress.reused} reused, {progress.tokens:,} tokens"
    dropped = ", ".join(f"{count} {why}" for why, count in book.dropped.most_common())
    lost = f"; dropped {sum(book.dropped.values())} that failed a check ({dropped})" if dropped else ""
    drafts = counted(len(book.drafts), "draft")
    parts = f"{progress.done} of {counted(progress.parts, 'part')} drafted"
    return f"{parts}, {drafts} in all{lost}; {calls}, paid {paid}{plus}"
