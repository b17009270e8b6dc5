"""Results by type, category, location and salience, and which options were chosen instead of which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from memreplay.scoring import BREAKDOWNS, By, type_words
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.groups import Group
from memreplay.scoring.results import Results
from memreplay.text import UNKNOWN

Cell = str | int | float | bool | None
Cells = Sequence[Sequence[str]]
"""The heading, then the rows."""

CONFUSION = "right option, chosen option"
NO_OPTION = "none"


def breakdowns_in(results: Results) -> list[By]:
    """The breakdowns that split the questions of this run into several groups, each split once.

    The type of a question of ours is its location, unless the dataset names another.
    """
    found = {by: [part.breakdown.get(by) for part in results.backends.values()] for by in BREAKDOWNS}
    splits = [by for by in BREAKDOWNS if len(_groups_in(results, by)) > 1]
    return [by for at, by in enumerate(splits) if found[by] not in [found[other] for other in splits[:at]]]


def breakdown_table(results: Results, by: By) -> Cells:
    """A row for each group with right answers of graded ones, and accuracy, for each backend."""
    names = names_of_groups(results, by)
    rows = [
        [
            names.get(group, group),
            *(_cell(part.breakdown.get(by, {}).get(group)) for part in results.backends.values()),
        ]
        for group in _groups_in(results, by)
    ]
    return [[heading_of_groups(results, by), *results.backends], *rows]


def names_of_groups(results: Results, by: By) -> Mapping[str, str]:
    """Both names of a type that has two; other groups are called by their own."""
    return {row.type: type_words(row.type, row.other_type) for row in results.questions} if by == "type" else {}


def heading_of_groups(results: Results, by: By) -> str:
    """What stands above the names of the groups."""
    names = names_of_groups(results, by)
    return f"{by} (its other name)" if any(shown != name for name, shown in names.items()) else by


def confusion_tables(results: Results) -> list[tuple[str, Cells]]:
    """For each backend with multiple-choice questions: how often which option was chosen, by the right one.

    With the title of each. The last column counts replies without a readable choice, so that a row adds up to the
    graded answers. Every repeat of a question counts.
    """
    tables: list[tuple[str, Cells]] = []
    unread = _unread(results)
    repeats = " (all repeats)" if any(row.repeat for row in results.questions) else ""
    for name, part in results.backends.items():
        if part.multiple_choice is not None:
            matrix = part.multiple_choice.confusion_matrix
            rows = [
                [str(right), *(str(number or "") for number in (*row, unread[name, right]))]
                for right, row in enumerate(matrix)
            ]
            heading = ["right \\ chosen", *map(str, range(len(matrix))), NO_OPTION]
            tables.append((f"Options chosen: {name}{repeats}", [heading, *rows]))
    return tables


def _unread(results: Results) -> Counter[tuple[str, int | None]]:
    """Graded replies without a readable choice, by backend and right option."""
    return Counter(
        (name, row.correct_index)
        for name, rows in contestants_of(results.questions).items()
        for row in rows
        if row.kind == "choice" and row.predicted_index is None and row.outcome != "error"
    )


def breakdown_csv_rows(results: Results) -> Iterator[Sequence[Cell]]:
    """The heading, then each backend's groups and the cells of its confusion matrix that are not 0."""
    unread = _unread(results)
    yield ("backend", "by", "group", "total", "graded", "correct", "accuracy", "ci95_low", "ci95_high")
    for name, part in results.backends.items():
        for by, groups in part.breakdown.items():
            for group, found in groups.items():
                low, high = found.ci95 or (None, None)
                counts = (found.total, found.graded, found.correct)
                yield (name, by, group, *counts, found.accuracy, low, high)
        matrix = part.multiple_choice.confusion_matrix if part.multiple_choice else ()
        for right, row in enumerate(matrix):
            for chosen, number in (*enumerate(row), (NO_OPTION, unread[name, right])):
                if number:
                    yield (name, CONFUSION, f"{right}, {chosen}", number, None, None, None, None, None)


def _groups_in(results: Results, by: By) -> list[str]:
    found = [part.breakdown.get(by, {}) for part in results.backends.values()]
    return list(dict.fromkeys(group for groups in found for group in groups))


def _cell(group: Group | None) -> str:
    if group is None or group.accuracy is None:
        return UNKNOWN
    return f"{group.correct}/{group.graded} {100 * group.accuracy:.1f} %"
