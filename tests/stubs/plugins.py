"""Memories as strangers might write them: good ones, careless ones, and things that are none."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from memory_backends.base import Exchange, Hit, MemoryBackend, Namespace, Recall, SeenExchanges, Snapshot
from memory_backends.contract.trial import count_words
from memory_backends.examples.notebook import NotebookMemory
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import assemble
from memory_backends.snapshots import MOST_ITEMS
from memory_backends.stores.qdrant import KnowledgeStore, Point
from memory_backends.stores.trace import MemoryTrace


class Bare:
    """No base class, no trace, no names of ours: only what is required.

    Its state changes in every way that a state can.
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.points: dict[str, Any] = {}

    async def open(self, namespace: Namespace) -> None:
        self.state, self.points = {"log": "", "facts": {}}, {}

    async def observe(self, exchange: Exchange) -> None:
        number = exchange.turn_number
        self.state["log"] += exchange.text + "\n"
        self.state["facts"][f"turn {number}"] = {"said": exchange.text, "tags": {number}}
        self.state["summary"] = f"{number} turns so far"
        self.state["passing" if number % 4 else "lasting"] = number
        if not number % 4:
            self.state.pop("passing", None)
            self.points.pop(str(number - 2), None)
        self.points[str(number)] = {"content": exchange.text}
        kinds = {2: {"mood": "calm"}, 4: "calm", 6: {"mood": number}}
        self.state["kind"] = kinds.get(number % 8)
        if number % 8 not in kinds:
            del self.state["kind"]

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        return Recall()

    async def snapshot(self) -> Snapshot:
        return Snapshot(values={"diary": self.state}, points={"index": {"notes": self.points}})


class Careless(Bare):
    """Breaks what it can: it writes twice, keeps to no budget, and mixes up its conversations."""

    heard: list[str] = []

    async def observe(self, exchange: Exchange) -> None:
        self.heard.append(exchange.text)
        await super().observe(exchange)

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        return Recall(context=" ".join(self.heard), tokens=3)


class Forgets(Bare):
    """Its store loses a note whenever it is read, or only once if ``times`` is 1."""

    times = 1_000_000

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        if self.points and type(self).times:
            type(self).times -= 1
            self.points.popitem()
        return Recall()


class Insists(Bare):
    """Cannot go on without a reply that says something."""

    takes = ("extractor",)

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._chat = resources.chat

    async def observe(self, exchange: Exchange) -> None:
        assert self._chat is not None
        said = await self._chat.complete([{"role": "user", "content": exchange.text}])
        self.state["first"] = said.text.split()[0]


class WorksElsewhere(Bare):
    """Calls a server, as soon as it is opened."""

    works_elsewhere = True

    async def open(self, namespace: Namespace) -> None:
        raise ConnectionError("its server was called")


class GivesText(Bare):
    async def recall(self, question: str, limit: int, budget: int) -> str:  # type: ignore[override]
        return "Nimbus Labs"


class SnapshotFails(Bare):
    async def snapshot(self) -> Snapshot:
        raise OSError("the disk is gone")


class HalfOurs(MemoryBackend):
    """One part in a store of ours, which traces itself, one in a dictionary."""

    def __init__(self, resources: Resources) -> None:
        self.name, self.trace = "half", MemoryTrace()
        self._resources = resources
        self._turns: list[int] = []

    async def open(self, namespace: Namespace) -> None:
        self._turns = []
        self._store = KnowledgeStore(self._resources.qdrant, self.trace, namespace, 96)
        await self._store.open_collection("texts")

    async def observe(self, exchange: Exchange) -> None:
        vector = self._resources.embedder.embed([exchange.text])[0]
        id_ = f"00000000-0000-0000-0000-{exchange.turn_number:012}"
        await self._store.upsert("texts", [Point(id_, vector, {"content": exchange.text})])
        self._turns.append(exchange.turn_number)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return Recall()

    async def snapshot(self) -> Snapshot:
        texts = await self._store.dump("texts")
        return Snapshot(values={"list": {"turns": list(self._turns)}}, points={"qdrant": {"texts": texts}})


