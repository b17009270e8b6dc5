"""Which workers of a scheduler a run uses, and what it tells them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from memory_backends.base import BackendError, Exchange, MemoryBackend, Message, Namespace
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.runtime.worker import Asks, Call, Done, Ports, versions
from memreplay.runtime.worker_memory import WorkerMemory
from memreplay.runtime.workers import Workers
from memreplay.settings import Settings

SECRET = "correct-horse-battery"
SETTINGS = Settings(
    redis_url=f"redis://user:{SECRET}@127.0.0.1:6379/0",
    qdrant_url="http://127.0.0.1:6333",
    qdrant_api_key=SECRET,
    agent_token=SECRET,
    api_base=f"http://user:{SECRET}@127.0.0.1:8000/v1",
)


@dataclass
class Host:
    """Stands for the actor in a worker."""

    problem: str | None

    async def ask(self, method: str, *arguments: object) -> object:
        """What one of these methods returns."""
        return await getattr(self, method)(*arguments)

    async def check(self) -> str | None:
        return self.problem

    async def embed(self, texts: list[str]) -> None:
        """Takes no time."""


@dataclass
class Scheduler:
    """Stands for Dask's client: one worker with these versions, and whether its stores answer."""

    theirs: dict[str, str] = field(default_factory=versions)
    problem: str | None = None
    sent: list[bytes] = field(default_factory=list)

    async def ncores(self) -> dict[str, int]:
        return {"tcp://worker:1": 1}

    async def run(self, function: Any, *arguments: object, workers: list[str]) -> dict[str, dict[str, str]]:
        return {workers[0]: self.theirs}

    async def submit(self, made: type, *arguments: object, **_: object) -> Host:
        self.sent.append(pickle.dumps((made, arguments)))
        return Host(self.problem)


async def test_a_worker_with_other_code_or_libraries_is_refused_by_name() -> None:
    scheduler = Scheduler(versions() | {"memreplay": "other", "numpy": "1.0"})
    with pytest.raises(
        UsageError, match=r"tcp://worker:1 has other versions: memreplay other, here .*; numpy 1\.0"
    ):
        await Workers(scheduler, SETTINGS, {}, Ports()).look()
    assert not scheduler.sent


async def test_a_worker_that_cannot_reach_the_stores_is_refused() -> None:
    scheduler = Scheduler(problem="Redis at 127.0.0.1:6379/0 does not answer")
    with pytest.raises(MissingServerOrKeyError, match=r"tcp://worker:1: Redis at .* does not answer"):
        await Workers(scheduler, SETTINGS, {}, Ports()).look()


@dataclass
class TwoWorkers(Scheduler):
    """The same with two workers."""

    async def ncores(self) -> dict[str, int]:
        return {"tcp://worker:1": 1, "tcp://worker:2": 1}


async def test_conversations_are_spread_from_the_first_text_on() -> None:
    workers = Workers(TwoWorkers(), SETTINGS, {}, Ports())
    await workers.look()
    workers.conversations = 4
    for conversation in ("a", "b"):
        await workers.embed_ahead(conversation, ["text"])
    at_work = [name for worker in workers.status() for name, _ in worker.memories]
    assert at_work == ["a embedding", "b embedding"]
    held = [(await workers.hold(conversation, "rag"))[0].address for conversation in ("a", "b", "a")]
    assert held == ["tcp://worker:1", "tcp://worker:2", "tcp://worker:1"]
    at_work = sorted(name for worker in workers.status() for name, _ in worker.memories)
    assert at_work == ["a rag", "a rag", "b rag"]


async def test_a_later_stretch_that_is_embedded_is_no_work_that_stays() -> None:
    workers = Workers(TwoWorkers(), SETTINGS, {}, Ports())
    await workers.look()
    workers.conversations = 4
    worker, key, unit = await workers.hold("a", "rag")
    await workers.embed_ahead("a", ["text"])
    workers.release(worker, key, unit)
    assert [worker.memories for worker in workers.status()] == [(), ()]


async def test_a_worker_with_another_version_of_ones_own_memory_is_refused() -> None:
    settings = replace(SETTINGS, backend=("tests.stubs.noting_memory:Noting", "rag"))
    name, _ = settings.backend
    assert versions([name])[name] == versions([name])[name] != versions(["none.such:Memory"])["none.such:Memory"]
    with pytest.raises(UsageError, match=r"other versions: tests\.stubs\.noting_memory:Noting other, here "):
        await Workers(Scheduler(versions([name]) | {name: "other"}), settings, {}, Ports()).look()


class Template(MemoryBackend):
    """Names a memory that is only in workers."""

    name = "x"


@dataclass
class AskingHost(Host):
    """Its memory calls a model to observe. A host that dies does so once it has the reply."""

    dies: bool

    async def create(self, unit: str, name: str) -> None:
        """It is there."""

    async def call(self, unit: str, calls: Sequence[Call]) -> Asks | list[Done]:
        return Asks(0, "chat", ("hello",)) if calls[0].method == "observe" else [Done(None, (), None)]

    async def answer(self, unit: str, number: int, reply: object) -> list[Done]:
        if self.dies:
            raise OSError("connection lost")
        return [Done(reply, (), None)]


