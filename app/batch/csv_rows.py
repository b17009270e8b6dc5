"""Results as CSV (RFC 4180): one row an answer, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from app.scoring.results import Results
from app.scoring.sections import QuestionRow

Cell = str | int | float | bool | None

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet may take for a formula, a command or the start of one (OWASP, "CSV Injection")."""

_AS_THEY_ARE = (
    "question_id", "dataset", "conversation", "backend", "model", "repeat", "kind", "type", "other_type",
    "location", "salience", "category", "question", "expected", "predicted", "predicted_index", "correct_index",
    "outcome", "score", "max_score", "recorded_score", "exact_match", "entity_recall", "f1", "failure",
    "failure_loss", "failure_detail", "closed_book_correct", "evidence_role", "evidence_in_prompt", "recall_at_1",
    "recall_at_5", "recall_at_10", "reciprocal_rank", "reply", "error", "cost_usd", "ms", "recall_ms",
)  # fmt: skip

_MADE: dict[str, Callable[[QuestionRow], Cell]] = {
    "evidence": lambda row: " ".join(row.evidence),
    "failure_ranks": lambda row: "; ".join(
        f"{turn}: {', '.join(f'{channel} {rank}' for channel, rank in ranks.items())}"
        for turn, ranks in row.failure_ranks.items()
    ),
    "hits": lambda row: len(row.hits),
    "hits_in_prompt": lambda row: sum(hit.in_prompt for hit in row.hits),
    "tokens_prompt": lambda row: row.tokens.prompt if row.tokens else None,
    "tokens_completion": lambda row: row.tokens.completion if row.tokens else None,
    "tokens_cached": lambda row: row.tokens.cached if row.tokens else None,
    "adjusted_expected": lambda row: row.adjusted.expected if row.adjusted else None,
    "adjusted_outcome": lambda row: row.adjusted.outcome if row.adjusted else None,
    "adjusted_reason": lambda row: row.adjusted.reason if row.adjusted else None,
}


def as_csv(results: Results) -> str:
    """All rows under a line of headings. A text that a spreadsheet would calculate has a quote before it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*_AS_THEY_ARE, *_MADE])
    for row in results.questions:
        cells = [getattr(row, name) for name in _AS_THEY_ARE] + [make(row) for make in _MADE.values()]
        writer.writerow([_harmless(cell) for cell in cells])
    return text.getvalue()


def _harmless(cell: Cell) -> Cell:
    match cell:
        case bool():
            return "true" if cell else "false"
        case str() if cell.lstrip(" ").startswith(_STARTS_A_FORMULA):
            return f"'{cell}"
        case float():
            # By figures and not by decimals: a price may be tiny.
            return float(f"{cell:.9g}")
    return cell
