"""The tables of a run's results: scores, where facts were lost, breakdowns, what repairs wrong answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeVar

from memreplay.conversations.formats.locomo import ADVERSARIAL, CATEGORIES, Category
from memreplay.numbers import UNKNOWN, counted, dollars, estimate, interval, number, share, share_of
from memreplay.scoring import BREAKDOWNS, By, type_words
from memreplay.scoring.agreement import RATERS, Agreement, JudgeResults, Rater
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.counterfactuals import CURE_MEANINGS, STEP_MEANINGS, Repairs, WhatIfResults
from memreplay.scoring.equal_tokens import HEADLINE_TOKENS, TOKEN_BUDGETS
from memreplay.scoring.groups import Group
from memreplay.scoring.locomo_metric import ADVERSARIAL_REPLIES
from memreplay.scoring.points import TestGroup, TestResults
from memreplay.scoring.published import LONGMEMEVAL_TYPES, LocomoCategory, LocomoF1
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import (
    AbstentionResults,
    BackendResults,
    MultipleChoiceResults,
    RecallResults,
    Results,
)
from memreplay.scoring.retrieval import RetrievalResults, RetrievedAt
from memreplay.scoring.verdicts import INTERVENTIONS, LABELS, VERDICTS, Intervention, Label
from memreplay.scoring.writing import ReadingResults, WritingResults
from memreplay.views.table import Cell, Column, Table, legend

P = TypeVar("P")

_CellOf = Callable[[BackendResults], str]
"""A function that makes the cell of a backend."""

_BackendColumn = tuple[_CellOf, str]
"""A column: its cell of each backend, and its meaning."""

_BackendColumns = Mapping[str, _BackendColumn]
"""Columns by their heading."""


def tables_of(results: Results) -> list[Table]:
    """Return all tables that every output shows. The first one needs no title."""
    by_backend = [_by_backend(results, title, wanted) for title, wanted in _wanted(results) if wanted]
    return [*by_backend, *_points_table(results), *_what_if_tables(results)]


def headline_table(results: Results) -> Table:
    """Return the one table for a terminal: a row for each memory, and nothing that needs explaining."""
    headings = ("memory", "right", "accuracy", "95 %", "answer in prompt", "tokens", "cost")
    rows = [
        (
            name,
            f"{sum(part.correct for part in found.sections)} of {sum(part.graded for part in found.sections)}",
            share(found.headline.accuracy),
            _interval(found),
            UNKNOWN
            if found.retrieval is None
            else share_of(found.retrieval.answer_in_prompt, found.retrieval.facts),
            number(found.headline.prompt_tokens_per_question),
            dollars(found.cost_usd),
        )
        for name, found in results.backends.items()
    ]
    return Table.of("", headings, rows)


def _interval(backend: BackendResults) -> str:
    """Return the interval over conversations, if there are several: over their questions alone it is too narrow."""
    return interval(backend.headline.ci95_clustered or backend.headline.ci95)


def legend_of(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return by title the meanings of headings, and those of what became of the answers that were asked again."""
    cures = [
        (cure.replace("_", " "), meaning)
        for cure, meaning in CURE_MEANINGS.items()
        if any(row.cure == cure for row in results.questions)
    ]
    return [*legend(tables_of(results)), *([("Wrong answers that were asked again", cures)] if cures else [])]


# ---- a row for each memory ---------------------------------------------------------------------------------------


def _by_backend(results: Results, title: str, wanted: _BackendColumns) -> Table:
    columns = [Column(heading, meaning) for heading, (_, meaning) in wanted.items()]
    rows = [[name, *(cell(found) for cell, _ in wanted.values())] for name, found in results.backends.items()]
    return Table(title, [Column("backend", align="left"), *columns], rows)


