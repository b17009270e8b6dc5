"""``memreplay record`` and ``memreplay mark``: an agent recorded from outside, and what its memory lost."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import pytest

import memreplay
from memreplay.capture.journal import Journal, JournalReader
from tests.cli.conftest import RunCli
from tests.stubs.agents import USER, converse, recorded_notebook


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The recording of an agent whose memory dropped a promotion."""
    path = tmp_path / "agent.sqlite3"
    converse(recorded_notebook(path), marked=True)
    return path


def test_a_mark_says_which_stage_lost_the_fact(run_cli: RunCli, agent: Path) -> None:
    marked = run_cli("mark", agent, "--turn", 11, "--expected", "lead engineer", "--evidence", 3)
    assert marked.code == 0
    assert marked.out == "notebook: not written: What was stored of turn 3 leaves the answer out.\n"
    shown = run_cli("recordings", "show", agent)
    assert "conversation ann: 12 turns, 1 question, 1 answer" in shown.out


def test_a_marked_reply_that_is_right_without_certainty_counts_as_wrong(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite3"
    memory = recorded_notebook(path, drops="peanuts")
    for said, replied in (
        ("I am allergic to nuts and peanuts.", "I see."),
        ("What am I allergic to?", "Nuts only."),
    ):
        with memreplay.turn("monday", "user", said):
            memory.search(said, user_id=USER)
        with memreplay.turn("monday", "assistant", replied):
            memory.add([{"role": "user", "content": said}], user_id=USER)
    marked = run_cli("mark", path, "--turn", 3, "--expected", "peanuts", "--evidence", 1)
    assert marked.out.startswith("notebook: not written: ")
    assert marked.out.endswith("take the reply for right and are not sure: at a marked turn it counts as wrong.\n")
    assert run_cli("report", path, "--output", tmp_path / "r.json").code == 0
    (row,) = json.loads((tmp_path / "r.json").read_text())["questions"]
    assert (row["outcome"], row["uncertain"], row["grader"]["outcome"]) == ("wrong", True, "correct")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--turn", 40, "--evidence", 3), "--turn 40: ann has 12 turns"),
        (("--turn", 11, "--evidence", "D1:3"), "--evidence D1:3: ann has no such turn"),
        (("--turn", 11, "--evidence", 3, "--conversation", "bob"), "has no conversation bob"),
    ],
)
def test_a_mark_that_names_nothing_is_refused(
    run_cli: RunCli, agent: Path, options: tuple[object, ...], problem: str
) -> None:
    refused = run_cli("mark", agent, "--expected", "lead engineer", *options)
    assert refused.code == 2 and problem in refused.err


def test_the_budget_of_an_agent_is_not_called_published(run_cli: RunCli, agent: Path) -> None:
    assert run_cli("mark", agent, "--turn", 9, "--expected", "Girona", "--evidence", "1").code == 0
    ran = run_cli("budget", agent)
    assert ran.code == 0, ran.err
    assert "(as recorded)" in ran.out and "published" not in ran.out
    assert "notebook: estimated (~) by the first items of each recorded read." in ran.out


