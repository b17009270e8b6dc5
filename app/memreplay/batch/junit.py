"""Results as JUnit XML: a suite for each memory, a case for each answer.

The dialect that CI services read: a wrong answer is a ``failure`` whose message names the stage that lost the fact
and the evidence; an answer that could not be had is an ``error``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import BackendResults, Results
from memreplay.text import shortened

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""

_MOST_TEXT = 200
"""Characters of a question or an answer in a name or a message; the body of a failure has all of them."""


def as_junit(results: Results) -> str:
    """The whole file. Times are seconds: those of the memory's read path and of the model call."""
    root = ET.Element("testsuites", name="memreplay")
    suites = [
        _suite(name, rows, results.backends[name], results)
        for name, rows in contestants_of(results.questions).items()
    ]
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", _seconds(results.questions))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(name: str, rows: Sequence[QuestionRow], found: BackendResults, results: Results) -> ET.Element:
    errors = sum(row.outcome == "error" for row in rows)
    suite = ET.Element(
        "testsuite",
        name=_clean(name),
        tests=str(len(rows)),
        failures=str(sum(row.outcome not in ("correct", "error") for row in rows)),
        errors=str(errors),
        skipped="0",
        time=_seconds(rows),
        timestamp=results.run.started_at,
    )
    properties = ET.SubElement(suite, "properties")
    known = {
        "run": results.run.id,
        "model": found.model,
        "accuracy": None if found.accuracy is None else f"{found.accuracy:.6f}",
        "memreplay_version": results.run.memreplay_version,
    }
    for key, value in known.items():
        if value is not None:
            ET.SubElement(properties, "property", name=key, value=_clean(value))
    suite.extend(_case(name, row) for row in rows)
    return suite


def _case(suite: str, row: QuestionRow) -> ET.Element:
    repeat = f" (repeat {row.repeat + 1})" if row.repeat else ""
    case = ET.Element(
        "testcase",
        classname=_clean(f"{suite}.{row.dataset}.{row.conversation}"),
        name=_clean(f"{row.question_id}{repeat}: {_short(row.question)}"),
        time=_seconds([row]),
    )
    if row.outcome == "error":
        error = ET.SubElement(case, "error", type="error", message=_short(row.error or "not graded"))
        error.text = _clean(_body(row))
    elif row.outcome != "correct":
        failure = ET.SubElement(case, "failure", type=row.failure or row.outcome, message=_message(row))
        failure.text = _clean(_body(row))
    return case


def _message(row: QuestionRow) -> str:
    stage = (row.failure or row.outcome).replace("_", " ")
    evidence = f"; evidence: {', '.join(row.evidence)}" if row.evidence else ""
    return _short(f"{stage}: expected {_quoted(row.expected)}, got {_quoted(row.predicted)}") + _clean(evidence)


def _body(row: QuestionRow) -> str:
    in_prompt = {True: "all of it", False: "not all of it", None: "unknown"}[row.evidence_in_prompt]
    lines = {
        "question": row.question,
        "expected": row.expected,
        "predicted": row.predicted,
        "reply": row.reply,
        "error": row.error,
        "stage": row.failure,
        "detail": row.failure_detail,
        "evidence": ", ".join(row.evidence) or None,
        "evidence in the prompt": in_prompt if row.evidence else None,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items() if value is not None)


def _quoted(text: str | None) -> str:
    return "no answer" if text is None else f'"{text}"'


def _seconds(rows: Sequence[QuestionRow]) -> str:
    return f"{sum((row.ms or 0.0) + (row.recall_ms or 0.0) for row in rows) / 1000:.3f}"


def _short(text: str) -> str:
    return _clean(shortened(text, _MOST_TEXT))


def _clean(text: str) -> str:
    return _NOT_XML.sub("�", text)
