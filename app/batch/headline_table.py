"""The results in columns and sentences, for the terminal and for Markdown alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from app.answering.model_names import EXTRACTIVE_MODEL
from app.prices import UNKNOWN, dollars
from app.scoring.attribution import LABELS
from app.scoring.option_style import OptionStyle
from app.scoring.results import BackendResults, Results
from app.scoring.sections import Interval, MultipleChoiceResults, QuestionRow, RecallResults, TestResults

Columns = Mapping[str, Mapping[str, str]]
"""By heading, the cell of each backend."""

CellOf = Callable[[BackendResults], str]

NOTHING = UNKNOWN

_REASONS = 3
_LONGEST_REASON = 120


def score_columns(results: Results) -> Columns:
    """The scores that are quoted."""
    return _columns(results, _SCORES)


def support_columns(results: Results) -> Columns:
    """What the scores rest on: memory, the model alone, or luck; and what a right answer takes."""
    return _columns(results, _SUPPORT)


def failure_columns(results: Results) -> Columns:
    """How many answers have each label, in the order of attribution; labels that none has are left out."""
    present = [label for label in LABELS if any(label in each.failures for each in results.backends.values())]
    return {
        label.replace("_", " "): {
            name: str(backend.failures.get(label, 0)) for name, backend in results.backends.items()
        }
        for label in present
    }


def remarks(results: Results) -> list[str]:
    """What stands below the tables: each pair in words, and what to hold against the numbers."""
    sentences = [f"{comparison.words}." for comparison in results.comparisons]
    sentences += _error_sentences(results)
    sentences += [
        f"extraction: {read.errors} of {read.calls} exchanges of {name} went unread by {read.model}, so that it"
        f" knows less of them; the commonest reason: {_shortened(read.error)}."
        for name, backend in results.backends.items()
        if (read := backend.extraction) is not None and read.error is not None
    ]
    sentences += [_style_sentence(dataset, style) for dataset, style in results.option_style.items()]
    if unnamed := len({_question_of(row) for row in results.questions if row.failure == "no_evidence"}):
        sentences.append(
            f"no evidence: for {unnamed} of the questions the dataset names no turns that hold the answer, so where"
            " it was lost cannot be told (--evidence joins LoCoMo's to an MC10 file)."
        )
    if any(row.failure == "guessed" and row.closed_book_correct is None for row in results.questions):
        sentences.append("guessed: or lucky; without an answer by the model alone the two cannot be told apart.")
    if results.answer_key is not None:
        key = results.answer_key
        sentences.append(
            f"adjusted: by {key.file}, which corrects {key.questions} of the questions asked"
            f" ({key.corrections} corrections in all)."
        )
    if any(backend.model == EXTRACTIVE_MODEL for backend in results.backends.values()):
        sentences.append(f"{EXTRACTIVE_MODEL} is an embedded reader that picks words; it is not a language model.")
    return sentences


def _columns(results: Results, cells: Mapping[str, CellOf]) -> Columns:
    """A column in which no backend has anything is left out."""
    columns = {
        heading: {name: cell(backend) for name, backend in results.backends.items()}
        for heading, cell in cells.items()
    }
    return {heading: column for heading, column in columns.items() if set(column.values()) - {NOTHING}}


def share(value: float | None) -> str:
    """A share in per cent."""
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _question_of(row: QuestionRow) -> tuple[str, str, str]:
    return row.dataset, row.conversation, row.question_id


def _error_sentences(results: Results) -> list[str]:
    """How many answers ended in an error, and the commonest reasons."""
    reasons = Counter(row.error or "no reason given" for row in results.questions if row.outcome == "error")
    if not reasons:
        return []
    told = [f"{_shortened(reason)} ({number})" for reason, number in reasons.most_common(_REASONS)]
    others = len(reasons) - _REASONS
    rest = f"; and {others} other reason{'s' * (others > 1)}" if others > 0 else ""
    return [
        f"errors: {reasons.total()} of {len(results.questions)} answers ended in one, which is neither right nor"
        f" wrong: {'; '.join(told)}{rest}. To ask them again: the same options and --resume --retry-errors."
    ]


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def _style_sentence(dataset: str, style: OptionStyle) -> str:
    return (
        f"{dataset}: one option alone differs in case or full stop in {style.odd_one_out} of {style.questions}"
        f" questions, and is the right one in {style.leaks}; a blind guesser, that sees nothing but the options,"
        f" gets {share(style.blind_guesser)} (chance {share(style.chance)})."
    )


def _parts(backend: BackendResults) -> list[MultipleChoiceResults | RecallResults | TestResults]:
    return [part for part in (backend.multiple_choice, backend.recall, backend.tests) if part is not None]


def _right(backend: BackendResults) -> str:
    parts = _parts(backend)
    return f"{sum(part.correct for part in parts)}/{sum(part.graded for part in parts)}"


def _errors(backend: BackendResults) -> str:
    return str(sum(part.errors for part in _parts(backend)))


def _interval(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{100 * interval[0]:.0f}–{100 * interval[1]:.0f}"


def _without_adversarial(backend: BackendResults) -> str:
    """Shown where leaving them out makes a difference."""
    headline = backend.headline
    same = headline.accuracy_without_adversarial == headline.accuracy and backend.multiple_choice is None
    return NOTHING if same else share(headline.accuracy_without_adversarial)


def _recall_at_10(backend: BackendResults) -> str:
    found = backend.retrieval.recall_at if backend.retrieval else None
    return share(found["10"] if found else None)


def _gain(backend: BackendResults) -> str:
    gain = backend.headline.normalised_gain
    return NOTHING if gain is None else f"{gain:.2f}"


def _tokens_per_right(backend: BackendResults) -> str:
    tokens = backend.headline.tokens_per_right
    return NOTHING if tokens is None else f"{tokens:,.0f}"


_SCORES: dict[str, CellOf] = {
    "right": _right,
    "accuracy": lambda backend: share(backend.headline.accuracy),
    "95 %": lambda backend: _interval(backend.headline.ci95),
    "95 % clustered": lambda backend: _interval(backend.headline.ci95_clustered),
    "adjusted": lambda backend: share(backend.adjusted.accuracy if backend.adjusted else None),
    "not adversarial": _without_adversarial,
    "errors": _errors,
    "repeats agree": lambda backend: share(backend.headline.repeats_agree),
    "cost": lambda backend: dollars(backend.cost_usd),
}

_SUPPORT: dict[str, CellOf] = {
    "closed book": lambda backend: share(backend.headline.closed_book_accuracy),
    "gain": _gain,
    "evidence in prompt": lambda backend: share(backend.headline.evidence_in_prompt),
    "grounded": lambda backend: share(backend.headline.grounded_accuracy),
    "recall@10": _recall_at_10,
    "tokens/right": _tokens_per_right,
    "cost/right": lambda backend: dollars(backend.headline.cost_usd_per_right),
}

HEADINGS = (*_SCORES, *_SUPPORT)
"""All that there can be of the first two tables."""
