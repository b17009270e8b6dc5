"""What holds of every verdict, whatever was said, stored, retrieved and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.conversations.models import Question
from memreplay.engine.events import AnswerScored, QuestionAsked, ReplyReceived
from memreplay.llm.model import Reply
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import RunFacts
from memreplay.scoring.rows import question_row
from memreplay.scoring.verdicts import WRONG
from memreplay.timeline.timeline import Timeline
from memreplay.views.tables import tables_of
from tests.stubs.rewriting_memory import Links, Shape, Write, rewriting
from tests.unit.scoring.planted import answer_of, attribution_of, played, question, real

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MEMORIES = ("full_context", "rag", "rag:keyword", "rag:fused", "hybrid", "oracle")
RIGHT, WRONG_REPLIES = "green", ("purple", "blue", "It was not mentioned.")
HELD = {"grounded", "misread", "stale", "abstained"}
"""Verdicts on answers whose prompt held the answer."""

backends = st.sampled_from(MEMORIES)
budgets = st.sampled_from([0, 3, 12, 20, 40, 1000])
top_ks = st.sampled_from([1, 2, 10])
wrong_replies = st.sampled_from(WRONG_REPLIES)
links = st.sampled_from(get_args(Links))
shapes = st.sampled_from(get_args(Shape))
others = st.lists(
    st.sampled_from(
        [
            ("1", "r", "The user asked about the colour blue"),
            ("3", "k", "The kayak hangs in the garage"),
            ("7", "t", "It rained on Tuesday"),
            ("8", "p", "The assistant found that a pity"),
        ]
    ),
    unique=True,
)

Facts = Sequence[tuple[str, str, str]]
FACT = ("5", "g", "The user's favourite colour is green")


def rewritten(facts: Facts, gives: Sequence[str], **how: object) -> object:
    """A memory that makes these texts of these turns, and gives some of them."""
    script = {turn: [Write(item, text) for at, item, text in facts if at == turn] for turn, _, _ in facts}
    return rewriting(script, gives=tuple(gives), **how)


def verdict(memory: object, reply: str, budget: int = 1000) -> Attribution:
    memories = {"plugin": memory}
    return attribution_of(
        asyncio.run(played(question(), memories, {"plugin": Reply(text=reply)}, budget=budget)),  # type: ignore[arg-type]
        "plugin",
    )


@few
@given(backend=backends, budget=budgets, top_k=top_ks, wrong=wrong_replies)
def test_right_and_wrong_answers_to_one_prompt_agree_on_what_it_held(
    backend: str, budget: int, top_k: int, wrong: str
) -> None:
    def play(reply: str) -> Timeline:
        replies = {backend: Reply(text=reply)}
        return asyncio.run(played(question(), real(backend), replies, budget=budget, top_k=top_k))

    right, other = play(RIGHT), play(wrong)
    assert answer_of(right, backend).asked.prompt == answer_of(other, backend).asked.prompt
    held = attribution_of(right, backend).label == "grounded"
    assert (attribution_of(other, backend).label in HELD) == held
    said = "Actually, my favourite colour is green."
    assert held == (said in "".join(part.content for part in answer_of(right, backend).asked.prompt))


@many
@given(facts=others, link=links, shape=shapes, late=st.booleans(), wrong=wrong_replies, has_fact=st.booleans())
def test_one_prompt_has_one_status_however_a_memory_shows_its_store(
    facts: Facts, link: Links, shape: Shape, late: bool, wrong: str, has_fact: bool
) -> None:
    kept = [*facts, *([FACT] if has_fact else [])]
    gives = [item for _, item, _ in kept]
    how = {"links": link, "shape": shape, "late": late}
    assert (verdict(rewritten(kept, gives, **how), RIGHT).label == "grounded") == has_fact
    assert (verdict(rewritten(kept, gives, **how), wrong).label in HELD) == has_fact


@many
@given(facts=others, link=links, shape=shapes, late=st.booleans())
def test_taking_away_the_item_that_holds_the_answer_changes_the_verdict(
    facts: Facts, link: Links, shape: Shape, late: bool
) -> None:
    how = {"links": link, "shape": shape, "late": late}
    rest = [item for _, item, _ in facts]
    assert verdict(rewritten([*facts, FACT], [*rest, "g"], **how), "purple").label == "misread"
    assert verdict(rewritten([*facts, FACT], rest, **how), "purple").label == "not_retrieved"
    assert verdict(rewritten([*facts, FACT], ["g"], **how), "purple", budget=2).label == "cut"
    assert verdict(rewritten(facts, rest, **how), "purple").label == "not_written"


@few
@given(
    backend=backends,
    beside=st.lists(st.sampled_from([*MEMORIES, "closed_book"]), unique=True),
    reply=st.sampled_from([RIGHT, *WRONG_REPLIES]),
    budget=budgets,
)
def test_other_memories_in_the_run_change_nothing(
    backend: str, beside: Sequence[str], reply: str, budget: int
) -> None:
    replies = {backend: Reply(text=reply)}
    alone = asyncio.run(played(question(), real(backend), replies, budget=budget))
    names = [backend, *(name for name in beside if name != backend)]
    together = asyncio.run(played(question(), real(*names), replies, budget=budget))
    found, again = attribution_of(alone, backend), attribution_of(together, backend)
    if "closed_book" in beside and again.label == "lucky":  # the control tells guessed from lucky
        assert found.label == "guessed"
    else:
        assert again == found


def rows_of(timeline: Timeline, asked: Question) -> list[QuestionRow]:
    attributor = Attributor(timeline)
    rows = []
    for answer in timeline.answers():
        assert isinstance(answer.asked, QuestionAsked)
        assert isinstance(answer.received, ReplyReceived) and isinstance(answer.scored, AnswerScored)
        found = attributor.attribute(answer)
        wanted = attributor.answerable(asked)
        rows.append(
            question_row(
                wanted,
                timeline.conversation,
                attributor.stages(answer.asked),
                answer.received,
                answer.scored,
                found,
            )
        )
    return rows


@few
@given(
    names=st.lists(backends, min_size=1, unique=True),
    reply=st.sampled_from([RIGHT, *WRONG_REPLIES]),
    budget=budgets,
    top_k=top_ks,
    abstain=st.booleans(),
    names_evidence=st.booleans(),
)
def test_the_labels_of_a_memory_add_up_to_its_answers(
    names: Sequence[str], reply: str, budget: int, top_k: int, abstain: bool, names_evidence: bool
) -> None:
    asked = question(
        abstain=abstain,
        evidence=("5",) if names_evidence else (),
        evidence_role=("tempting" if abstain else "supports") if names_evidence else None,
    )
    replies = {name: Reply(text=reply) for name in names}
    memories = real(*names, "closed_book")
    rows = rows_of(asyncio.run(played(asked, memories, replies, budget=budget, top_k=top_k)), asked)
    for row in rows:
        is_right = row.outcome == "correct"
        assert row.backend == "closed_book" or row.failure is not None
        assert row.failure is None or (row.failure in WRONG) != is_right
    run = RunFacts(id="r", started_at="", finished_at=None, memreplay_version="0", settings={}, datasets=())
    results = build_results(run, rows)
    (lost,) = (table.texts for table in tables_of(results) if table.title == "Where each fact was lost")
    stages = {name: counts for name, *counts in lost}
    for name, backend in results.backends.items():
        graded = 0 if backend.backend == "closed_book" else sum(row.backend == backend.backend for row in rows)
        assert sum(backend.failures.values()) == graded
        assert sum(map(int, stages[name])) == graded if graded else set(stages[name]) <= {"–"}
