"""Dataset files that are wrong in ways that the folder ``broken`` cannot hold, and files mutated at random."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.conversations.models import LONGEST_TURN
from memreplay.conversations.registry import load
from memreplay.errors import MemreplayError
from tests.cli.conftest import RunCli
from tests.faults.effort import examples
from tests.faults.mutation import NASTY, mutated
from tests.unit.conversations.samples import boat_conversation, locomo_sample, longmemeval_entry, mc10_row

SAMPLES: dict[str, Any] = {
    "harbour-07.json": boat_conversation(),
    "garden.json": [locomo_sample()],
    "rows.json": [mc10_row(0), mc10_row(1)],
    "haystacks.json": [longmemeval_entry()],
    "pages.json": {"rows": [{"row_idx": 0, "row": mc10_row(0), "truncated_cells": []}], "num_rows_total": 2},
}

_FUZZED = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _loads_or_says_why(path: Path) -> None:
    try:
        for conversation in load([str(path)]):
            conversation.model_dump_json()
    except MemreplayError as error:
        assert str(path) in str(error)


@_FUZZED
@given(data=st.data())
def test_a_mutated_dataset_is_loaded_or_refused_in_one_sentence(
    run_cli: RunCli, tmp_path: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)), label="sample")
    mutant = mutated(data, copy.deepcopy(SAMPLES[name]), NASTY)
    path = tmp_path / name
    path.write_text(json.dumps(mutant), encoding="utf-8")
    _loads_or_says_why(path)
    ran = run_cli("validate", "--format-only", path)
    assert ran.code in (0, 2) and "Traceback" not in ran.err


@_FUZZED
@given(data=st.data())
def test_a_dataset_of_mutated_bytes_is_loaded_or_refused_in_one_sentence(
    tmp_path: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)), label="sample")
    whole = bytearray(json.dumps(SAMPLES[name]).encode())
    for _ in range(data.draw(st.integers(1, 6), label="changes")):
        place = data.draw(st.integers(0, len(whole)), label="byte")
        whole[place : place + data.draw(st.integers(0, 3), label="cut")] = data.draw(
            st.sampled_from(
                [b"", b'"', b"\\", b"{", b"[", b"]", b"}", b",", b"\xff", b"\0", b"\xef\xbb\xbf", b"\\ud800"]
            ),
            label="put",
        )
    path = tmp_path / name
    path.write_bytes(bytes(whole[: data.draw(st.integers(0, len(whole)), label="length")]))
    _loads_or_says_why(path)


_TOO_LONG = "x " * (LONGEST_TURN // 2) + "x"


def _with_turn(name: str, text: str) -> Any:
    data = copy.deepcopy(SAMPLES[name])
    match name:
        case "harbour-07.json":
            data["turns"][2]["content"] = text
        case "garden.json":
            data[0]["conversation"]["session_1"][1]["text"] = text
        case "rows.json":
            for row in data:
                row["haystack_sessions"][1][1]["content"] = f"[TOM]: {text}"
        case "pages.json":
            data["rows"][0]["row"]["haystack_sessions"][1][1]["content"] = f"[TOM]: {text}"
        case "haystacks.json":
            data[0]["haystack_sessions"][0][0]["content"] = text
    return data


@pytest.mark.parametrize("name", SAMPLES)
def test_a_turn_longer_than_the_stated_size_is_refused(run_cli: RunCli, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(_with_turn(name, _TOO_LONG)))
    for command in (
        ("validate", "--format-only", path),
        ("--batch", "--dataset", path, "--backend", "closed_book"),
    ):
        ran = run_cli(*command)
        assert ran.code == 2 and f"expected at most {LONGEST_TURN:,}" in ran.out + ran.err, ran
        assert len(ran.out + ran.err) < 2000, "it does not repeat the turn"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_field_that_occurs_twice_is_refused(run_cli: RunCli, tmp_path: Path, name: str) -> None:
    field = {"harbour-07.json": "id", "garden.json": "sample_id"}.get(name, "question_id")
    path, text = tmp_path / name, json.dumps(SAMPLES[name])
    assert f'"{field}":' in text
    path.write_text(text.replace(f'"{field}":', f'"{field}": "x", "{field}":', 1))
    ran = run_cli("--batch", "--dataset", path, "--backend", "closed_book", "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2 and f"{field}: occurs twice in its object" in ran.err, ran
