"""recordings/README.md documents every table, result field and verdict, and its queries work."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import get_args

import pytest
from pydantic import BaseModel

from memreplay.paths import demo_recording, demo_recordings
from memreplay.scoring.comparisons import Comparison
from memreplay.scoring.evidence_trail import Loss
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import BackendResults, Headline, Results
from memreplay.scoring.verdicts import LABELS
from tests.conftest import REPOSITORY

README = (REPOSITORY / "recordings" / "README.md").read_text(encoding="utf-8")
QUERIES: dict[str, str] = dict(re.findall(r"^([^\n]+):\n\n```sql\n(.*?)```", README, re.M | re.S))
DOCUMENTED = {
    name for cell in re.findall(r"^\| (`[^|]+`) \|", README, re.M) for name in re.findall(r"`(\w+)`", cell)
}


@pytest.fixture(scope="module")
def demo() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{demo_recording().as_uri()}?mode=ro", uri=True)) as db:
        yield db


def test_there_are_ten_queries() -> None:
    assert len(QUERIES) == README.count("```sql") == 10


@pytest.mark.parametrize("title", QUERIES)
def test_each_query_finds_something_in_a_shipped_recording(title: str) -> None:
    for path in demo_recordings():
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            if db.execute(QUERIES[title]).fetchall():
                return
    raise AssertionError("it finds nothing in any")


def test_every_table_and_view_is_documented(demo: sqlite3.Connection) -> None:
    names = {name for (name,) in demo.execute("select name from sqlite_master where type in ('table', 'view')")}
    assert {name for name in names if not name.startswith(("_", "sqlite_"))} <= DOCUMENTED


@pytest.mark.parametrize("model", [Results, BackendResults, Headline, Comparison, QuestionRow])
def test_every_field_of_the_results_is_documented(model: type[BaseModel]) -> None:
    assert set(model.model_fields) - DOCUMENTED == set()


def test_every_verdict_is_explained() -> None:
    assert {*LABELS, *get_args(Loss)} <= DOCUMENTED
