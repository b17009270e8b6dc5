"""Compare two contestants on the same questions.

A question counts as correct if more than half of its graded repeats are. Only questions to which both have a graded
answer are compared. Questions that ask for one fact, in words and with options, are alike, and questions of one
conversation share its memory, so:

- With at least :data:`CONVERSATIONS_FOR_A_CLAIM` conversations, the p-value is that of the exact sign-flip test
  over conversations, and the interval is the wider one of those over questions and over conversations. Only the k
  conversations in which the two differ decide: p is at least 2/2^k, before it is adjusted. Where even that p,
  adjusted, is not below the level, nothing can be significant; the words say so, and ``significant`` is null.
- With fewer, the p-value is that of McNemar's exact test, which applies only to these conversations: nothing is
  claimed beyond them (``significant`` is null). Where a fact is asked twice it is that of the sign-flip test over
  facts, which is McNemar's if none is; and the interval has the effective number of questions.

The pairs of memories of a run are one family: their p-values are adjusted with Holm's procedure, and the interval
that is printed beside one is at Bonferroni's level. Pairs with a control are no part of it: nobody chooses between
a memory and none, and they would only weaken the tests that matter.

What reaches the prompt is compared in the same way (``metric`` ``answer_in_prompt`` or ``evidence_in_prompt``, each
a family of its own), over facts: one that is asked in words and with options has the same hits twice, and counts
once.

Where a limit that nobody set cut the prompts of the loser, the lead is no finding about the memories; the words
then say so, and name no winner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, Protocol, TypeVar

from memory_backends.controls import CONTROLS
from memreplay.llm import AGENT_MODEL
from memreplay.llm.tokens import UNKNOWN_WINDOW_BUDGET, context_window
from memreplay.numbers import points
from memreplay.scoring.groups import Graded, InPrompt, Key, facts_in_prompt, facts_of, key_of, shares_right
from memreplay.scoring.question_row import Interval, QuestionRow
from memreplay.scoring.results import Comparison, Metric, PairedTest
from memreplay.scoring.statistics import (
    clustered_difference_interval,
    detectable_difference,
    holm,
    jackknife_variance,
    mcnemar_exact,
    mean,
    paired_interval,
    paired_variance,
    sign_flip_exact,
)

CONVERSATIONS_FOR_A_CLAIM = 10
NEARLY_ALL = 0.95
"""Share of questions whose answer every prompt held from which on memories find nearly the same."""

SIGNIFICANCE_LEVEL = 0.05

UNEQUAL_PROMPTS = 1.1
"""Ratio of prompt lengths from which on a comparison says that they are unequal."""

R = TypeVar("R", bound=Graded)


class _Asked(Graded, Protocol):
    """A graded answer whose prompt may have been cut."""

    @property
    def cut_tokens(self) -> int: ...


Verdicts = Mapping[Key, bool]
"""Correctness of each question's answer; excludes errors."""


@dataclass(frozen=True)
class Pair:
    """Two contestants by name, with their verdicts.

    ``has_control``: one of them is no memory. ``cut_a`` and ``cut_b`` are the questions whose prompts were cut by a
    limit that was only assumed. ``tokens_a`` and ``tokens_b`` are the mean tokens of a prompt, None if unknown.
    ``facts`` has what each question asks for; those that it lacks are facts of their own.
    """

    a: str
    b: str
    verdicts_a: Verdicts
    verdicts_b: Verdicts
    has_control: bool = False
    cut_a: frozenset[Key] = frozenset()
    cut_b: frozenset[Key] = frozenset()
    tokens_a: float | None = None
    tokens_b: float | None = None
    asked: Literal["question", "test", "fact"] = "question"
    metric: Metric = "accuracy"
    facts: Mapping[Key, Key] = field(default_factory=dict)

    def swapped(self) -> Pair:
        """Return the same pair, seen from ``b``."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            verdicts_a=self.verdicts_b,
            verdicts_b=self.verdicts_a,
            cut_a=self.cut_b,
            cut_b=self.cut_a,
            tokens_a=self.tokens_b,
            tokens_b=self.tokens_a,
        )


@dataclass(frozen=True)
class _Table:
    """The questions that both answered, by outcome, by conversation and by fact: the difference in right answers,
    and their number.

    Of those in ``only_a``, ``only_a_cut`` are questions on which the prompt of ``b`` was cut; ``only_b_cut``
    likewise.
    """

    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    by_conversation: tuple[tuple[int, int], ...]
    by_fact: tuple[tuple[int, int], ...]
    only_a_cut: int
    only_b_cut: int

    @property
    def n(self) -> int:
        return self.both_right + self.only_a + self.only_b + self.both_wrong

    @property
    def asks_twice(self) -> bool:
        """Return whether any fact is asked more than once."""
        return len(self.by_fact) < self.n


def contestants_of(rows: Iterable[R]) -> dict[str, list[R]]:
    """Group the rows by the backend's name in the results, in the order of first rows."""
    rows = list(rows)
    models = {row.model for row in rows} - {AGENT_MODEL}
    by_name: dict[str, list[R]] = {}
    for row in rows:
        name = f"{row.backend}@{row.model}" if len(models) > 1 else row.backend
        by_name.setdefault(name, []).append(row)
    return by_name