def test_the_recording_of_a_run_takes_no_marks(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite3"
    assert run_cli("--batch", "--dataset", "identity-01", "--backend", "rag", "--recording", path).code == 0
    refused = run_cli("mark", path, "--turn", 1, "--expected", "x", "--evidence", 1)
    assert refused.code == 2 and "not a recording of a running agent" in refused.err


def test_a_file_of_spans_becomes_a_recording(run_cli: RunCli, tmp_path: Path) -> None:
    attributes = {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.query.text": "home?",
        "gen_ai.memory.records": json.dumps([{"id": "1", "content": "lives in Girona"}]),
    }
    listed = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
    span = {"traceId": "1", "spanId": "2", "startTimeUnixNano": "1760000000000000000", "attributes": listed}
    spans, recording = tmp_path / "spans.json", tmp_path / "agent.sqlite3"
    spans.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    assert run_cli("record", recording, "--otlp", spans).code == 0
    assert "conversation agent: 1 turn, 0 questions" in run_cli("recordings", "show", recording).out


def test_an_agent_is_run_with_its_exporter_set(run_cli: RunCli, tmp_path: Path) -> None:
    recording, seen = tmp_path / "agent.sqlite3", tmp_path / "seen"
    command = f'echo "$OTEL_EXPORTER_OTLP_ENDPOINT $OTEL_EXPORTER_OTLP_PROTOCOL" > {seen}; exit 7'
    ran = run_cli("record", recording, "--otlp", "127.0.0.1:47318", "--", "sh", "-c", command)
    assert ran.code == 7 and "0 spans recorded" in ran.err
    assert seen.read_text() == "http://127.0.0.1:47318 http/protobuf\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "what to record is missing"),
        (("--mcp", "no-such-server"), "no-such-server: command not found; check its name"),
        (("--otlp", "127.0.0.1:47321", "--", "no-such-agent"), "no-such-agent: command not found; check its name"),
        (("--mcp", "server", "--otlp", "4318"), "leave out --otlp"),
        (("--mcp", "http://127.0.0.1:1/mcp", "--listen", "0.0.0.0:47320"), "expected an address of this machine"),
        (("--mcp", "http://me:pass@127.0.0.1:1/mcp"), "a client sends its user and password itself"),
        (("--otlp", "300000"), "expected HOST:PORT"),
        (("--otlp", "missing.json"), "no such file"),
        (("--otlp", "0.0.0.0:47319", "--token", "short"), "at least 16 characters"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    run_cli: RunCli, tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    refused = run_cli("record", tmp_path / "agent.sqlite3", *options)
    assert refused.code == 2 and problem in refused.err
    assert not any(tmp_path.glob("*agent*"))


def test_a_file_of_spans_that_breaks_off_leaves_nothing_in_a_recording(run_cli: RunCli, tmp_path: Path) -> None:
    spans, recording = tmp_path / "spans.jsonl", tmp_path / "agent.sqlite3"
    line = json.dumps({"traceId": "1", "spanId": "2", "name": "search_memory", "attributes": []})
    broken = f'{line}\n{{"resourceSpans": ['
    spans.write_text(broken)
    assert run_cli("record", recording, "--otlp", spans).code == 2
    assert not any(tmp_path.glob("*agent*"))
    spans.write_text(line)
    assert run_cli("record", recording, "--otlp", spans).code == 0
    spans.write_text(broken)
    assert run_cli("record", recording, "--otlp", spans).code == 2
    assert len(JournalReader(recording).after()) == 1


@pytest.mark.parametrize("way", ["otlp", "mcp"])
@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        (b"\x7fELF", 0o700, "cannot be started: Exec format error"),
        (b"#!/no/such/interpreter\n", 0o700, "cannot be started: No such file or directory"),
        (b"#!/bin/sh\n", 0o600, "command not found"),
    ],
)
def test_a_command_that_cannot_be_started_is_named_and_leaves_no_recording(
    run_cli: RunCli, tmp_path: Path, content: bytes, mode: int, problem: str, way: str
) -> None:
    program = tmp_path / "broken"
    program.write_bytes(content)
    program.chmod(mode)
    options = ("--mcp", program) if way == "mcp" else ("--otlp", "127.0.0.1:47322", "--", program)
    recording = tmp_path / "agent.sqlite3"
    refused = run_cli("record", recording, *options)
    assert (refused.code, refused.err.count("\n")) == (2, 1) and problem in refused.err
    assert str(program) in refused.err and not any(tmp_path.glob("*agent*"))


def test_a_command_that_cannot_be_started_leaves_what_others_record(run_cli: RunCli, tmp_path: Path) -> None:
    program, recording = tmp_path / "broken", tmp_path / "agent.sqlite3"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o700)
    first = Journal(recording)
    with closing(Journal(recording)) as other:
        first.abandon()
        assert run_cli("record", recording, "--mcp", program).code == 2
        other.note("mcp", 1.0, {})
    assert run_cli("record", recording, "--mcp", program).code == 2
    assert len(JournalReader(recording).after()) == 1


