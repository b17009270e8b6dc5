"""The same answers under several judges, as tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memreplay.numbers import counted, interval, number, share
from memreplay.scoring.judges import (
    ENOUGH_LABELS,
    RULES,
    Rankings,
    Verdicts,
    accuracies,
    agreements,
    calibrations,
    rankings,
    splits,
    system_of,
)
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.verdicts import WRONG, Label
from memreplay.text import shortened
from memreplay.views.table import Table

_MOST_SPLITS = 20
_LONGEST = 100


def judges_text(
    by_judge: Mapping[str, Verdicts],
    by_rules: Verdicts,
    labels: Verdicts,
    questions: Mapping[tuple[str, str], str],
    missing: Sequence[str] = (),
    rows: Sequence[QuestionRow] = (),
    most_splits: int | None = _MOST_SPLITS,
) -> Iterator[str | Table]:
    """Yield the tables, which have the rules beside the judges, and the lines.

    ``questions`` are texts by conversation and id, ``missing`` sentences on answers without a verdict, ``rows`` the
    results that a judge of stages is read from.
    """
    yield from _stages_text(rows)
    if not by_judge:
        yield from missing
        return
    by_all = {RULES: by_rules, **by_judge}
    found = accuracies(by_all)
    yield Table.of(
        "Accuracy by judge and rubric",
        ["judge@rubric", "system", "right", "share", "95 %"],
        [
            [each.judge, each.system, f"{each.right}/{each.graded}", share(each.share), interval(each.ci95)]
            for each in found
        ],
    )
    pairs = agreements(by_all)
    if pairs:
        yield Table.of(
            "Agreement of the judges and the rules",
            ["a", "b", "answers", "both right", "only a", "only b", "both wrong", "agree", "kappa"],
            [
                [
                    each.a,
                    each.b,
                    *map(str, (each.n, each.both_right, each.only_a, each.only_b, each.both_wrong)),
                    share(each.share),
                    number(each.kappa, 2),
                ]
                for each in pairs
            ],
        )
    yield from missing
    yield from _ranking(rankings(by_judge))
    split = splits(by_judge)
    if len(by_judge) > 1:
        yield f"The judges split on {counted(len(split), 'answer')}."
        for key, said in split[:most_splits]:
            conversation, _, _, question_id, repeat = key
            which = f"{question_id} of {system_of(key)}" + (f", repeat {repeat}" if repeat else "")
            right = ", ".join(judge for judge, verdict in said.items() if verdict)
            wrong = ", ".join(judge for judge, verdict in said.items() if not verdict)
            text = shortened(questions.get((conversation, question_id), ""), _LONGEST)
            yield f"- {which}: {text} — right by {right}; wrong by {wrong}"
        if most_splits is not None and len(split) > most_splits:
            yield f"- and {len(split) - most_splits:,} more, which an HTML page has"
    calibrated = calibrations(by_all, labels)
    if calibrated:
        yield Table.of(
            "Against the labels by hand",
            [
                "judge@rubric",
                "labels",
                "sensitivity",
                "95 %",
                "specificity",
                "95 %",
                "raw",
                "corrected (Rogan–Gladen)",
                "95 %",
            ],
            [
                [
                    each.judge,
                    str(each.labels),
                    share(each.sensitivity),
                    interval(each.sensitivity_ci95),
                    share(each.specificity),
                    interval(each.specificity_ci95),
                    share(each.raw),
                    share(each.corrected),
                    interval(each.corrected_ci95),
                ]
                for each in calibrated
            ],
        )
    elif labels:
        yield (
            f"{counted(len(labels), 'answer')} labelled by hand: from {ENOUGH_LABELS} on, the judges are measured"
            " against them."
        )


def _stages_text(rows: Iterable[QuestionRow]) -> Iterator[str | Table]:
    """Yield for each judge of stages a table of its verdicts by those of the rules, and how often both agree."""
    for judge, counts in stages_judged(rows):
        columns = [label for label in WRONG if any(label == said for _, said in counts)]
        lines = [label for label in WRONG if any(label == rules for rules, _ in counts)]
        yield Table.of(
            f"Where wrong answers were lost, by {judge}",
            ["by the rules", *columns, "all"],
            [
                [
                    rules,
                    *(str(counts.get((rules, label), "–")) for label in columns),
                    str(sum(number for (its, _), number in counts.items() if its == rules)),
                ]
                for rules in lines
            ],
        )
        yield _stages_sentence(judge, counts)


def stages_sentences(rows: Iterable[QuestionRow]) -> list[str]:
    """Return for each judge of stages how often the rules agree with it."""
    return [_stages_sentence(judge, counts) for judge, counts in stages_judged(rows)]


_LabelCounts = Mapping[tuple[Label, Label], int]
"""Numbers of wrong answers by the verdict of the rules and that of a judge."""


def stages_judged(rows: Iterable[QuestionRow]) -> list[tuple[str, _LabelCounts]]:
    """Return by judge of stages how many wrong answers have which verdicts."""
    judged: dict[str, Counter[tuple[Label, Label]]] = {}
    for row in rows:
        if row.failure_judge is not None and row.failure_by_rules is not None and row.failure is not None:
            judged.setdefault(row.failure_judge, Counter())[row.failure_by_rules, row.failure] += 1
    return list(judged.items())


def _stages_sentence(judge: str, counts: _LabelCounts) -> str:
    alike = sum(number for (rules, said), number in counts.items() if rules == said)
    of_all = sum(counts.values())
    differ = f"; where they differ ({of_all - alike}), the verdict is uncertain" if alike < of_all else ""
    return (
        f"stages: {judge} decides where {counted(of_all, 'wrong answer')} {'was' if of_all == 1 else 'were'} lost,"
        f" and the rules say the same of {alike} ({share(alike / of_all)}){differ}."
    )


def _ranking(found: Rankings) -> Iterator[str]:
    orders = {judge: ", ".join(" = ".join(systems) for systems in places) for judge, places in found.places.items()}
    if not any(len(places) > 1 for places in found.places.values()):
        return
    on = f"on the {counted(found.answers, 'answer')} that all of them judged"
    if len(set(orders.values())) == 1:
        if len(orders) > 1:
            yield f"The ranking is the same under every judge and rubric, {on}: {next(iter(orders.values()))}."
        return
    if not found.reversed:
        yield f"No judge ranks two systems the other way round, {on}:"
    elif found.clear:
        yield f"The ranking depends on the judge, {on}:"
    else:
        yield f"Judges rank systems the other way round, but by so few answers that it may be chance, {on}:"
    yield from (f"- {judge}: {order}" for judge, order in orders.items())