def verdicts_of(rows: Iterable[Graded]) -> dict[Key, bool]:
    """Return which questions one contestant answered correctly."""
    return {key: share > 0.5 for key, share in shares_right(rows).items()}


def pairs_within(contestants: Mapping[str, Sequence[QuestionRow]], settings: Mapping[str, Any]) -> list[Pair]:
    """Return the pairs of a run worth comparing: two backends through one model, or one backend through two
    models.
    """
    verdicts = {name: verdicts_of(rows) for name, rows in contestants.items()}
    cut = {name: cut_by_default(rows, settings) for name, rows in contestants.items()}
    tokens = {name: _tokens_of_a_prompt(rows) for name, rows in contestants.items()}
    first = {name: rows[0] for name, rows in contestants.items()}
    return [
        Pair(
            a,
            b,
            verdicts[a],
            verdicts[b],
            has_control=not CONTROLS.isdisjoint((first[a].backend, first[b].backend)),
            cut_a=cut[a],
            cut_b=cut[b],
            tokens_a=tokens[a],
            tokens_b=tokens[b],
            asked="test" if all(row.kind == "test" for row in contestants[a]) else "question",
            facts=facts_of(contestants[a]),
        )
        for a, b in combinations(contestants, 2)
        if first[a].model == first[b].model or first[a].backend == first[b].backend
    ]


def _tokens_of_a_prompt(rows: Iterable[QuestionRow]) -> float | None:
    return mean([float(row.tokens.prompt) for row in rows if row.tokens is not None and row.kind != "test"])


def prompts_within(contestants: Mapping[str, Sequence[QuestionRow]], metric: InPrompt) -> list[Pair]:
    """Return the pairs of memories of a run, by the facts that their prompts held.

    Models that were given the same prompts are one pair.
    """
    memories = [name for name, rows in contestants.items() if rows[0].backend not in CONTROLS]
    held = {
        name: {fact: share > 0.5 for fact, share in facts_in_prompt(contestants[name], metric).items()}
        for name in memories
    }
    tokens = {name: _tokens_of_a_prompt(contestants[name]) for name in memories}
    first = {name: contestants[name][0] for name in memories}
    pairs: list[Pair] = []
    seen: list[tuple[str, str, Verdicts, Verdicts]] = []
    for a, b in combinations(memories, 2):
        prompts = first[a].backend, first[b].backend, held[a], held[b]
        if held[a] and held[b] and first[a].model == first[b].model and prompts not in seen:
            seen.append(prompts)
            pairs.append(
                Pair(
                    a,
                    b,
                    held[a],
                    held[b],
                    tokens_a=tokens[a],
                    tokens_b=tokens[b],
                    asked="fact",
                    metric=metric,
                )
            )
    return pairs


def cut_by_default(rows: Sequence[_Asked], settings: Mapping[str, Any]) -> frozenset[Key]:
    """Return the questions whose prompts were cut though nobody gave a limit, and the model's window is unknown."""
    cut = frozenset(key_of(row) for row in rows if row.cut_tokens)
    if not cut or settings.get("context_tokens") is not None or context_window(rows[0].model) is not None:
        return frozenset()
    return cut


