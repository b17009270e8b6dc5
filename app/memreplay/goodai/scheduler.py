"""Runs tests side by side in one conversation, as a generator of steps.

The scheduler does not know the agent: its driver answers each ``Say`` by sending an ``AgentReply``. Equal tests,
configuration and replies produce equal steps. Datasets are synchronous, and some call a model within a step: for
asynchronous drivers each step runs in a thread, and its model calls are awaited on the event loop.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from math import floor
from pathlib import Path
from random import Random
from typing import TypeVar

from memreplay.errors import DatasetError, MemreplayError, UsageError
from memreplay.goodai.actions import (
    AgentReply,
    CallbackDeregistered,
    CallbackRegistered,
    Filler,
    FreshMemory,
    LlmAsked,
    Say,
    SendAndRegisterAction,
    SendMessageAction,
    Step,
    TestBegins,
    TestEnded,
    TestFinishedAction,
    TestWaits,
    TimeJumps,
    WaitAction,
)
from memreplay.goodai.dataset import RunConfig, TestExample, dataset_key
from memreplay.goodai.evaluation import Evaluation, Ungraded, normalised_evaluation
from memreplay.goodai.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.goodai.master_log import (
    EventSink,
    EventType,
    Journal,
    LogEvent,
    LoggedModel,
    MasterLog,
    RunRecord,
    count_tokens,
)
from memreplay.goodai.sources import problem_of
from memreplay.llm.rate_limiter import StoppedError
from memreplay.paths import datasets_folder


@dataclass
class RunningTest:
    """The state of a started test: what was said, and the token count and time that it waits for."""

    example: TestExample
    wait_tokens: int = 0
    wait_until: datetime | None = None
    questions: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    statement_times: list[datetime] = field(default_factory=list)
    after_first: tuple[int, int] | None = None
    at_last_question: tuple[int, int] | None = None
    watches: bool = False
    watched: int = 0
    evaluation: Evaluation | None = None
    idles: bool = False
    ungraded: str | None = None

    def wait(self, action: WaitAction, tokens: int, now: datetime) -> None:
        """Start waiting, after ``tokens`` were said in the run."""
        # GoodAI's published run subtracts the last reply a second time, so its waits end that much earlier.
        share = floor(self.example.dataset_generator.memory_span * action.percentage_finished / 100)
        self.wait_tokens = max(tokens + action.tokens, self.example.start_token + share if share else 0)
        self.wait_until = now + action.time if action.time else None

    def tokens_missing(self, tokens: int) -> int:
        """Return how many more tokens must be said."""
        return max(self.wait_tokens - tokens, 0)

    def is_early(self, now: datetime) -> bool:
        """Return whether the time it waits for has not come."""
        return self.wait_until is not None and self.wait_until > now

    def is_ready(self, tokens: int, now: datetime) -> bool:
        return not self.tokens_missing(tokens) and not self.is_early(now)

    def give_up(self, reason: str) -> None:
        """End without a score; only the first reason is kept."""
        self.ungraded = self.ungraded or reason
        self.example.finished = True

    def distance(self) -> tuple[int, int]:
        """Tokens and characters between the first message and the last question."""
        if self.after_first is None or self.at_last_question is None:
            return 0, 0
        (tokens, characters), (later_tokens, later_characters) = self.after_first, self.at_last_question
        return max(later_tokens - tokens, 0), max(later_characters - characters, 0)


_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Resume:
    """Continue a test whose wait is over."""

    test: RunningTest


@dataclass(frozen=True)
class Start:
    """Begin a new test."""

    example: TestExample


@dataclass(frozen=True)
class JumpTo:
    """Set the clock forward: nothing can continue earlier."""

    moment: datetime


@dataclass(frozen=True)
class Fill:
    """Say this many tokens of filler: then the first test can continue."""

    tokens: int


Decision = Resume | Start | JumpTo | Fill


class Agenda:
    """The tests that have not ended, and the rules on which of them may overlap."""

    def __init__(self, tests: Iterable[TestExample], config: RunConfig) -> None:
        self._config = config
        self._incompatible = [frozenset(map(dataset_key, group)) for group in config.incompatibilities]
        self.pending = sorted(tests, key=_sort_key)
        self.running: list[RunningTest] = []
        ids = [example.unique_id for example in self.pending]
        for test_id in ids:
            if ids.count(test_id) > 1:
                raise UsageError(f"Two tests have the id {test_id!r}: each needs a unique id")

    def begin(self, example: TestExample) -> RunningTest:
        self.pending.remove(example)
        test = RunningTest(example)
        self.running.append(test)
        return test

    def end(self, test: RunningTest) -> None:
        self.running.remove(test)

    def decide(self, tokens: int, now: datetime) -> Decision | None:
        """Return what to do next, after ``tokens`` were said; None when all tests have ended.

        Prefers a test whose wait is over (the one that waited for the fewest tokens), then a test that may begin,
        then a jump to the next awaited time, then filler.
        """
        ready = [test for test in self.running if test.is_ready(tokens, now)]
        if ready:
            return Resume(min(ready, key=lambda test: test.wait_tokens))
        for example in self.pending:
            if self._may_begin(example):
                return Start(example)
        moments = [
            test.wait_until for test in self.running if test.wait_until is not None and test.wait_until > now
        ]
        if moments:
            return JumpTo(min(moments))
        missing = [test.tokens_missing(tokens) for test in self.running]
        return Fill(min(missing)) if missing else None

    def _may_begin(self, example: TestExample) -> bool:
        others: Sequence[TestExample] = [test.example for test in self.running]
        if others and self._config.isolated:
            return False
        return all(self._may_overlap(example, other) for other in others)

    def _may_overlap(self, first: TestExample, second: TestExample) -> bool:
        if not (first.can_be_interleaved and second.can_be_interleaved):
            return False
        pair = {dataset_key(first.dataset_name), dataset_key(second.dataset_name)}
        return len(pair) == 2 and not any(pair <= group for group in self._incompatible)


def _sort_key(example: TestExample) -> tuple[str, list[str | tuple[int, str]], str]:
    """Sorts by dataset, then by id in natural order."""
    parts: list[str | tuple[int, str]] = [
        (int(part), part) if index % 2 else part for index, part in enumerate(_DIGITS.split(example.example_id))
    ]
    return example.dataset_name, parts, example.example_id


_REQUEST = (
    "Please read these questions and answers, and reply with a JSON list of the answers alone, in their order.\n"
)


@dataclass(frozen=True)
class Trivia:
    question: str
    answer: str


@dataclass(frozen=True)
class FillerText:
    """A message of trivia and the reply it asks for."""

    message: str
    reply: str


class TriviaFiller:
    """Draws trivia; equal seeds draw equal trivia."""

    def __init__(self, trivia: Sequence[Trivia], seed: int) -> None:
        self._trivia = trivia
        self._random = Random(seed)

    def text(self, tokens: int) -> FillerText:
        """At least one question, and as many as the message needs to reach ``tokens``."""
        drawn: list[Trivia] = []
        message = _REQUEST
        while not drawn or count_tokens(message) < tokens:
            drawn.append(self._random.choice(self._trivia))
            message += f"Q: {drawn[-1].question} A: {drawn[-1].answer}\n"
        return FillerText(message, json.dumps([entry.answer for entry in drawn], ensure_ascii=False))


@cache
def shipped_trivia() -> tuple[Trivia, ...]:
    return read_trivia(datasets_folder() / "data" / "trivia.json")


def read_trivia(path: Path) -> tuple[Trivia, ...]:
    """Read a JSON list of ``{"question", "answer"}``."""
    try:
        return tuple(Trivia(entry["question"], entry["answer"]) for entry in json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DatasetError(path, "", f"cannot be used ({error!r})", "a list of questions and answers") from None


Steps = Generator[Step, AgentReply | None, None]

MOST_EXCHANGES_WATCHED = 200
"""A test whose callback has not ended it after this many exchanges is ungraded."""

_FILLER_TOKENS = 1024

_T = TypeVar("_T")


class Scheduler:
    """A run of tests.

    ``language_model`` is what datasets call. ``known`` is the log of an interrupted run of the same tests: its
    messages are yielded again with their replies, and no model call is repeated. ``on_event`` receives each new log
    event before it is used.
    """

    def __init__(
        self,
        tests: Iterable[TestExample],
        config: RunConfig | None = None,
        language_model: LanguageModel | None = None,
        known: Iterable[LogEvent] = (),
        on_event: EventSink | None = None,
    ) -> None:
        self.config = config or RunConfig()
        self.test_managing_costs_usd = 0.0
        self._record = RunRecord(self.config.start, Journal(known), on_event)
        self._model = LoggedModel(language_model, self._record)
        self._agenda = Agenda(tests, self.config)
        self._filler = TriviaFiller(shipped_trivia(), self.config.seed)
        for example in self._agenda.pending:
            example.dataset_generator.use_language_model(self._model)
            example.dataset_generator.cost_callback = self._account

    @property
    def master_log(self) -> MasterLog:
        """Return the events so far."""
        return self._record.log

    @property
    def now(self) -> datetime:
        """Return the simulated time."""
        return self._record.now

    def steps(self) -> Steps:
        """Run the tests. Send the agent's reply to each ``Say``, and None for every other step."""
        while decision := self._agenda.decide(self._record.tokens, self._record.now):
            match decision:
                case Resume(test):
                    yield from self._advance(test)
                case Start(example):
                    yield from self._begin(example)
                case JumpTo(moment):
                    before, self._record.now = self._record.now, moment
                    yield TimeJumps(before, moment)
                case Fill(tokens):
                    yield from self._fill(tokens)

    def _begin(self, example: TestExample) -> Steps:
        test = self._agenda.begin(example)
        if self.config.isolated:
            self._record.add(EventType.SUITE_RESET)
            yield FreshMemory(example.unique_id)
        example.start_token = self._record.tokens
        self._record.add(EventType.BEGIN, example.unique_id, tokens=self._record.tokens)
        yield TestBegins(example.unique_id, example.dataset_name, example.description, self._record.tokens)
        yield from self._advance(test)

    def _advance(self, test: RunningTest) -> Steps:
        """Run a test until it waits or ends."""
        while not test.example.finished:
            action = self._guarded(test, test.example.step)
            yield from self._model_calls()
            match action:
                case SendMessageAction():
                    yield from self._send(test, action)
                case WaitAction():
                    yield from self._wait(test, action)
                    return
                case TestFinishedAction():
                    test.example.finished = True
        yield from self._end(test)

    def _wait(self, test: RunningTest, action: WaitAction) -> Steps:
        test.wait(action, self._record.tokens, self._record.now)
        idles = test.example.uses_callback and test.watches
        if idles and test.idles:
            return
        test.idles = idles
        missing = test.tokens_missing(self._record.tokens)
        self._record.add(EventType.WAIT, test.example.unique_id, tokens=missing, time=action.time.total_seconds())
        yield TestWaits(test.example.unique_id, missing, test.wait_until)

    def _send(self, test: RunningTest, action: SendMessageAction) -> Steps:
        if test.example.is_temporal and action.is_question:
            question = self._guarded(test, lambda: self._create_question(test))
            yield from self._model_calls()
            if question is None:
                return
            action.message = question
        if action.is_question:
            test.at_last_question = self._record.tokens, self._record.characters
        test.statement_times.append(self._record.now)
        action.sent_ts = self._record.now
        reply = yield from self._exchange(action, test.example.unique_id)
        action.reply, action.reply_ts = reply.text, self._record.now
        if test.after_first is None:
            test.after_first = self._record.tokens, self._record.characters
        if action.is_question:
            test.questions.append(action.message)
            test.responses.append(reply.text)
        if reply.error is not None:
            test.ungraded = test.ungraded or f"The agent gave no reply: {reply.error}"
        if isinstance(action, SendAndRegisterAction) and not test.watches:
            test.watches = True
            self._record.add(EventType.REGISTER_CALLBACK, test.example.unique_id)
            yield CallbackRegistered(test.example.unique_id)
        yield from self._run_callbacks()

    def _create_question(self, test: RunningTest) -> str:
        example = test.example
        return example.dataset_generator.create_question(example, list(test.statement_times), self._record.now)

    def _fill(self, tokens: int) -> Steps:
        spans = [test.example.dataset_generator.max_message_size for test in self._agenda.running]
        text = self._filler.text(min([tokens, _FILLER_TOKENS, *spans]))
        watched = any(test.watches for test in self._agenda.running)
        supplied = None if watched else text.reply
        yield from self._exchange(SendMessageAction(text.message, is_filling=True, filler_response=supplied), "")
        yield from self._run_callbacks()

    def _exchange(self, action: SendMessageAction, test_id: str) -> Generator[Step, AgentReply | None, AgentReply]:
        """Send a message and receive the reply, which is logged before it is used."""
        sent, received = (
            (EventType.SEND_FILL, EventType.RESPONSE_FILL)
            if action.is_filling
            else (EventType.SEND_MESSAGE, EventType.RESPONSE_MESSAGE)
        )
        sent_at = self._record.now
        self._record.add(sent, test_id, message=action.message, is_question=action.is_question)
        known = self._record.journal.agent_reply()
        self._record.count(action.message)
        if action.filler_response is not None:
            reply = AgentReply(action.filler_response)
            yield Filler(test_id or None, action.message, reply.text, sent_at)
        else:
            given = yield Say(
                test_id or None, action.message, action.is_question, action.is_filling, sent_at, known
            )
            reply = known or given or AgentReply("", "the driver sent no reply")
        failure = {} if reply.error is None else {"error": reply.error}
        self._record.count(reply.text)
        self._record.add(received, test_id, message=reply.text, is_question=action.is_question, **failure)
        return reply

    def _run_callbacks(self) -> Steps:
        """Call each registered callback with the exchange that just ended."""
        for test in list(self._agenda.running):
            if not test.watches:
                continue
            done = self._guarded(test, partial(self._call_back, test))
            yield from self._model_calls()
            test.watched += 1
            if test.watched >= MOST_EXCHANGES_WATCHED and not test.example.finished:
                test.give_up(f"Its callback did not end it within {MOST_EXCHANGES_WATCHED} exchanges")
            if done or test.example.finished:
                test.watches, test.wait_tokens, test.wait_until = False, self._record.tokens, None
                self._record.add(EventType.DEREGISTER_CALLBACK, test.example.unique_id)
                yield CallbackDeregistered(test.example.unique_id)

    def _call_back(self, test: RunningTest) -> bool:
        dataset = test.example.dataset_generator
        score, maximum, reasons, deregister = dataset.continual_evaluation_callback(
            self, test.example, self.master_log.messages()
        )
        test.evaluation = score, maximum, reasons
        if deregister:
            test.example.finished = True
        return deregister

    def _end(self, test: RunningTest) -> Steps:
        example = test.example
        result = None if test.ungraded else self._guarded(test, lambda: self._evaluate(test))
        yield from self._model_calls()
        if example.reset_message:
            test.watches = False
            yield from self._exchange(SendMessageAction(example.reset_message), example.unique_id)
            yield from self._run_callbacks()
        self._record.add(EventType.END, example.unique_id)
        self._agenda.end(test)
        score, maximum, reasons = result or (None, 1, [])
        tokens, characters = test.distance()
        yield TestEnded(
            test_id=example.unique_id,
            dataset=example.dataset_name,
            score=score,
            max_score=maximum,
            reasoning=tuple(map(str, reasons)),
            ungraded=test.ungraded,
            questions=tuple(test.questions),
            responses=tuple(test.responses),
            expected_responses=example.expected_responses,
            tokens=tokens,
            characters=characters,
        )

    def _evaluate(self, test: RunningTest) -> Evaluation:
        if not test.example.uses_callback:
            return test.example.evaluation_fn(test.questions, test.responses, test.example.expected_responses)
        if test.evaluation is None:
            raise Ungraded("Its callback never saw an exchange")
        return normalised_evaluation(*test.evaluation)

    def _guarded(self, test: RunningTest, act: Callable[[], _T]) -> _T | None:
        """Run the dataset's code. A failure ends this test without a score, and not the run."""
        self._model.test_id = test.example.unique_id
        try:
            return act()
        except Ungraded as error:
            test.give_up(str(error))
        except (MemreplayError, StoppedError, KeyboardInterrupt):
            raise
        except BaseException as error:
            test.give_up(f"The dataset's code failed ({problem_of(error)})")
        return None

    def _model_calls(self) -> Generator[LlmAsked, AgentReply | None, None]:
        """Yield the model calls made since the last time."""
        asked, self._model.asked = self._model.asked, []
        yield from asked

    def _account(self, cost_usd: float) -> None:
        self.test_managing_costs_usd += cost_usd


class AsyncSteps:
    """Awaits the steps of a scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._steps = scheduler.steps()

    async def next(self, reply: AgentReply | None = None) -> Step | None:
        """Return the step after the one that ``reply`` answers (None unless that was a ``Say``); None at the
        end.
        """
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
