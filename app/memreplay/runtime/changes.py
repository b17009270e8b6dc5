"""The wrong answers of a run and the calls that ask them again, made without calling anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_backends.base import Recall
from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.what_if import Case, changed_prompt, recalled_prompt, wants_memory
from memreplay.engine.answers import AnswerJudge, grade, with_order
from memreplay.engine.events import EventSink, QuestionAsked
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm import AGENT_MODEL
from memreplay.llm.caching import request_key
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.prompts import build_request
from memreplay.llm.tokens import context_budget, token_counter
from memreplay.recording.counterfactuals import Reask, ask_of
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.holding import Piece
from memreplay.scoring.verdicts import FROM_MEMORY, INTERVENTIONS, Intervention
from memreplay.settings import Settings
from memreplay.timeline.timeline import Answer, Timeline

_WRONG = frozenset({"wrong", "unparsed", "refused"})


@dataclass(frozen=True)
class Change:
    """A wrong answer under one change: the call that asks it, or why it cannot be asked."""

    case: Case
    intervention: Intervention
    request: AnswerRequest | None
    problem: str = ""


@dataclass(frozen=True)
class Selection:
    """A choice of re-asks: these changes to the first ``limit`` wrong answers, of these backends (default: all)."""

    interventions: tuple[Intervention, ...] = INTERVENTIONS
    backends: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    limit: int | None = None

    def takes(self, asked: QuestionAsked) -> bool:
        """Return whether this answer is to be asked again, if it is wrong."""
        return (
            (not self.backends or asked.backend in self.backends)
            and (not self.questions or asked.question_id in self.questions)
            and asked.backend not in CONTROLS
            and selectable(asked)
            and not asked.by_hand
        )


def is_wrong(answer: Answer) -> bool:
    """Return whether an answer was graded and is not right."""
    return answer.scored is not None and answer.scored.score.outcome in _WRONG


class WrongAnswers:
    """The wrong answers of one conversation, as cases. ``wanted`` chooses among its answers."""

    def __init__(
        self, timeline: Timeline, selection: Selection, wanted: Callable[[Answer], bool] = is_wrong
    ) -> None:
        self.timeline = timeline
        self.conversation: Conversation = timeline.conversation
        self._attributor = Attributor(timeline)
        self._questions = {question.id: question for question in self.conversation.questions}
        self._answers = [answer for answer in timeline.answers() if answer.asked.question_id in self._questions]
        self.chosen = [answer for answer in self._answers if wanted(answer) and selection.takes(answer.asked)]
        self.asked = {ask_of(answer.asked): answer.asked for answer in self.chosen}

    def case(self, answer: Answer) -> Case:
        asked = answer.asked
        outdated, stored = self._found_by_rules(answer)
        return Case(
            question=self._questions[asked.question_id],
            conversation=self.conversation,
            asked=asked,
            outdated=outdated,
            stored=stored,
            count_tokens=token_counter(asked.model),
        )

    def _found_by_rules(self, answer: Answer) -> tuple[tuple[str, ...], tuple[Piece, ...]]:
        """Return outdated values, and what memory held of the evidence; neither where the rules fail, which the
        attribution of the answer says.
        """
        try:
            with grading_one_answer():
                outdated = self._attributor.outdated_values(answer)
                return outdated, tuple(self._attributor.stored_of_evidence(answer))
        except GradingError:
            return (), ()

    def question(self, question_id: str) -> Question:
        return self._questions[question_id]

    async def graded(self, reask: Reask, judge: AnswerJudge | None, emit: EventSink) -> Reask:
        """Return the re-ask with its score, graded as the answer was; ``emit`` gets what the judge said.

        Raises:
            StoppedError: the judge cannot be called.
        """
        asked = self.asked[reask.ask]
        scored = await grade(self._questions[reask.question_id], asked, reask.reply, judge, emit)
        return reask.model_copy(update={"score": scored.score})


def paid_replies(timeline: Timeline, api_base: str | None) -> dict[str, Reply]:
    """Return the replies that a run has paid for, by the key of their request."""
    questions = {question.id: question for question in timeline.conversation.questions}
    found: dict[str, Reply] = {}
    for answer in timeline.answers():
        asked, received = answer.asked, answer.received
        if received is None or received.reply.error is not None or not selectable(asked):
            continue
        if (question := questions.get(asked.question_id)) is not None:
            found[request_key(request_with(question, asked, asked.prompt, api_base))] = received.reply
    return found


def selectable(asked: QuestionAsked) -> bool:
    """Return whether a prompt of ours was recorded; an agent's is not known, and a failed memory had none."""
    return asked.model != AGENT_MODEL and bool(asked.prompt)