def compare_pairs(pairs: Sequence[Pair]) -> tuple[Comparison, ...]:
    """Return the comparisons, in the order of the pairs; those without a control are adjusted for their number."""
    tables = [_table(pair) for pair in pairs]
    family = [place for place, pair in enumerate(pairs) if tables[place].n and not pair.has_control]
    p_values = [_p_value(tables[place]) for place in family]
    p_holm = dict(zip(family, holm(p_values), strict=True))
    found = []
    for place, (pair, table) in enumerate(zip(pairs, tables, strict=True)):
        smallest = _smallest_p(table)
        if smallest is not None and place in p_holm:
            own = family.index(place)
            smallest = holm([*p_values[:own], smallest, *p_values[own + 1 :]])[own]
        found.append(_comparison(pair, table, p_holm.get(place), smallest, len(family)))
    return tuple(found)


def p_if_all_lost(pair: Pair) -> float:
    """Return the p-value, not adjusted, if ``b`` had every question wrong that ``a`` has right."""
    return _p_value(_table(replace(pair, verdicts_b=dict.fromkeys(pair.verdicts_b, False))))


def _table(pair: Pair) -> _Table:
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    conversations: dict[tuple[str, str], list[int]] = defaultdict(list)
    facts: dict[Key, list[int]] = defaultdict(list)
    only_a_cut = only_b_cut = 0
    for key, right_a in pair.verdicts_a.items():
        right_b = pair.verdicts_b.get(key)
        if right_b is not None:
            cells[right_a, right_b] += 1
            fact = pair.facts.get(key, key)
            conversations[fact[:2]].append(right_a - right_b)
            facts[fact].append(right_a - right_b)
            only_a_cut += right_a and not right_b and key in pair.cut_b
            only_b_cut += right_b and not right_a and key in pair.cut_a
    return _Table(
        both_right=cells[True, True],
        only_a=cells[True, False],
        only_b=cells[False, True],
        both_wrong=cells[False, False],
        by_conversation=tuple((sum(found), len(found)) for found in conversations.values()),
        by_fact=tuple((sum(found), len(found)) for found in facts.values()),
        only_a_cut=only_a_cut,
        only_b_cut=only_b_cut,
    )


def _is_enough_for_a_claim(table: _Table) -> bool:
    return len(table.by_conversation) >= CONVERSATIONS_FOR_A_CLAIM


def _differing(table: _Table) -> int:
    """Return the number of conversations of which the two have not equally many right."""
    return sum(difference != 0 for difference, _ in table.by_conversation)


def _smallest_p(table: _Table) -> float | None:
    """Return the smallest p-value that the sign-flip test gives for so many conversations that differ; None where
    another test is used.
    """
    return min(1.0, 2.0 ** (1 - _differing(table))) if _is_enough_for_a_claim(table) else None


def _can_decide(smallest_p: float | None, level: float = SIGNIFICANCE_LEVEL) -> bool:
    """Return whether the test that is used could give a p-value below a level at all."""
    return smallest_p is None or smallest_p < level


def _p_sign_flip(table: _Table) -> float:
    return sign_flip_exact([difference for difference, _ in table.by_conversation])


def _test(table: _Table) -> PairedTest:
    if _is_enough_for_a_claim(table):
        return "sign_flip_exact"
    return "sign_flip_facts" if table.asks_twice else "mcnemar_exact"


def _p_value(table: _Table) -> float:
    test = _test(table)
    if test == "mcnemar_exact":
        return mcnemar_exact(table.only_a, table.only_b)
    if test == "sign_flip_exact":
        return _p_sign_flip(table)
    return sign_flip_exact([difference for difference, _ in table.by_fact])


def _design_effect(table: _Table) -> float:
    """Return how many questions are worth one, as those that ask for one fact are alike; 1 if none do."""
    if not table.asks_twice:
        return 1.0
    independent = paired_variance(table.only_a, table.only_b, table.n)
    if not independent or len(table.by_fact) < 2:
        return table.n / len(table.by_fact)
    return max(1.0, jackknife_variance(table.by_fact) / independent)


def _interval(table: _Table, confidence: float = 0.95) -> Interval | None:
    if not table.n:
        return None
    effect = _design_effect(table)
    over_questions = paired_interval(table.only_a / effect, table.only_b / effect, table.n / effect, confidence)
    over_conversations = (
        clustered_difference_interval(table.by_conversation, confidence) if _is_enough_for_a_claim(table) else None
    )
    if over_questions is None or over_conversations is None:
        return over_questions
    return max(over_questions, over_conversations, key=lambda interval: interval[1] - interval[0])


