"""Test streams: which memory and model go through which tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_backends.controls import ORACLE
from memreplay.conversations.models import Conversation, Session
from memreplay.dataset_interfaces.dataset import RunConfig
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.dataset_interfaces.sources import TestOptions, TestSource
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import UsageError
from memreplay.settings import Settings


@dataclass(frozen=True)
class TestStream:
    """The tests of a source that one memory and one model go through in one conversation.

    ``test_ids`` None means all of them; with ``--isolated`` it names one. ``repeat`` counts from 0.
    """

    __test__ = False

    conversation: Conversation
    source: TestSource
    backend: str
    model: str
    test_ids: tuple[str, ...] | None = None
    repeat: int = 0


def refuse_agents(settings: Settings, sources: Sequence[TestSource]) -> None:
    """Raise UsageError if a remote agent would have to run tests."""
    agents = [name for name in settings.backend if is_agent(name)]
    if sources and agents:
        raise UsageError(f"tests run on memories; {agents[0]} is an agent")


def refuse_for_tests(settings: Settings, sources: Sequence[TestSource], conversations: Sequence[str]) -> None:
    """Raise UsageError for an option that has no meaning for these tests and conversations."""
    refuse_agents(settings, sources)
    if sources and ORACLE in settings.backend:
        raise UsageError(f"--backend {ORACLE} needs the evidence of questions; tests have none: run it separately")
    for name in ("limit", "sample"):
        if sources and conversations and getattr(settings, name) is not None:
            raise UsageError(f"--{name} counts either questions or tests: run conversations and tests separately")
    for name in ("examples", "memory_span", "isolated"):
        if not sources and getattr(settings, name):
            raise UsageError(f"--{name.replace('_', '-')} is for datasets of tests, and none was given")


def test_options_of(settings: Settings) -> TestOptions:
    return TestOptions(settings.examples, settings.memory_span, settings.seed)


def streams_of(source: TestSource, benchmark: Benchmark, settings: Settings) -> list[TestStream]:
    """The streams of a source: one per memory, model and repeat, and with ``--isolated`` per test.

    Each is a conversation of its own: ``source@backend``, or ``source/test@backend``, followed by ``@model`` if
    there are several models and ``#2`` in the second repeat.
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
    """The suffix of a conversation's name in a repeat, counted from 0."""
    return f"#{repeat + 1}" if repeat else ""


def empty_conversation(conversation_id: str, dataset: str, config: RunConfig) -> Conversation:
    first = Session(number=1, id="1", date=config.start)
    return Conversation(
        id=conversation_id, dataset=dataset, sessions=(first,), turns=(), questions=(), conversing=True
    )
