"""The places of question, answer, context and judgement in the results files of each harness: one table a format.

A path names fields from a row inwards, with a dot between them; ``*`` stands for each entry of a list or an object;
with other characters, ``*`` and ``?`` stand for any in a name, and digits for one entry of a list.
It may begin with ``../``: then it starts at what holds the row. ``{sample}`` in the path of the rows is a key that
names the conversation. Where there are several paths, the first that leads to something counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

Paths = tuple[str, ...]


@dataclass(frozen=True)
class Format:
    """One format. ``rows`` leads from the file's root to the rows; ``signature`` are paths that a row must have.

    ``root`` are fields of the file itself that it must have. ``memories`` may lead to several texts or objects with
    a text; ``memory_mark`` is what begins each memory in a context that is one text. ``each`` is a field whose
    entries are answers to the same question from its first ``most_memories`` memories: each makes a run of its own.
    So does each beginning of a field's name that ends in ``prefixed``: those fields lose it. Rows that differ in
    what ``apart`` leads to belong to different runs.
    ``invalid`` leads to what is true where the harness itself does not count a row.
    ``turn_ids`` lead to the ids of the turns that are the context, where its text is not in the file.
    ``advice`` says what else the reader of such a file may do.
    Formats whose names begin alike, up to a slash, tell different things of one run. A format without a signature
    is that of no harness: its rows must have question, answer and expected answer.
    """

    name: str
    title: str
    rows: str
    signature: Paths
    question: Paths
    answer: Paths
    root: Paths = ()
    question_id: Paths = ()
    sample: Paths = ()
    category: Paths = ()
    asked_at: Paths = ()
    expected: Paths = ()
    memories: Paths = ()
    memory_mark: str | None = None
    judgement: Paths = ()
    judge_reason: Paths = ()
    error: Paths = ()
    invalid: Paths = ()
    context_tokens: Paths = ()
    recall_ms: Paths = ()
    answer_ms: Paths = ()
    seconds: bool = False
    system: Paths = ()
    model: Paths = ()
    judge: Paths = ()
    accuracy: Paths = ()
    each: str | None = None
    prefixed: str | None = None
    apart: tuple[Paths, ...] = ()
    turn_ids: Paths = ()
    most_memories: Paths = ()
    advice: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of a row's fields that are read, or patterns of them."""
        paths = [path for value in vars(self).values() if isinstance(value, tuple) for path in _flat(value)]
        names = {path.partition(".")[0] for path in paths if not path.startswith("../")}
        return frozenset(names | {self.each} if self.each else names)


def _flat(paths: tuple[str | Paths, ...]) -> Iterator[str]:
    for path in paths:
        if isinstance(path, str):
            yield path
        else:
            yield from path


_EVERMEMOS = Format(
    name="evermemos/evaluation",
    title="EverMemOS evaluation",
    rows="detailed_results.{sample}.*",
    signature=("question_id", "golden_answer"),
    question=("question",),
    answer=("generated_answer",),
    question_id=("question_id",),
    category=("category",),
    expected=("golden_answer",),
    judgement=("llm_judgments", "is_correct"),
    judge=("metadata.model", "metadata.evaluator"),
    accuracy=("accuracy",),
)

