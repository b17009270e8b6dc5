"""``--estimate``: replays the run with a model that counts its calls and asks nobody.

Tests are rehearsed with an agent that always gives the same short reply. The length of its prompts depends on that
reply; the choice of prompts does only in dynamic tests and tests with callbacks. For each test only the first call
to the judge is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

from rich import box
from rich.table import Table
from rich.text import Text

from memory_backends.base import BackendError, MemoryBackend, Recall
from memory_backends.registry import texts_to_embed
from memreplay.batch.selection import AskPlan, chosen_tests
from memreplay.conversations.models import Conversation, Question, exchanges_of
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.dataset_interfaces.dynamic import DynamicExample
from memreplay.dataset_interfaces.sources import TestSource
from memreplay.engine.answers import is_for_a_judge
from memreplay.engine.events import ReplayEvent, ReplyReceived
from memreplay.engine.remote.addresses import is_agent, models_asked_of
from memreplay.engine.session import ReplaySession
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import ReplyCache, request_key
from memreplay.llm.catalogue import model_facts
from memreplay.llm.judging import ModelJudge
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.prompts import KINDS
from memreplay.llm.tokens import token_counter
from memreplay.rich_console import terminal_console
from memreplay.runtime.changes import Change, Selection, WrongAnswers, changes_of
from memreplay.runtime.models import Judge
from memreplay.runtime.run import Run
from memreplay.runtime.run_with_tests import RunWithTests
from memreplay.runtime.test_streams import streams_of
from memreplay.scoring.verdicts import INTERVENTIONS
from memreplay.settings import Settings
from memreplay.text import dollars
from memreplay.timeline.timeline import Answer, Timeline

_LONGEST_REPLY = KINDS["recall"].reply_tokens
_NOTHING = Reply(text=None, error="not asked: this is an estimate")


@dataclass
class Estimate:
    """The calls of one backend to one model, or to itself if it is an agent.

    ``asked`` counts questions, or tests; ``calls`` only those without a cached reply.
    """

    asked: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    def price(self, model: str) -> float | None:
        """The cost in US dollars, without any discount; None if the price is unknown."""
        facts = model_facts(model)
        if model == EXTRACTIVE_MODEL or not self.calls:
            return 0.0
        if facts.prompt_price is None or facts.completion_price is None:
            return None
        return self.prompt_tokens * facts.prompt_price + self.reply_tokens * facts.completion_price


class EstimatingModel:
    """Returns cached replies; counts the other calls in ``current`` and returns a stand-in.

    A reply is assumed to be as long as the stand-in or, if that is empty, as long as the model may make it.
    """

    def __init__(self, cache: ReplyCache | None, stand_in: Reply = _NOTHING) -> None:
        self.current = Estimate()
        self._cache, self._stand_in = cache, stand_in
        self._seen: set[str] = set()
        # Contexts that many questions share are counted once.
        self._tokens = lru_cache(maxsize=1024)(lambda model, text: token_counter(model)(text))

    async def answer(self, request: AnswerRequest) -> Reply:
        key = request_key(request)
        cached = self._cache.get(key) if self._cache is not None else None
        if cached is not None:
            return cached.model_copy(update={"reused": True})
        if self._cache is None or key not in self._seen:
            segments = (segment for message in request.messages for segment in message.segments)
            self.current.calls += 1
            self.current.prompt_tokens += sum(self._tokens(request.model, segment) for segment in segments)
            self.current.reply_tokens += self._reply_length(request)
        self._seen.add(key)
        return self._stand_in

    def _reply_length(self, request: AnswerRequest) -> int:
        if self._stand_in.text is None:
            return int(request.parameters.get("max_tokens") or 0)
        return self._tokens(request.model, self._stand_in.text)


class EstimatedJudging:
    """Counts the calls of a judge. A reply that is not known yet is assumed to be as long as it may be."""

    def __init__(self, judge: str, cache: ReplyCache | None, settings: Settings) -> None:
        self._model = EstimatingModel(cache)
        self._judge = ModelJudge(judge, self._model, settings.api_base, settings.judge_rubric)

    async def add(self, question: Question, known: Reply, *asked: object) -> None:
        """Count the judging of a reply. ``asked`` tells unknown replies apart, so that no two count as the same."""
        unknown = known.error is not None
        text = " ".join(map(str, asked)) + " word" * _LONGEST_REPLY if unknown else known.text or ""
        if is_for_a_judge(question, known.model_copy(update={"text": text, "error": None})):
            self._model.current.asked += 1
            await self._judge.judge(question, text)

    @property
    def estimate(self) -> Estimate:
        return self._model.current


async def estimate_run(
    run: Run,
    conversations: Sequence[Conversation],
    asking: AskPlan,
    judge: str | None = None,
    *,
    why: bool = False,
) -> dict[tuple[str, str], Estimate]:
    """The estimates by backend and model; those of the judge's calls, which the run must not make, come last.

    With ``why``, as many calls more as if each answer without a cached reply were wrong.
    """
    model = EstimatingModel(run.reply_cache)
    judging = EstimatedJudging(judge, run.reply_cache, run.settings) if judge else None
    replies: list[Reply] = []

    backends = (*asking.backends, *asking.baselines)
    estimates = {(name, each): Estimate() for name in backends for each in models_asked_of(name, asking.models)}
    local = [name for name in backends if not is_agent(name)]
    for conversation in conversations:
        memories = run.backends_for(conversation, local)
        plan = run.plan(f"estimate-{uuid4().hex[:8]}", memories, perceive=False)
        timeline = Timeline(conversation)

        def keep(event: ReplayEvent, timeline: Timeline = timeline) -> None:
            timeline.append(event)
            if isinstance(event, ReplyReceived):
                replies.append(event.reply)

        session = ReplaySession(conversation, memories, run.answerer(model), plan, keep)
        texts = texts_to_embed(tuple(memories), exchanges_of(conversation))
        await run.embed(texts + [question.text for question in conversation.questions])
        await session.open()
        await session.play()
        for ask in asking.asks_of(conversation):
            model.current = estimates[ask.backend, ask.model]
            model.current.asked += ask.repeat == 0
            if is_agent(ask.backend):
                model.current.calls += 1
                reply = _NOTHING
            else:
                await session.ask(ask.question, ask.backend, ask.model, repeat=ask.repeat)
                reply = replies.pop()
            if judging is not None:
                await judging.add(ask.question, reply, ask.backend, ask.model, ask.repeat)
        if why:
            await _ask_why(model, estimates, timeline, memories, run.settings, judging)
        await session.close("cancelled")
    if judging is not None and judge is not None:
        estimates[JUDGING_ANSWERS, judge] = judging.estimate
    return estimates


async def _ask_why(
    model: EstimatingModel,
    estimates: dict[tuple[str, str], Estimate],
    timeline: Timeline,
    memories: Mapping[str, MemoryBackend],
    settings: Settings,
    judging: EstimatedJudging | None,
) -> None:
    def may_be_wrong(answer: Answer) -> bool:
        """Not if its reply is known to be right. A reply that is not cached may be wrong; a judge may think so."""
        is_right = answer.scored is not None and answer.scored.score.outcome == "correct"
        return answer.scored is not None and not (is_right and judging is None)

    wrong = WrongAnswers(timeline, Selection(), may_be_wrong)
    for answer in wrong.chosen:
        model.current = estimates[answer.asked.backend, answer.asked.model]
        changes = await changes_of(
            wrong.case(answer), INTERVENTIONS, lambda name: _Played(memories[name]), settings
        )
        for change in changes:
            await estimate_change(change, model, judging)


async def estimate_change(change: Change, model: EstimatingModel, judging: EstimatedJudging | None) -> None:
    """Count the call of a change, and that which judges its reply."""
    if change.request is None:
        return
    reply, asked = await model.answer(change.request), change.case.asked
    if judging is not None:
        question = change.case.question
        await judging.add(question, reply, asked.backend, asked.model, asked.repeat, change.intervention)


@dataclass(frozen=True)
class _Played:
    """A memory that has ingested its conversation."""

    memory: MemoryBackend

    @property
    def limited_by_top_k(self) -> bool:
        return self.memory.limited_by_top_k

    async def recall(self, question: str, top_k: int, context_tokens: int, model: str, turn: int) -> Recall | str:
        self.memory.set_token_counter(token_counter(model))
        try:
            return await self.memory.recall(question, top_k, context_tokens)
        except BackendError as error:
            return str(error)


def print_estimate(
    estimates: dict[tuple[str, str], Estimate], counted: str = "questions", bound: str = "at most"
) -> None:
    """A table on standard output. ``counted`` heads the column of ``asked``, ``bound`` qualifies the price."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend")
    table.add_column("model")
    for heading in (counted, "calls", "prompt tokens", f"price {bound}"):
        table.add_column(heading, justify="right")
    prices = []
    for (backend, model), estimate in estimates.items():
        prices.append(estimate.price(model))
        numbers = (estimate.asked, estimate.calls, estimate.prompt_tokens)
        table.add_row(Text(backend), Text(model), *(f"{number:,}" for number in numbers), dollars(prices[-1]))
    console = terminal_console(width=120)
    console.print(table)
    known = sum(price for price in prices if price is not None)
    unknown = ", where the price is known" if None in prices else ""
    console.print(f"In all {bound} {dollars(known)}{unknown}; providers' caches reduce it.")


