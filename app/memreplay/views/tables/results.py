"""The tables of results: scores, what they rest on and cost, where facts were lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from memreplay.scoring.equal_tokens import HEADLINE_TOKENS, TOKEN_BUDGETS
from memreplay.scoring.question_row import Interval
from memreplay.scoring.results import BackendResults, MultipleChoiceResults, RecallResults, Results
from memreplay.scoring.verdicts import LABELS, VERDICTS, Label
from memreplay.text import dollars
from memreplay.views.tables.cells import NOTHING, Column, Columns, ColumnsByHeading, number, share, share_of
from memreplay.views.tables.judge import JUDGING
from memreplay.views.tables.published import LOCOMO, LONGMEMEVAL

LOST: Final = "Where each fact was lost"


def titled_tables(results: Results) -> list[tuple[str, Columns]]:
    """All tables with a row per backend that have any column, each with its title; the first one needs none."""
    return [
        (
            title,
            {
                heading: {name: cell(backend) for name, backend in results.backends.items()}
                for heading, (cell, _) in wanted.items()
            },
        )
        for title, wanted in _tables(results)
    ]


def meanings_of(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """By table, the meaning of each heading that no table above has with the same meaning.

    A heading such as *abstained* means one thing in the table of replies and another in that of verdicts.
    """
    known: set[tuple[str, str]] = set()
    found = []
    for title, wanted in _tables(results):
        new = [(heading, meaning) for heading, (_, meaning) in wanted.items() if (heading, meaning) not in known]
        known.update(new)
        if new:
            found.append((f"{title} (number of answers)" if title == LOST else title, new))
    return found


def _tables(results: Results) -> list[tuple[str, ColumnsByHeading]]:
    backends = results.backends.values()
    recall_at = {**_recall_at(_cutoffs(results)), **_PER_HIT}
    tokens_are_known = any(backend.headline.prompt_tokens_per_question is not None for backend in backends)
    # Where anything was written, that its cost is unknown is worth a column of dashes.
    was_written = any(backend.writing is not None for backend in backends)
    called_to_read = _READING if any(backend.reading is not None for backend in backends) else {}
    tables = [
        ("", _with_any(results, _SCORES)),
        ("What the scores rest on", _with_any(results, _SUPPORT)),
        ("Evidence at equal tokens", _measured(results, _RETRIEVAL)),
        ("Recall at equally many hits", _measured(results, recall_at)),
        # The tokens of imported runs are unknown.
        ("Accuracy against tokens", _with_any(results, _AGAINST_TOKENS) if tokens_are_known else {}),
        ("Writing and reading", {**(_WORK if was_written else _with_any(results, _WORK)), **called_to_read}),
        ("Abstention", _with_any(results, _ABSTENTION) if _is_about_abstention(results) else {}),
        ("Judge and grader", _with_any(results, JUDGING)),
        ("LoCoMo's own F1", _with_any(results, LOCOMO)),
        ("Accuracy by LongMemEval's types", _with_any(results, LONGMEMEVAL)),
        (LOST, _lost(results)),
    ]
    return [(title, wanted) for title, wanted in tables if wanted]


def _with_any(results: Results, wanted: ColumnsByHeading) -> ColumnsByHeading:
    """Without columns that are empty for every backend."""
    backends = results.backends.values()
    return {
        heading: column
        for heading, column in wanted.items()
        if any(column[0](backend) != NOTHING for backend in backends)
    }


def _measured(results: Results, wanted: ColumnsByHeading) -> ColumnsByHeading:
    """With the number of answers that the shares are of, if any memory ranks what it returns."""
    columns = _with_any(results, wanted)
    return {**_with_any(results, _OF), **columns} if columns else {}


def _lost(results: Results) -> ColumnsByHeading:
    """The number of answers with each label that any has, in order of attribution; none for closed_book."""

    def column(label: Label) -> Column:
        def cell(backend: BackendResults) -> str:
            return str(backend.failures.get(label, 0)) if backend.failures else NOTHING

        return cell, VERDICTS[label].sentence

    present = [label for label in LABELS if any(label in each.failures for each in results.backends.values())]
    return {label.replace("_", " "): column(label) for label in present}


def _is_about_abstention(results: Results) -> bool:
    """Whether any question was never answered in the conversation, or any reply says so."""
    return any(row.abstain or row.abstained for row in results.questions)


def _cutoffs(results: Results) -> list[str]:
    """The numbers of hits that recall was measured at."""
    found = [part.retrieval.recall_at for part in results.backends.values() if part.retrieval is not None]
    return list(dict.fromkeys(k for recall_at in found for k in recall_at or ()))


def _of_both(backend: BackendResults, part: MultipleChoiceResults | RecallResults | None) -> str:
    """The accuracy of one kind of questions; nothing unless there are both, as nothing is said twice."""
    both = backend.recall is not None and backend.multiple_choice is not None
    return share_of(part.accuracy, part.graded) if both and part is not None else NOTHING


def _right(backend: BackendResults) -> str:
    parts = backend.sections
    right = f"{sum(part.correct for part in parts)}/{sum(part.graded for part in parts)}"
    uncertain = backend.headline.uncertain
    return f"{right} ({uncertain})" if uncertain else right


def _errors(backend: BackendResults) -> str:
    return str(sum(part.errors for part in backend.sections))


def _interval(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{100 * interval[0]:.0f}–{100 * interval[1]:.0f}"


def _without_adversarial(backend: BackendResults) -> str:
    """Only where any are left out."""
    asked = backend.abstention
    if asked is None or not asked.should:
        return NOTHING
    return share_of(backend.headline.accuracy_without_adversarial, asked.graded - asked.should)


def _recall_at(cutoffs: Iterable[str]) -> dict[str, Column]:
    def column(k: str) -> Column:
        def cell(backend: BackendResults) -> str:
            found = backend.retrieval.recall_at if backend.retrieval else None
            return share(found.get(k) if found else None)

        first = "hit" if k == "1" else f"{k} hits"
        return cell, f"share of a question's evidence turns in the first {first}, on average"

    return {f"recall@{k}": column(k) for k in cutoffs}


def _at_tokens(of: Literal["evidence", "recall"], budget: int) -> Callable[[BackendResults], str]:
    def cell(backend: BackendResults) -> str:
        held = backend.retrieval.at_tokens if backend.retrieval else None
        return share(getattr(held[str(budget)], of) if held else None)

    return cell


def _with_evidence(backend: BackendResults) -> str:
    return number(backend.retrieval.questions if backend.retrieval else None)


def _of(backend: BackendResults) -> str:
    """Nothing for a memory that ranks nothing: it has none of the shares beside it."""
    return _with_evidence(backend) if backend.retrieval and backend.retrieval.recall_at else NOTHING


def _per_hit(field: str) -> Callable[[BackendResults], str]:
    return lambda backend: number(getattr(backend.retrieval, field) if backend.retrieval else None, 1)


def _written(field: str, scale: float = 1) -> Callable[[BackendResults], str]:
    def cell(backend: BackendResults) -> str:
        value = getattr(backend.writing, field) if backend.writing else None
        return NOTHING if value is None else number(value / scale, 0 if scale == 1 else 1)

    return cell


def _abstention(field: str) -> Callable[[BackendResults], str]:
    return lambda backend: str(getattr(backend.abstention, field)) if backend.abstention else NOTHING


def _abstention_share(field: str) -> Callable[[BackendResults], str]:
    return lambda backend: share(getattr(backend.abstention, field) if backend.abstention else None)


def _gain(gain: float | None) -> str:
    return NOTHING if gain is None else f"{gain:.2f}"


def _gain_without_adversarial(backend: BackendResults) -> str:
    """Only where any are left out."""
    asked = backend.abstention
    return _gain(backend.headline.normalised_gain_without_adversarial) if asked and asked.should else NOTHING


_EVIDENCE_AT = f"evidence in {HEADLINE_TOKENS:,} tokens"

_SCORES: Final[ColumnsByHeading] = {
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
        lambda backend: _interval(backend.headline.ci95),
        "Wilson interval of the accuracy over questions, assuming they are independent; not adjusted for the number"
        " of memories",
    ),
    "95 % clustered": (
        lambda backend: _interval(backend.headline.ci95_clustered),
        "the same, with questions clustered by conversation",
    ),
    "adjusted": (
        lambda backend: share(backend.adjusted.accuracy if backend.adjusted else None),
        "share of graded answers that are right by the corrected key, without the questions it voids",
    ),
    "answerable": (
        _without_adversarial,
        "accuracy without the questions whose right answer is that it was never said",
    ),
    _EVIDENCE_AT: (
        _at_tokens("evidence", HEADLINE_TOKENS),
        f"share of questions with evidence whose answer a prompt of {HEADLINE_TOKENS:,} tokens would hold, word for"
        " word or by its content, read off the recorded ranking; – for a memory that ranks nothing",
    ),
    "errors": (_errors, "answers that ended in an error, which are neither right nor wrong"),
    "repeats agree": (
        lambda backend: share(backend.headline.repeats_agree),
        "share of pairs of repeats of a question with the same answer",
    ),
    "cost": (lambda backend: dollars(backend.cost_usd), "US dollars for all replies; – if a price is unknown"),
}

_OF: Final[ColumnsByHeading] = {
    "of": (_of, "answers to questions with evidence, which the shares beside it are of"),
}

_SUPPORT: Final[ColumnsByHeading] = {
    "closed book": (
        lambda backend: share(backend.headline.closed_book_accuracy),
        "share of the same questions that the same model gets right without any memory",
    ),
    "blind guesser": (
        lambda backend: share(backend.headline.blind_guesser_accuracy),
        "share of the same questions that are guessed from their options alone; none of those without options",
    ),
    "gain": (
        lambda backend: _gain(backend.headline.normalised_gain),
        "(accuracy − better) / (1 − better), where better is the higher of closed book and blind guesser: the share"
        " of what these miss that memory gains; below 0, memory gets fewer right than these",
    ),
    "gain, answerable": (
        _gain_without_adversarial,
        "the same without the questions whose right answer is that it was never said",
    ),
    "with evidence": (
        _with_evidence,
        "answers to questions with evidence, which the shares beside it are of; grounded leaves out errors",
    ),
    "evidence in prompt": (
        lambda backend: share(backend.headline.evidence_in_prompt),
        "share of questions with evidence whose prompt held all of it verbatim",
    ),
    "answer in prompt": (
        lambda backend: share(backend.retrieval.answer_in_prompt if backend.retrieval else None),
        "the same, or the answer in other words than the evidence's",
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

_RETRIEVAL: Final[ColumnsByHeading] = {
    **{
        f"evidence {budget:,}": (
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

_PER_HIT: Final[ColumnsByHeading] = {
    "tokens/hit": (
        _per_hit("tokens_per_hit"),
        "mean tokens of a hit: at equally many hits, the memory with the larger ones has an advantage",
    ),
    "turns/hit": (_per_hit("turns_per_hit"), "mean number of turns that a hit holds word for word"),
}

_AGAINST_TOKENS: Final[ColumnsByHeading] = {
    "prompt tokens/question": (
        lambda backend: number(backend.headline.prompt_tokens_per_question),
        "mean tokens of a prompt",
    ),
    "accuracy": _SCORES["accuracy"],
    _EVIDENCE_AT: _SCORES[_EVIDENCE_AT],
    "evidence in prompt": _SUPPORT["evidence in prompt"],
}

_WORK: Final[ColumnsByHeading] = {
    "exchanges": (_written("exchanges"), "exchanges that the backend was given to write"),
    "writing, s": (
        _written("ms", 1000),
        "time of all writes, with the background work that they start, but without embedding the texts that were"
        " embedded ahead for all memories, or by an earlier run",
    ),
    "model tokens": (_written("model_tokens"), "tokens of models that memory called to write; – if unknown"),
    "cost of writing": (
        lambda backend: dollars(backend.writing.cost_usd if backend.writing else None),
        "US dollars for these calls; – if unknown",
    ),
    "recall p50, ms": (lambda backend: number(backend.latency_ms.recall_p50, 1), "median time of a recall"),
    "recall p95, ms": (lambda backend: number(backend.latency_ms.recall_p95, 1), "95th percentile of the same"),
    "prompt tokens": (lambda backend: number(backend.tokens.prompt or None), "tokens of all prompts"),
}

_READING: Final[ColumnsByHeading] = {
    "calls to read": (
        lambda backend: number(backend.reading.model_calls if backend.reading else None),
        "calls of models, such as a reranker, that memory made to read and that this run paid for",
    ),
    "cost of reading": (
        lambda backend: dollars(backend.reading.cost_usd if backend.reading else None),
        "US dollars for these calls; – if unknown",
    ),
}

_ABSTENTION: Final[ColumnsByHeading] = {
    "never said": (_abstention("should"), "graded questions whose right answer is that it was never said"),
    "abstained": (_abstention("abstained"), "replies that say so"),
    "precision": (_abstention_share("precision"), "share of these replies that are right to say so"),
    "recall": (_abstention_share("recall"), "share of these questions that are answered so"),
}
