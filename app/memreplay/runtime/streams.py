"""Who converses about which tests: the streams of a run. Light to import, since the screen lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_backends.base import BackendError
from memory_backends.controls import ORACLE
from memory_backends.registry import check_backend_name
from memreplay.conversations.models import Conversation, Session
from memreplay.dataset_interfaces.dataset import RunConfig
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.dataset_interfaces.sources import TestOptions, TestSource
from memreplay.engine.remote.client import AgentAddress, is_agent
from memreplay.errors import UsageError
from memreplay.settings import Settings


def refuse_unknown_backends(names: Sequence[str]) -> None:
    """Make sure that every name is a memory's, before anything is built; plugged-in ones are imported.

    Raises:
        UsageError: one is not, or cannot be plugged in.
    """
    try:
        for name in names:
            if is_agent(name):
                AgentAddress.read(name)
            else:
                check_backend_name(name)
    except BackendError as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True)
class TestStream:
    """What one memory and one model converse about: all tests of a source, or some of them; one where it is alone.

    ``repeat`` counts from 0.
    """

    __test__ = False

    conversation: Conversation
    source: TestSource
    backend: str
    model: str
    test_ids: tuple[str, ...] | None = None
    repeat: int = 0


def refuse_agents(settings: Settings, sources: Sequence[TestSource]) -> None:
    """Refuse an agent where tests are chosen.

    Raises:
        UsageError: there is one.
    """
    agents = [name for name in settings.backend if is_agent(name)]
    if sources and agents:
        raise UsageError(f"tests converse with memories; {agents[0]} is an agent")


def refuse_for_tests(settings: Settings, sources: Sequence[TestSource], conversations: Sequence[str]) -> None:
    """Refuse options that mean nothing for what was chosen; ``conversations`` name those that are replayed.

    Raises:
        UsageError: one does; the sentence names it.
    """
    refuse_agents(settings, sources)
    if sources and ORACLE in settings.backend:
        raise UsageError(f"--backend {ORACLE} is given the evidence of questions; tests name none: run it apart")
    for name in ("limit", "sample"):
        if sources and conversations and getattr(settings, name) is not None:
            raise UsageError(f"--{name} counts questions, or it counts tests: run conversations and tests apart")
    for name in ("examples", "memory_span", "isolated", "judge"):
        if not sources and getattr(settings, name):
            raise UsageError(f"--{name.replace('_', '-')} is for datasets of tests; none was named")


def test_options_of(settings: Settings) -> TestOptions:
    """How the settings would have tests made."""
    return TestOptions(settings.examples, settings.memory_span, settings.seed)


def streams_of(source: TestSource, benchmark: Benchmark, settings: Settings) -> list[TestStream]:
    """The streams of a source: one for each memory, model and repeat, and for each test where tests run alone.

    Each is a conversation of its own, named ``source@backend`` or ``source/test@backend``, with ``@model`` behind
    it where there are several, and ``#2`` behind that in the second repeat.
    """
    ids = tuple(test.unique_id for test in benchmark.tests)
    parts = {f"{source.name}/{test_id}": (test_id,) for test_id in ids} if settings.isolated else {source.name: ids}
    several = len(settings.model) > 1
    streams = []
    for backend in settings.backend:
        for model in settings.model:
            for repeat in range(settings.repeats):
                for name, test_ids in parts.items():
                    full = "@".join([name, backend, model] if several else [name, backend]) + repeat_mark(repeat)
                    conversation = empty_conversation(full, source.name, benchmark.config)
                    streams.append(TestStream(conversation, source, backend, model, test_ids, repeat))
    return streams


def repeat_mark(repeat: int) -> str:
    """What a repeat, counted from 0, adds to the name of a conversation."""
    return f"#{repeat + 1}" if repeat else ""


def empty_conversation(conversation_id: str, dataset: str, config: RunConfig) -> Conversation:
    """A conversation of which nothing was said yet."""
    first = Session(number=1, id="1", date=config.start)
    return Conversation(
        id=conversation_id, dataset=dataset, sessions=(first,), turns=(), questions=(), conversing=True
    )
