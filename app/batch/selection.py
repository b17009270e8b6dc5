"""Which questions are asked: all, the first so many, or a sample that has something of every type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from random import Random

from app.conversations.models import Conversation


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
    by_type: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for conversation in every:
        for question in conversation.questions:
            by_type[question.type].append((conversation.id, question.id))
    shares = _shares({name: len(places) for name, places in by_type.items()}, size)
    drawn = {
        place for name, places in by_type.items() for place in Random(f"{seed}/{name}").sample(places, shares[name])
    }
    return [kept for conversation in every if (kept := _with_only(conversation, drawn)).questions]


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