def _wanted(results: Results) -> list[tuple[str, _BackendColumns]]:
    """Return the columns of each table by its title; none for a table that would say nothing."""
    backends = results.backends.values()
    recall_at = {**_recall_at(_cutoffs(results)), **_PER_HIT}
    tokens_are_known = any(backend.headline.prompt_tokens_per_question is not None for backend in backends)
    # Where anything was written, that its cost is unknown is worth a column of dashes.
    was_written = any(backend.writing is not None for backend in backends)
    called_to_read = _READING if any(backend.reading is not None for backend in backends) else {}
    return [
        ("", _with_any(results, _SCORES)),
        ("What the scores rest on", _with_any(results, _SUPPORT)),
        ("Answers at equal tokens", _measured(results, _OF_FACTS, _RETRIEVAL)),
        ("Recall at equally many hits", _measured(results, _OF_ANSWERS, recall_at)),
        # The tokens of imported runs are unknown.
        ("Accuracy against tokens", _with_any(results, _AGAINST_TOKENS) if tokens_are_known else {}),
        ("Writing and reading", {**(_WORK if was_written else _with_any(results, _WORK)), **called_to_read}),
        ("Abstention", _with_any(results, _ABSTENTION) if _is_about_abstention(results) else {}),
        ("Judge and grader", _with_any(results, _JUDGING)),
        ("LoCoMo's own F1", _with_any(results, _LOCOMO)),
        ("Accuracy by LongMemEval's types", _with_any(results, _LONGMEMEVAL)),
        ("Where each fact was lost", _lost(results)),
    ]


def _with_any(results: Results, wanted: _BackendColumns) -> _BackendColumns:
    """Return the columns that are not empty for every backend."""
    backends = results.backends.values()
    return {
        heading: column
        for heading, column in wanted.items()
        if any(column[0](backend) != UNKNOWN for backend in backends)
    }


def _measured(results: Results, of: _BackendColumn, wanted: _BackendColumns) -> _BackendColumns:
    """Return the columns after the number of what they are shares of; none if no memory ranks anything."""
    columns = _with_any(results, wanted)
    return {**_with_any(results, {"of": of}), **columns} if columns else {}


def _lost(results: Results) -> _BackendColumns:
    """Return a column for each label that any answer has, in order of attribution."""

    def column(label: Label) -> _BackendColumn:
        def cell(backend: BackendResults) -> str:
            return str(backend.failures.get(label, 0)) if backend.failures else UNKNOWN

        return cell, VERDICTS[label].sentence

    present = [label for label in LABELS if any(label in each.failures for each in results.backends.values())]
    return {label.replace("_", " "): column(label) for label in present}


def _is_about_abstention(results: Results) -> bool:
    """Return whether any question was never answered in the conversation, or any reply says so."""
    return any(row.abstain or row.abstained for row in results.questions)


def _cutoffs(results: Results) -> list[str]:
    """Return the numbers of hits that recall was measured at."""
    found = [part.retrieval.recall_at for part in results.backends.values() if part.retrieval is not None]
    return list(dict.fromkeys(k for recall_at in found for k in recall_at or ()))


def _of_both(backend: BackendResults, part: MultipleChoiceResults | RecallResults | None) -> str:
    """Return the accuracy of one kind of questions; a dash unless there are both, as nothing is said twice."""
    both = backend.recall is not None and backend.multiple_choice is not None
    return share_of(part.accuracy, part.graded) if both and part is not None else UNKNOWN


def _right(backend: BackendResults) -> str:
    parts = backend.sections
    right = f"{sum(part.correct for part in parts)}/{sum(part.graded for part in parts)}"
    uncertain = backend.headline.uncertain
    return f"{right} ({uncertain})" if uncertain else right


def _errors(backend: BackendResults) -> str:
    return str(sum(part.errors for part in backend.sections))


def _answerable(cell: Callable[[BackendResults, int], str]) -> _CellOf:
    """Return what makes the cell from the number of answerable questions; a dash where all are answerable."""

    def cell_of(backend: BackendResults) -> str:
        asked = backend.abstention
        return cell(backend, asked.graded - asked.should) if asked and asked.should else UNKNOWN

    return cell_of


def _if_known(part: Callable[[BackendResults], P | None], cell: Callable[[P], str]) -> _CellOf:
    """Return what makes the cell from a part of the results; a dash for a backend that lacks the part."""

    def cell_of(backend: BackendResults) -> str:
        found = part(backend)
        return UNKNOWN if found is None else cell(found)

    return cell_of


