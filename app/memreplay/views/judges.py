"""The same answers under several judges, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    most_splits: int | None = _MOST_SPLITS,
) -> Iterator[str | Table]:
    """Yield the tables, which have the rules beside the judges, and the lines.

    ``questions`` are texts by conversation and id, ``missing`` sentences on answers without a verdict.
    """
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
