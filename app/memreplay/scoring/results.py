"""``results.json``: the whole file. Its keys are fixed, in this order; more may be added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from memory_backends.stores.trace import Extraction
from memreplay.conversations.models import Frozen
from memreplay.llm import AGENT_MODEL
from memreplay.scoring.aggregates import (
    adjusted_of,
    cost_of,
    extraction_of,
    failures_of,
    group_of,
    latency_of,
    multiple_choice_of,
    recall_of,
    retrieval_of,
    tests_of,
    tokens_of,
)
from memreplay.scoring.comparisons import Comparison, compare_pairs, pairs_within
from memreplay.scoring.headline import Headline, headline_of
from memreplay.scoring.option_style import OptionStyle
from memreplay.scoring.sections import (
    AdjustedResults,
    ExtractionResults,
    Latency,
    MultipleChoiceResults,
    QuestionRow,
    RecallResults,
    RetrievalResults,
    TestResults,
    Tokens,
)

__all__ = ["BackendResults", "KeyFacts", "QuestionRow", "Results", "RunFacts", "build_results", "contestants_of"]

_DECIMALS = 6


class RunFacts(Frozen):
    """Which run it was. ``settings`` hold no secrets; times are ISO 8601."""

    id: str
    started_at: str
    finished_at: str | None
    memreplay_version: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]


class BackendResults(Frozen):
    """One backend through one model. ``cost_usd`` is null where the price of any reply is unknown."""

    backend: str
    model: str
    accuracy: float | None
    multiple_choice: MultipleChoiceResults | None
    recall: RecallResults | None
    tests: TestResults | None
    retrieval: RetrievalResults | None
    failures: dict[str, int]
    tokens: Tokens
    cost_usd: float | None
    latency_ms: Latency
    headline: Headline
    adjusted: AdjustedResults | None
    extraction: ExtractionResults | None


class KeyFacts(Frozen):
    """The answer-key overlay: its file's name, how many corrections it holds, how many questions they touch."""

    file: str
    corrections: int
    questions: int


class Results(Frozen):
    """The whole file. ``backends`` are named ``backend``, or ``backend@model`` where a run has several models.

    ``option_style`` says by dataset how far the writing of its options tells the answers. ``tests_written_usd`` is
    what the model cost that wrote tests, before any memory saw them; null where none did, or no price is known.
    """

    schema_version: Literal[1]
    run: RunFacts
    backends: dict[str, BackendResults]
    comparisons: tuple[Comparison, ...]
    option_style: dict[str, OptionStyle]
    answer_key: KeyFacts | None
    tests_written_usd: float | None = None
    questions: tuple[QuestionRow, ...]

    def to_json(self) -> str:
        """The file's text: keys in the order of the models, numbers rounded to six decimals, a line break last."""
        data = _rounded(self.model_dump(mode="json"))
        return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, _DECIMALS)
        case list():
            return [_rounded(entry) for entry in value]
        case dict():
            return {key: _rounded(entry) for key, entry in value.items()}
    return value


def contestants_of(rows: Sequence[QuestionRow]) -> dict[str, list[QuestionRow]]:
    """The rows of each backend, by its name in results, in the order of their first rows."""
    models = {row.model for row in rows} - {AGENT_MODEL}
    by_name: dict[str, list[QuestionRow]] = {}
    for row in rows:
        name = f"{row.backend}@{row.model}" if len(models) > 1 else row.backend
        by_name.setdefault(name, []).append(row)
    return by_name


def build_results(
    run: RunFacts,
    rows: Sequence[QuestionRow],
    option_style: Mapping[str, OptionStyle] | None = None,
    answer_key: KeyFacts | None = None,
    extractions: Mapping[str, Sequence[Extraction]] | None = None,
    tests_written_usd: float | None = None,
) -> Results:
    """The results of a run, from its rows in the order in which they shall stand in the file.

    ``extractions`` maps a backend to the calls of its extractor.
    """
    by_name = contestants_of(rows)
    return Results(
        schema_version=1,
        run=run,
        backends={
            name: _backend(its_rows, (extractions or {}).get(its_rows[0].backend, ()))
            for name, its_rows in by_name.items()
        },
        comparisons=compare_pairs(pairs_within(by_name)),
        option_style=dict(option_style or {}),
        answer_key=answer_key,
        tests_written_usd=tests_written_usd,
        questions=tuple(rows),
    )


def _backend(rows: Sequence[QuestionRow], extractions: Sequence[Extraction]) -> BackendResults:
    choice = [row for row in rows if row.kind == "choice"]
    recall = [row for row in rows if row.kind == "recall"]
    tests = [row for row in rows if row.kind == "test"]
    return BackendResults(
        backend=rows[0].backend,
        model=rows[0].model,
        accuracy=group_of(rows).accuracy,
        multiple_choice=multiple_choice_of(choice) if choice else None,
        recall=recall_of(recall) if recall else None,
        tests=tests_of(tests) if tests else None,
        retrieval=retrieval_of(rows),
        failures=failures_of(rows),
        tokens=tokens_of(rows),
        cost_usd=cost_of(rows),
        latency_ms=latency_of(rows),
        headline=headline_of(rows),
        adjusted=adjusted_of(rows),
        extraction=extraction_of(extractions),
    )