def _retrieval(cell: Callable[[RetrievalResults], str]) -> _CellOf:
    return _if_known(lambda backend: backend.retrieval, cell)


def _writing(cell: Callable[[WritingResults], str]) -> _CellOf:
    return _if_known(lambda backend: backend.writing, cell)


def _reading(cell: Callable[[ReadingResults], str]) -> _CellOf:
    return _if_known(lambda backend: backend.reading, cell)


def _abstention(cell: Callable[[AbstentionResults], str]) -> _CellOf:
    return _if_known(lambda backend: backend.abstention, cell)


def _judged(cell: Callable[[JudgeResults], str]) -> _CellOf:
    return _if_known(lambda backend: backend.judge, cell)


def _agreed(a: Rater, b: Rater, cell: Callable[[Agreement], str]) -> _CellOf:
    return _if_known(
        lambda backend: next((one for one in backend.agreement if (one.a, one.b) == (a, b)), None), cell
    )


def _at_tokens(of: Literal["evidence", "recall"], budget: int) -> _CellOf:
    return _retrieval(lambda found: share_at(found.at_tokens[str(budget)], of) if found.at_tokens else UNKNOWN)


def share_at(held: RetrievedAt, of: Literal["evidence", "recall"]) -> str:
    """Return what prompts of a number of tokens would hold; an estimate has a tilde."""
    shown = share(getattr(held, of))
    return estimate(shown) if held.estimated else shown


def _recall_at(cutoffs: Iterable[str]) -> _BackendColumns:
    def column(k: str) -> _BackendColumn:
        hits = "hit" if k == "1" else f"{k} hits"
        cell = _retrieval(lambda found: share((found.recall_at or {}).get(k)))
        return cell, f"share of a question's evidence turns in the first {hits}, on average"

    return {f"recall@{k}": column(k) for k in cutoffs}


_with_evidence = _retrieval(lambda found: number(found.questions))


_ANSWER_AT = f"answer in {HEADLINE_TOKENS:,} tokens"

_SCORES: Final[_BackendColumns] = {
    "right": (
        _right,
        "right answers of graded ones; an answer that ended in an error is not graded. Uncertain are grades of"
        " kinds that the rules often get wrong; the bounds count them all as wrong, and all as right",
    ),
    "accuracy": (lambda backend: share(backend.headline.accuracy), "share of graded answers that are right"),
    "in words": (
        lambda backend: _of_both(backend, backend.recall),
        "the same over the questions that are answered in words",
    ),
    "by choice": (
        lambda backend: _of_both(backend, backend.multiple_choice),
        "the same over those that are answered with one of their options",
    ),
    "95 %": (
        _interval,
        "interval of the accuracy over conversations, or over questions where there is only one (Wilson); not"
        " adjusted for the number of memories",
    ),
    "adjusted": (
        _if_known(lambda backend: backend.adjusted, lambda found: share(found.accuracy)),
        "share of graded answers that are right by the corrected key, without the questions it voids",
    ),
    "answerable": (
        _answerable(lambda backend, n: share_of(backend.headline.accuracy_without_adversarial, n)),
        "accuracy without the questions whose right answer is that it was never said",
    ),
    _ANSWER_AT: (
        _at_tokens("evidence", HEADLINE_TOKENS),
        f"share of questions with evidence whose answer a prompt of {HEADLINE_TOKENS:,} tokens would hold, word for"
        " word or by its content, read off the recorded ranking; ~ marks an estimate; – for a memory that"
        " ranks nothing",
    ),
    "errors": (_errors, "answers that ended in an error, which are neither right nor wrong"),
    "repeats agree": (
        lambda backend: share(backend.headline.repeats_agree),
        "share of pairs of repeats of a question with the same answer",
    ),
    "cost": (lambda backend: dollars(backend.cost_usd), "US dollars for all replies; – if a price is unknown"),
}

