"""``--estimate`` for tests: they are rehearsed with an agent whose replies all are the same short one.

What the agent is asked depends on its replies only where a test watches or makes itself up; the length of its
prompts depends on that of its replies everywhere. A test that a model judges is judged as far as its first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memory_backends.registry import texts_to_embed
from memreplay.batch.resume import Asking
from memreplay.batch.selection import chosen_tests
from memreplay.conversations.exchanges import exchanges_of
from memreplay.conversations.models import Conversation
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.dataset_interfaces.dynamic import DynamicExample
from memreplay.dataset_interfaces.sources import TestSource
from memreplay.engine.events import ReplayEvent
from memreplay.engine.remote.client import is_agent, models_asked_of
from memreplay.engine.session import ReplaySession
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import ReplyCache, request_key
from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.tokens import token_counter
from memreplay.runtime.judge import Judge
from memreplay.runtime.run import Run
from memreplay.runtime.streams import streams_of
from memreplay.runtime.test_runs import RunWithTests
from memreplay.text import dollars

_NOTHING = Reply(text=None, error="not asked: this is an estimate")


@dataclass
class Estimate:
    """What one backend would need of one model, or of itself where it is an agent.

    ``asked`` counts questions, or tests; ``calls`` are those whose reply is not on record.
    """

    asked: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    def price(self, model: str) -> float | None:
        """What it costs, in US dollars, without any discount; None where the price is unknown."""
        facts = model_facts(model)
        if model == EXTRACTIVE_MODEL or not self.calls:
            return 0.0
        if facts.prompt_price is None or facts.completion_price is None:
            return None
        return self.prompt_tokens * facts.prompt_price + self.reply_tokens * facts.completion_price


class EstimatingModel:
    """Counts what it would be asked, and gives what is on record, else a stand-in.

    ``current`` is the estimate that it is for. A reply is taken to be as long as the stand-in, or where that says
    nothing as long as it may be.
    """

    def __init__(self, cache: ReplyCache | None, stand_in: Reply = _NOTHING) -> None:
        self.current = Estimate()
        self._cache, self._stand_in = cache, stand_in
        self._seen: set[str] = set()
        # Contexts that many questions share are counted once.
        self._tokens = lru_cache(maxsize=1024)(lambda model, text: token_counter(model)(text))

    async def answer(self, request: AnswerRequest) -> Reply:
        """What is on record, or the stand-in after counting."""
        key = request_key(request)
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is not None:
            return kept.model_copy(update={"reused": True})
        if self._cache is None or key not in self._seen:
            segments = (segment for message in request.messages for segment in message.segments)
            self.current.calls += 1
            self.current.prompt_tokens += sum(self._tokens(request.model, segment) for segment in segments)
            self.current.reply_tokens += self._length_of_reply(request)
        self._seen.add(key)
        return self._stand_in

    def _length_of_reply(self, request: AnswerRequest) -> int:
        if self._stand_in.text is None:
            return int(request.parameters.get("max_tokens") or 0)
        return self._tokens(request.model, self._stand_in.text)


async def estimate_run(
    run: Run, conversations: Sequence[Conversation], asking: Asking
) -> dict[tuple[str, str], Estimate]:
    """What each backend would need of each model."""
    model = EstimatingModel(run.reply_cache)
    backends = (*asking.backends, *asking.along)
    estimates = {(name, each): Estimate() for name in backends for each in models_asked_of(name, asking.models)}
    here = [name for name in backends if not is_agent(name)]
    for conversation in conversations:
        memories = run.backends_for(conversation, here)
        plan = run.plan(f"estimate-{uuid4().hex[:8]}", memories, perceive=False)
        session = ReplaySession(conversation, memories, run.answerer(model), plan, _unrecorded)
        texts = texts_to_embed(tuple(memories), exchanges_of(conversation))
        await run.embed_ahead(texts + [question.text for question in conversation.questions])
        await session.open()
        await session.play()
        for ask in asking.asks_of(conversation):
            model.current = estimates[ask.backend, ask.model]
            model.current.asked += ask.repeat == 0
            if is_agent(ask.backend):
                model.current.calls += 1
                continue
            await session.ask(ask.question, ask.backend, ask.model, repeat=ask.repeat)
        await session.close("cancelled")
    return estimates


def print_estimate(
    estimates: dict[tuple[str, str], Estimate], counted: str = "questions", how_much: str = "at most"
) -> None:
    """A table on standard output. ``counted`` is what is asked, ``how_much`` says how the price is meant."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend")
    table.add_column("model")
    for heading in (counted, "calls", "prompt tokens", f"price {how_much}"):
        table.add_column(heading, justify="right")
    prices = []
    for (backend, model), estimate in estimates.items():
        prices.append(estimate.price(model))
        numbers = (estimate.asked, estimate.calls, estimate.prompt_tokens)
        table.add_row(Text(backend), Text(model), *(f"{number:,}" for number in numbers), dollars(prices[-1]))
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    known = sum(price for price in prices if price is not None)
    unknown = ", where the price is known" if None in prices else ""
    console.print(f"In all {how_much} {dollars(known)}{unknown}; providers' caches make it less.")


def _unrecorded(event: ReplayEvent) -> None:
    """An estimate leaves nothing behind."""


JUDGING = "(judge, at least)"
"""Stands for a memory in the row of what judging would need."""

_SHORT_REPLY = "Thank you for telling me. I will keep it in mind, and come back to it whenever you want me to."

Estimates = dict[tuple[str, str], Estimate]


async def estimate_tests(
    run: RunWithTests, sources: Sequence[TestSource], judge_name: str | None
) -> tuple[Estimates, list[str]]:
    """What each memory would need of each model, and of the judge; and in sentences how far that can be told.

    The run has no judge: a model that writes tests is not asked either.

    Raises:
        UsageError: tests would have to be written by a model first, or a dataset's code fails.
    """
    settings, cache = run.settings, run.reply_cache
    agent = EstimatingModel(cache, Reply(text=_SHORT_REPLY))
    judging = EstimatingModel(cache)
    judge = Judge(judge_name, judging, settings.api_base) if judge_name else None
    made = chosen_tests([await _made(run, source) for source in sources], settings)
    estimates: Estimates = {}
    for source, benchmark in zip(sources, made, strict=True):
        for stream in streams_of(source, benchmark, settings) if benchmark.tests else []:
            agent.current = estimates.setdefault((stream.backend, stream.model), Estimate())
            agent.current.asked += len(stream.test_ids or ()) if stream.repeat == 0 else 0
            session = run.rehearsal(stream, agent, judge)
            await session.open()
            await session.play()
            await session.close("cancelled")
    if judge is not None:
        judging.current.asked = sum(len(benchmark.tests) for benchmark in made)
        estimates[JUDGING, judge.name] = judging.current
    return estimates, list(_caveats(made))


async def _made(run: RunWithTests, source: TestSource) -> Benchmark:
    try:
        return await run.made(source)
    except UsageError as error:
        raise UsageError(f"--estimate asks no model, to write tests neither: {error}") from None


def _caveats(made: Iterable[Benchmark]) -> Iterable[str]:
    tests = [test for benchmark in made for test in benchmark.tests]
    yield f'The agent is taken to reply always: "{_SHORT_REPLY}"'
    free = sum(isinstance(test, DynamicExample) or test.uses_callback for test in tests)
    if free:
        yield (
            f"{free} of {len(tests)} tests go on as the agent replies (dynamic tests, callbacks): what they really"
            " take cannot be told, and may be more or less."
        )
