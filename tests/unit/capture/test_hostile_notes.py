"""Whatever stands in a journal, the recording opens: a bad note costs itself."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memreplay
from memreplay.capture.journal import Journal
from tests.stubs.agents import SAYS, converse, recorded_notebook

NAMES = st.sampled_from(
    "library memory method kind arguments result error ms turn session role text user name messages query items id"
    " content score conversation expected evidence span attributes key value traceId spanId results event".split()
)
KNOWN = st.sampled_from(
    ["mem0", "chroma", "langgraph", "add", "search", "put", "write", "read", "remove", "user", "assistant", "1", ""]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | KNOWN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)
BODIES = st.dictionaries(NAMES, VALUES | KNOWN, max_size=8)
SOURCES = st.sampled_from(["message", "call", "span", "mcp", "mark", "lost", "redacted", "odd"])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(notes=st.lists(st.tuples(SOURCES, BODIES), min_size=1, max_size=6))
def test_any_notes_beside_good_ones_are_opened(notes: list[tuple[Any, dict[str, Any]]]):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.sqlite3"
        converse(recorded_notebook(path), says=SAYS[:1])
        journal = Journal(path)
        for number, (source, body) in enumerate(notes):
            journal.note(source, 1_760_000_000.0 + number, body)
        journal.close()
        with memreplay.open(path) as run:
            assert "ann" in run.conversations
            assert len(run.questions) >= 0
            for name in run.conversations:
                run.conversation(name).at()


def test_a_deep_value_costs_its_note(tmp_path: Path):
    path = tmp_path / "agent.sqlite3"
    converse(recorded_notebook(path), says=SAYS[:1])
    deep = {"content": "x"}
    for _ in range(800):
        deep = {"content": deep}
    with sqlite3.connect(path) as db:
        body = {"library": "mem0", "method": "add", "arguments": {"value": deep}, "result": {"results": [deep]}}
        db.execute("insert into captured (source, at, body) values ('call', 1, ?)", [json.dumps(body)])
    db.close()
    with memreplay.open(path) as run:
        assert len(run.conversation("ann").turns) == 2


def test_a_note_that_is_no_json_is_counted(tmp_path: Path):
    path = tmp_path / "agent.sqlite3"
    converse(recorded_notebook(path), says=SAYS[:1])
    with sqlite3.connect(path) as db:
        db.execute("insert into captured (source, at, body) values ('call', 1, 'no json')")
    db.close()
    with memreplay.open(path) as run:
        assert len(run.conversation("ann").turns) == 2
        assert "note of the kind unreadable is not shown" in run.settings["not_shown"][0]
