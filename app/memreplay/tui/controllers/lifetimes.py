"""Lifetimes: from when to when each memory knew an answer, as bars below the timeline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from memreplay.conversations.models import Question
from memreplay.debugger.lifetime import Lifetime
from memreplay.timeline.timeline import Timeline
from memreplay.tui.controllers.host import ReplayHost
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.text import one_line
from memreplay.tui.widgets.strip import TimelineStrip


class Lifetimes:
    """Picks a question and shows the bars; the recording alone decides, and no model is asked."""

    def __init__(self, timeline: Timeline, strip: TimelineStrip, host: ReplayHost) -> None:
        self._timeline, self._strip, self._host = timeline, strip, host

    def choose(self) -> None:
        """Choose a question, or none to remove the bars."""
        questions = self._timeline.conversation.questions
        if not questions:
            self._host.report("This conversation has no questions.")
            return

        def chosen(place: int | None) -> None:
            if place == 0:
                self._strip.show_lifetimes({})
                self._host.paint_progress()
            elif place is not None:
                self._host.run_worker(self._find(questions[place - 1]), group="lifetimes", exclusive=True)

        names = ["no bars", *(one_line(question.text) for question in questions)]
        self._host.open_screen(PickScreen("from when to when is this known?", names), chosen)

    async def _find(self, question: Question) -> None:
        from memreplay.runtime.bisecting import lifetimes, memories_in

        backends = memories_in(self._timeline)

        def found() -> Mapping[str, Lifetime]:
            lives = asyncio.run(lifetimes(self._timeline, question, backends, "stored", None))
            return {name: life for name, life in lives.items() if isinstance(life, Lifetime)}

        lives = await asyncio.to_thread(found)
        if not lives:
            self._host.report("What these memories wrote is not recorded.")
            return
        self._strip.show_lifetimes(lives)
        self._host.paint_progress()
        self._host.announce(f"stored: {one_line(question.text)}")
