"""Chat logs as people have them: one sample of each format, written from its documentation, whole and damaged."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.export import LOG_FORMATS
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError, MemreplayError

HELLO = [("user", "My cat is called Ember."), ("assistant", "A fine name."), ("user", "What is she called?")]

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "My cat is called Ember."}, {"type": "image_url", "image_url": {}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "note", "arguments": '{"cat": "Ember"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "noted"},
    {"role": "assistant", "content": "A fine name."},
    {"role": "user", "content": "What is she called?"},
]

SHAREGPT = {
    "id": "s1",
    "conversations": [
        {"from": "system", "value": "Be brief."},
        *({"from": {"user": "human", "assistant": "gpt"}[role], "value": text} for role, text in HELLO),
    ],
}


def _node(name: str, parent: str | None, role: str | None, text: str = "", **others: Any) -> dict[str, Any]:
    content = {"content_type": others.pop("content_type", "text"), "parts": [text]}
    message = None if role is None else {"author": {"role": role}, "content": content, "weight": 1.0} | others
    return {"id": name, "parent": parent, "children": [], "message": message}


CHATGPT = {
    "title": "Cats",
    "create_time": 1709654400.0,
    "conversation_id": "c-1",
    "current_node": "f",
    "mapping": {
        node["id"]: node
        for node in (
            _node("root", None, None),
            _node("a", "root", "system", "", weight=0.0),
            _node("b", "a", "user", "My cat is called Ember."),
            _node("replaced", "b", "assistant", "I do not care."),
            _node("t", "b", "tool", "remembered", content_type="execution_output"),
            _node("e", "t", "assistant", "A fine name."),
            _node("f", "e", "user", "What is she called?"),
        )
    },
}


def _run(number: int, given: list[Any], returned: Any, **others: Any) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "trace_id": f"r{number}",
        "parent_run_id": None,
        "run_type": "chain",
        "start_time": f"2024-03-05T16:0{number}:00",
        "inputs": {"messages": given},
        "outputs": returned,
        "extra": {"metadata": {"thread_id": "t-1"}},
    } | others


_HUMAN = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "HumanMessage"],
    "kwargs": {"content": HELLO[0][1]},
}
LANGSMITH = [
    _run(2, [_HUMAN, {"type": "ai", "content": HELLO[1][1]}, {"type": "human", "content": HELLO[2][1]}], None),
    _run(
        1, [_HUMAN], {"generations": [[{"text": HELLO[1][1], "message": {"type": "ai", "content": HELLO[1][1]}}]]}
    ),
    _run(1, [_HUMAN], {}, id="child", parent_run_id="r1", run_type="llm"),
]

LANGFUSE = [
    {"id": "2", "timestamp": "2024-03-05T16:02:00Z", "sessionId": "t-1", "input": HELLO[2][1], "output": None},
    {
        "id": "1",
        "timestamp": "2024-03-05T16:01:00.000Z",
        "sessionId": "t-1",
        "input": {"messages": [{"role": "user", "content": HELLO[0][1]}]},
        "output": {"role": "assistant", "content": HELLO[1][1]},
    },
]


def _otel(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _span(nanoseconds: str, given: list[Any], returned: list[Any]) -> dict[str, Any]:
    written = {"gen_ai.conversation.id": "t-1", "gen_ai.input.messages": json.dumps(given)}
    written |= {"gen_ai.output.messages": json.dumps(returned)} if returned else {}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in written.items()]
    return {"traceId": "x", "spanId": nanoseconds, "startTimeUnixNano": nanoseconds, "attributes": attributes}


_ASKED = [_otel(role, text) for role, text in HELLO]
OPENTELEMETRY = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        _span("1709654460000000000", _ASKED, []),
                        _span("1709654400000000000", _ASKED[:1], _ASKED[1:2]),
                    ]
                }
            ]
        }
    ]
}

TEXT = "User: My cat is called Ember.\nAssistant: A fine name.\n\n**User:** What is she called?\n"

SAMPLES: dict[str, str] = {
    "openai.json": json.dumps(OPENAI),
    "openai.jsonl": "\n".join(map(json.dumps, OPENAI)),
    "fine-tuning.jsonl": json.dumps({"messages": OPENAI}),
    "one-object.json": json.dumps({"messages": OPENAI}, indent=1),
    "sharegpt.json": json.dumps([SHAREGPT]),
    "conversations.json": json.dumps([CHATGPT]),
    "langsmith.jsonl": "\n".join(map(json.dumps, LANGSMITH)),
    "langsmith.json": json.dumps({"runs": LANGSMITH}),
    "langfuse.json": json.dumps(LANGFUSE),
    "langfuse-page.json": json.dumps({"data": LANGFUSE, "meta": {}}, indent=1),
    "otlp.jsonl": json.dumps(OPENTELEMETRY),
    "chat.txt": TEXT,
}


def read(folder: Path, name: str, text: str, warnings: list[str] | None = None) -> list[Conversation]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return list(load([str(path)], on_warning=[].append if warnings is None else warnings.append))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_log_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    (conversation,) = read(tmp_path, name, SAMPLES[name])
    assert [(turn.role, turn.text) for turn in conversation.turns if turn.role != "other"] == HELLO
    assert conversation.questions == ()
    assert [exchange.text for exchange in exchanges_of(conversation)] == [
        "User: My cat is called Ember.\nAI: A fine name.",
        "User: What is she called?",
    ]
    assert [turn.number for turn in conversation.turns] == list(range(1, len(conversation.turns) + 1))


def test_what_is_not_said_is_shown_with_a_label(tmp_path: Path) -> None:
    (openai,) = read(tmp_path, "o.json", SAMPLES["openai.json"])
    assert [(openai.label_of(turn), turn.text) for turn in openai.turns if turn.role == "other"] == [
        ("System", "Be brief."),
        ("Image", "[image]"),
        ("Tool call", 'note({"cat": "Ember"})'),
        ("Tool", "noted"),
    ]
    (chatgpt,) = read(tmp_path, "c.json", SAMPLES["conversations.json"])
    assert chatgpt.id == "c-1" and chatgpt.sessions[0].date is not None
    assert [turn.text for turn in chatgpt.turns if turn.role == "other"] == ["remembered"]


@pytest.mark.parametrize("name", ["langsmith.jsonl", "langfuse.json", "otlp.jsonl"])
def test_a_thread_of_calls_is_one_conversation_with_its_date(tmp_path: Path, name: str) -> None:
    (conversation,) = read(tmp_path, name, SAMPLES[name])
    assert conversation.id == "t-1"
    assert conversation.sessions[0].date is not None and conversation.sessions[0].date.year == 2024


_ONE_VALUE = [name for name in SAMPLES if name.endswith(".json")]
_LINES = [name for name in SAMPLES if name.endswith(".jsonl")]


@pytest.mark.parametrize("name", _ONE_VALUE)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_log_that_is_cut_short_is_one_error_with_its_place(tmp_path: Path, name: str, share: float) -> None:
    text = SAMPLES[name]
    with pytest.raises(DatasetError) as refused:
        read(tmp_path, name, text[: int(len(text) * share)].rstrip("\n"))
    assert name in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("name", _LINES)
def test_a_last_line_that_is_half_written_costs_only_itself(tmp_path: Path, name: str) -> None:
    text = SAMPLES[name].rstrip("\n")
    half = text.splitlines()[-1][:20]
    warnings: list[str] = []
    assert read(tmp_path, name, f"{text}\n{half}", warnings)
    assert any("is not valid JSON" in warning and warning.endswith("left out") for warning in warnings)
    with pytest.raises(DatasetError):
        read(tmp_path, name, half)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "7" * 400])
def test_numbers_that_json_does_not_have_cost_nothing(tmp_path: Path, number: str) -> None:
    said = [f'{{"role": "{role}", "content": "Hi", "score": {number}}}' for role in ("user", "assistant")]
    for text in ("\n".join(said), f"[{', '.join(said)}]", f'{{"messages":\n [{", ".join(said)}]}}'):
        warnings: list[str] = []
        (conversation,) = read(tmp_path, "odd.json", text, warnings)
        assert [turn.text for turn in conversation.turns] == ["Hi", "Hi"]
        assert "holds NaN, infinity or a number of too many digits" in warnings[0]


_LOOP = json.loads(json.dumps(CHATGPT))
_LOOP["mapping"]["root"]["parent"] = "f"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([{"role": "wizard", "content": "hi"}], '/0/role: is "wizard"'),
        ([{"role": "user", "content": 7}], "/0/content: is 7"),
        ([{"role": "system", "content": "hi"}], "has no message of a user"),
        ({"messages": "hi"}, 'messages: is "hi"'),
        ([{"conversations": [{"from": "human"}]}], "/0/conversations/0"),
        ([{"conversations": 4}], "/0"),
        ([_LOOP], "is its own ancestor"),
        ([CHATGPT | {"mapping": {"f": 3}}], "has no node"),
        ([{"run_type": "llm", "inputs": {"messages": [{"role": "x", "content": ""}]}}], "role"),
        ([{"input": None, "output": None, "sessionId": "s"}], "has no call with messages"),
        ({"resourceSpans": 5}, "resourceSpans: is 5"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 3}]}]}]}, "attributes: is 3"),
    ],
)
def test_a_broken_log_is_one_error_with_its_place(tmp_path: Path, value: Any, says: str) -> None:
    with pytest.raises(DatasetError) as refused:
        read(tmp_path, "log.json", json.dumps(value))
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_standard_input_is_a_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    (conversation,) = load(["-"])
    assert (conversation.id, conversation.turns[0].text) == ("stdin", "My cat is called Ember.")


def test_a_log_without_questions_has_nothing_to_ask_in_a_batch(tmp_path: Path) -> None:
    import memreplay

    (tmp_path / "chat.txt").write_text(TEXT)
    with pytest.raises(MemreplayError, match="nothing to ask"):
        memreplay.run(tmp_path / "chat.txt", "full_context", recording=tmp_path / "r.sqlite3")


@pytest.mark.parametrize("format_name", list(LOG_FORMATS))
def test_a_converted_log_says_the_same(tmp_path: Path, format_name: str) -> None:
    (original,) = read(tmp_path, "o.json", SAMPLES["openai.json"])
    written = LOG_FORMATS[format_name].write([original])
    (again,) = read(tmp_path, f"again-{format_name}", written)
    assert [(turn.role, turn.text) for turn in again.turns if turn.role != "other"] == HELLO