@pytest.mark.parametrize("options", [("--otlp",), ("--mcp", "http://127.0.0.1:1/mcp", "--listen")])
def test_an_address_in_use_is_refused_before_anything_is_said_or_written(
    run_cli: RunCli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        refused = run_cli("record", tmp_path / "agent.sqlite3", *options, address)
    assert refused.code == 2 and refused.err == f"memreplay: cannot listen on {address}: Address already in use\n"
    assert not any(tmp_path.glob("agent*"))


def test_what_an_agent_lived_through_is_replayed_through_other_memories(
    run_cli: RunCli, agent: Path, tmp_path: Path
) -> None:
    assert run_cli("mark", agent, "--turn", 11, "--expected", "lead engineer", "--evidence", 3).code == 0
    refused = run_cli("why", agent)
    assert refused.code == 2 and "memreplay datasets export" in refused.err
    dataset, results = tmp_path / "ann.json", tmp_path / "results.json"
    assert run_cli("datasets", "export", agent, "--output", dataset).code == 0
    ran = run_cli(
        "--batch",
        "--dataset",
        dataset,
        "--backend",
        "rag",
        "--recording",
        tmp_path / "r.sqlite3",
        "--output",
        results,
    )
    assert ran.code == 0
    (row,) = (row for row in json.loads(results.read_text())["questions"] if row["backend"] == "rag")
    assert (row["question"], row["expected"]) == ("What was my promotion?", "lead engineer")


def test_another_memory_shadows_the_agents_own_at_every_read(run_cli: RunCli, agent: Path, tmp_path: Path) -> None:
    unmarked = run_cli("shadow", agent, "--backend", "rag")
    assert unmarked.code == 0 and "no marked turn was read, so nothing says which is better" in unmarked.out
    for turn, expected, evidence in ((11, "lead engineer", 3), (9, "Lyon", 7)):
        marked = ("mark", agent, "--turn", turn, "--expected", expected, "--evidence", evidence)
        assert run_cli(*marked).code == 0
    output = tmp_path / "shadow.json"
    ran = run_cli("shadow", agent, "--backend", "rag", "--backend", "full_context", "--output", output)
    assert ran.code == 0, ran.err
    assert "turn 11: only rag returned the answer to “What was my promotion?”" in ran.out
    assert "2 marks, adjusted by Holm for 2 comparisons; marks of one conversation may depend" in ran.out
    found = json.loads(output.read_text())
    rag = next(one for one in found["memories"] if one["shadow"] == "rag")
    assert (rag["memory"], rag["marks"], rag["other_held"]) == ("notebook", 2, 2)
    assert rag["p_value"] == 1.0 and rag["difference"] == (2 - rag["own_held"]) / 2
    at_9 = next(read for read in found["reads"] if read["turn"] == 9 and read["shadow"] == "rag")
    assert at_9["query"] == "Where do I live?" and not {"9", "10", "11"} & set(at_9["other"]["turns"])


def test_what_a_writing_shadow_would_cost_is_said_before(run_cli: RunCli, agent: Path) -> None:
    ran = run_cli("shadow", agent, "--backend", "hybrid", "--extractor", "openai/gpt-4o-mini", "--estimate")
    assert ran.code == 0, ran.err
    (row,) = (line.split() for line in ran.out.splitlines() if line.strip().startswith("hybrid"))
    assert row[:4] == ["hybrid", "(writer)", "openai/gpt-4o-mini", "–"] and int(row[4]) > 0
    assert "In all" in ran.out and "answer returned" not in ran.out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "Name it with --backend"),
        (("--backend", "rag", "--estimate", "--output", "x.json"), "--estimate writes no --output"),
        (("--backend", "http://127.0.0.1:9/run_turn"), "an agent answers by itself"),
        (("--backend", "rag", "--output", "x.csv"), "expected a name that ends in .json"),
    ],
)
def test_a_shadow_that_cannot_be_is_refused(
    run_cli: RunCli, agent: Path, options: tuple[object, ...], problem: str
) -> None:
    refused = run_cli("shadow", agent, *options)
    assert refused.code == 2 and problem in refused.err


def test_what_an_exporter_was_told_is_kept_survives_a_kill(run_cli: RunCli, tmp_path: Path) -> None:
    recording, spans = tmp_path / "agent.sqlite3", 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "memreplay", "record", recording, "--otlp", f"127.0.0.1:{port}"]
    receiver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.1)
        for batch in range(10):
            made = [
                {"traceId": "1", "spanId": f"{batch}-{number}", "name": "search_memory", "attributes": []}
                for number in range(100)
            ]
            body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}).encode()
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/traces", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(asked, timeout=60) as answer:
                spans += 100 if answer.status == 200 else 0
    finally:
        receiver.kill()
        receiver.wait()
    reader = JournalReader(recording)
    assert spans == len(reader.after()) == 1000
    reader.close()
    assert run_cli("recordings", "show", recording).code == 0