def _detectable(table: _Table, family: int) -> float | None:
    """Return the smallest difference that the test of this comparison could have detected, at the level of each of
    ``family`` pairs; None if it could have detected none.

    Questions of one fact and of one conversation are alike: their effective number counts.
    """
    if not table.n:
        return None
    effect = _design_effect(table)
    over_questions = paired_variance(table.only_a, table.only_b, table.n) if table.n else 0.0
    if over_questions and _is_enough_for_a_claim(table):
        effect = max(effect, jackknife_variance(table.by_conversation) / over_questions)
    level = SIGNIFICANCE_LEVEL / family
    if not _can_decide(_smallest_p(table), level):
        return None
    return detectable_difference((table.only_a + table.only_b) / effect, table.n / effect, 1 - level)


def _is_decided_by_default_limit(table: _Table) -> bool:
    """Return whether the lead is no larger than what an assumed limit may have cost the loser."""
    lead = table.only_a - table.only_b
    return lead != 0 and abs(lead) <= (table.only_a_cut if lead > 0 else table.only_b_cut)


def _comparison(
    pair: Pair, table: _Table, p_holm: float | None, smallest_p: float | None, family: int
) -> Comparison:
    is_limited = _is_decided_by_default_limit(table)
    p_value = _p_value(table) if table.n else None
    p_decisive = p_value if pair.has_control else p_holm
    can_claim = _is_enough_for_a_claim(table) and _can_decide(smallest_p) and not is_limited
    is_adjusted = p_holm is not None
    comparison = Comparison(
        a=pair.a,
        b=pair.b,
        metric=pair.metric,
        n=table.n,
        both_right=table.both_right,
        only_a=table.only_a,
        only_b=table.only_b,
        both_wrong=table.both_wrong,
        difference=(table.only_a - table.only_b) / table.n if table.n else None,
        ci95=_interval(table),
        p_value=p_value,
        test=_test(table),
        p_holm=p_holm,
        p_mcnemar=mcnemar_exact(table.only_a, table.only_b) if table.n else None,
        p_sign_flip=_p_sign_flip(table) if table.n else None,
        conversations=len(table.by_conversation),
        significant=p_decisive < SIGNIFICANCE_LEVEL if can_claim and p_decisive is not None else None,
        words="",
        family=family if is_adjusted else 0,
        ci95_adjusted=_interval(table, 1 - SIGNIFICANCE_LEVEL / family) if is_adjusted else None,
        detectable=_detectable(table, family if is_adjusted else 1),
        decided_by_default_limit=is_limited,
        conversations_differing=_differing(table),
        smallest_p=smallest_p,
        tokens_a=None if pair.has_control else pair.tokens_a,
        tokens_b=None if pair.has_control else pair.tokens_b,
    )
    return comparison.model_copy(update={"words": _words(pair, table, comparison)})


def _words(pair: Pair, table: _Table, found: Comparison) -> str:
    interval = found.ci95_adjusted or found.ci95
    p = found.p_value if found.p_holm is None else found.p_holm
    if found.difference is None or interval is None or p is None:
        return f"{pair.a} and {pair.b} have no graded question in common"
    if found.difference < 0:
        turned = _turned(table)
        return _words_of_leader(pair.swapped(), turned, found, -found.difference, (-interval[1], -interval[0]), p)
    return _words_of_leader(pair, table, found, found.difference, interval, p)


def _turned(table: _Table) -> _Table:
    return replace(
        table,
        only_a=table.only_b,
        only_b=table.only_a,
        only_a_cut=table.only_b_cut,
        only_b_cut=table.only_a_cut,
    )


