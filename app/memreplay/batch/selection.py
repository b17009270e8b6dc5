"""What is asked: who answers, and which questions or tests: all, the first N, or a stratified sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from memreplay.conversations.models import Conversation
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.engine.remote.addresses import is_agent, models_asked_of
from memreplay.engine.session import Ask
from memreplay.settings import Settings

_Place = TypeVar("_Place", bound=Hashable)


@dataclass(frozen=True)
class AskPlan:
    """Who is asked each question, and how often. ``baselines`` are backends that run without being chosen."""

    backends: tuple[str, ...]
    baselines: tuple[str, ...]
    models: tuple[str, ...]
    repeats: int
    retry_errors: bool

    @property
    def answerers(self) -> tuple[str, ...]:
        """Models, and agents by their addresses."""
        return (*self.models, *filter(is_agent, self.backends))

    def asks_of(self, conversation: Conversation) -> list[Ask]:
        """Every ask, in order: those that share a context (full context, repeats) follow each other."""
        return [
            Ask(question, backend, model, repeat)
            for backend in (*self.backends, *self.baselines)
            for question in conversation.questions
            for model in models_asked_of(backend, self.models)
            for repeat in range(self.repeats if backend in self.backends else 1)
        ]


def first_questions(conversations: Iterable[Conversation], limit: int | None) -> Iterator[Conversation]:
    """The conversations with the first ``limit`` questions in all; those without any are dropped."""
    left = limit
    for conversation in conversations:
        if left is None:
            yield conversation
            continue
        kept = conversation.questions[:left]
        left -= len(kept)
        if kept:
            yield conversation.model_copy(update={"questions": kept})


def sampled_questions(conversations: Iterable[Conversation], size: int, seed: int) -> list[Conversation]:
    """The conversations with a sample of ``size`` questions, stratified by type; those without any are dropped.

    Each type gets its share of the sample, by largest remainders. The order stays the dataset's. The same questions
    and seed yield the same sample.
    """
    loaded = list(conversations)
    drawn = _sample(
        (
            (question.type, (conversation.id, question.id))
            for conversation in loaded
            for question in conversation.questions
        ),
        size,
        seed,
    )
    return [kept for conversation in loaded if (kept := _with_only(conversation, drawn)).questions]


def chosen_tests(benchmarks: Sequence[Benchmark], settings: Settings) -> list[Benchmark]:
    """Each benchmark with the tests to run: the first ``limit`` in all, or a sample stratified by dataset."""
    places = [(at, test) for at, benchmark in enumerate(benchmarks) for test in benchmark.tests]
    kept = {(at, test.unique_id) for at, test in places[: settings.limit]}
    if settings.sample is not None:
        by_dataset = ((test.dataset_name, (at, test.unique_id)) for at, test in places)
        kept = _sample(by_dataset, settings.sample, settings.seed)
    return [
        replace(benchmark, tests=tuple(test for test in benchmark.tests if (at, test.unique_id) in kept))
        for at, benchmark in enumerate(benchmarks)
    ]


def _sample(places: Iterable[tuple[str, _Place]], size: int, seed: int) -> set[_Place]:
    """A sample of (type, place) pairs, stratified by type."""
    by_type: dict[str, list[_Place]] = defaultdict(list)
    for name, place in places:
        by_type[name].append(place)
    shares = _shares({name: len(found) for name, found in by_type.items()}, size)
    return {
        place for name, found in by_type.items() for place in Random(f"{seed}/{name}").sample(found, shares[name])
    }


def _with_only(conversation: Conversation, wanted: set[tuple[str, str]]) -> Conversation:
    kept = tuple(question for question in conversation.questions if (conversation.id, question.id) in wanted)
    return conversation.model_copy(update={"questions": kept})


def _shares(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """How many of each type, by largest remainders; earlier types win ties."""
    total = sum(counts.values())
    size = min(size, total)
    exact = {name: size * count / total for name, count in counts.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(counts, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: size - sum(shares.values())]:
        shares[name] += 1
    return shares
