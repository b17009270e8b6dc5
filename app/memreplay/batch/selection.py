"""What is asked: all questions, or tests, the first so many, or a sample that has something of every type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from memreplay.conversations.models import Conversation
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.settings import Settings

_Place = TypeVar("_Place", bound=Hashable)


def first_questions(conversations: Iterable[Conversation], limit: int | None) -> Iterator[Conversation]:
    """The conversations with only the first ``limit`` questions of all; those left without any are dropped."""
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
    """The conversations with ``size`` of their questions, drawn by type; those left without any are dropped.

    Each type has its share of the sample, by largest remainders, and its questions are drawn from the seed. The
    order is the dataset's. The same questions and seed give the same sample.
    """
    every = list(conversations)
    drawn = _drawn(
        (
            (question.type, (conversation.id, question.id))
            for conversation in every
            for question in conversation.questions
        ),
        size,
        seed,
    )
    return [kept for conversation in every if (kept := _with_only(conversation, drawn)).questions]


def chosen_tests(benchmarks: Sequence[Benchmark], settings: Settings) -> list[Benchmark]:
    """Each with the tests that are left: the first so many of all, or a sample with a share of each dataset."""
    places = [(at, test) for at, benchmark in enumerate(benchmarks) for test in benchmark.tests]
    kept = {(at, test.unique_id) for at, test in places[: settings.limit]}
    if settings.sample is not None:
        by_dataset = ((test.dataset_name, (at, test.unique_id)) for at, test in places)
        kept = _drawn(by_dataset, settings.sample, settings.seed)
    return [
        replace(benchmark, tests=tuple(test for test in benchmark.tests if (at, test.unique_id) in kept))
        for at, benchmark in enumerate(benchmarks)
    ]


def _drawn(places: Iterable[tuple[str, _Place]], size: int, seed: int) -> set[_Place]:
    """A sample of what is given with its type: each type has its share, drawn from the seed."""
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
    """How many of each type: whole parts first, then one each to the largest remainders; earlier types win ties."""
    total = sum(counts.values())
    size = min(size, total)
    exact = {name: size * count / total for name, count in counts.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(counts, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: size - sum(shares.values())]:
        shares[name] += 1
    return shares