def _words_of_leader(
    pair: Pair, table: _Table, found: Comparison, difference: float, interval: Interval, p: float
) -> str:
    """Return the sentence, where ``a`` is not behind."""
    counts = f"{table.only_a} only {pair.a}, {table.only_b} only {pair.b}"
    if found.decided_by_default_limit:
        return f"{_default_limit(pair, table)}; {counts}"
    adjusted = " adjusted" if found.family > 1 else " not adjusted" if pair.has_control else ""
    how_sure = f"p = {p:.2g}{adjusted}, {_how_sure(found, p)}"
    detectable = _what_could_be_detected(found, p)
    if table.only_a == table.only_b:
        what = {
            "accuracy": "equally many right",
            "answer_in_prompt": "the answer in equally many prompts",
            "evidence_in_prompt": "all evidence in equally many prompts",
        }[pair.metric]
        equal = f"{pair.a} and {pair.b} have {what} {_on(pair, table)}"
        return f"{equal}; {counts}; {how_sure}{detectable}{_at_unequal_tokens(found)}"
    verb = "beats" if p < SIGNIFICANCE_LEVEL else "is ahead of"
    by = {
        "accuracy": "",
        "answer_in_prompt": " in answers that reach the prompt",
        "evidence_in_prompt": " in evidence that reaches the prompt",
    }[pair.metric]
    low, high = interval
    lead = (
        f"{pair.a} {verb} {pair.b}{by} {_on(pair, table)} by {points(difference)}"
        f" (95 %{adjusted} {100 * low:.1f} to {100 * high:.1f})"
    )
    return f"{lead}; {counts}; {how_sure}{_why_they_differ(found, p, low)}{detectable}{_at_unequal_tokens(found)}"


def _what_could_be_detected(found: Comparison, p: float) -> str:
    if found.detectable is not None:
        about = "about " if found.test == "sign_flip_exact" else ""
        return f"; detectable from {about}{points(found.detectable)} on"
    # Too few conversations that differ are named before, and what was detected could be.
    is_said = not _can_decide(found.smallest_p) or p < SIGNIFICANCE_LEVEL
    return "" if is_said else "; too few questions to detect any difference"


def _why_they_differ(found: Comparison, p: float, low: float) -> str:
    """Return why the interval of a lead and the test seem to contradict each other; empty if they do not."""
    if not _can_decide(found.smallest_p) or (low > 0) == (p < SIGNIFICANCE_LEVEL):
        return ""
    if low > 0:
        return " (the interval leaves out 0 and is approximate; the test is exact and decides)"
    return " (the interval has 0 in it: it is an approximation, and the test is exact and decides)"


def unequal_prompts(found: Comparison) -> str:
    """Return that one memory gave the model more to read, with the leader's tokens first; empty if neither did."""
    ours, theirs = found.tokens_a, found.tokens_b
    if not ours or not theirs or max(ours, theirs) < UNEQUAL_PROMPTS * min(ours, theirs):
        return ""
    if found.only_a < found.only_b:
        ours, theirs = theirs, ours
    return f"not at equal tokens: a prompt has {ours:,.0f} and {theirs:,.0f} on average"


def _at_unequal_tokens(found: Comparison) -> str:
    return f"; {said}" if (said := unequal_prompts(found)) else ""


def _default_limit(pair: Pair, table: _Table) -> str:
    cut = sum(key in pair.verdicts_a for key in pair.cut_b & pair.verdicts_b.keys())
    return (
        f"a default may decide between {pair.a} and {pair.b}, so neither is called better: {cut} of {pair.b}'s"
        f" {table.n} prompts were cut at the {UNKNOWN_WINDOW_BUDGET:,} tokens that are assumed where no window is"
        f" known, among them {table.only_a_cut} of the {table.only_a} questions that only {pair.a} has right;"
        " give --context-tokens"
    )


def _on(pair: Pair, table: _Table) -> str:
    return f"on this one {pair.asked}" if table.n == 1 else f"on these {table.n} {pair.asked}s"


def _how_sure(found: Comparison, p: float) -> str:
    conversations = found.conversations
    if found.smallest_p is None:
        whose = "this one conversation" if conversations == 1 else f"these {conversations} conversations"
        return f"which holds for {whose} alone"
    if not _can_decide(found.smallest_p):
        differing = found.conversations_differing
        counted = f"only {differing}" if differing else "none"
        return (
            f"which holds for these {conversations} conversations alone: {counted} of them"
            f" differ{'s' * (differing == 1)}, and then p is never below {found.smallest_p:.2g}"
        )
    verdict = "significant" if p < SIGNIFICANCE_LEVEL else "not significant"
    return f"{verdict} over {conversations} conversations"