# A memory that ranks nothing has none of the shares beside these.
_OF_ANSWERS: Final[_BackendColumn] = (
    _retrieval(lambda found: number(found.questions) if found.at_tokens else UNKNOWN),
    "answers to questions with evidence, which the shares beside it are of",
)
_OF_FACTS: Final[_BackendColumn] = (
    _retrieval(lambda found: number(found.facts) if found.at_tokens else UNKNOWN),
    "facts with evidence, which the shares beside it are of; one that is asked in words and with options counts"
    " once",
)

_SUPPORT: Final[_BackendColumns] = {
    "closed book": (
        lambda backend: share(backend.headline.closed_book_accuracy),
        "share of the same questions that the same model gets right without any memory",
    ),
    "blind guesser": (
        lambda backend: share(backend.headline.blind_guesser_accuracy),
        "share of the same questions that are guessed from their options alone; none of those without options",
    ),
    "gain": (
        lambda backend: number(backend.headline.normalised_gain, 2),
        "(accuracy − better) / (1 − better), where better is the higher of closed book and blind guesser: the share"
        " of what these miss that memory gains; below 0, memory gets fewer right than these",
    ),
    "gain, answerable": (
        _answerable(lambda backend, _: number(backend.headline.normalised_gain_without_adversarial, 2)),
        "the same without the questions whose right answer is that it was never said",
    ),
    "with evidence": (
        _with_evidence,
        "answers to questions with evidence, which the shares beside it are of; grounded leaves out errors",
    ),
    "evidence in prompt": (
        lambda backend: share(backend.headline.evidence_in_prompt),
        "share of questions with evidence whose prompt held all of it verbatim; – for a memory that only distils",
    ),
    "95 % evidence": (
        _retrieval(
            lambda found: interval(found.evidence_in_prompt_ci95_clustered or found.evidence_in_prompt_ci95)
        ),
        "its interval over conversations, or over facts where there is only one conversation; a fact that is asked"
        " in words and with options counts once",
    ),
    "answer in prompt": (
        _retrieval(lambda found: share(found.answer_in_prompt)),
        "the same, or the answer in other words than the evidence's",
    ),
    "95 % answer": (
        _retrieval(lambda found: interval(found.answer_in_prompt_ci95_clustered or found.answer_in_prompt_ci95)),
        "the interval of the answer in the prompt, likewise",
    ),
    "grounded": (
        lambda backend: share(backend.headline.grounded_accuracy),
        "share of graded questions with evidence that are right with the evidence in the prompt, verbatim or"
        " distilled",
    ),
    "tokens/right": (
        lambda backend: number(backend.headline.tokens_per_right),
        "tokens of all prompts and replies per right answer",
    ),
    "cost/right": (
        lambda backend: dollars(backend.headline.cost_usd_per_right),
        "US dollars for all replies per right answer",
    ),
}

_RETRIEVAL: Final[_BackendColumns] = {
    **{
        f"answer {budget:,}": (
            _at_tokens("evidence", budget),
            f"share of questions with evidence whose answer a prompt of {budget:,} tokens would hold, read off the"
            " recorded ranking",
        )
        for budget in TOKEN_BUDGETS
    },
    **{
        f"recall {budget:,}": (
            _at_tokens("recall", budget),
            f"share of a question's evidence turns that a prompt of {budget:,} tokens would hold word for word, on"
            " average",
        )
        for budget in TOKEN_BUDGETS
    },
}

_PER_HIT: Final[_BackendColumns] = {
    "tokens/hit": (
        _retrieval(lambda found: number(found.tokens_per_hit, 1)),
        "mean tokens of a hit: at equally many hits, the memory with the larger ones has an advantage",
    ),
    "turns/hit": (
        _retrieval(lambda found: number(found.turns_per_hit, 1)),
        "mean number of turns that a hit holds word for word",
    ),
}

_AGAINST_TOKENS: Final[_BackendColumns] = {
    "prompt tokens/question": (
        lambda backend: number(backend.headline.prompt_tokens_per_question),
        "mean tokens of a prompt",
    ),
    "accuracy": _SCORES["accuracy"],
    _ANSWER_AT: _SCORES[_ANSWER_AT],
    "answer in prompt": _SUPPORT["answer in prompt"],
}

