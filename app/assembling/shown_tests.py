"""Runs of tests for the screen: what can be picked, and the stream that a picked conversation stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.assembling.streams import TestStream, empty_conversation, refuse_agents, wishes_of
from app.conversations.models import Conversation
from app.conversations.registry import load
from app.dataset_interfaces.loading import SHIPPED_DATASETS
from app.dataset_interfaces.run_config import RunConfig
from app.dataset_interfaces.sources import TestSource, split_specs
from app.errors import UsageError
from app.settings import Settings

if TYPE_CHECKING:
    from app.assembling.conversing import ConversingAssembly


@dataclass(frozen=True)
class ListedTests:
    """A shipped dataset of tests, as it can be picked."""

    id: str
    description: str


def listed_tests() -> list[ListedTests]:
    """The shipped ones, by their keys; their files are not executed for it."""
    return [ListedTests(entry.key, f"tests that converse: {entry.name}") for entry in SHIPPED_DATASETS]


class ShownTests:
    """Remembers which conversation stands for which tests, between picking it and playing it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._streams: dict[str, TestStream] = {}

    def load(self, specs: Sequence[str], evidence: Path | None) -> list[Conversation]:
        """The conversations that the specs name; of tests, those that are still to be had.

        Raises:
            MemreplayError: a dataset cannot be used.
        """
        named, sources = split_specs(specs)
        refuse_agents(self._settings, sources)
        if sources and self._settings.limit is not None:
            raise UsageError("--limit counts tests with --batch only; for the screen say --examples")
        streams = [stream for source in sources for stream in self._streams_of(source)]
        self._streams |= {stream.conversation.id: stream for stream in streams}
        replayed = list(load(named, evidence, lambda sentence: None)) if named else []
        return [*replayed, *(stream.conversation for stream in streams)]

    def _streams_of(self, source: TestSource) -> list[TestStream]:
        """One for all tests, or one a test where each runs alone; whose they are is chosen later."""
        if not self._settings.isolated:
            return [TestStream(empty_conversation(source.name, source.name, RunConfig()), source, "", "")]
        made = source.benchmark(wishes_of(self._settings), None)
        ids = [test.unique_id for test in made.tests]
        return [
            TestStream(
                empty_conversation(f"{source.name}/{name}", source.name, made.config), source, "", "", (name,)
            )
            for name in ids
        ]

    def assemble(self, backends: Sequence[str], model: str, recording: Path) -> ConversingAssembly:
        """What plays a conversation with these memories and this model. Slow to import."""
        from app.assembling.conversing import ConversingAssembly

        settings = self._settings.model_copy(update={"backend": tuple(backends), "model": (model,)})
        streams = [replace(stream, backend=backends[0], model=model) for stream in self._streams.values()]
        return ConversingAssembly(settings, recording, streams)
