"""What a judge did, and how far it, the grader's rules and labels by hand agree: columns and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from memreplay.printable import printable
from memreplay.scoring.agreement import Agreement, Disagreement, JudgeResults, Rater
from memreplay.scoring.results import BackendResults, Results
from memreplay.text import dollars
from memreplay.views.tables.cells import NOTHING, Column, ColumnsByHeading, number, share, shortened

_DISAGREEMENTS = 5

_RATERS: Final[Mapping[Rater, str]] = {
    "grader": "the grader's rules",
    "judge": "the judge",
    "hand": "the labels by hand",
}


def _judged(cell: Callable[[JudgeResults], str]) -> Callable[[BackendResults], str]:
    return lambda backend: cell(backend.judge) if backend.judge is not None else NOTHING


def _agreed(a: Rater, b: Rater, cell: Callable[[Agreement], str]) -> Callable[[BackendResults], str]:
    def of_backend(backend: BackendResults) -> str:
        found = next((one for one in backend.agreement if (one.a, one.b) == (a, b)), None)
        return NOTHING if found is None else cell(found)

    return of_backend


def _agreement_columns(a: Rater, b: Rater, who: str) -> dict[str, Column]:
    return {
        f"{who} agree": (
            _agreed(a, b, lambda found: f"{found.both_right + found.both_wrong}/{found.n} {share(found.share)}"),
            f"answers that {_RATERS[a]} and {_RATERS[b]} judge alike, of those that both judged",
        ),
        f"kappa, {who}": (
            _agreed(a, b, lambda found: NOTHING if found.kappa is None else f"{found.kappa:.2f}"),
            "Cohen's kappa of the same: 1 is full agreement, 0 what chance alone would give; – if it is undefined",
        ),
    }


JUDGING: Final[ColumnsByHeading] = {
    "judged": (_judged(lambda judge: str(judge.answers)), "answers that the judge was asked about"),
    "no verdict": (
        _judged(lambda judge: str(judge.answers - judge.graded)),
        "answers whose judge gave no readable verdict: errors, neither right nor wrong",
    ),
    "right by judge": (_judged(lambda judge: f"{judge.right}/{judge.graded}"), "right answers by the judge"),
    "right by grader": (
        _judged(lambda judge: f"{judge.right_by_grader}/{judge.answers}"),
        "right answers by the grader's rules, of those that the judge was asked about",
    ),
    **_agreement_columns("grader", "judge", "judge and grader"),
    **_agreement_columns("grader", "hand", "hand and grader"),
    **_agreement_columns("judge", "hand", "hand and judge"),
    "judge's tokens": (
        _judged(lambda judge: number(judge.tokens.prompt + judge.tokens.completion)),
        "tokens of the judge's prompts and replies, which no other column includes",
    ),
    "judge's cost": (_judged(lambda judge: dollars(judge.cost_usd)), "US dollars for the same; – if unknown"),
}


def judge_sentences(results: Results) -> list[str]:
    """Who decided, how far the raters agree, and the first answers on which they do not."""
    sentences = []
    judges = [backend.judge for backend in results.backends.values() if backend.judge is not None]
    if judges:
        models = ", ".join(dict.fromkeys(model for judge in judges for model in judge.models))
        rubrics = ", ".join(dict.fromkeys(rubric for judge in judges for rubric in judge.rubrics))
        sentences.append(
            f"judge: {models} decides on the replies to recall questions (rubric: {rubrics}); “right by grader” is"
            " what the rules say of the same replies."
        )
    for found in results.agreement:
        kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
        alike = found.both_right + found.both_wrong
        sentences.append(
            f"agreement: {_RATERS[found.a]} and {_RATERS[found.b]} agree on {alike} of {found.n} answers"
            f" ({share(found.share)}), Cohen's kappa {kappa}; {found.only_a} right only by"
            f" {_RATERS[found.a]}, {found.only_b} only by {_RATERS[found.b]}."
        )
    sentences += map(disagreement_sentence, results.disagreements[:_DISAGREEMENTS])
    if (others := len(results.disagreements) - _DISAGREEMENTS) > 0:
        sentences.append(f"disagreement: {others} more; results.json and the Markdown report list all of them.")
    return sentences


def disagreement_sentence(one: Disagreement) -> str:
    said = ", ".join(f"{_RATERS[rater]}: {verdict}" for rater, verdict in one.verdicts.items())
    expected, predicted = (shortened(" ".join(text.split())) for text in (one.expected, one.predicted or ""))
    return printable(
        f"disagreement: {one.question_id} ({one.backend}): {said}; expected “{expected}”, answered “{predicted}”."
    )
