"""``--estimate``: what a run would ask and cost. Memory is built and read as in the run; no model is asked.

Agents are told nothing either: their questions are counted, and what they cost is their own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.agents.address import is_agent, models_asked_of
from app.answering.model import AnswerRequest, Reply
from app.answering.model_catalogue import model_facts
from app.answering.model_names import EXTRACTIVE_MODEL
from app.answering.reply_cache import ReplyCache, request_key
from app.answering.tokens import token_counter
from app.assembling.assembly import Assembly
from app.batch.remaining import Asking
from app.conversations.exchanges import exchanges_of
from app.conversations.models import Conversation
from app.prices import dollars
from app.replay.events import ReplayEvent
from app.replay.session import ReplaySession
from memory_backends.registry import texts_to_embed

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
    assembly: Assembly, conversations: Sequence[Conversation], asking: Asking
) -> dict[tuple[str, str], Estimate]:
    """What each backend would need of each model."""
    model = EstimatingModel(assembly.reply_cache)
    backends = (*asking.backends, *asking.along)
    estimates = {(name, each): Estimate() for name in backends for each in models_asked_of(name, asking.models)}
    here = [name for name in backends if not is_agent(name)]
    for conversation in conversations:
        memories = assembly.backends_for(conversation, here)
        plan = assembly.plan(f"estimate-{uuid4().hex[:8]}", memories, perceive=False)
        session = ReplaySession(conversation, memories, assembly.answerer(model), plan, _unrecorded)
        texts = texts_to_embed(tuple(memories), exchanges_of(conversation))
        await assembly.embed_ahead(texts + [question.text for question in conversation.questions])
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