JUDGING = "(judge, at least)"
"""Takes the place of the backend in the row of the judge of tests."""

JUDGING_ANSWERS = "(judge)"
"""The same for the judge of answers."""

_SHORT_REPLY = "Thank you for telling me. I will keep it in mind, and come back to it whenever you want me to."

Estimates = dict[tuple[str, str], Estimate]


async def estimate_tests(
    run: RunWithTests, sources: Sequence[TestSource], judge_name: str | None
) -> tuple[Estimates, list[str]]:
    """The estimates by backend and model, the judge's among them, and sentences on their limits.

    The run must have no judge, so that no model writes tests either.

    Raises:
        UsageError: a model would have to write tests first, or a dataset's code fails.
    """
    settings, cache = run.settings, run.reply_cache
    agent = EstimatingModel(cache, Reply(text=_SHORT_REPLY))
    judging = EstimatingModel(cache)
    judge = Judge(judge_name, judging, settings.api_base) if judge_name else None
    made = chosen_tests([await _create_tests(run, source) for source in sources], settings)
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


async def _create_tests(run: RunWithTests, source: TestSource) -> Benchmark:
    try:
        return await run.made(source)
    except UsageError as error:
        raise UsageError(f"--estimate calls no model, so it cannot have tests written: {error}") from None


def _caveats(made: Iterable[Benchmark]) -> Iterable[str]:
    tests = [test for benchmark in made for test in benchmark.tests]
    yield f'Assumes that the agent always replies: "{_SHORT_REPLY}"'
    free = sum(isinstance(test, DynamicExample) or test.uses_callback for test in tests)
    if free:
        yield (
            f"{free} of {len(tests)} tests depend on the agent's replies (dynamic tests, callbacks), and may take"
            " more or fewer calls."
        )