_WORK: Final[_BackendColumns] = {
    "exchanges": (_writing(lambda found: number(found.exchanges)), "exchanges that the backend was given to write"),
    "writing, s": (
        _writing(lambda found: number(found.ms / 1000, 1)),
        "time of all writes, with the background work that they start, but without embedding the texts that were"
        " embedded ahead for all memories, or by an earlier run",
    ),
    "model tokens": (
        _writing(lambda found: number(found.model_tokens)),
        "tokens of models that memory called to write; – if unknown",
    ),
    "cost of writing": (
        _writing(lambda found: dollars(found.cost_usd)),
        "US dollars for these calls; – if unknown",
    ),
    "recall p50, ms": (lambda backend: number(backend.latency_ms.recall_p50, 1), "median time of a recall"),
    "recall p95, ms": (lambda backend: number(backend.latency_ms.recall_p95, 1), "95th percentile of the same"),
    "prompt tokens": (lambda backend: number(backend.tokens.prompt or None), "tokens of all prompts"),
}

_READING: Final[_BackendColumns] = {
    "calls to read": (
        _reading(lambda found: number(found.model_calls)),
        "calls of models, such as a reranker, that memory made to read and that this run paid for",
    ),
    "cost of reading": (
        _reading(lambda found: dollars(found.cost_usd)),
        "US dollars for these calls; – if unknown",
    ),
}

_ABSTENTION: Final[_BackendColumns] = {
    "never said": (
        _abstention(lambda found: str(found.should)),
        "graded questions whose right answer is that it was never said",
    ),
    "abstained": (_abstention(lambda found: str(found.abstained)), "replies that say so"),
    "precision": (
        _abstention(lambda found: share(found.precision)),
        "share of these replies that are right to say so",
    ),
    "recall": (_abstention(lambda found: share(found.recall)), "share of these questions that are answered so"),
}


def _agreement_columns(a: Rater, b: Rater, who: str) -> dict[str, _BackendColumn]:
    return {
        f"{who} agree": (
            _agreed(a, b, lambda found: f"{found.both_right + found.both_wrong}/{found.n} {share(found.share)}"),
            f"answers that {RATERS[a]} and {RATERS[b]} judge alike, of those that both judged",
        ),
        f"kappa, {who}": (
            _agreed(a, b, lambda found: number(found.kappa, 2)),
            "Cohen's kappa of the same: 1 is full agreement, 0 what chance alone would give; – if it is undefined",
        ),
    }


_JUDGING: Final[_BackendColumns] = {
    "judged": (_judged(lambda judge: str(judge.answers)), "answers that the judge was asked about"),
    "no verdict": (
        _judged(lambda judge: str(judge.answers - judge.graded)),
        "answers whose judge gave no readable verdict: errors, neither right nor wrong",
    ),
    "right by judge": (_judged(lambda judge: f"{judge.right}/{judge.graded}"), "right answers by the judge"),
    "right by grader": (
        _judged(lambda judge: f"{judge.right_by_grader}/{judge.graded_by_grader}"),
        "right answers by the grader's rules, of those that the judge was asked about and the rules grade",
    ),
    **_agreement_columns("grader", "judge", "judge and grader"),
    **_agreement_columns("grader", "hand", "hand and grader"),
    **_agreement_columns("judge", "hand", "hand and judge"),
    "judge's tokens": (
        _judged(lambda judge: number(judge.tokens.prompt + judge.tokens.completion if judge.calls else None)),
        "tokens of the judge's prompts and replies, which no other column includes",
    ),
    "judge's cost": (_judged(lambda judge: dollars(judge.cost_usd)), "US dollars for the same; – if unknown"),
}


def _locomo(part: Callable[[LocomoF1], LocomoF1 | LocomoCategory | None]) -> _CellOf:
    def cell(found: LocomoF1) -> str:
        scored = part(found)
        return UNKNOWN if scored is None else share_of(scored.f1, scored.questions)

    return _if_known(lambda backend: backend.recall.locomo_f1 if backend.recall is not None else None, cell)