_EXPECTED: Final = (
    *("ground_truth", "ground_truth_answer", "golden_answer", "gold_answers", "gold_answer", "gold"),
    *("correct_answer", "expected_answer", "expected", "reference", "target", "answer"),
)
_JUDGEMENT: Final = (
    *("llm_correct", "llm_score", "judge_correct", "is_correct", "correct", "judgment", "judgement", "verdict"),
    *("judge.label", "judge.verdict", "judge.correct", "judge.score", "label", "judge"),
)
"""Names that fields have in several harnesses."""

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="amb",
        title="Agent Memory Benchmark",
        rows="results.*",
        root=("memory_provider", "results"),
        signature=("query", "answer", "gold_answers"),
        question=("query",),
        answer=("answer",),
        question_id=("query_id",),
        sample=("meta.sample_id", "meta.conversation_id"),
        category=("meta.category", "meta.question_type"),
        asked_at=("meta.query_timestamp", "meta.question_date"),
        expected=("gold_answers",),
        memories=("context",),
        memory_mark=r"(?m)^## Memory \d+\s*$",
        judgement=("correct",),
        judge_reason=("judge_reason",),
        context_tokens=("context_tokens",),
        recall_ms=("retrieve_time_ms",),
        system=("run_name", "memory_provider"),
        model=("answer_llm",),
        judge=("judge_llm",),
        accuracy=("accuracy",),
    ),
    Format(
        name="mem0-benchmarks",
        title="mem0 memory-benchmarks",
        rows="evaluations.*",
        signature=("ground_truth_answer", "retrieval", "cutoff_results"),
        question=("question",),
        answer=("cutoff_results.*.generated_answer",),
        question_id=("question_id",),
        sample=("conversation_idx",),
        category=("category_name", "question_type", "category"),
        asked_at=("reference_date", "question_date"),
        expected=("ground_truth_answer",),
        memories=("retrieval.search_results",),
        judgement=("cutoff_results.*.judgment",),
        judge_reason=("cutoff_results.*.reason",),
        error=("cutoff_results.*.error",),
        recall_ms=("retrieval.search_latency_ms",),
        system=("metadata.project_name", "project_name"),
        model=("metadata.answerer_model", "answerer_model"),
        judge=("metadata.judge_model", "judge_model"),
        each="cutoff_results",
        most_memories=("cutoff_results.*.memories_evaluated",),
    ),
    Format(
        name="mem0-evaluation/results",
        title="mem0's evaluation of 2025",
        rows="{sample}.*",
        signature=("question", "response", "speaker_1_memories"),
        question=("question",),
        answer=("response",),
        sample=("sample_id",),
        category=("category",),
        expected=("answer", "adversarial_answer"),
        memories=("speaker_?_*memories",),
        judgement=("llm_score",),
        recall_ms=("speaker_1_memory_time",),
        answer_ms=("response_time",),
        seconds=True,
    ),
    Format(
        name="mem0-evaluation/rag",
        title="mem0's evaluation of 2025",
        rows="{sample}.*",
        signature=("question", "response", "context"),
        question=("question",),
        answer=("response",),
        category=("category",),
        expected=("answer",),
        memories=("context",),
        judgement=("llm_score",),
        recall_ms=("search_time",),
        answer_ms=("response_time",),
        seconds=True,
    ),
    Format(
        name="mem0-evaluation/metrics",
        title="mem0's evaluation of 2025",
        rows="{sample}.*",
        signature=("question", "response", "answer"),
        question=("question",),
        answer=("response",),
        category=("category",),
        expected=("answer",),
        judgement=("llm_score",),
        recall_ms=("speaker_1_memory_time",),
        answer_ms=("response_time",),
        seconds=True,
    ),
    Format(
        name="memorybench/checkpoint",
        title="supermemory's memorybench",
        rows="questions.*",
        root=("provider", "benchmark"),
        signature=("questionId", "phases"),
        question=("question",),
        answer=("phases.answer.hypothesis",),
        question_id=("questionId",),
        category=("questionType",),
        asked_at=("questionDate",),
        expected=("groundTruth",),
        memories=("phases.search.results",),
        judgement=("phases.evaluate.label", "phases.evaluate.score"),
        judge_reason=("phases.evaluate.explanation",),
        error=("phases.answer.error", "phases.search.error", "phases.ingest.error"),
        recall_ms=("phases.search.durationMs",),
        answer_ms=("phases.answer.durationMs",),
        system=("provider",),
        model=("answeringModel",),
        judge=("judge",),
    ),
    Format(
        name="memorybench/report",
        title="supermemory's memorybench",
        rows="evaluations.*",
        root=("provider", "benchmark"),
        signature=("questionId", "hypothesis"),
        question=("question",),
        answer=("hypothesis",),
        question_id=("questionId",),
        category=("questionType",),
        expected=("groundTruth",),
        memories=("searchResults",),
        judgement=("label", "score"),
        judge_reason=("explanation",),
        recall_ms=("searchDurationMs",),
        answer_ms=("answerDurationMs",),
        system=("provider",),
        model=("answeringModel",),
        judge=("judge",),
        accuracy=("summary.accuracy",),
    ),
    Format(
        name="evermemos/answers",
        title="EverMemOS evaluation",
        rows="*",
        signature=("question_id", "golden_answer", "conversation_id"),
        question=("question",),
        answer=("answer",),
        question_id=("question_id",),
        sample=("conversation_id",),
        category=("category",),
        expected=("golden_answer",),
        memories=("formatted_context", "search_results"),
    ),
    _EVERMEMOS,
    replace(_EVERMEMOS, name="evermemos/choices", rows="detailed_results.*"),
    Format(
        name="hindsight",
        title="Hindsight benchmarks",
        rows="item_results.*.metrics.detailed_results.*",
        signature=("question", "correct_answer", "predicted_answer"),
        question=("question",),
        answer=("predicted_answer",),
        question_id=("question_id",),
        sample=("../../../item_id",),
        category=("category",),
        asked_at=("question_date",),
        expected=("correct_answer",),
        memories=("retrieved_memories",),
        judgement=("is_correct",),
        judge_reason=("correctness_reasoning",),
        error=("error",),
        invalid=("is_invalid",),
        model=("model_config.answer_generation.model",),
        judge=("model_config.judge.model",),
    ),
    Format(
        name="memeval",
        title="MemEval",
        rows="results.*",
        root=("system", "benchmark"),
        signature=("question", "predicted", "ground_truth"),
        question=("question",),
        answer=("predicted",),
        question_id=("question_id",),
        sample=("sample_id", "conversation_id"),
        category=("category_name", "category"),
        expected=("ground_truth",),
        memories=("retrieved", "context"),
        judgement=("longmemeval_correct", "judge_accurate"),
        judge_reason=("judge_explanation",),
        system=("system",),
        model=("config.llm_model",),
        judge=("config.judge_model",),
    ),
    Format(
        name="inspect",
        title="inspect_ai",
        rows="samples.*",
        root=("eval",),
        signature=("input", "target", "output"),
        question=("input",),
        answer=("output.completion", "output.choices.0.message.content"),
        question_id=("id",),
        sample=("metadata.sample_id", "metadata.conversation"),
        category=("metadata.category", "metadata.question_type"),
        expected=("target",),
        memories=("metadata.context", "store.context"),
        judgement=("scores.*.value",),
        judge_reason=("scores.*.explanation",),
        error=("error.message",),
        system=("eval.task",),
        model=("eval.model",),
        judge=("eval.scorers.*.name", "results.scores.*.name", "results.scorer.name"),
    ),
    Format(
        name="promptfoo",
        title="promptfoo",
        rows="results.results.*",
        signature=("vars", "success", "response"),
        question=("vars.question", "vars.query", "vars.input", "prompt.raw"),
        answer=("response.output",),
        question_id=("vars.question_id", "vars.id"),
        sample=("vars.sample_id", "vars.conversation"),
        category=("vars.category", "vars.question_type"),
        expected=("vars.expected", "vars.answer", "vars.ground_truth"),
        memories=("vars.context", "response.metadata.context"),
        judgement=("success",),
        judge_reason=("gradingResult.reason",),
        error=("error",),
        answer_ms=("latencyMs",),
        system=("provider.label", "provider.id", "provider"),
        apart=(("provider.label", "provider.id", "provider"), ("prompt.label", "promptIdx")),
        model=("provider.id", "provider"),
    ),
    Format(
        name="locomo",
        title="LoCoMo's own evaluation",
        rows="*.qa.*",
        signature=("question", "category", "*_prediction"),
        question=("question",),
        answer=("prediction",),
        sample=("../../sample_id",),
        category=("category",),
        expected=("answer", "adversarial_answer"),
        turn_ids=("prediction_context",),
        prefixed="_prediction",
    ),
    Format(
        name="longmemeval/hypotheses",
        title="LongMemEval",
        rows="*",
        signature=("question_id", "hypothesis"),
        question=("question",),
        answer=("hypothesis",),
        question_id=("question_id",),
        category=("question_type",),
        expected=("answer", *_EXPECTED),
        memories=("retrieved_context", "context"),
        judgement=("autoeval_label.label", *_JUDGEMENT),
        judge=("autoeval_label.model", "judge_model", "judge.model"),
    ),
    Format(
        name="memreplay",
        title="memreplay",
        rows="questions.*",
        root=("schema_version", "backends"),
        signature=("question_id", "backend", "outcome"),
        question=("question",),
        answer=("predicted", "reply"),
        question_id=("question_id",),
        sample=("conversation",),
        category=("type",),
        expected=("expected",),
        judgement=("outcome",),
        error=("error",),
        recall_ms=("recall_ms",),
        answer_ms=("ms",),
        system=("backend",),
        apart=(("backend",), ("model",)),
        model=("model",),
        judge=("run.settings.judge",),
        advice="these are memreplay's own results, with the outcomes of the file; which stage lost each answer is"
        " in their recording: memreplay FILE.sqlite3 shows it, and memreplay report FILE.sqlite3 prints it",
    ),
    *(
        Format(
            name="unnamed",
            title="no known harness",
            rows=rows,
            signature=(),
            question=("question", "query", "input"),
            answer=(
                *("prediction", "predicted_answer", "predicted", "generated_answer", "model_answer", "hypothesis"),
                *("response", "actual", "system_answer", "output", "answer"),
            ),
            question_id=("question_id", "questionId", "qid", "id", "itemId"),
            sample=("sample_id", "conversation_id", "conv_id", "conv_index", "conversation_idx"),
            category=("category_name", "question_type", "category", "type"),
            asked_at=("question_date",),
            expected=_EXPECTED,
            memories=(
                *("retrieved_contents", "retrieved_memories", "retrievedContext", "retrieved_context", "retrieved"),
                *("contexts", "context", "memories", "search_results"),
            ),
            judgement=_JUDGEMENT,
            judge_reason=("judge_reason", "judge_reasoning", "judge_explanation", "explanation", "reason"),
            error=("error",),
            recall_ms=("retrieval_time_ms", "search_time_ms"),
            apart=(("system", "provider", "backend"),),
            system=("system", "provider", "backend"),
            model=("model", "llm_model", "answer_model"),
            judge=("judge_model", "judge.model", "judge"),
        )
        for rows in ("*", "results.*", "per_question.*", "questions.*", "evaluations.*", "details.*", "{sample}.*")
    ),
)


