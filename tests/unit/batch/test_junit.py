"""Results as JUnit XML, read back by junitparser."""

from __future__ import annotations

from typing import Any

import pytest

from memreplay.batch.writers import as_junit
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import RunFacts
from tests.unit.scoring.samples import choice, hit, recall, reply, row

junitparser = pytest.importorskip("junitparser")

RUN = RunFacts(
    id="r1",
    started_at="2026-01-01T00:00:00.000Z",
    finished_at=None,
    memreplay_version="0.1.0",
    settings={},
    datasets=("own",),
)
FOUND = choice(evidence=("t1", "t2"), evidence_role="supports")


def read(*rows: QuestionRow) -> Any:
    return junitparser.JUnitXml.fromstring(as_junit(build_results(RUN, rows)).encode())


def test_every_answer_is_a_case_and_failures_name_stage_and_evidence() -> None:
    lost = row(FOUND, reply("0"), hit(1, "t1")).model_copy(
        update={"failure": "not_retrieved", "failure_detail": "t2 ranked 14th"}
    )
    xml = read(row(FOUND, reply("3")), lost.model_copy(update={"backend": "hybrid"}), row(recall(), reply("x")))
    rag, hybrid = xml
    assert (xml.tests, xml.failures, xml.errors) == (3, 2, 0)
    assert (rag.name, rag.tests, rag.failures) == ("rag", 2, 1)
    (case,) = hybrid
    (failure,) = case.result
    assert isinstance(failure, junitparser.Failure) and failure.type == "not_retrieved"
    assert failure.message == 'not retrieved: expected "quince", got "apple"; evidence: t1, t2'
    assert "t2 ranked 14th" in failure.text and "evidence in the prompt: not all of it" in failure.text
    assert case.name == "q: Which fruit?" and case.classname.startswith("hybrid.")
    assert case.time == 0.105  # 5 ms of recall and 100 ms of model


def test_an_error_is_an_error_and_a_right_answer_has_no_result() -> None:
    (suite,) = read(row(FOUND, reply("3")), row(recall(), reply(None, error="down")))
    right, failed = suite
    assert right.is_passed and (suite.errors, suite.failures) == (1, 0)
    (error,) = failed.result
    assert isinstance(error, junitparser.Error) and error.message == "down"


def test_characters_that_xml_cannot_hold_and_markup_stay_text() -> None:
    hostile = "]]>\x00\x1b[31m</testcase>\ud800&lol;"
    (suite,) = read(row(recall(text=hostile), reply(hostile), backend="<b>&\x07"))
    (case,) = suite
    assert case.name == "q: ]]>��[31m</testcase>�&lol;"
    assert "\nreply: ]]>��[31m</testcase>�&lol;" in case.result[0].text
    assert suite.name == "<b>&�"