def _locomo_category(category: Category) -> _CellOf:
    return _locomo(lambda found: found.by_category.get(category.locomo))


def _longmemeval(type_: str) -> _CellOf:
    def group(backend: BackendResults) -> Group | None:
        found = backend.recall.longmemeval if backend.recall is not None else None
        return None if found is None else found.by_type.get(type_)

    return _if_known(group, lambda found: share_of(found.accuracy, found.graded))


_ABSTENTIONS = " or ".join(f"“{words}”" for words in ADVERSARIAL_REPLIES)

_LOCOMO: Final[_BackendColumns] = {
    "all": (
        _locomo(lambda found: found),
        "mean F1 of the replies' stemmed words, as LoCoMo's own evaluation computes it",
    ),
    **{
        category.locomo: (
            _locomo_category(category),
            f"share of these whose reply has the words {_ABSTENTIONS}, which alone count"
            if category is ADVERSARIAL
            else "the same over the questions of this category",
        )
        for category in CATEGORIES
    },
}

_LONGMEMEVAL: Final[_BackendColumns] = {
    name: (_longmemeval(name), "accuracy over the questions of this type, by our grader and not the paper's judge")
    for name in LONGMEMEVAL_TYPES
}


# ---- points of tests --------------------------------------------------------------------------------------------


def _points_table(results: Results) -> Iterator[Table]:
    """Yield a row for each dataset and in all, with a column for each memory, if tests were run."""
    tests = {name: backend.tests for name, backend in results.backends.items() if backend.tests is not None}
    if not tests:
        return
    datasets = dict.fromkeys(dataset for part in tests.values() for dataset in part.by_dataset)
    by_dataset = [[name, *(_points(part.by_dataset.get(name)) for part in tests.values())] for name in datasets]
    made = [[name, *(cell(part) for part in tests.values())] for name, cell in _TOTALS.items()]
    totals = [[cell or UNKNOWN for cell in row] for row in made if any(row[1:])]
    headings = ("tests, points of most points", *tests)
    yield Table.of("Points by dataset", headings, [*by_dataset, *totals], totals=len(totals))


def _points(group: TestGroup | None) -> str:
    if group is None or not group.total:
        return UNKNOWN
    ungraded = f" ({group.errors} ungraded)" if group.errors else ""
    return f"{group.score:.3g}/{group.max_score:g}{ungraded}" if group.graded else f"ungraded: {group.errors}"


def _all_recorded(part: TestResults) -> str:
    return "" if part.recorded_score is None else f"{part.recorded_score:.3g}"


_TOTALS: dict[str, Callable[[TestResults], str]] = {
    "all": _points,
    "recorded": _all_recorded,
    "LTM score, tokens": lambda part: "" if part.ltm_score is None else f"{part.ltm_score:.0f}",
    "cost of the benchmark": lambda part: (
        "" if part.benchmark_cost_usd is None else dollars(part.benchmark_cost_usd)
    ),
}


# ---- groups of questions, chosen options -------------------------------------------------------------------------


def breakdowns_in(results: Results) -> list[By]:
    """Return the breakdowns that split the questions of this run into several groups, each split once.

    The type of a question of ours is its location, unless the dataset names another.
    """
    found = {by: [part.breakdown.get(by) for part in results.backends.values()] for by in BREAKDOWNS}
    splits = [by for by in BREAKDOWNS if len(_groups_in(results, by)) > 1]
    return [by for at, by in enumerate(splits) if found[by] not in [found[other] for other in splits[:at]]]


def breakdown_table(results: Results, by: By) -> Table:
    """Return a row for each group, with right answers of graded ones, and accuracy, for each backend."""
    names = names_of_groups(results, by)
    rows = [
        [
            names.get(group, group),
            *(_group_cell(part.breakdown.get(by, {}).get(group)) for part in results.backends.values()),
        ]
        for group in _groups_in(results, by)
    ]
    return Table.of(f"By {by}", (heading_of_groups(results, by), *results.backends), rows)


def names_of_groups(results: Results, by: By) -> Mapping[str, str]:
    """Return what groups are called that have two names: types, by both."""
    return {row.type: type_words(row.type, row.other_type) for row in results.questions} if by == "type" else {}