Node = tuple[Any, ...]
"""A value, preceded by everything that holds it, outermost first."""


def rows_in(document: Any, path: str) -> Iterator[tuple[str, Node, Mapping[str, str]]]:
    """Yield each row with its JSON pointer, everything that holds it, and the keys that the path names."""
    yield from _walk((document,), path.split("."), "", {})


def _walk(
    node: Node, steps: list[str], pointer: str, keys: Mapping[str, str]
) -> Iterator[tuple[str, Node, Mapping[str, str]]]:
    if not steps:
        yield pointer, node, keys
        return
    step, *rest = steps
    value = node[-1]
    if step == "*" or step.startswith("{"):
        entries: Iterator[tuple[Any, Any]] = (
            iter(value.items())
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else iter(())
        )
        for key, inside in entries:
            named = {**keys, step[1:-1]: str(key)} if step.startswith("{") else keys
            yield from _walk((*node, inside), rest, f"{pointer}/{_escaped(key)}", named)
    elif isinstance(value, dict) and step in value:
        yield from _walk((*node, value[step]), rest, f"{pointer}/{_escaped(step)}", keys)


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def found(node: Node, paths: Paths) -> Any:
    """Return what the first of the paths leads to that leads to anything, if possible to no empty text."""
    empty = None
    for path in paths:
        values = list(_values(node, path))
        if any(value != "" for value in values):
            return values if _names_several(path) else values[0]
        if values:
            empty = ""
    return empty


def _names_several(path: str) -> bool:
    return "*" in path or "?" in path


def _values(node: Node, path: str) -> Iterator[Any]:
    while path.startswith("../"):
        node, path = node[:-1], path[3:]
        if not node:
            return
    yield from (value for value in _inside(node[-1], path.split(".")) if value is not None)


def _inside(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, *rest = steps
    if step == "*":
        for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _inside(inside, rest)
    elif _names_several(step) and isinstance(value, dict):
        for key, inside in value.items():
            if fnmatchcase(str(key), step):
                yield from _inside(inside, rest)
    elif isinstance(value, dict) and step in value:
        yield from _inside(value[step], rest)
    elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from _inside(value[int(step)], rest)
