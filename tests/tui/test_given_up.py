"""A model that cannot be asked on the screen: one sentence, and another try after the mend."""

from __future__ import annotations

from memreplay.conversations.models import Question
from memreplay.llm.judging import Judgement
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.tui.launch import Launch
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.widgets.lines_view import Bar
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


class FailingJudge:
    """Cannot be called until it is mended; then finds everything right."""

    def __init__(self) -> None:
        self.is_mended = False

    async def judge(self, question: Question, text: str) -> Judgement:
        if not self.is_mended:
            raise ModelUnavailableError(WHY)
        return Judgement(judge="stub", rubric="plain", prompt=(), reply=Reply(text="Yes"), verdict="right")


async def test_a_judge_that_fails_ends_no_session_and_loses_no_reply(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    assembly.backend_names, judge = ("full_context",), FailingJudge()
    assembly.judge = judge
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        trouble = screen.query_one("#trouble", Bar)
        await pilot.press("G")
        await until(pilot, lambda: trouble.display)
        assert WHY in trouble.text
        asked = list(assembly.answerer.asked)
        assert asked and all(answer.received for answer in screen.timeline.answers())
        judge.is_mended = True
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        assert assembly.answerer.asked == asked, "only the judge is asked again"
        scores = [answer.scored.score for answer in screen.timeline.answers() if answer.scored]
        assert len(scores) == len(asked) and {score.decided_by for score in scores} == {"judge"}
    assert assembly.status == "finished"
