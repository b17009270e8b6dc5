"""Verdicts agree with those that a person gave by reading."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memory_backends.base import MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import MemoryOptions
from memreplay.conversations.models import Conversation, Question
from memreplay.llm.model import Reply
from memreplay.scoring.attribution import Attribution, Attributor
from tests.stubs.rewriting_memory import rewriting
from tests.unit.scoring.fresh_cases import FRESH, MORE
from tests.unit.scoring.labelled_cases import CASES, Case
from tests.unit.scoring.planted import answer_of, attribution_of, played, question, resources, talk
from tests.unit.scoring.sentences import false_sentences

LEAST_AGREEMENT = 0.95


async def verdict(case: Case) -> Attribution:
    """What the engine, the memory and attribution make of a case."""
    ask = case.ask
    fields = {"expected": ask.expected, "evidence": ask.evidence, **ask.more}
    asked = question(ask.text, **fields)
    memories = {case.backend: memory_of(case, asked)}
    replies = {case.backend: Reply(text=case.reply)}
    if case.closed_book is not None:
        memories["closed_book"] = create_backend("closed_book", resources(), {})
        replies["closed_book"] = Reply(text=case.closed_book)
    top_k, budget = case.limits
    timeline = await played(asked, memories, replies, top_k=top_k, budget=budget, said=ask.said)
    answer = answer_of(timeline, case.backend)
    assert list(false_sentences(timeline, Attributor(timeline), answer)) == []
    return attribution_of(timeline, case.backend)


def memory_of(case: Case, asked: Question) -> MemoryBackend:
    if case.backend == "plugin":
        return rewriting(case.writes, gives=case.gives, **case.how)
    name, _, ablated = case.backend.partition(" -")
    options = MemoryOptions(ablated=frozenset([ablated] if ablated else []))
    return create_backend(name, resources(options), {asked.text: asked.evidence} if asked.evidence else {})


@pytest.mark.parametrize("cases", [CASES, FRESH, MORE], ids=["cases", "fresh", "more"])
async def test_verdicts_agree_with_those_given_by_hand(cases: Sequence[Case]) -> None:
    differing = []
    for number, case in enumerate(cases):
        found = await verdict(case)
        if found.label != case.label or (case.loss is not None and found.loss != case.loss):
            by_hand = f"{case.label} {case.loss or ''}"
            differing.append(
                f"{number} {case.backend}, {case.ask.text!r}, reply {case.reply!r}: by hand {by_hand}"
                f" ({case.reason}); found {found.label} {found.loss or ''}: {found.detail}"
            )
    agreement = 1 - len(differing) / len(cases)
    print(f"agreement {agreement:.1%} of {len(cases)}", *differing, sep="\n")
    assert agreement >= LEAST_AGREEMENT, "\n".join([f"{agreement:.1%} of {len(cases)}", *differing])


def test_the_cases_cover_every_memory() -> None:
    assert len(CASES) >= 80
    assert {case.backend for case in CASES} >= {
        "hybrid", "hybrid -verbatim", "rag", "rag:keyword", "rag:fused", "full_context", "oracle", "plugin",
    }  # fmt: skip


def test_every_turn_that_a_case_names_exists() -> None:
    for case in CASES:
        known: Conversation = talk(*case.ask.said)
        named = {*case.ask.evidence, *case.writes}
        assert named <= known.turns_by_id.keys()
