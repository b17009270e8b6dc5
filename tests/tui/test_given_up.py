"""A model that cannot be asked on the screen: one sentence, and another try after the mend."""

from __future__ import annotations

from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.tui.launch import Launch
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.widgets.bars import Bar
from tests.stubs.live_assembly import StubAssembly
from tests.tui.conftest import open_replay, replay_of, until

WHY = "openai/stub is unavailable: the key is not accepted; set a valid one"


async def test_the_error_is_one_sentence_and_the_questions_can_be_asked_once_it_is_fixed(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    assembly.backend_names = ("full_context",)
    answer, is_fixed = assembly.answerer.answer, False

    async def refused(request: AnswerRequest) -> Reply:
        if not is_fixed:
            raise ModelUnavailableError(WHY)
        return await answer(request)

    assembly.answerer.answer = refused  # type: ignore[method-assign]
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        trouble = screen.query_one("#trouble", Bar)
        await pilot.press("G")
        await until(pilot, lambda: trouble.display)
        assert WHY in trouble.text
        assert not any(reply.received for reply in screen.timeline.answers())
        is_fixed = True
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        assert not trouble.display
    assert assembly.status == "finished"
