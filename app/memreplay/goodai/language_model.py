"""The models of tests: the port through which datasets call one, the model behind it, and the model of the agent.

A dataset calls a model to judge, to generate, or to play a role in a dynamic test. The runner of the tests gives it
a :data:`LanguageModel`. Without one, or if it fails, the test that calls it is ungraded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memreplay.goodai.evaluation import Evaluation, Ungraded, sanitize_and_parse_json
from memreplay.llm.model import AnswerModel, AnswerRequest, PromptMessage, Reply
from memreplay.llm.prompts import build_agent_request, longest_agent_reply
from memreplay.llm.tokens import PROMPT_RESERVE, context_budget, context_window, token_counter
from memreplay.numbers import counted

LLMMessage = dict[str, str]
LLMContext = list[LLMMessage]
"""The messages of a prompt, each ``{"role": …, "content": …}``."""

DEFAULT_MODEL = "gpt-3.5-turbo"
"""The model that a dataset requests by default. The runner of the tests may substitute another."""

JUDGE_MODEL = "gpt-4-turbo"
GPT_CHEAPEST = DEFAULT_MODEL
GPT_4_TURBO_BEST = JUDGE_MODEL


@dataclass(frozen=True)
class LLMRequest:
    """One call: the prompt, the model that the dataset requests, and other parameters."""

    context: tuple[Mapping[str, str], ...]
    model: str
    temperature: float
    max_tokens: int
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LLMReply:
    """The result of a call: a text, or an error. ``cost_usd`` is None if it is unknown.

    ``reused``: it was given to an earlier run, and comes from the cache.
    """

    text: str | None
    cost_usd: float | None = None
    error: str | None = None
    reused: bool = False


NO_MODEL = "No model is set for judging and generating tests; name one with --judge MODEL"

LanguageModel = Callable[[LLMRequest], LLMReply]
"""Calls a model and blocks until it has answered; never raises for a provider's error."""


def reply_to(
    model: LanguageModel | None, request: LLMRequest, on_cost: Callable[[float], None] | None
) -> tuple[str, bool]:
    """Call the model and report the cost; returns the text, and whether it comes from the cache.

    Raises:
        Ungraded: there is no text.
    """
    if model is None:
        raise Ungraded(NO_MODEL)
    reply = model(request)
    if reply.cost_usd is not None and on_cost is not None:
        on_cost(reply.cost_usd)
    if reply.text is None:
        raise Ungraded(f"The judge model gave no reply: {reply.error or 'no reason given'}")
    return reply.text, reply.reused


def make_system_message(content: str) -> LLMMessage:
    return {"role": "system", "content": content}


def make_user_message(content: str) -> LLMMessage:
    return {"role": "user", "content": content}


def make_assistant_message(content: str) -> LLMMessage:
    return {"role": "assistant", "content": content}


_SMALLEST_BUDGET = 256


class ModelAgent:
    """Speaks for an agent through one model. Each ``repeat`` of a test run has its own replies."""

    def __init__(
        self, name: str, model: AnswerModel, api_base: str | None, context_tokens: int | None, *, repeat: int = 0
    ) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base
        self._context_tokens = context_tokens
        self._repeat = repeat

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        request = build_agent_request(message, context, now, self.name, self._api_base)
        return request.model_copy(update={"repeat": self._repeat})

    async def answer(self, request: AnswerRequest) -> Reply:
        return await self._model.answer(request)

    def context_budget(self, message: str, limited_by_top_k: bool = True) -> int:
        """Tokens of memory that fit beside this message: as configured, within the model's window."""
        window = context_window(self.name)
        if window is None:
            return context_budget(self.name, self._context_tokens, limited_by_top_k)
        taken = PROMPT_RESERVE + longest_agent_reply(self.name) + token_counter(self.name)(message)
        room = max(window - taken, _SMALLEST_BUDGET)
        return room if self._context_tokens is None else min(self._context_tokens, room)


