"""What somebody says in a log is shown as theirs: an odd entry beside it costs only itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conversations.test_messages_and_traces import read, said, shown

# ---- traces ------------------------------------------------------------------------------------------------------


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def span(number: int, given: list[Any], returned: list[Any], **others: Any) -> dict[str, Any]:
    written = {
        "gen_ai.conversation.id": "c",
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps(returned),
    }
    return {
        "traceId": f"{number}",
        "spanId": f"s{9 - number}",
        "startTimeUnixNano": str((1728000000 + number) * 10**9),
        "attributes": [{"key": name, "value": {"stringValue": text}} for name, text in written.items()],
        **others,
    }


def exchange(number: int, **others: Any) -> dict[str, Any]:
    return span(number, [message("user", f"hi {number}")], [message("assistant", f"ok {number}")], **others)


def document(*scopes: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": scope} for scope in scopes]}


THREE = ["u hi 1", "a ok 1", "u hi 2", "a ok 2", "u hi 3", "a ok 3"]


@pytest.mark.parametrize(
    ("held", "left_out"),
    [
        (document([{"spans": [None, exchange(1), None, exchange(2), exchange(3)]}]), 2),
        (document([{"spans": [exchange(1), 5, exchange(2)]}], 7, [{"spans": [exchange(3)]}]), 2),
        (document([{"spans": [exchange(1)]}], None, [{"spans": [exchange(2), exchange(3)]}]), 0),
        (document([{"spans": [exchange(1), exchange(8, attributes=5), exchange(2), exchange(3)]}]), 1),
    ],
    ids=["null", "numbers", "an empty list of Go", "attributes"],
)
def test_a_span_that_is_none_costs_only_itself(tmp_path: Path, held: Any, left_out: int) -> None:
    ((conversation,), warnings) = read(tmp_path, held)
    assert said(conversation) == THREE
    assert len(warnings) == left_out
    assert all(warning.endswith("left out") for warning in warnings)


def _run(number: int) -> dict[str, Any]:
    return {
        "id": f"{number}",
        "run_type": "llm",
        "session_id": "s",
        "start_time": f"2024-10-01T10:0{number}:00Z",
        "extra": {"metadata": {"session_id": "s"}},
        "inputs": {"messages": [{"role": "user", "content": f"hi {number}"}]},
        "outputs": {"role": "assistant", "content": f"ok {number}"},
    }


def _trace(number: int, **others: Any) -> dict[str, Any]:
    return {
        "id": f"{9 - number}",
        "sessionId": "s",
        "timestamp": f"2024-10-01T10:0{number}:00Z",
        "input": [{"role": "user", "content": f"hi {number}"}],
        "output": {"role": "assistant", "content": f"ok {number}"},
        **others,
    }


@pytest.mark.parametrize(
    "held",
    [
        {"runs": [_run(1), None, _run(2), _run(3)]},
        {"meta": {"totalPages": 1}, "data": [_trace(1), None, _trace(2), _trace(3)]},
    ],
    ids=["LangSmith", "Langfuse"],
)
def test_an_entry_that_is_no_trace_costs_only_itself(tmp_path: Path, held: Any) -> None:
    ((conversation,), warnings) = read(tmp_path, held)
    assert said(conversation) == THREE
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "held",
    [
        document([{"spans": [exchange(1), exchange(2, startTimeUnixNano="abc"), exchange(3)]}]),
        [_trace(1), _trace(2, timestamp="x"), _trace(3)],
    ],
    ids=["OpenTelemetry", "Langfuse"],
)
def test_a_call_whose_time_cannot_be_read_stays_where_it_stands(tmp_path: Path, held: Any) -> None:
    ((conversation,), warnings) = read(tmp_path, held)
    assert said(conversation) == THREE
    assert ["1 time that cannot be read is not shown" in warning for warning in warnings] == [True]


INPUT = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where is Ana?"}


@pytest.mark.parametrize(
    "attributes",
    [
        {**INPUT, "input.value": "Where is Ana?", "output.value": "In Lisbon."},
        {
            **INPUT,
            "output.value": json.dumps({"choices": [{"message": {"role": "assistant", "content": "In Lisbon."}}]}),
        },
        {
            "input.value": "Where is Ana?",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "In Lisbon.",
        },
    ],
    ids=["a text", "a response", "the input"],
)
def test_a_side_that_one_generation_of_attributes_lacks_is_read_from_another(
    tmp_path: Path, attributes: dict[str, str]
) -> None:
    written = {"context": {"trace_id": "t", "span_id": "s"}, "start_time": "2024-05-08T21:46:11Z"}
    kind = {"openinference.span.kind": "LLM"}
    ((conversation,), warnings) = read(tmp_path, [{**written, "attributes": {**kind, **attributes}}])
    assert said(conversation) == ["u Where is Ana?", "a In Lisbon."]
    assert warnings == []


@pytest.mark.parametrize("ending", ["", "... [truncated]"])
def test_an_attribute_that_was_cut_is_nothing_that_the_user_says(tmp_path: Path, ending: str) -> None:
    given = [message("user", "hi 1"), message("assistant", "ok 1"), message("user", "I moved to Girona in May.")]
    written = json.dumps(given)
    cut = exchange(2)
    cut["attributes"][1]["value"]["stringValue"] = written[: written.index("May")] + ending
    ((conversation,), warnings) = read(tmp_path, document([{"spans": [exchange(1), cut]}]))
    assert said(conversation) == ["u hi 1", "a ok 1", "a ok 2"]
    assert ["1 list of messages is cut short and shown without the end" in each for each in warnings] == [True]


def test_json_that_a_user_pastes_is_what_the_user_says(tmp_path: Path) -> None:
    pasted = '{"role": "user", "content": "Hi"} Why is this refused?'
    ((conversation,), warnings) = read(tmp_path, [_trace(1, input=pasted)])
    assert said(conversation) == [f"u {pasted}", "a ok 1"]
    assert warnings == []


# ---- messages of agents ------------------------------------------------------------------------------------------


SAMPLE: dict[str, Any] = {
    "id": 1,
    "target": "Lisbon",
    "messages": [
        {"role": "user", "content": "Where?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "t", "function": "find", "arguments": {"name": "Ana"}, "type": "function"}],
        },
        {"role": "tool", "tool_call_id": "t", "function": "find", "content": "Lisbon"},
        {"role": "assistant", "content": "In Lisbon."},
    ],
}
INSPECTED = [
    ("User", "Where?"),
    ("Tool call", 'find({"name": "Ana"})'),
    ("Tool", "Lisbon"),
    ("AI", "In Lisbon."),
]


@pytest.mark.parametrize("held", [SAMPLE, {"status": "success", "eval": {}, "samples": [SAMPLE]}])
def test_a_sample_of_inspect_names_its_tools_alone_and_in_its_log(tmp_path: Path, held: Any) -> None:
    ((conversation,), warnings) = read(tmp_path, held)
    assert shown(conversation) == INSPECTED
    assert warnings == []


def test_what_an_agent_of_openhands_does_is_not_what_it_says(tmp_path: Path) -> None:
    events = [
        {"id": 0, "source": "agent", "action": "system", "args": {"content": "Be brief."}},
        {"id": 1, "source": "user", "message": "Go.", "action": "message", "args": {"content": "Add a licence."}},
        {
            "id": 2,
            "source": "agent",
            "message": "",
            "action": "edit",
            "args": {"path": "L", "thought": "I do."},
        },
        {"id": 3, "source": "agent", "message": "Edited.", "observation": "edit", "content": "+++ L", "cause": 2},
        {"id": 4, "source": "agent", "action": "think", "args": {"thought": "Done, I think."}},
        {"id": 5, "source": "agent", "action": "finish", "args": {"outputs": {}, "thought": "It is added."}},
    ]
    ((conversation,), warnings) = read(tmp_path, events)
    assert shown(conversation) == [
        ("System", "Be brief."),
        ("User", "Add a licence."),
        ("AI", "I do."),
        ("Tool call", 'edit({"path": "L"})'),
        ("Tool edit", "+++ L"),
        ("Thinking", "Done, I think."),
        ("AI", "It is added."),
    ]
    assert warnings == []


def test_agents_of_autogen_are_assistants_with_names(tmp_path: Path) -> None:
    messages = [
        {"source": "user", "content": "Where is Ana?", "type": "TextMessage"},
        {
            "source": "planner",
            "content": [{"id": "c", "arguments": '{"name": "Ana"}', "name": "find"}],
            "type": "ToolCallRequestEvent",
        },
        {
            "source": "planner",
            "content": [{"content": "Lisbon", "name": "find", "call_id": "c"}],
            "type": "ToolCallExecutionEvent",
        },
        {"source": "planner", "content": "I have it.", "type": "ThoughtEvent"},
        {"source": "planner", "content": "In Lisbon.", "type": "TextMessage"},
        {"source": "critic", "content": "Right.", "type": "TextMessage"},
    ]
    ((conversation,), warnings) = read(tmp_path, {"messages": messages, "stop_reason": None})
    assert said(conversation) == ["u Where is Ana?", "a In Lisbon.", "a Right."]
    assert shown(conversation) == [
        ("User", "Where is Ana?"),
        ("Tool call", 'find({"name": "Ana"})'),
        ("Tool", "Lisbon"),
        ("Thinking", "I have it."),
        ("planner", "In Lisbon."),
        ("critic", "Right."),
    ]
    assert warnings == []


def test_what_a_helper_agent_is_told_in_a_stream_is_not_the_users(tmp_path: Path) -> None:
    def entry(role: str, text: str, helper: str | None = None) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {
            "type": role,
            "message": {"role": role, "content": content},
            "session_id": "s",
            "parent_tool_use_id": helper,
        }

    lines = [
        entry("user", "Which database?"),
        entry("user", "Search for it.", "toolu_1"),
        entry("assistant", "MySQL, I believe.", "toolu_1"),
        entry("assistant", "PostgreSQL."),
    ]
    ((conversation,), warnings) = read(tmp_path, "\n".join(map(json.dumps, lines)), "stream.jsonl")
    assert said(conversation) == ["u Which database?", "a PostgreSQL."]
    assert ["2 messages of a helper agent are not shown" in warning for warning in warnings] == [True]


def test_custom_instructions_of_chatgpt_are_shown_beside_the_profile(tmp_path: Path) -> None:
    about = {
        "content_type": "user_editable_context",
        "user_profile": "I am a nurse.",
        "user_instructions": "Be brief.",
    }
    said_last = {"content_type": "text", "parts": ["Hi"]}
    nodes = {
        "a": {"parent": None, "children": ["b"], "message": {"author": {"role": "user"}, "content": about}},
        "b": {"parent": "a", "children": [], "message": {"author": {"role": "user"}, "content": said_last}},
    }
    ((conversation,), _) = read(tmp_path, [{"id": "c", "current_node": "b", "mapping": nodes}])
    assert [turn.text for turn in conversation.turns] == ["I am a nurse.\nBe brief.", "Hi"]
    assert said(conversation) == ["u Hi"]


# ---- values ------------------------------------------------------------------------------------------------------

HALF = "\ud83d"
"""The first half of an emoji, as JavaScript and Python write it where they cut a text inside one."""


def chat(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]}


def test_an_entry_that_is_no_chat_costs_only_itself(tmp_path: Path) -> None:
    held = {"chats": [chat("One"), None, chat("Two"), {"messages": 5}, chat("Three")]}
    conversations, warnings = read(tmp_path, held)
    assert [conversation.turns[0].text for conversation in conversations] == ["One", "Two", "Three"]
    assert [warning.partition("log.json: ")[2] for warning in warnings] == [
        "line 1/chats/1: is null: left out",
        "line 1/chats/3/messages: is 5: left out",
    ]


@pytest.mark.parametrize("place", [0, 1])
def test_half_an_emoji_costs_one_character_of_a_line(tmp_path: Path, place: int) -> None:
    texts = ["I live in Girona 🦀", "I work as a nurse", r"C:\new \\ud83d"]
    texts[place] += HALF
    conversations, warnings = read(tmp_path, "\n".join(json.dumps(chat(text)) for text in texts), "log.jsonl")
    texts[place] = texts[place].replace(HALF, "\ufffd")
    assert [conversation.turns[0].text for conversation in conversations] == texts
    assert warnings == []


def test_half_an_emoji_in_one_object_costs_one_character(tmp_path: Path) -> None:
    ((conversation,), _) = read(tmp_path, json.dumps(chat(f"Hi{HALF}"), indent=1))
    assert said(conversation) == ["u Hi\ufffd", "a Noted."]


def test_half_an_emoji_in_json_inside_json_costs_one_character(tmp_path: Path) -> None:
    odd = span(1, [message("user", f"hi 1{HALF}")], [message("assistant", "ok 1")])
    ((conversation,), _) = read(tmp_path, document([{"spans": [odd]}]))
    assert said(conversation) == ["u hi 1\ufffd", "a ok 1"]


def test_a_first_line_that_is_half_written_costs_only_itself(tmp_path: Path) -> None:
    lines = ['{"messages": [{"role": "us', *(json.dumps(chat(f"Town {number}")) for number in (1, 2))]
    conversations, warnings = read(tmp_path, "\n".join(lines), "log.jsonl")
    assert [conversation.turns[0].text for conversation in conversations] == ["Town 1", "Town 2"]
    assert ["line 1: is not valid JSON" in warning for warning in warnings] == [True]


def test_parts_that_ai_studio_writes_beside_texts_are_shown(tmp_path: Path) -> None:
    chunks = [
        {"role": "user", "text": "Add.", "driveDocument": {"id": "d", "name": "numbers.pdf"}},
        {"role": "model", "executableCode": {"language": "PYTHON", "code": "2 + 2"}},
        {"role": "model", "codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
        {"role": "model", "text": "It is 4."},
    ]
    ((conversation,), warnings) = read(tmp_path, {"chunkedPrompt": {"chunks": chunks}})
    assert shown(conversation) == [
        ("User", "Add."),
        ("File", "[file: numbers.pdf]"),
        ("Tool call", "code(2 + 2)"),
        ("Tool", "4"),
        ("AI", "It is 4."),
    ]
    assert warnings == []


def line(number: int, role: str, text: str, **others: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"{number}",
        "parentUuid": f"{number - 1}" if number > 1 else None,
        "message": {"role": role, "content": text},
        **others,
    }


def test_sessions_that_were_put_into_one_file_are_conversations(tmp_path: Path) -> None:
    lines = [
        {"type": "summary", "summary": "Two talks"},
        line(1, "user", "Hi", sessionId="s"),
        line(11, "user", "Good morning", sessionId="t", parentUuid=None),
        line(2, "assistant", "Hello", sessionId="s"),
        line(12, "assistant", "Good day", sessionId="t"),
        line(3, "user", "More", sessionId="continues s"),
    ]
    found, _ = read(tmp_path, "\n".join(map(json.dumps, lines)), "session.jsonl")
    assert {each.id: said(each) for each in found} == {
        "s": ["u Hi", "a Hello", "u More"],
        "t": ["u Good morning", "a Good day"],
    }
