"""Budget curves: the share of facts whose answer reaches the prompt, by memory and budget.

It is computed from recorded rankings, cut again at each budget with the hits of the run. No memory and no model is
asked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation, Frozen, Question
from memreplay.engine.events import QuestionAsked
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm import AGENT_MODEL, AS_RECORDED
from memreplay.llm.tokens import token_counter
from memreplay.numbers import whole_share
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.equal_tokens import HeldByCuts
from memreplay.scoring.groups import AskedOf, Key, facts_among
from memreplay.scoring.recut import Ranking
from memreplay.scoring.statistics import wilson_interval
from memreplay.timeline.timeline import Timeline

BUDGETS = tuple(128 << power for power in range(8))
"""Tokens of context: 128 to 16,384."""

_STEPS = 8
"""Budgets that are tried between one of these and the next, to find where curves cross."""

FINE_BUDGETS = (
    *(low + (high - low) * step // _STEPS for low, high in pairwise(BUDGETS) for step in range(_STEPS)),
    BUDGETS[-1],
)
_LEAST_LEAD = 2
"""Questions by which one memory has to be ahead on each side of a crossing; fewer are noise."""


class MemoryCurve(Frozen):
    """The curve of one memory. Shares and intervals (95 %, Wilson) have one entry a budget.

    They are null where nothing can be known: the memory ranked nothing that was recorded, or no question names its
    evidence. ``n`` counts the facts: a question in words and with options is one. ``estimated``: it composes its
    prompt anew for each budget, so that only the memory itself says exactly what it would do. ``estimates`` says so
    of each share: that at the limits of the run was recorded. ``as_recorded`` is the share at these limits, and
    ``accuracy`` the share of the same questions that were answered right there; null where none was graded.
    """

    answer_in_prompt: tuple[float | None, ...]
    interval: tuple[tuple[float, float] | None, ...]
    n: int
    estimated: bool
    estimates: tuple[bool, ...]
    as_recorded: float | None = None
    accuracy: float | None = None


class Crossing(Frozen):
    """Two curves that cross: below ``tokens`` the first memory is ahead, from there on the second.

    ``below`` and ``above`` are the budgets at which each leads most, with both shares. ``estimated`` is whether one
    of these shares is an estimate.
    """

    first: str
    second: str
    tokens: int
    below: tuple[int, float, float]
    above: tuple[int, float, float]
    estimated: bool = False

    @property
    def words(self) -> str:
        """Return the crossing in a sentence."""
        by = "by estimate, " if self.estimated else ""
        return (
            f"{by}{self.first} is ahead of {self.second} below {self.tokens:,} tokens"
            f" ({_shares(self.below)}), {self.second} from there on ({_shares(self.above)})"
        )


def _shares(at: tuple[int, float, float]) -> str:
    tokens, first, second = at
    return f"{whole_share(first)} against {whole_share(second)} at {tokens:,}"


class BudgetCurves(Frozen):
    """The curves of a run, with its limits. ``context_tokens`` is None where no budget was chosen."""

    budgets: tuple[int, ...]
    memories: Mapping[str, MemoryCurve]
    crossings: tuple[Crossing, ...]
    top_k: int
    context_tokens: int | None
    published: bool = False
    """True if the contexts were imported from another harness."""
    of_agent: bool = False
    """True if the contexts are what the memory of a running agent returned."""

    @property
    def sentences(self) -> list[str]:
        """Return what the curves say: where they cross, and which memories cannot be compared."""
        known = {name: curve for name, curve in self.memories.items() if curve.n}
        unknown = [name for name in self.memories if name not in known]
        estimated = [name for name, curve in known.items() if curve.estimated]
        found = [f"{crossing.words}." for crossing in self.crossings]
        if not found and len(known) > 1:
            found.append("No memory overtakes another at a larger budget by more than one question.")
        if estimated and self.published:
            found.append(f"{', '.join(estimated)}: estimated (~) by the first memories of each published context.")
        elif estimated and self.of_agent:
            found.append(f"{', '.join(estimated)}: estimated (~) by the first items of each recorded read.")
        elif estimated:
            found.append(
                f"{', '.join(estimated)}: estimated (~), since such a memory composes its prompt anew for each"
                " budget; memreplay sweep FILE --over context-tokens=N asks it."
            )
        if unknown:
            why = (
                "the file gives no separate memories, or no evidence is known"
                if self.published
                else ("no ranking or evidence was recorded")
            )
            found.append(f"{', '.join(unknown)}: nothing can be known, since {why}.")
        return found

    def place_of(self, tokens: int) -> int:
        """Return the place of the largest budget that is not above a number of tokens."""
        return max(0, bisect_right(self.budgets, tokens) - 1)

    def as_json(self) -> dict[str, Any]:
        """Return the curves as plain data."""
        data = self.model_dump(mode="json")
        words = [crossing.words for crossing in self.crossings]
        return data | {
            "crossings": [one | {"words": said} for one, said in zip(data["crossings"], words, strict=True)]
        }


def _held_over(held: HeldByCuts, budgets: Sequence[int]) -> list[bool]:
    """Return whether each prompt holds the answer. A longer end of a log holds all that a shorter one does."""
    if held.ranking.is_ranked:
        return [held.at(tokens).evidence for tokens in budgets]
    first = bisect_left(budgets, True, key=lambda tokens: held.at(tokens).evidence)
    return [place >= first for place in range(len(budgets))]


@dataclass
class _Found:
    """The findings on one memory over all conversations: by fact, whether each prompt held the answer, and which
    recorded ones did; by budget, whether that is an estimate.
    """

    held: dict[Key, list[bool]] = field(default_factory=dict)
    estimated: list[bool] = field(default_factory=lambda: [False] * len(FINE_BUDGETS))
    recorded: dict[Key, list[bool]] = field(default_factory=lambda: defaultdict(list))
    right: list[bool] = field(default_factory=list)

    def shares(self) -> list[float]:
        return [sum(column) / len(self.held) for column in zip(*self.held.values(), strict=True)]


def budget_curves(
    timelines: Iterable[Timeline], settings: Mapping[str, Any], top_k: int | None = None
) -> BudgetCurves:
    """Return the curves of a run, by the timelines of its conversations. Slow: every prompt is read.

    ``top_k`` is the number of hits; that of the run if it is None.
    """
    found: dict[str, _Found] = {}
    hits = top_k or 0
    for timeline in timelines:
        attributor = Attributor(timeline)
        answers = [answer for answer in timeline.answers() if not answer.asked.by_hand and not answer.asked.repeat]
        names, facts = names_of([answer.asked for answer in answers]), facts_of(timeline.conversation)
        for answer in answers:
            asked = answer.asked
            if asked.backend in CONTROLS:
                continue
            memory = found.setdefault(names[asked.backend, asked.model], _Found())
            question = timeline.question(asked.question_id)
            ranking = Ranking(timeline.conversation, asked, settings, token_counter(asked.model))
            # A context of another program has as many memories as it has; nobody set a limit.
            most = top_k or ranking.limits.hits if ranking.is_published else (hits := hits or ranking.limits.hits)
            if question is None or not has_evidence(question) or ranking.filling == "unknown":
                continue
            fact, answerable, stages = facts[question.id], attributor.answerable(question), attributor.stages(asked)
            held = HeldByCuts(ranking, answerable, stages, most)
            try:
                recorded = attributor.is_in_prompt(asked)
                if fact not in memory.held:
                    with grading_one_answer():
                        memory.held[fact] = _held_over(held, FINE_BUDGETS)
            except GradingError:
                continue
            estimates = map(held.is_estimated_at, FINE_BUDGETS)
            memory.estimated = [any(pair) for pair in zip(memory.estimated, estimates, strict=True)]
            memory.recorded[fact].append(recorded)
            if answer.scored is not None and answer.scored.score.outcome != "error":
                memory.right.append(answer.scored.score.outcome == "correct")
    order = list(settings.get("backend", ()))
    found = dict(sorted(found.items(), key=lambda each: _place_in(order, each[0])))
    return BudgetCurves(
        budgets=BUDGETS,
        memories={name: _curve(memory) for name, memory in found.items()},
        crossings=tuple(_crossings(found)),
        top_k=hits or int(settings.get("top_k") or 0),
        context_tokens=settings.get("context_tokens"),
        published="imported_from" in settings,
        of_agent=AS_RECORDED in settings.get("model", ()),
    )


def facts_of(conversation: Conversation) -> Mapping[str, Key]:
    """Return by question what it asks for: one in words and one with options are given the same hits."""
    questions = [
        AskedOf((conversation.dataset, conversation.id, each.id), each.kind, each.text, each.evidence)
        for each in conversation.questions
    ]
    return {key[-1]: fact for key, fact in facts_among(questions).items()}


def names_of(asked: Sequence[QuestionAsked]) -> Mapping[tuple[str, str], str]:
    """Return the name of each memory with its model; the model is left out where there is only one."""
    systems = dict.fromkeys((each.backend, each.model) for each in asked)
    several = len({model for _, model in systems} - {AGENT_MODEL}) > 1
    return {(backend, model): f"{backend}@{model}" if several else backend for backend, model in systems}


def _place_in(order: Sequence[str], name: str) -> int:
    """Return the place of a memory among those of the run; the last for one that is not named there."""
    backend = next((known for known in order if name in (known, f"{known}@{name.partition('@')[2]}")), None)
    return len(order) if backend is None else order.index(backend)


def has_evidence(question: Question) -> bool:
    """Return whether a question names the turns that hold its answer."""
    return bool(question.evidence) and question.evidence_role == "supports" and not question.abstain


def _curve(memory: _Found) -> MemoryCurve:
    n = len(memory.held)
    if not n:
        nothing = (None,) * len(BUDGETS)
        none = (False,) * len(BUDGETS)
        return MemoryCurve(answer_in_prompt=nothing, interval=nothing, n=0, estimated=False, estimates=none)
    shares = memory.shares()[::_STEPS]
    return MemoryCurve(
        answer_in_prompt=tuple(shares),
        interval=tuple(wilson_interval(share * n, n) for share in shares),
        n=n,
        estimated=any(memory.estimated),
        estimates=tuple(memory.estimated[::_STEPS]),
        as_recorded=sum(sum(held) / len(held) for held in memory.recorded.values()) / n,
        accuracy=sum(memory.right) / len(memory.right) if memory.right else None,
    )


def _crossings(found: Mapping[str, _Found]) -> Iterator[Crossing]:
    """Yield where one memory overtakes another, on the questions that both were asked."""
    for (one, a), (other, b) in combinations(found.items(), 2):
        both = [key for key in a.held if key in b.held]
        if not both:
            continue
        of_a, of_b = ([sum(column) for column in zip(*(x.held[key] for key in both), strict=True)] for x in (a, b))
        for tokens, below, above in _changes(of_a, of_b):
            leads = of_a[below] > of_b[below]
            names, sides = ((one, other), (of_a, of_b)) if leads else ((other, one), (of_b, of_a))
            ends = [
                (FINE_BUDGETS[place], sides[0][place] / len(both), sides[1][place] / len(both))
                for place in (below, above)
            ]
            estimated = any(memory.estimated[place] for memory in (a, b) for place in (below, above))
            yield Crossing(
                first=names[0],
                second=names[1],
                tokens=tokens,
                below=ends[0],
                above=ends[1],
                estimated=estimated,
            )


def _changes(of_a: Sequence[int], of_b: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the budgets at which the lead changes, with the places of the widest lead before and after each."""
    leads = [a - b for a, b in zip(of_a, of_b, strict=True)]
    stretches: list[list[int]] = []
    for place, lead in enumerate(leads):
        if not lead:
            continue
        if stretches and (leads[stretches[-1][-1]] > 0) == (lead > 0):
            stretches[-1].append(place)
        else:
            stretches.append([place])
    wide = [each for each in stretches if max(abs(leads[place]) for place in each) >= _LEAST_LEAD]
    for before, after in pairwise(wide):
        if (leads[before[0]] > 0) != (leads[after[0]] > 0):
            widest, widest_after = (max(each, key=lambda place: abs(leads[place])) for each in (before, after))
            yield _rounded(FINE_BUDGETS[after[0]]), widest, widest_after


def _rounded(tokens: int) -> int:
    """Return a budget to two figures: between two that were tried, the curves say no more."""
    return round(tokens, 2 - len(str(tokens)))
