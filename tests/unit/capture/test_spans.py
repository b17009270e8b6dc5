"""An agent that exports OpenTelemetry spans: received, and read as what its memory did."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

import memreplay
from memreplay.capture.assembling import bring_up_to_date
from memreplay.capture.journal import Journal, JournalReader
from memreplay.capture.marks import add_mark
from memreplay.capture.spans import note_spans
from memreplay.server.otlp import SpanReceiver, environment_of_exporter
from tests.stubs.in_process import made_in

SAYS = ("I live in Girona.", "I got a promotion to lead engineer!", "My dog is called Bruno.", "Where do I live?")
MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"


def attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(number: int, name: str, trace: int = 1, **attributes: Any) -> dict[str, Any]:
    """A span as OTLP writes it in JSON; dots in names are written as double underscores."""
    began = 1_760_000_000_000_000_000 + number * 10**9
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + 5_000_000),
        "attributes": [attribute(key.replace("__", "."), value) for key, value in attributes.items()],
    }


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": list(spans)}]}]}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def conversation_of_spans(system: str = "You know: {}", *, sends_history: bool = True) -> list[dict[str, Any]]:
    """An agent that searches, answers from what it found, and writes; its memory drops the promotion."""
    spans: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    common = {"gen_ai__conversation__id": "thread-1", "user__id": "ann"}
    memory = {**common, "gen_ai__memory__store__id": "facts", "gen_ai__provider__name": "zep"}
    for number, text in enumerate(SAYS):
        found = [{**each, "score": 0.5} for each in held[-1:]]
        spans.append(
            span(
                number * 10 + 1,
                "search_memory",
                **memory,
                gen_ai__operation__name="search_memory",
                gen_ai__memory__query__text=text,
                gen_ai__memory__records=found,
            )
        )
        known = said("system", system.format("; ".join(each["content"] for each in found)))
        prompt = [known, *(history if sends_history else ())]
        reply = said("assistant", f"I see, {number}.")
        given, returned = (name.replace(".", "__") for name in MESSAGES)
        chat = {given: [*prompt, said("user", text)], returned: [reply]}
        spans.append(span(number * 10 + 2, "chat m", **common, gen_ai__operation__name="chat", **chat))
        history += [said("user", text), reply]
        if "promotion" not in text:
            held.append({"id": str(number), "content": text})
            spans.append(
                span(
                    number * 10 + 3,
                    "create_memory",
                    **memory,
                    gen_ai__operation__name="create_memory",
                    gen_ai__memory__records=held[-1:],
                )
            )
    return spans


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite3"


def recorded(path: Path, *spans: dict[str, Any]) -> memreplay.RecordedRun:
    journal = Journal(path)
    for each in spans:
        note_spans(journal, request(each))
    journal.close()
    bring_up_to_date(path)
    return memreplay.open(path)


def test_the_conversation_and_its_memory_are_read_from_spans(path: Path):
    with recorded(path, *conversation_of_spans()) as run:
        conversation = run.conversation("ann")
        assert [turn.text for turn in conversation.turns if turn.role == "user"] == list(SAYS)
        assert len(conversation.turns) == 8 and conversation.backends == ("zep",)
        assert list(conversation.at(8)["zep"].points) == ["facts"]
        (hit,) = conversation.at(7)["zep"].hits
        assert (hit.text, hit.turns) == ("My dog is called Bruno.", ("5",))


def test_verdicts_follow_from_spans_to_the_prompt(path: Path):
    recorded(path, *conversation_of_spans()).close()
    for expected, evidence in (("lead engineer", "3"), ("Girona", "1"), ("Bruno", "5")):
        add_mark(path, "ann", 7, expected, [evidence])
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        assert [row.failure for row in run.questions] == ["not_written", "not_retrieved", "misread"]


def test_what_was_returned_and_left_out_of_the_prompt_is_cut(path: Path):
    recorded(path, *conversation_of_spans("You know nothing.", sends_history=False)).close()
    add_mark(path, "ann", 7, "Bruno", ["5"])
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        assert [row.failure for row in run.questions] == ["cut"]


@pytest.mark.parametrize("silent", [("search_memory",), ("search_memory", "create_memory")])
def test_what_spans_do_not_show_is_not_known(path: Path, silent: tuple[str, ...]):
    spans = conversation_of_spans()
    for each in spans:
        if each["name"] in silent:
            each["attributes"] = [one for one in each["attributes"] if one["key"] != "gen_ai.memory.records"]
    recorded(path, *spans).close()
    add_mark(path, "ann", 7, "Girona", ["1"])
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        (row,) = run.questions
        assert row.failure == "not_visible"
        assert (row.evidence_in_prompt, row.answer_in_prompt, row.recall_at_10) == (None, None, None)
        prompt = run.conversation("ann").at(question=row.question_id)["zep"].prompt or ""
        assert prompt.count(row.question) == 1, "the prompt as sent asks it once"
    output = path.with_name("shadow.json")
    made_in(path.parent, "shadow", path, "--backend", "rag", "--output", output)
    (found,) = json.loads(output.read_text(encoding="utf-8"))["memories"]
    assert (found["marks"], found["unknown"]) == (0, 1)


def test_a_call_of_a_model_that_langsmith_exported_is_said(path: Path):
    run = {"id": "r", "trace_id": "t", "run_type": "llm", "name": "ChatOpenAI", "start_time": "2026-03-01T10:00:00"}
    run |= {"session_id": "project", "extra": {"metadata": {"user_id": "ann"}}}
    run |= {"inputs": {"messages": [{"role": "user", "content": "Hi"}]}, "outputs": {"content": "Hello"}}
    journal = Journal(path)
    assert note_spans(journal, {"runs": [run]}) == 1
    journal.close()
    assert not bring_up_to_date(path)
    with memreplay.open(path) as run_of_agent:
        assert [turn.text for turn in run_of_agent.conversation("ann").turns] == ["Hi", "Hello"]


def test_a_helper_call_is_no_part_of_the_conversation(path: Path):
    title = {
        MESSAGES[0].replace(".", "__"): [said("user", "Find a title for: I live in Girona.")],
        MESSAGES[1].replace(".", "__"): [said("assistant", "Girona")],
    }
    helper = span(15, "chat m", trace=2, gen_ai__conversation__id="thread-1", user__id="ann", **title)
    with recorded(path, *conversation_of_spans(), helper) as run:
        assert [turn.text for turn in run.conversation("ann").turns if turn.role == "user"] == list(SAYS)


def test_spans_without_content_are_counted_with_the_cure(path: Path):
    empty = [
        span(1, "search_memory", gen_ai__operation__name="search_memory", gen_ai__memory__record__count="3"),
        span(2, "chat m", gen_ai__operation__name="chat"),
        span(3, "GET /"),
    ]
    none: list[Any] = ["not", "spans"]
    with recorded(path, *empty, *none) as run:
        sentences = run.settings["not_shown"]
    cure = "without content (set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true where the agent runs)"
    assert [cure in each for each in sentences] == [True, True, False, False]
    assert "1 span without a memory or a message is not shown" in sentences[2]
    assert "2 spans that are no object are not shown" in sentences[3]


@pytest.mark.parametrize(
    "attributes",
    [
        {"memory.operation": "search", "memory.query": "home?", "memory.results": [{"id": "1", "text": "Girona"}]},
        {"gen_ai.tool.name": "search_memory", "gen_ai.tool.call.arguments": {"query": "home?"},
         "gen_ai.tool.call.result": [{"key": "1", "value": {"content": "Girona"}}]},
        {"openinference.span.kind": "RETRIEVER", "input.value": "home?",
         "retrieval.documents.0.document.id": "1", "retrieval.documents.0.document.content": "Girona"},
        {"memory.operation": "prefetch", "memory.query.text": "home?",
         "output.value": [{"id": "1", "text": "Girona"}]},
        {"gen_ai.operation.name": "", "span.name": "everos.memory.search", "langfuse.observation.input": "home?",
         "langfuse.observation.output": {"episodes": [{"id": "1", "summary": "Girona"}]}},
        {"span.name": "RetrieveMemoryRecords", "memory.id": "m-1", "actor.id": "agent", "input.value": "home?",
         "output.value": {"memoryRecordSummaries": [{"memoryRecordId": "1", "content": {"text": "Girona"}}]}},
    ],
    ids=["memory-semconv", "a tool", "openinference", "memory-semconv of kagent", "everos", "agentcore"],
)  # fmt: skip
def test_other_vocabularies_are_read(path: Path, attributes: dict[str, Any]):
    written = {key.replace(".", "__"): value for key, value in attributes.items()}
    name = written.pop("span__name", "recall")
    with recorded(path, span(1, name, **written)) as run:
        conversation = run.conversation("agent")
        (memory,) = conversation.at(1).values()
        assert [(hit.id, hit.text) for hit in memory.hits or ()] == [("1", "Girona")]
        assert "home?" in conversation.turns[0].text


def test_runs_of_langsmith_are_read(path: Path):
    def run(number: int, kind: str, name: str, given: Any, returned: Any, **more: Any) -> dict[str, Any]:
        at = f"2026-03-01T10:00:{number:02}"
        extra = {"metadata": {"thread_id": "t-1", "user_id": "ann"}}
        said = {"inputs": given, "outputs": returned, "start_time": at, "end_time": at, "extra": extra}
        return {"id": f"run-{number}", "trace_id": "trace", "run_type": kind, "name": name, **said, **more}

    kept = "{'content': 'Lives in Girona.', 'action': 'create', 'id': None}"
    found = json.dumps([{"key": "7f", "value": {"content": "Lives in Girona."}, "score": 0.5}])
    runs = [
        run(0, "chain", "agent", {}, {}),
        run(
            1,
            "tool",
            "manage_memory",
            {"input": kept},
            {"output": {"content": "created memory 7f", "type": "tool"}},
        ),
        run(2, "tool", "search_memory", {"input": json.dumps({"query": "home?"})}, {"output": {"content": found}}),
        run(3, "retriever", "docs", {"query": "pets?"}, {"documents": [{"id": "d", "page_content": "A dog."}]}),
        run(4, "tool", "search_memory", {"input": "{" * 5000}, None, error="TimeoutError"),
        run(5, "tool", "weather", {"input": "Girona"}, {"output": "sun"}),
    ]
    journal = Journal(path)
    assert note_spans(journal, {"runs": runs}) == 6
    journal.close()
    assert any("2 spans without a memory or a message" in sentence for sentence in bring_up_to_date(path))
    with memreplay.open(path) as run_of_agent:
        conversation = run_of_agent.conversation("ann")
        shown = [turn.text for turn in conversation.turns]
        (memory,) = conversation.at(2).values()
        hits = [(hit.id, hit.text, hit.sources or hit.turns) for hit in memory.hits or ()]
    assert shown[:3] == ["manage_memory: Lives in Girona.", "search_memory: home?", "docs: pets?"]
    assert hits == [("7f", "Lives in Girona.", ("1",))]


def test_whose_memory_it_is_follows_from_each_vocabulary(path: Path):
    scope = {"memory.scope.user_id": "ann", "memory.scope.run_id": "monday", "memory.sut.name": "mem0"}
    item = {"memory.results": [{"id": "1", "text": "Girona"}]}
    of_actor = {"memory.id": "m-1", "actor.id": "bo", "session.id": "s-1", "event.id": "e-1"}
    of_langfuse = {"langfuse.user.id": "cy", "langfuse.session.id": "s-2"}
    spans = [
        ("memory.add", {"memory.operation": "add", **scope, **item}),
        ("memory.vector_store.insert", {"memory.operation": "add", **scope, **item}),
        ("CreateEvent", {**of_actor, "output.value": [{"id": "e-1", "text": "Vigo"}]}),
        ("DeleteEvent", of_actor),
        ("everos.memory.add", {**of_langfuse, "langfuse.observation.output": [{"id": "7", "text": "Lugo"}]}),
        ("everos.memory.flush", of_langfuse),
        ("everos.memory.unheard-of", of_langfuse),
    ]
    written = [
        span(number, name, **{key.replace(".", "__"): value for key, value in attributes.items()})
        for number, (name, attributes) in enumerate(spans, 1)
    ]
    with recorded(path, *written) as run:
        found = {
            name: [turn.text for turn in run.conversation(name).turns] + list(run.conversation(name).backends)
            for name in run.conversations
        }
    assert found == {
        "ann": ["add: Girona", "mem0"],
        "bo": ["CreateEvent: Vigo", "DeleteEvent: e-1", "agentcore"],
        "cy": ["add: Lugo", "flush", "memory"],
    }


@pytest.mark.parametrize(
    "hostile",
    [
        {"name": 5, "attributes": "none"},
        {"attributes": [{"key": "gen_ai.operation.name"}, {"value": 1}, 7]},
        {"startTimeUnixNano": "nan", "attributes": [attribute("gen_ai.operation.name", "search_memory")]},
        {"endTimeUnixNano": "1e999", "status": "bad", "traceId": {"a": []}, "attributes": []},
        "no span",
        ["no", "span"],
    ],
)
def test_a_malformed_span_costs_only_itself(path: Path, hostile: Any):
    journal = Journal(path)
    note_spans(journal, request(hostile))
    journal.close()
    with recorded(path, *conversation_of_spans()) as run:
        assert len(run.conversation("ann").turns) == 8


async def test_the_receiver_takes_json_and_protobuf(path: Path):
    journal = Journal(path)
    receiver = SpanReceiver(journal)
    spans = conversation_of_spans()
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    async with TestClient(TestServer(receiver.application("127.0.0.1", None))) as client:
        first = await client.post("/v1/traces", json=request(*spans[:4]))
        assert (first.status, await first.json()) == (200, {})
        body = ParseDict(request(*spans[4:]), ExportTraceServiceRequest()).SerializeToString()
        for _ in range(2):  # an exporter sends again what was not acknowledged
            packed = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
            second = await client.post("/v1/traces", data=gzip.compress(body), headers=packed)
            assert second.status == 200
        broken = await client.post("/v1/traces", data=b"\xff", headers={"Content-Type": "application/x-protobuf"})
        assert broken.status == 400 and "error" in await broken.json()
        foreign = await client.post("/v1/traces", json={}, headers={"Origin": "http://example.com"})
        assert foreign.status == 403
    journal.close()
    assert receiver.refused == 1
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        assert len(run.conversation("ann").turns) == 8


async def test_a_token_is_asked_for(path: Path):
    receiver = SpanReceiver(Journal(path))
    async with TestClient(TestServer(receiver.application("0.0.0.0", "t" * 16))) as client:
        assert (await client.post("/v1/traces", json={})).status == 401
        given = {"Authorization": f"Bearer {'t' * 16}"}
        assert (await client.post("/v1/traces", json={}, headers=given)).status == 200
    assert environment_of_exporter("127.0.0.1", 4318, "t" * 16)["OTEL_EXPORTER_OTLP_HEADERS"].endswith("t" * 16)


async def test_a_thousand_spans_are_all_kept(path: Path):
    receiver = SpanReceiver(Journal(path))
    async with TestClient(TestServer(receiver.application("127.0.0.1", None))) as client:
        began = time.perf_counter()
        for batch in range(10):
            spans = [span(batch * 100 + number, "search_memory") for number in range(100)]
            assert (await client.post("/v1/traces", json=request(*spans))).status == 200
        assert time.perf_counter() - began < 10
    reader = JournalReader(path)
    assert receiver.received == len(reader.after()) == 1000
    reader.close()