def request_with(
    question: Question,
    asked: QuestionAsked,
    prompt: tuple[PromptMessage, ...],
    api_base: str | None,
    later: int = 0,
) -> AnswerRequest:
    """Return the call with this prompt; as a ``later`` repeat it shares no reply with the first."""
    shown = with_order(question, asked.choice_order)
    built = build_request(shown, "", asked.model, api_base, asked.repeat + later)
    return built.model_copy(update={"messages": prompt})


class AskableMemory(Protocol):
    """A memory that can be asked under other limits."""

    @property
    def limited_by_top_k(self) -> bool: ...

    async def recall(self, question: str, top_k: int, context_tokens: int, model: str, turn: int) -> Recall | str:
        """Return what it returns at a turn, or a sentence that says why it failed."""
        ...


async def changes_of(
    case: Case, interventions: Sequence[Intervention], memory_of: Callable[[str], AskableMemory], settings: Settings
) -> list[Change]:
    """Return the changes that apply to a wrong answer, with their calls, in their order."""
    changes = changes_of_recording(case, interventions, settings)
    if any(name in FROM_MEMORY for name in interventions):
        changes += await _memory_changes(case, interventions, memory_of(case.asked.backend), settings)
    return sorted(changes, key=lambda change: INTERVENTIONS.index(change.intervention))


def changes_of_recording(case: Case, interventions: Sequence[Intervention], settings: Settings) -> list[Change]:
    """Return those of them that need no memory."""
    changes: list[Change] = []
    for name in interventions:
        if name in FROM_MEMORY:
            continue
        try:
            with grading_one_answer():
                prompt = changed_prompt(name, case)
        except GradingError as error:
            changes.append(Change(case, name, None, str(error)))
        else:
            if prompt is not None:
                changes.append(Change(case, name, _call(case, name, prompt, settings)))
    return changes


async def _memory_changes(
    case: Case, interventions: Sequence[Intervention], memory: AskableMemory, settings: Settings
) -> list[Change]:
    wanted = wants_memory(interventions, case, memory.limited_by_top_k)
    if not wanted:
        return []
    asked = case.asked
    budget = context_budget(asked.model, settings.context_tokens, memory.limited_by_top_k)
    double = context_budget(asked.model, 2 * budget, memory.limited_by_top_k)
    half = min(budget, 2 * asked.context_tokens) // 2  # without a budget, half of what was in the prompt
    limits = {
        "half_budget": (settings.top_k, half),
        "double_budget": (settings.top_k, double),
        "double_top_k": (2 * settings.top_k, budget),
    }

    async def recalled(top_k: int, tokens: int) -> Recall | str:
        return await memory.recall(case.question.text, top_k, tokens, asked.model, asked.turn)

    problem = _problem(await recalled(settings.top_k, budget), case)
    changes: list[Change] = []
    for name in wanted:
        recall = await recalled(*limits[name]) if problem is None else problem
        if isinstance(recall, str):
            changes.append(Change(case, name, None, recall))
        elif (prompt := recalled_prompt(case, recall)) is not None:
            changes.append(Change(case, name, _call(case, name, prompt, settings)))
    return changes


def _problem(same: Recall | str, case: Case) -> str | None:
    """Return why the memory cannot be used; None if it returns under the same limits what was recorded."""
    if isinstance(same, str):
        return same
    return None if same.context == case.context else _CHANGED


_CHANGED = "the rebuilt memory returns something else than was recorded; another version of memreplay recorded it"


def _call(case: Case, name: Intervention, prompt: tuple[PromptMessage, ...], settings: Settings) -> AnswerRequest:
    repeats = settings.repeats if name == "unchanged" else 0
    return request_with(case.question, case.asked, prompt, settings.api_base, repeats)
