"""Settings that change only what is read, compared by recorded rankings: each is cut again at other limits.

No memory is filled and no model asked. More hits than were recorded cannot be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_backends.controls import CONTROLS
from memreplay.debugger.budget import facts_of, has_evidence, names_of
from memreplay.debugger.sweep import Found, Swept, swept
from memreplay.grading.failures import GradingError
from memreplay.llm.tokens import token_counter
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.groups import Key
from memreplay.scoring.recut import Limits, Ranking
from memreplay.timeline.timeline import Timeline

HITS = (1, 3, 5, 10, 20)
BUDGETS = (256, 1024, 4096)
"""Most hits, and tokens of context, that are tried beside those of the run."""


def sweeps_of_rankings(timelines: Iterable[Timeline], settings: Mapping[str, Any]) -> list[Swept]:
    """Return the settings of each memory of a run, those of the run first. Slow: every prompt is read.

    A fact that is asked in words and with options counts once. Memories whose rankings were not recorded are left
    out, and so are those of which a recut is an estimate: estimates choose no setting. Settings that give what
    another one gives are left out too.
    """
    found: dict[str, dict[str, list[Found]]] = {}
    known: dict[str, set[Key]] = {}
    estimated: set[str] = set()
    for timeline in timelines:
        attributor = Attributor(timeline)
        asked = [
            answer.asked for answer in timeline.answers() if not answer.asked.by_hand and not answer.asked.repeat
        ]
        names, facts = names_of(asked), facts_of(timeline.conversation)
        for each in asked:
            question = timeline.question(each.question_id)
            ranking = Ranking(timeline.conversation, each, settings, token_counter(each.model))
            name = names[each.backend, each.model]
            if (
                each.backend in CONTROLS
                or question is None
                or not has_evidence(question)
                or ranking.filling == "unknown"
                or facts[question.id] in known.setdefault(name, set())
            ):
                continue
            if ranking.is_estimated:
                estimated.add(name)
                continue
            try:
                rows = _found(ranking, attributor)
            except GradingError:
                continue
            known[name].add(facts[question.id])
            for words, row in rows.items():
                found.setdefault(name, {}).setdefault(words, []).append(row)
    return [swept(name, _different(rows)) for name, rows in found.items() if name not in estimated]


def _different(found: Mapping[str, Sequence[Found]]) -> dict[str, Sequence[Found]]:
    """Return the settings that give something else than those before them."""
    names: dict[tuple[Found, ...], str] = {}
    for name, rows in found.items():
        names.setdefault(tuple(rows), name)
    return {name: found[name] for name in names.values()}


def _found(ranking: Ranking, attributor: Attributor) -> dict[str, Found]:
    """Return what a question would get under each setting; those of the run are the first.

    Raises:
        GradingError: the rules fail on a prompt.
    """
    run = ranking.limits
    hits = [run.hits, *(most for most in HITS if most < run.hits * 2 and most != run.hits)]
    tokens = [run.tokens, *(budget for budget in BUDGETS if budget < run.tokens)]
    rows: dict[str, Found] = {}
    for most in hits if ranking.is_ranked else hits[:1]:
        for budget in tokens:
            cut = ranking.cut(Limits(most, budget))
            assert cut is not None
            limit = "no budget" if Limits(most, budget).has_no_budget else f"context-tokens={budget}"
            words = f"top-k={most} {limit}" if ranking.is_ranked else limit
            holds = attributor.is_in_prompt(cut.asked)
            rows[words] = Found(ranking.asked.question_id, holds, cut.asked.context_tokens, None)
    return rows