class Judge:
    """The one model that grades tests and plays parts in them, whatever model their datasets ask for."""

    def __init__(self, name: str, model: AnswerModel, api_base: str | None) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base
        self.rejected: set[str] = set()
        """Unusable replies: one that comes from the cache is asked again, as the next repeat."""

    async def answer(self, request: LLMRequest, repeat: int = 0) -> LLMReply:
        """Ask with the dataset's parameters. A failure or refusal is a reply with an error."""
        parameters = {"temperature": request.temperature, "max_tokens": request.max_tokens, **request.parameters}
        messages = tuple(
            PromptMessage(role=message["role"], segments=(message["content"],)) for message in request.context
        )
        call = AnswerRequest(
            model=self.name,
            api_base=self._api_base,
            messages=messages,
            parameters=parameters,
            repeat=repeat,
            accepts_cut_reply=True,
        )
        reply = await self._model.answer(call)
        while reply.reused and reply.text in self.rejected:
            call = call.model_copy(update={"repeat": call.repeat + 1})
            reply = await self._model.answer(call)
        if reply.refused:
            return LLMReply(None, reply.cost_usd, "the provider refused")
        return LLMReply(reply.text, reply.cost_usd, reply.error, reply.reused)


_INSTRUCTIONS = """\
You check answers that were given to questions. You get a JSON list; each entry has a question, the answer that \
was expected and the answer that was given. Go through this checklist for every entry, with "yes" or "no" to each:

1. Does the given answer refer to what the expected answer says?
2. Is the expected answer a number or an amount?
3. If it is, is it the same number or amount in the given answer?

Reply with nothing but a JSON list that has one entry for each question, in their order, like this:
[{"question_nr": 1, "checklist": ["yes", "no", "no"]}, {"question_nr": 2, "checklist": ["yes", "yes", "yes"]}]"""

_TOKENS_FOR_ALL = 256
_TOKENS_A_QUESTION = 64


def judge_answers(
    ask: Callable[..., str], questions: Sequence[str], given: Sequence[str], expected: Sequence[Any]
) -> Evaluation:
    """Give one point for each answer that the model judges correct; ``ask`` takes a context, a model and
    parameters.

    Raises :class:`Ungraded` if the reply is not one checklist per question.
    """
    entries = [
        {"question_nr": number, "question": question, "expected_answer": wanted, "answer_given": answer}
        for number, (question, wanted, answer) in enumerate(zip(questions, expected, given, strict=False), start=1)
    ]
    if len(entries) != len(expected):
        raise Ungraded(f"{len(expected)} answers are expected, but {len(entries)} questions were answered")
    context = [make_system_message(_INSTRUCTIONS), make_user_message(json.dumps(entries, ensure_ascii=False))]
    reply = ask(
        context, model=JUDGE_MODEL, temperature=0, max_tokens=_TOKENS_FOR_ALL + _TOKENS_A_QUESTION * len(entries)
    )
    checklists = _checklists(reply, len(entries))
    right = [refers and (same or not is_number) for refers, is_number, same in checklists]
    return sum(right), len(expected), [_reason(*checklist) for checklist in checklists]


def _checklists(reply: str, questions: int) -> list[tuple[bool, bool, bool]]:
    try:
        entries = sanitize_and_parse_json(reply)
    except ValueError:
        raise Ungraded("The judge's reply is not JSON, so its checklists cannot be read") from None
    entries = entries if isinstance(entries, list) else [entries]
    if len(entries) != questions:
        raise Ungraded(f"The judge's reply has {counted(len(entries), 'checklist')} for {questions} questions")
    return [_answers_of(entry, number) for number, entry in enumerate(entries, start=1)]


def _answers_of(entry: object, number: int) -> tuple[bool, bool, bool]:
    checklist = entry.get("checklist") if isinstance(entry, dict) else None
    answers = [str(answer).strip().lower() for answer in checklist] if isinstance(checklist, list) else []
    if len(answers) != 3 or not set(answers) <= {"yes", "no"}:
        raise Ungraded(f"Checklist {number} of the judge's reply does not have three answers, each yes or no")
    refers, is_number, same = (answer == "yes" for answer in answers)
    return refers, is_number, same


def _reason(refers: bool, is_number: bool, same: bool) -> str:
    said = "The answer refers to the expected one" if refers else "The answer does not refer to the expected one"
    if not is_number:
        return f"{said}, which is no number."
    return f"{said}, and the numbers {'are the same' if same else 'differ'}."
