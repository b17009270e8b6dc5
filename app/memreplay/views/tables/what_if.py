"""The tables of re-asks: what repairs the wrong answers, by failure label; ceilings; the way from today to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memreplay.scoring.counterfactuals import CURE_MEANINGS, STEP_MEANINGS, Ceiling, Repairs, WhatIfResults
from memreplay.scoring.results import Results
from memreplay.scoring.verdicts import INTERVENTIONS, Intervention
from memreplay.text import UNKNOWN

Cells = list[list[str]]
"""The heading, then the rows."""

_MOST_IN_DOUBT = 20


def what_if_tables(results: Results) -> Iterator[tuple[str, Cells]]:
    """For each backend that was asked again, its tables with their titles."""
    for name, backend in results.backends.items():
        if backend.what_if is not None:
            yield f"What repairs the wrong answers of {name}", _repair_table(backend.what_if)
            yield f"From today's accuracy of {name} to 1", _waterfall_table(backend.what_if)


def _repair_table(found: WhatIfResults) -> Cells:
    """A row for each change; a column for all wrong answers and one for each failure label."""
    labels = list(found.by_label)
    rows = [
        [
            name.replace("_", " "),
            _share(repairs),
            _beyond(repairs, name),
            *(_short(found.by_label[label].get(name)) for label in labels),
        ]
        for name in INTERVENTIONS
        if (repairs := found.interventions.get(name)) is not None
    ]
    return [["change", "repaired", "beyond unchanged", *(label.replace("_", " ") for label in labels)], *rows]


def _share(repairs: Repairs) -> str:
    if repairs.share is None or repairs.ci95 is None:
        return UNKNOWN
    low, high = repairs.ci95
    errors = f", {repairs.errors} errors" if repairs.errors else ""
    share = f"{100 * repairs.share:.1f} % ({100 * low:.0f}–{100 * high:.0f})"
    return f"{repairs.repaired}/{repairs.graded} {share}{errors}"


def _beyond(repairs: Repairs, name: Intervention) -> str:
    if name == "unchanged":
        return "the control"
    if repairs.beyond_unchanged is None or repairs.beyond_ci95 is None:
        return UNKNOWN
    low, high = repairs.beyond_ci95
    return f"{100 * repairs.beyond_unchanged:+.1f} ({100 * low:+.0f} to {100 * high:+.0f})"


def _short(repairs: Repairs | None) -> str:
    return UNKNOWN if repairs is None else f"{repairs.repaired}/{repairs.graded}"


def _waterfall_table(found: WhatIfResults) -> Cells:
    rows = [
        [
            STEP_MEANINGS[step.step],
            f"{step.answers:+d}" if place else str(step.answers),
            f"{100 * step.accuracy:.1f} %",
        ]
        for place, step in enumerate(found.waterfall)
    ]
    return [["step", "answers", "accuracy reached"], *rows]


def what_if_remarks(results: Results) -> Iterator[str]:
    """The ceilings of each backend in a sentence, and the questions whose published answer is in doubt."""
    for name, backend in results.backends.items():
        found = backend.what_if
        if found is None:
            continue
        today = f"{100 * backend.accuracy:.1f} %" if backend.accuracy is not None else UNKNOWN
        yield (
            f"{name}: {today} today; with perfect retrieval {_ceiling(found.perfect_retrieval)},"
            f" with a perfect reader {_ceiling(found.perfect_reader)}, if all that is right today stays right;"
            f" {found.asked} of {found.wrong} wrong answers were asked again"
        )
        if found.cures:
            counts = ", ".join(f"{number} {cure.replace('_', ' ')}" for cure, number in found.cures.items())
            yield f"{name}: {counts}"
    doubted = dict.fromkeys(
        f"{row.conversation} {row.question_id}" for row in results.questions if row.cure == "key_in_doubt"
    )
    if doubted:
        shown = list(doubted)[:_MOST_IN_DOUBT]
        more = f" and {len(doubted) - len(shown)} more" if len(doubted) > len(shown) else ""
        yield f"key in doubt, to be checked by hand: {', '.join(shown)}{more}"


def _ceiling(ceiling: Ceiling | None) -> str:
    if ceiling is None:
        return UNKNOWN
    low, high = 100 * ceiling.low, 100 * ceiling.high
    return f"{low:.1f} %" if not ceiling.undetermined else f"{low:.1f} to {high:.1f} %"


def meaning_of_cures(results: Results) -> Mapping[str, str]:
    """What each verdict in these results means."""
    return {
        cure.replace("_", " "): meaning
        for cure, meaning in CURE_MEANINGS.items()
        if any(row.cure == cure for row in results.questions)
    }