def heading_of_groups(results: Results, by: By) -> str:
    """Return what stands above the names of the groups."""
    names = names_of_groups(results, by)
    return f"{by} (its other name)" if any(shown != name for name, shown in names.items()) else by


_NO_OPTION = "none"
_OPTIONS = "right option, chosen option"


def options_tables(results: Results) -> Iterator[Table]:
    """Yield for each backend with multiple-choice questions how often which option was chosen, by the right one.

    The last column counts replies without a readable choice, so that a row adds up to the graded answers. Every
    repeat of a question counts.
    """
    unread = _unread(results)
    repeats = " (all repeats)" if any(row.repeat for row in results.questions) else ""
    for name, part in results.backends.items():
        if part.multiple_choice is not None:
            matrix = part.multiple_choice.confusion_matrix
            headings = ("right \\ chosen", *map(str, range(len(matrix))), _NO_OPTION)
            rows = [
                [str(right), *(str(count or "") for count in (*row, unread[name, right]))]
                for right, row in enumerate(matrix)
            ]
            yield Table.of(f"Options chosen: {name}{repeats}", headings, rows)


def _unread(results: Results) -> Counter[tuple[str, int | None]]:
    """Count the graded replies without a readable choice, by backend and right option."""
    return Counter(
        (name, row.correct_index)
        for name, rows in contestants_of(results.questions).items()
        for row in rows
        if row.kind == "choice" and row.predicted_index is None and row.outcome != "error"
    )


def groups_table(results: Results) -> Table:
    """Return each backend's groups, and the cells of its confusion matrix that are not 0, as values."""
    headings = ("backend", "by", "group", "total", "graded", "correct", "accuracy", "ci95_low", "ci95_high")
    return Table.of("Groups", headings, list(_groups(results)))


def _groups(results: Results) -> Iterator[tuple[Cell, ...]]:
    unread = _unread(results)
    for name, part in results.backends.items():
        for by, groups in part.breakdown.items():
            for group, found in groups.items():
                low, high = found.ci95 or (None, None)
                counts = (found.total, found.graded, found.correct)
                yield (name, by, group, *counts, found.accuracy, low, high)
        matrix = part.multiple_choice.confusion_matrix if part.multiple_choice else ()
        for right, row in enumerate(matrix):
            for chosen, count in (*enumerate(row), (_NO_OPTION, unread[name, right])):
                if count:
                    yield (name, _OPTIONS, f"{right}, {chosen}", count, None, None, None, None, None)


def _groups_in(results: Results, by: By) -> list[str]:
    found = [part.breakdown.get(by, {}) for part in results.backends.values()]
    return list(dict.fromkeys(group for groups in found for group in groups))


def _group_cell(group: Group | None) -> str:
    if group is None or group.accuracy is None:
        return UNKNOWN
    return f"{group.correct}/{group.graded} {share(group.accuracy)}"


# ---- what repairs wrong answers ----------------------------------------------------------------------------------


def _what_if_tables(results: Results) -> Iterator[Table]:
    """Yield the tables of each backend that was asked again."""
    for name, backend in results.backends.items():
        if backend.what_if is not None:
            yield _repair_table(f"What repairs the wrong answers of {name}", backend.what_if)
            yield _waterfall_table(f"From today's accuracy of {name} to 1", backend.what_if)


def _repair_table(title: str, found: WhatIfResults) -> Table:
    """Return a row for each change, and a column for all wrong answers and for each failure label."""
    labels = list(found.by_label)
    rows = [
        [
            name.replace("_", " "),
            _repaired(repairs),
            _beyond(repairs, name),
            *(_short(found.by_label[label].get(name)) for label in labels),
        ]
        for name in INTERVENTIONS
        if (repairs := found.interventions.get(name)) is not None
    ]
    headings = ("change", "repaired", "beyond unchanged", *(label.replace("_", " ") for label in labels))
    return Table.of(title, headings, rows)


