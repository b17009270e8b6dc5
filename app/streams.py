"""Who converses about which tests: the streams of a run. Light to import, since the screen lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.agents.address import is_agent
from app.conversations.models import Conversation, Session
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.run_config import RunConfig
from app.dataset_interfaces.sources import TestSource, Wishes
from app.errors import UsageError
from app.settings import Settings


@dataclass(frozen=True)
class TestStream:
    """What one memory and one model converse about: all tests of a source, or one of them alone."""

    __test__ = False

    conversation: Conversation
    source: TestSource
    backend: str
    model: str
    test_id: str | None = None


def refuse_limit(settings: Settings, sources: Sequence[TestSource]) -> None:
    """Refuse a number of questions, or an agent, where tests are chosen.

    Raises:
        UsageError: there is one.
    """
    for name in ("limit", "sample"):
        if sources and getattr(settings, name) is not None:
            raise UsageError(
                f"--{name} counts questions; for tests say --examples, the number of tests of each dataset"
            )
    agents = [name for name in settings.backend if is_agent(name)]
    if sources and agents:
        raise UsageError(f"tests converse with memories; {agents[0]} is an agent")


def refuse_for_tests(settings: Settings, sources: Sequence[TestSource]) -> None:
    """Refuse options that mean nothing for what was chosen.

    Raises:
        UsageError: one does; the sentence names it.
    """
    refuse_limit(settings, sources)
    if sources and settings.repeats > 1:
        raise UsageError("--repeats is for questions; a test is run once")
    for name in ("examples", "memory_span", "isolated", "judge"):
        if not sources and getattr(settings, name):
            raise UsageError(f"--{name.replace('_', '-')} is for datasets of tests; none was named")


def wishes_of(settings: Settings) -> Wishes:
    """How the settings would have tests made."""
    return Wishes(settings.examples, settings.memory_span, settings.seed)


def streams_of(source: TestSource, benchmark: Benchmark, settings: Settings) -> list[TestStream]:
    """The streams of a source: one for each memory and model, and for each test where tests run alone.

    Each is a conversation of its own, named ``source@backend`` or ``source/test@backend``, with ``@model`` behind
    it where there are several.
    """
    alone = [test.unique_id for test in benchmark.tests] if settings.isolated else [None]
    several = len(settings.model) > 1
    streams = []
    for backend in settings.backend:
        for model in settings.model:
            for test_id in alone:
                name = source.name if test_id is None else f"{source.name}/{test_id}"
                full = "@".join([name, backend, model] if several else [name, backend])
                conversation = empty_conversation(full, source.name, benchmark.config)
                streams.append(TestStream(conversation, source, backend, model, test_id))
    return streams


def empty_conversation(conversation_id: str, dataset: str, config: RunConfig) -> Conversation:
    """A conversation of which nothing was said yet."""
    first = Session(number=1, id="1", date=config.start)
    return Conversation(
        id=conversation_id, dataset=dataset, sessions=(first,), turns=(), questions=(), conversing=True
    )