@dataclass
class DyingWorkers(TwoWorkers):
    """Two workers, of which the first dies."""

    async def submit(self, made: type, *arguments: object, **_: object) -> Host:
        self.sent.append(b"")
        return AskingHost(None, dies=len(self.sent) == 1)


async def test_a_reply_that_a_lost_worker_had_is_not_asked_for_again() -> None:
    asked: list[str] = []

    async def chat(prompt: str) -> str:
        asked.append(prompt)
        return f"reply {len(asked)}"

    workers = Workers(DyingWorkers(), SETTINGS, {"chat": chat}, Ports(chat="stub"))
    await workers.look()
    memory = WorkerMemory(workers, "a", Template())
    said = Message(turn_id="1", turn_number=1, session=1, role="user", label="User", text="hello")
    await memory.open(Namespace(run_id="r", conversation_id="a", backend="x"))
    await memory.observe(Exchange(messages=(said,)))
    assert asked == ["hello"]
    assert [worker.address for worker in workers.status()] == ["tcp://worker:2"]
    await memory.observe(Exchange(messages=(said,)))
    assert asked == ["hello", "hello"]


@dataclass
class CountingHost(Host):
    """Its memory takes no time. ``requests`` are the calls that came together."""

    requests: list[list[str]]
    at_once: int = 100
    fails_at: str | None = None

    async def create(self, unit: str, name: str) -> None:
        """It is there."""

    async def drop(self, unit: str) -> None:
        """It is gone."""

    async def call(self, unit: str, calls: Sequence[Call]) -> list[Done]:
        made = calls[: self.at_once]
        self.requests.append([call.method for call in made])
        return [
            Done(call.arguments, (), "broken" if call.method == self.fails_at else None, ms=2.0) for call in made
        ]


@dataclass
class CountingWorker(Scheduler):
    """One worker with such a host."""

    requests: list[list[str]] = field(default_factory=list)
    at_once: int = 100
    fails_at: str | None = None

    async def submit(self, made: type, *arguments: object, **_: object) -> Host:
        return CountingHost(None, self.requests, self.at_once, self.fails_at)


async def test_calls_that_are_expected_travel_together_and_each_is_made_once() -> None:
    worker = CountingWorker()
    workers = Workers(worker, SETTINGS, {}, Ports())
    await workers.look()
    memory = WorkerMemory(workers, "a", Template())
    await memory.open(Namespace(run_id="r", conversation_id="a", backend="x"))
    questions = [f"question {number}" for number in range(100)]
    memory.expect([("recall", (question, 10, 500)) for question in questions])
    for number, question in enumerate(questions):
        assert await memory.recall(question, 10, 500) == (question, 10, 500)
        assert memory.ms == 2.0
        if number == 50:
            assert await memory.recall("another", 10, 500) == ("another", 10, 500)
    assert sum(map(len, worker.requests)) == 1 + len(questions) + 1
    assert len(worker.requests) <= 7


async def opened(worker: CountingWorker) -> tuple[WorkerMemory, Workers]:
    """A memory in this worker, with the first of fifty exchanges that are expected observed."""
    workers = Workers(worker, SETTINGS, {}, Ports())
    await workers.look()
    memory = WorkerMemory(workers, "a", Template())
    await memory.open(Namespace(run_id="r", conversation_id="a", backend="x"))
    said = Message(turn_id="1", turn_number=1, session=1, role="user", label="User", text="hello")
    exchanges = [
        Exchange(messages=(said.model_copy(update={"turn_id": str(number), "turn_number": number}),))
        for number in range(1, 51)
    ]
    memory.expect([("observe", (exchange,)) for exchange in exchanges])
    await memory.observe(exchanges[0])
    return memory, workers


async def test_nothing_follows_the_close_of_a_memory_that_was_told_ahead() -> None:
    worker = CountingWorker(at_once=2)
    memory, workers = await opened(worker)
    await memory.close("cancelled")
    told = len(worker.requests)
    for _ in range(20):
        await asyncio.sleep(0)
    assert worker.requests[-1] == ["close"] and len(worker.requests) == told
    assert [worker.memories for worker in workers.status()] == [()]


async def test_a_memory_that_was_told_more_than_the_run_has_recorded_is_not_kept(tmp_path: Path) -> None:
    memory, _ = await opened(CountingWorker())
    with pytest.raises(BackendError, match="more than the run has recorded"):
        await memory.save(tmp_path)


async def test_a_memory_that_fails_to_close_gives_up_its_place() -> None:
    memory, workers = await opened(CountingWorker(fails_at="close"))
    with pytest.raises(BackendError, match="broken"):
        await memory.close("resolved")
    assert [worker.memories for worker in workers.status()] == [()]


async def test_no_key_and_no_password_is_sent_to_a_worker() -> None:
    scheduler = Scheduler()
    workers = Workers(scheduler, SETTINGS, {}, Ports())
    await workers.look()
    assert [worker.address for worker in workers.status()] == ["tcp://worker:1"]
    (sent,) = scheduler.sent
    assert SECRET.encode() in pickle.dumps(SETTINGS) and SECRET.encode() not in sent