class Synchronous:
    """Plain functions only, over a SQLite connection, which can be used in the thread alone that opened it."""

    def open(self, namespace: Namespace) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table said (turns text primary key, text text)")

    def observe(self, exchange: Exchange) -> None:
        row = (exchange.turn_ids[0], exchange.text)
        self.db.execute("insert or replace into said values (?, ?)", row)

    def recall(self, question: str, limit: int, budget: int) -> Recall:
        rows = self.db.execute("select turns, text from said order by rowid desc limit ?", (limit,)).fetchall()
        hits = [
            Hit(id=id_, store="sqlite", place="said", rank=rank, score=None, text=text)
            for rank, (id_, text) in enumerate(rows, start=1)
        ]
        return assemble(hits, {hit.id: -hit.rank for hit in hits}, budget, count_words)

    def snapshot(self) -> Snapshot:
        rows = self.db.execute("select turns, text from said").fetchall()
        return Snapshot(points={"sqlite": {"said": {id_: {"text": text} for id_, text in rows}}})


class Doubling(Bare):
    """Writes what it hears again when it hears it again."""

    async def observe(self, exchange: Exchange) -> None:
        self.points[str(len(self.points))] = {"content": exchange.text}


class Mended(Doubling):
    """As ``check-backend`` suggests."""

    async def open(self, namespace: Namespace) -> None:
        await super().open(namespace)
        self.seen = SeenExchanges()

    async def observe(self, exchange: Exchange) -> None:
        if self.seen.is_new(exchange):
            await super().observe(exchange)


class CallsItsOwnModel(Bare):
    """Calls models through LiteLLM by itself, both ways, at the address in ``OWN_MODEL_URL``."""

    async def observe(self, exchange: Exchange) -> None:
        import litellm

        await super().observe(exchange)
        given = {"api_base": os.environ["OWN_MODEL_URL"], "api_key": "x", "model": "openai/own"}
        messages = [{"role": "user", "content": exchange.text}]
        await litellm.acompletion(messages=messages, **given)
        await asyncio.to_thread(litellm.completion, messages=messages, **given)


class WantsMuch(Bare):
    def __init__(self, redis: object, qdrant: object) -> None:
        super().__init__()


class FailsToBeMade(Bare):
    def __init__(self) -> None:
        raise ValueError("no licence")


class NoMemory:
    """Of another kind altogether."""


a_function = len


class SaysWhatItEmbeds(Bare):
    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> list[str]:
        return [exchange.text.upper() for exchange in exchanges]


class FailsToSayWhatItEmbeds(Bare):
    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> list[str]:
        raise ValueError("not today")


class Whole(NotebookMemory):
    """Returns all its notes, whatever ``top_k`` is."""

    limited_by_top_k = False

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return await super().recall(question, len(self.notes), context_tokens)


class Losing(NotebookMemory):
    """Loses its oldest note by itself, some time after a write: the next recall or write finds it gone."""

    async def observe(self, exchange: Exchange) -> None:
        await super().observe(exchange)
        if len(self.notes) == 3:
            asyncio.get_running_loop().call_later(0.05, self.notes.pop, next(iter(self.notes)))


class Hoarding(NotebookMemory):
    """Holds more than anybody looks at."""

    async def snapshot(self) -> Snapshot:
        return Snapshot(points={"hoard": {"all": {str(number): {} for number in range(MOST_ITEMS + 1)}}})


class Nesting(NotebookMemory):
    """Holds a value inside a value, and so on."""

    async def snapshot(self) -> Snapshot:
        value: dict[str, Any] = {}
        for _ in range(900):
            value = {"in": value}
        return Snapshot(values={"nest": {"all": value}})


class Starving(NotebookMemory):
    """Runs out of memory whenever it is asked."""

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return Recall(context=" " * 2**62)
