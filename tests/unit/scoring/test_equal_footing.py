"""Retrieval at equal tokens, what fits every prompt, abstention, breakdowns and the cost of writing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_backends.base import Excerpt, Hit, TokenCounter
from memory_backends.retrieval.rendering import assemble
from memory_backends.stores.trace import Extraction
from memreplay.conversations.models import Conversation, Turn
from memreplay.engine.events import BackgroundWorkSettled, Observed
from memreplay.scoring.aggregates import abstention_of, build_results
from memreplay.scoring.equal_tokens import TOKEN_BUDGETS, HeldAt, held_at_tokens
from memreplay.scoring.groups import breakdown_of
from memreplay.scoring.holding import Answerable
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.recut import Ranking
from memreplay.scoring.results import Results, RunFacts
from memreplay.scoring.retrieval import fit_of, retrieval_of
from memreplay.scoring.statistics import detectable_difference, normal_quantile, t_quantile
from memreplay.scoring.writing import Writing, writing_of
from tests.unit.scoring.samples import choice, hit, recall, reply, row, stages_of

SAID = {
    "1": "The boat that we have bought is called Aurelia.",
    "2": "We keep it in the harbour of Cadaques all summer.",
}
TURNS = {id_: Turn(id=id_, number=int(id_), session=1, role="user", speaker=None, text=SAID[id_]) for id_ in SAID}
BOAT = recall(
    text="What is the boat called, and where is it?",
    expected="Aurelia, in Cadaques",
    expected_entities=("Aurelia", "Cadaques"),
    evidence=("1", "2"),
    evidence_role="supports",
)
FOUND = choice(evidence=("t1", "t2"), evidence_role="supports")
RIGHT, WRONG, ERROR = reply("3"), reply("0"), reply(None, error="timed out")


def words(text: str) -> int:
    return len(text.split())


def held_at(
    answerable: Answerable, hits: Sequence[Hit], *, count: TokenCounter = words, budget: int | None = None
) -> dict[str, HeldAt]:
    """What a prompt would hold of hits, of a run with this budget that composes its prompts by rules of its own."""
    stages = stages_of(hits)
    conversation = Conversation(id="c", dataset="d", sessions=(), turns=(), questions=())
    return held_at_tokens(
        answerable, stages, Ranking(conversation, stages.asked, {"context_tokens": budget}, count)
    )


def results_of(*rows: QuestionRow, top_k: int = 10) -> Results:
    run = RunFacts(
        id="r", started_at="", finished_at=None, memreplay_version="", settings={"top_k": top_k}, datasets=()
    )
    return build_results(run, rows)


def test_hits_count_whole_and_in_order_of_rank() -> None:
    hits = [
        hit(3, "2", text=SAID["2"], tokens=500),
        hit(1, "1", text=SAID["1"], tokens=200),
        hit(2, "9", text="Something else.", tokens=400),
    ]
    # 200, then 600, then 1,100 tokens.
    held = held_at(Answerable(BOAT, TURNS), hits)
    assert {budget: (one.recall, one.evidence) for budget, one in held.items()} == {
        "256": (0.5, False),
        "512": (0.5, False),
        "1024": (0.5, False),
        "2048": (1.0, True),
    }


def test_a_hit_after_one_that_does_not_fit_still_counts() -> None:
    hits = [
        hit(1, "9", text="A long story.", tokens=300),
        hit(2, "1", "2", text=" ".join(SAID.values()), tokens=40),
    ]
    held = held_at(Answerable(BOAT, TURNS), hits)
    assert {(one.recall, one.evidence) for one in held.values()} == {(1.0, True)}


def passage(*turns: tuple[str, int], rank: int, tokens: int) -> Hit:
    """A hit of these turns, each a line, with the rank at which memory took it."""
    text, excerpts = "", list[Excerpt]()
    for turn, taken in turns:
        line = f"Ada: {SAID.get(turn, 'It rained again.' * 4)}\n"
        excerpts.append(Excerpt(turn, taken, len(text), len(text) + len(line)))
        text += line
    return hit(rank, *(turn for turn, _ in turns), text=text, tokens=tokens, excerpts=tuple(excerpts))


@pytest.mark.parametrize(("heading", "is_held"), [("[7 May 2024, 09:10]\n", True), ("", False)])
def test_a_turn_that_is_taken_alone_keeps_the_date_of_its_hit(heading: str, is_held: bool) -> None:
    said = "We signed the lease yesterday."
    turn = Turn(id="1", number=1, session=1, role="user", speaker=None, text=said)
    asked = recall(text="When did they sign?", expected="6 May 2024", evidence=("1",), evidence_role="supports")
    taken = Excerpt("1", 1, len(heading), len(heading + said))
    found = hit(1, "1", text=f"{heading}{said}", tokens=40, excerpts=(taken,))
    held = held_at(Answerable(asked, {"1": turn}, {1: date(2024, 5, 7)}), [found])
    assert {(one.recall, one.evidence) for one in held.values()} == {(1.0, is_held)}


def test_of_a_memory_that_fills_its_prompt_turn_by_turn_the_best_turns_count() -> None:
    hits = [passage(("8", 3), ("1", 1), rank=1, tokens=400), passage(("2", 2), ("9", 4), rank=2, tokens=400)]
    held = held_at(Answerable(BOAT, TURNS), hits, count=lambda text: 4 * len(text))
    # The best turn costs about 220 tokens, both evidence turns about 440: no whole hit would fit.
    assert (held["256"].recall, held["256"].evidence) == (0.5, False)
    assert (held["512"].recall, held["512"].evidence) == (1.0, True)


def test_turns_that_all_fit_hold_what_the_whole_passage_does() -> None:
    turned = passage(("1", 1), ("2", 2), rank=1, tokens=200)
    whole = turned.model_copy(update={"excerpts": ()})
    assert held_at(Answerable(BOAT, TURNS), [turned]) == held_at(Answerable(BOAT, TURNS), [whole])


@given(
    tokens=st.lists(st.integers(1, 1500), min_size=1, max_size=6),
    found=st.integers(0, 5),
)
def test_what_a_prompt_of_that_many_tokens_would_hold_is_what_a_memory_puts_into_it(
    tokens: list[int], found: int
) -> None:
    texts = {f"h{rank}": count for rank, count in enumerate(tokens, start=1)}
    hits = [
        hit(rank, "1", "2", text=" ".join(SAID.values()), tokens=count)
        if rank == found + 1
        else hit(rank, "9", text="Something else.", tokens=count)
        for rank, count in enumerate(tokens, start=1)
    ]
    held = held_at(Answerable(BOAT, TURNS), hits)
    for budget in TOKEN_BUDGETS:
        named = [each.model_copy(update={"text": each.id}) for each in hits]

        def count(context: str) -> int:
            return sum(texts[id_] for id_ in context.split())

        put = assemble(named, dict.fromkeys(texts, 0), budget, count)
        assert held[str(budget)].evidence == any(each.in_prompt and "1" in each.turns for each in put.hits)


def test_an_estimate_holds_no_more_than_was_recorded_at_a_larger_budget_and_no_less_than_at_a_smaller_one() -> None:
    without = [hit(1, "1", "2", text=" ".join(SAID.values()), tokens=40, in_prompt=False)]
    lost = held_at(Answerable(BOAT, TURNS), without, budget=600)
    assert [(one.recall, one.evidence) for one in lost.values()] == [(0.0, False)] * 2 + [(1.0, True)] * 2
    large = [hit(1, "1", "2", text=" ".join(SAID.values()), tokens=3000)]
    kept = held_at(Answerable(BOAT, TURNS), large, budget=600)
    assert [(one.recall, one.evidence) for one in kept.values()] == [(0.0, False)] * 2 + [(1.0, True)] * 2
    assert all(one.estimated for one in (*lost.values(), *kept.values()))
    measured = held_at(Answerable(BOAT, TURNS), large, budget=512)
    assert [(one.evidence, one.estimated) for one in measured.values()] == [
        (False, True), (True, False), (True, True), (True, True),
    ], "what the run itself had was recorded"  # fmt: skip


def test_a_distilled_memory_holds_the_evidence_by_content_and_recalls_no_turn_word_for_word() -> None:
    distilled = [hit(1, sources=("1", "2"), text="boat: Aurelia, lies in Cadaques", tokens=9)]
    assert {(one.recall, one.evidence) for one in held_at(Answerable(BOAT, TURNS), distilled).values()} == {
        (0.0, True)
    }


def test_a_memory_that_only_distils_is_not_measured_by_turns_word_for_word() -> None:
    fact = hit(1, sources=("t1", "t2"), text="fruit: quince", tokens=9)
    results = results_of(
        row(FOUND, RIGHT, hit(1, "t1", "t2")),
        row(FOUND, RIGHT, fact, backend="facts"),
        row(FOUND, RIGHT, backend="none"),
    )
    facts, found = results.backends["facts"], results.backends["facts"].retrieval
    assert found is not None and (found.questions, found.facts, found.answer_in_prompt) == (1, 1, 1.0)
    assert (found.recall_at, found.mrr, found.evidence_in_prompt, found.evidence_in_prompt_ci95) == (None,) * 4
    assert {(one.recall, one.evidence) for one in (found.at_tokens or {}).values()} == {(None, 1.0)}
    assert (facts.headline.evidence_in_prompt, facts.headline.evidence_by_answer) == (None, None)
    asked = next(each for each in results.questions if each.backend == "facts")
    assert (asked.recall_at_1, asked.reciprocal_rank, asked.evidence_in_prompt) == (None,) * 3
    # Of one that returned nothing it is not known, and nothing reached its prompts.
    empty = results.backends["none"].retrieval
    assert empty is not None and (empty.mrr, empty.evidence_in_prompt) == (0.0, 0.0)
    compared = [(pair.a, pair.b) for pair in results.prompt_comparisons if pair.metric == "evidence_in_prompt"]
    assert compared == [("rag", "none")]


def test_retrieval_at_equal_tokens_is_averaged_over_questions() -> None:
    first = row(FOUND, RIGHT, hit(1, "t1", tokens=100), hit(2, "t2", "t3", tokens=300))
    second = row(FOUND, RIGHT, hit(1, "t1", "t2", tokens=1000))
    found = retrieval_of([first, second])
    assert found is not None and found.at_tokens is not None
    assert {budget: (one.recall, one.evidence) for budget, one in found.at_tokens.items()} == {
        "256": (0.25, 0.0),
        "512": (0.5, 0.5),
        "1024": (1.0, 1.0),
        "2048": (1.0, 1.0),
    }
    assert found.tokens_per_hit == pytest.approx(1400 / 3)
    assert found.turns_per_hit == pytest.approx(5 / 3)


def test_a_memory_without_a_ranking_has_no_figures_at_equal_tokens() -> None:
    found = retrieval_of([row(FOUND, RIGHT, hit(1, "t1", "t2"), backend="full_context")])
    assert found is not None
    assert (found.at_tokens, found.tokens_per_hit, found.answer_in_prompt) == (None, None, 1.0)


def test_tokens_of_hits_that_a_memory_did_not_count_are_counted() -> None:
    (shown,) = row(FOUND, RIGHT, hit(1, "t1", text="hello world")).hits
    assert shown.tokens == 2


@pytest.mark.parametrize(("top_k", "names"), [(3, ["1", "3"]), (7, ["1", "5", "7"]), (20, ["1", "5", "10"])])
def test_recall_is_named_by_the_number_of_hits_that_were_used(top_k: int, names: list[str]) -> None:
    found = results_of(row(FOUND, RIGHT, hit(1, "t1")), top_k=top_k).backends["rag"].retrieval
    assert found is not None and list(found.recall_at or {}) == names


def test_it_is_counted_on_how_many_questions_every_memory_has_the_answer_in_the_prompt() -> None:
    whole, half = hit(1, "t1", "t2"), hit(1, "t1")
    rows = [
        row(FOUND, RIGHT, whole, backend="rag"),
        row(FOUND, WRONG, whole, backend="hybrid"),
        row(FOUND, WRONG, half, backend="closed_book"),
    ]
    fit = fit_of(rows)
    assert fit is not None and (fit.questions, fit.in_every_prompt) == (1, 1)
    other = FOUND.model_copy(update={"id": "q2", "text": "Which other fruit?"})
    fit = fit_of([*rows, row(other, RIGHT, whole), row(other, RIGHT, half, backend="hybrid")])
    assert fit is not None and (fit.questions, fit.in_every_prompt) == (2, 1)
    assert fit_of(rows[:1]) is None


def test_abstention_has_precision_and_recall_apart_from_accuracy() -> None:
    never = {"type": "adversarial", "abstain": True, "expected": "Not answerable", "expected_entities": ()}
    rows = [
        row(recall(**never), reply("It was not mentioned.")),
        row(recall(**never), reply("Lisbon")),
        row(recall(), reply("I don't know.")),
        row(recall(), reply("The conversation does not say.")),
        row(recall(), reply("Ida and Bo")),
        row(recall(**never), ERROR),
    ]
    found = abstention_of(rows)
    assert found is not None
    assert (found.graded, found.should, found.abstained, found.right) == (5, 2, 3, 1)
    assert (found.precision, found.recall) == (pytest.approx(1 / 3), 0.5)
    assert abstention_of([row(recall(), ERROR)]) is None


def test_choosing_the_option_that_nothing_was_said_is_abstaining() -> None:
    assert row(choice(), reply("8")).abstained is True
    assert row(choice(), reply("3")).abstained is False


def test_results_are_broken_down_over_questions_of_both_kinds() -> None:
    rows = [
        row(choice(type="early"), RIGHT),
        row(recall(), reply("Zoe")),
        row(recall(type="late"), reply("Ida and Bo")),
    ]
    found = breakdown_of(rows)
    assert {group: (one.correct, one.graded) for group, one in found["type"].items()} == {
        "early": (1, 2),
        "late": (1, 1),
    }
    assert list(found) == ["type", "category", "location", "salience"]
    assert {group: (one.correct, one.graded) for group, one in found["location"].items()} == {
        "early": (1, 2),
        "(no location)": (1, 1),
    }


def test_every_breakdown_adds_up_to_all_questions_and_is_left_out_where_no_question_has_the_field() -> None:
    rows = [row(choice(), RIGHT), row(recall(category="work", salience=None), reply("Zoe")), row(recall(), ERROR)]
    found = breakdown_of(rows)
    assert list(found["category"]) == ["identity", "work", "(no category)"]
    for groups in found.values():
        assert (sum(one.total for one in groups.values()), sum(one.graded for one in groups.values())) == (3, 2)
    assert list(breakdown_of(rows[:1])) == ["type"]


def observed(turn: int, ms: float, *, background: bool = False) -> Observed | BackgroundWorkSettled:
    at = {"conversation": "c", "turn": turn, "backend": "hybrid", "ms": ms}
    return BackgroundWorkSettled(**at) if background else Observed(**at, turns=(str(turn),))


def test_writing_is_the_write_path_with_its_background_work_and_the_models_it_called() -> None:
    writing = Writing()
    for event in (observed(2, 5.0), observed(2, 1.0, background=True), observed(4, 7.0), observed(4, 9.0)):
        writing.add(event)
    found = writing_of("hybrid", writing, {})
    assert found is not None
    # The exchange at turn 4 was written twice, by a run that was resumed: its last time counts.
    assert (found.exchanges, found.ms, found.model_tokens, found.cost_usd) == (2, 15.0, 0, 0.0)
    plugged = writing_of("own.module:Memory", writing, {})
    assert plugged is not None and (plugged.model_tokens, plugged.cost_usd) == (None, None)
    paid = writing_of("hybrid", writing, {"embedder": "litellm:small"})
    assert paid is not None and paid.cost_usd is None
    writing.extractions = [
        Extraction(model="m", turns=("2",), prompt_tokens=30, completion_tokens=4, cost_usd=0.25),
        Extraction(model="m", turns=("4",), prompt_tokens=6, completion_tokens=2, cost_usd=0.5),
    ]
    extracted = writing_of("hybrid", writing, {})
    assert extracted is not None and (extracted.model_tokens, extracted.cost_usd) == (42, 0.75)
    assert writing_of("rag", None, {}) is None


@pytest.mark.parametrize(("discordant", "n"), [(20, 150), (60, 400), (5, 1000), (0, 150)])
def test_the_detectable_difference_solves_the_formula_for_the_number_of_questions(discordant: int, n: int) -> None:
    difference = detectable_difference(discordant, n)
    assert difference is not None
    share = max(discordant / n, difference)
    needed = (1.959964 * math.sqrt(share) + 0.841621 * math.sqrt(share - difference**2)) ** 2 / difference**2
    assert needed == pytest.approx(n, rel=1e-4)


def test_few_questions_detect_no_difference() -> None:
    assert detectable_difference(1, 3) is None
    assert detectable_difference(0, 0) is None
    assert detectable_difference(5, 5) is None, "p of the exact test is at least 2/2^5"
    assert detectable_difference(6, 6) == pytest.approx(0.8 ** (1 / 6) * 2 - 1, abs=0.01), (
        "all six must differ alike"
    )


def test_quantiles_of_other_levels_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert normal_quantile(0.99) == pytest.approx(stats.norm.ppf(0.995))
    for freedom in (1, 2, 9, 30, 200):
        assert t_quantile(freedom, 1 - 0.05 / 3) == pytest.approx(stats.t.ppf(1 - 0.025 / 3, freedom))
