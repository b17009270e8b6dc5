"""Where question, answer, context and judgement stand in the results files of each harness: one table a format.

A path names fields from a row inwards, with a dot between them; ``*`` stands for each entry of a list or an object.
It may begin with ``../``: then it starts at what holds the row. ``{sample}`` in the path of the rows is a key that
names the conversation. Where there are several paths, the first that leads to something counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Paths = tuple[str, ...]


@dataclass(frozen=True)
class Format:
    """One format. ``rows`` leads from the file's root to the rows; ``signature`` are paths that a row must have.

    ``root`` are fields of the file itself that it must have. ``memories`` may lead to several texts or objects with
    a text; ``memory_mark`` is what begins each memory in a context that is one text. ``files`` are names of files
    of which this format is one, where the rows alone do not tell.
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
    context_tokens: Paths = ()
    recall_ms: Paths = ()
    answer_ms: Paths = ()
    seconds: bool = False
    system: Paths = ()
    model: Paths = ()
    judge: Paths = ()
    accuracy: Paths = ()


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
    """Return what the first of the paths leads to that leads to anything; None otherwise."""
    for path in paths:
        values = list(_values(node, path))
        if values:
            return values if "*" in path else values[0]
    return None


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
    elif step.startswith("*") and isinstance(value, dict):
        for key, inside in value.items():
            if str(key).endswith(step[1:]):
                yield from _inside(inside, rest)
    elif isinstance(value, dict) and step in value:
        yield from _inside(value[step], rest)
