"""One recorded answer, asked again from the screen: its changes, what they cost, and their replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memreplay.engine.answers import grade
from memreplay.errors import RecordingError
from memreplay.llm.counting import Estimate, prompt_tokens
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.prompts import context_of
from memreplay.paths import demo_recordings
from memreplay.recording.counterfactuals import Reask, ReaskStore, ask_of, reasks_in
from memreplay.recording.reader import Recording
from memreplay.runtime.changes import (
    Change,
    Selection,
    WrongAnswers,
    changes_of,
    changes_of_recording,
    is_wrong,
    selectable,
)
from memreplay.runtime.reasking import Reasking
from memreplay.runtime.recorded import Lineage, lineage_of
from memreplay.scoring.counterfactuals import Counterfactual
from memreplay.scoring.verdicts import FROM_MEMORY, INTERVENTIONS, Intervention
from memreplay.scoring.what_if import Given, GivenAnswers, given_answer
from memreplay.settings import Settings
from memreplay.timeline.timeline import Answer, Timeline


@dataclass(frozen=True)
class Cost:
    """Tokens of a prompt, and the most that the call costs in US dollars; None where the price is unknown."""

    tokens: int
    usd: float | None


def cost_of_call(request: AnswerRequest) -> Cost:
    """What a call would cost at most."""
    tokens, longest = prompt_tokens(request), int(request.parameters.get("max_tokens") or 0)
    return Cost(tokens, Estimate(calls=1, prompt_tokens=tokens, reply_tokens=longest).price(request.model))


def can_be_asked_again(answer: Answer) -> str | None:
    """Why an answer cannot be asked again; None if it can."""
    if not selectable(answer.asked):
        return "This prompt was not made by memreplay, so it cannot be changed."
    if answer.asked.by_hand or answer.asked.typed is not None:
        return "A question asked by hand can be asked again with a."
    if not is_wrong(answer):
        return "Only a wrong answer is asked again: nothing has to be repaired here."
    return None


class OneAnswer:
    """A wrong answer and its changes. ``path`` is the recording that keeps the replies, if there is one."""

    def __init__(
        self, settings: Settings, run_id: str, path: Path | None, timeline: Timeline, answer: Answer
    ) -> None:
        self.answer = answer
        self.kept_for_session_only = path is None
        self._settings, self._run_id, self._path = settings, run_id, path
        self._timeline = timeline
        self._question = next(q for q in timeline.conversation.questions if q.id == answer.asked.question_id)
        self._reasking: Reasking | None = None

    def recorded_changes(self) -> list[Change]:
        """The changes that need no memory. Slow for a long context."""
        wrong = WrongAnswers(self._timeline, Selection(questions=(self._question.id,)))
        self._case = wrong.case(self.answer)
        wanted = [name for name in INTERVENTIONS if name not in FROM_MEMORY]
        return changes_of_recording(self._case, wanted, self._settings)

    def known(self) -> dict[Intervention, Reask]:
        """The replies that are recorded already."""
        if self._path is None or not self._path.exists():
            return {}
        asked = {ask_of(self.answer.asked): self.answer.asked}
        with closing(Recording.open(self._path)) as recording:
            found = reasks_in(recording, self._run_id, self._timeline.conversation.id, asked)
        return {reask.intervention: reask for reask in found if reask.score is not None}

    def agreement(self) -> Callable[[Sequence[Counterfactual]], bool]:
        """Whether independent others gave the same answer in this conversation, by the re-asks there are."""
        conversation = self._timeline.conversation
        questions = {question.id: question for question in conversation.questions}

        def given(answer: Answer) -> Given | None:
            asked, scored = answer.asked, answer.scored
            question = questions.get(asked.question_id)
            if scored is None or question is None or asked.by_hand:
                return None
            return given_answer(conversation.id, question, (asked.backend, asked.model), scored.score, asked.hits)

        this = given(self.answer)
        answers = GivenAnswers(found for each in self._timeline.answers() if (found := given(each)) is not None)

        def others_agree(asked: Sequence[Counterfactual]) -> bool:
            return this is not None and answers.others_agree(this, asked, abstain=self._question.abstain)

        return others_agree

    async def memory_changes(self) -> list[Change]:
        """The changes for which the memory is rebuilt, which may take long."""
        reasking = self._opened()
        async with reasking.rebuilding(self._timeline.conversation) as memory_of:
            return await changes_of(self._case, sorted(FROM_MEMORY), memory_of, self._settings)

    async def ask(self, change: Change) -> Reask:
        """Ask under one change; the reply is kept before it is graded."""
        asked = self.answer.asked
        if change.request is None:
            reply = Reply(text=None, error=change.problem)
        else:
            reply = await self._opened().reply(change.request)
        reask = Reask(
            **dict(zip(("backend", "model", "question_id", "repeat"), ask_of(asked), strict=True)),
            intervention=change.intervention,
            context=context_of(change.request.messages) if change.request else "",
            reply=reply,
        )
        self._keep(reask)
        scored = await grade(self._question, asked, reply, self._opened().judge, lambda event: None)
        graded = reask.model_copy(update={"score": scored.score})
        self._keep(graded)
        return graded

    async def close(self) -> None:
        """Release models and stores."""
        if self._reasking is not None:
            await self._reasking.close()
            self._reasking = None

    def _opened(self) -> Reasking:
        if self._reasking is None:
            self._reasking = Reasking(self._settings, self._run_id, lambda sentence: None, self._lineage())
        return self._reasking

    def _lineage(self) -> Lineage:
        if self._path is None or not self._path.exists():
            return Lineage()
        with closing(Recording.open(self._path)) as recording:
            return lineage_of(recording, recording.run(self._run_id))

    def _keep(self, reask: Reask) -> None:
        """Store a reply, and its score once it has one.

        The shipped recording, one in use and one that cannot be written stay as they are.
        """
        if self._path is None or self.kept_for_session_only or _is_shipped(self._path):
            self.kept_for_session_only = True
            return
        try:
            with ReaskStore.open(self._path) as store:
                store.add(self._run_id, reask, self.answer.asked)
                store.grade(self._run_id, self._timeline.conversation.id, [reask])
        except RecordingError:
            self.kept_for_session_only = True


def _is_shipped(path: Path) -> bool:
    return path.resolve() in {shipped.resolve() for shipped in demo_recordings()}