def _repaired(repairs: Repairs) -> str:
    if repairs.share is None or repairs.ci95 is None:
        return UNKNOWN
    errors = f", {counted(repairs.errors, 'error')}" if repairs.errors else ""
    return f"{repairs.repaired}/{repairs.graded} {share(repairs.share)} ({interval(repairs.ci95)}){errors}"


def _beyond(repairs: Repairs, name: Intervention) -> str:
    if name == "unchanged":
        return "the control"
    if repairs.beyond_unchanged is None or repairs.beyond_ci95 is None:
        return UNKNOWN
    low, high = repairs.beyond_ci95
    return f"{100 * repairs.beyond_unchanged:+.1f} ({100 * low:+.0f} to {100 * high:+.0f})"


def _short(repairs: Repairs | None) -> str:
    return UNKNOWN if repairs is None else f"{repairs.repaired}/{repairs.graded}"


def _waterfall_table(title: str, found: WhatIfResults) -> Table:
    rows = [
        [
            STEP_MEANINGS[step.step],
            f"{step.answers:+d}" if place else str(step.answers),
            share(step.accuracy),
        ]
        for place, step in enumerate(found.waterfall)
    ]
    return Table.of(title, ("step", "answers", "accuracy reached"), rows)


# ---- the answers, for CSV ----------------------------------------------------------------------------------------

_NOT_A_CELL = {
    "evidence",
    "hits",
    "tokens",
    "failure_ranks",
    "adjusted",
    "reasoning",
    "at_tokens",
    "counterfactuals",
    "grader",
    "judge",
}
"""Fields of a row with more than one value."""

_FIELDS = tuple(name for name in QuestionRow.model_fields if name not in _NOT_A_CELL)


def _answer_at_tokens(of: str, budget: int) -> Callable[[QuestionRow], Cell]:
    return lambda row: getattr(row.at_tokens[str(budget)], of) if row.at_tokens else None


def _of_judge(field: str) -> Callable[[QuestionRow], Cell]:
    return lambda row: getattr(row.judge, field) if row.judge else None


_COMPUTED: dict[str, Callable[[QuestionRow], Cell]] = {
    "evidence": lambda row: " ".join(row.evidence),
    "reasoning": lambda row: "; ".join(row.reasoning),
    "failure_ranks": lambda row: "; ".join(
        f"{turn}: {', '.join(f'{channel} {rank}' for channel, rank in ranks.items())}"
        for turn, ranks in row.failure_ranks.items()
    ),
    "hits": lambda row: len(row.hits),
    "hits_in_prompt": lambda row: sum(hit.in_prompt for hit in row.hits),
    "tokens_prompt": lambda row: row.tokens.prompt if row.tokens else None,
    "tokens_completion": lambda row: row.tokens.completion if row.tokens else None,
    "tokens_cached": lambda row: row.tokens.cached if row.tokens else None,
    **{
        f"{of}_at_{budget}_tokens": _answer_at_tokens(of, budget)
        for of in ("evidence", "recall", "estimated")
        for budget in TOKEN_BUDGETS
    },
    "repaired_by": lambda row: " ".join(each.intervention for each in row.counterfactuals or () if each.repaired),
    "grader_outcome": lambda row: row.grader.outcome if row.grader else None,
    "grader_decided_by": lambda row: row.grader.decided_by if row.grader else None,
    **{f"judge_{name}": _of_judge(name) for name in ("model", "rubric", "verdict", "reply", "error", "cost_usd")},
    "judge_tokens": lambda row: row.judge.tokens.prompt + row.judge.tokens.completion if row.judge else None,
    "adjusted_expected": lambda row: row.adjusted.expected if row.adjusted else None,
    "adjusted_outcome": lambda row: row.adjusted.outcome if row.adjusted else None,
    "adjusted_reason": lambda row: row.adjusted.reason if row.adjusted else None,
}


def answers_table(results: Results) -> Table:
    """Return a row for each answer, as values."""
    rows = [
        [*(getattr(row, name) for name in _FIELDS), *(make(row) for make in _COMPUTED.values())]
        for row in results.questions
    ]
    return Table.of("Answers", (*_FIELDS, *_COMPUTED), rows)
