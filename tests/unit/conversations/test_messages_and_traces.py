"""What chat logs and traces hold is shown once and in order, by its speaker, or announced as left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memreplay.conversations.export import LOG_FORMATS
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load


def read(folder: Path, value: Any, name: str = "log.json") -> tuple[list[Conversation], list[str]]:
    warnings: list[str] = []
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / name).write_text(text, encoding="utf-8")
    return list(load([str(folder / name)], on_warning=warnings.append)), warnings


def said(conversation: Conversation) -> list[str]:
    marks = {"user": "u", "assistant": "a"}
    return [f"{marks[turn.role]} {turn.text}" for turn in conversation.turns if turn.role != "other"]


def shown(conversation: Conversation) -> list[tuple[str, str]]:
    return [(conversation.label_of(turn), turn.text) for turn in conversation.turns]


# ---- parts and messages ------------------------------------------------------------------------------------------

CALL, RESULT = ("Tool call", 'tide({"port": "Brill"})'), ("Tool", "14:20")
ARGUMENTS = {"port": "Brill"}

TOOL_USE: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "tide", "input": ARGUMENTS}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "14:20"}]},
    ],
    "responses": [
        {"type": "function_call", "call_id": "t", "name": "tide", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "t", "output": "14:20"},
    ],
    "ai sdk 5": [
        {"role": "assistant", "parts": [{"type": "tool-tide", "input": ARGUMENTS, "output": "14:20"}]},
    ],
    "ai sdk 4": [
        {
            "role": "assistant",
            "content": "",
            "toolInvocations": [{"toolName": "tide", "args": ARGUMENTS, "result": "14:20", "state": "result"}],
        },
    ],
    "model messages": [
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "tide", "input": ARGUMENTS}]},
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolName": "tide", "output": {"type": "text", "value": "14:20"}}],
        },
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "tide", "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "tide", "response": "14:20"}}]},
    ],
    "langchain": [
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "tide", "args": ARGUMENTS, "id": "t"}]}},
        {"type": "tool", "data": {"content": "14:20", "tool_call_id": "t"}},
    ],
}


@pytest.mark.parametrize("style", TOOL_USE)
def test_a_tool_call_and_its_result_are_shown_and_nobody_says_them(tmp_path: Path, style: str) -> None:
    asked, answered = {"role": "user", "content": "When?"}, {"role": "assistant", "content": "At 14:20."}
    ((conversation,), warnings) = read(tmp_path, {"messages": [asked, *TOOL_USE[style], answered]})
    assert shown(conversation) == [("User", "When?"), CALL, RESULT, ("AI", "At 14:20.")]
    assert warnings == []


@pytest.mark.parametrize(
    ("message", "turns"),
    [
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, [("User", "[image]")]),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, [("AI", "No.")]),
        ({"role": "assistant", "content": None, "refusal": "No."}, [("AI", "No.")]),
        ({"role": "user", "content": [{"type": "input_audio", "transcript": "Ahoy"}]}, [("User", "Ahoy")]),
        ({"role": "assistant", "audio": {"transcript": "Ahoy"}, "content": None}, [("AI", "Ahoy")]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]}, [("Thinking", "Hm")]),
        ({"role": "user", "content": [{"type": "text", "text": {"value": "Hi"}}]}, [("User", "Hi")]),
        ({"sender": "human", "text": "Hi"}, [("User", "Hi")]),
        ({"is_user": False, "mes": "Hi"}, [("AI", "Hi")]),
    ],
)
def test_a_message_keeps_what_its_parts_hold(tmp_path: Path, message: Any, turns: list[tuple[str, str]]) -> None:
    ((conversation,), _) = read(tmp_path, {"messages": [{"role": "user", "content": "First"}, message]})
    assert shown(conversation)[1:] == turns


BOTH = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
CONTAINERS: dict[str, Any] = {
    "a list": BOTH,
    "a list of lists": [BOTH],
    "an object": {"messages": BOTH},
    "Anthropic": {"system": "Be brief.", "messages": BOTH},
    "Gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]
    },
    "a state of LangGraph": {"values": {"messages": BOTH}},
    "a page of Assistants": {
        "object": "list",
        "data": [{"created_at": 2000000002 - place, **each} for place, each in enumerate(BOTH[::-1])],
    },
    "Responses": {"object": "response", "input": "Hi", "output": [{"type": "message", **BOTH[1]}]},
    "Open WebUI": [
        {
            "chat": {
                "history": {
                    "currentId": "b",
                    "messages": {"a": {"parentId": None, **BOTH[0]}, "b": {"parentId": "a", **BOTH[1]}},
                }
            }
        }
    ],
    "LobeChat": {"state": {"messages": [{"sessionId": "s", **each} for each in BOTH]}},
    "LibreChat": {
        "conversationId": "c",
        "messages": [{"isCreatedByUser": each is BOTH[0], "text": each["content"]} for each in BOTH],
    },
    "Claude": [
        {"uuid": "c", "chat_messages": [{"sender": each["role"], "text": each["content"]} for each in BOTH]}
    ],
    "preferences": {
        "input": {"messages": BOTH[:1]},
        "preferred_output": BOTH[1:],
        "non_preferred_output": [{"role": "assistant", "content": "Go away"}],
    },
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("indent", [None, 1])
def test_messages_are_found_in_each_container(tmp_path: Path, name: str, indent: int | None) -> None:
    ((conversation,), _) = read(tmp_path, json.dumps(CONTAINERS[name], indent=indent))
    assert said(conversation) == ["u Hi", "a Hello"]


def test_lines_of_agent_sessions_are_messages(tmp_path: Path) -> None:
    claude_code = [{"type": each["role"], "parentUuid": None, "message": each} for each in BOTH]
    codex = [
        {"type": "session_meta", "payload": {}},
        *({"type": "response_item", "payload": {"type": "message", **each}} for each in BOTH),
    ]
    begun = {"id": "s1", "timestamp": "2025-05-07T10:00:00Z", "instructions": None, "git": {"branch": "main"}}
    codex_of_before = [begun, {"record_type": "state"}, *({"type": "message", **each} for each in BOTH)]
    for lines in (claude_code, codex, codex_of_before):
        ((conversation,), warnings) = read(tmp_path, "\n".join(map(json.dumps, lines)), "session.jsonl")
        assert (said(conversation), warnings) == (["u Hi", "a Hello"], [])


def test_what_an_agents_program_says_in_the_users_name_is_not_the_users(tmp_path: Path) -> None:
    output, told = (
        "<local-command-stdout>done</local-command-stdout>",
        "<environment_context><cwd>/x</cwd></environment_context>",
    )
    claude_code = [
        {"type": "user", "parentUuid": None, "isMeta": True, "message": {"role": "user", "content": "Caveat: …"}},
        {"type": "user", "parentUuid": None, "message": {"role": "user", "content": output}},
        *({"type": each["role"], "parentUuid": None, "message": each} for each in BOTH),
    ]
    codex = [
        {"type": "response_item", "payload": {"type": "message", **each}}
        for each in ({"role": "user", "content": told}, {"role": "user", "content": told}, *BOTH)
    ]
    for lines in (claude_code, codex):
        ((conversation,), (warning,)) = read(tmp_path, "\n".join(map(json.dumps, lines)), "session.jsonl")
        assert [turn.role for turn in conversation.turns] == ["other", "other", "user", "assistant"]
        assert "2 messages made by the agent's program are shown as neither user nor assistant" in warning


def test_a_branch_that_was_rewound_is_not_part_of_the_session(tmp_path: Path) -> None:
    def line(id_: str, parent: str | None, role: str, content: Any) -> dict[str, Any]:
        return {"type": role, "uuid": id_, "parentUuid": parent, "message": {"role": role, "content": content}}

    calls = [{"type": "tool_use", "id": f"t{n}", "name": "look", "input": {}} for n in (1, 2)]
    lines = [
        line("1", None, "user", "Hi"),
        line("2", "1", "assistant", "Hello"),
        line("3", "2", "user", "I live in Rome."),
        line("4", "3", "assistant", "Rome."),
        line("5", "2", "user", "I live in Oslo."),
        line("6", "5", "assistant", calls[:1]),
        line("7", "6", "assistant", calls[1:]),
        line("8", "6", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "one"}]),
        line("9", "7", "user", [{"type": "tool_result", "tool_use_id": "t2", "content": "two"}]),
        line("10", "9", "assistant", "Oslo."),
    ]
    ((conversation,), (warning,)) = read(tmp_path, "\n".join(map(json.dumps, lines)), "session.jsonl")
    assert said(conversation) == ["u Hi", "a Hello", "u I live in Oslo.", "a Oslo."]
    assert [turn.text for turn in conversation.turns if turn.role == "other"][-2:] == ["one", "two"]
    assert "2 messages on another branch are not shown" in warning


_LANGGRAPH = [
    {
        "config": {"configurable": {"thread_id": "t1", "checkpoint_id": str(number)}},
        "checkpoint": {"ts": f"2026-01-01T10:0{number}:00Z", "channel_values": {"messages": BOTH[:number]}},
        "metadata": {},
    }
    for number in (1, 2)
]
_PYDANTIC_AI = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}]},
]
_LETTA = [
    {"message_type": f"{each['role']}_message", "id": each["role"], "content": each["content"]} for each in BOTH
]
_ZEP = {"messages": [{**each, "role_type": each["role"], "role": "Ann"} for each in BOTH]}
_AI_SDK = {"ai.prompt.messages": json.dumps(BOTH[:1]), "ai.response.text": "Hello"}
_SPANS = [
    {"context": {"trace_id": "t", "span_id": "s"}, "name": "chat", "attributes": attributes}
    for attributes in (_AI_SDK, {"all_messages_events": json.dumps(BOTH)}, {"pydantic_ai.all_messages": BOTH})
]


@pytest.mark.parametrize(
    "written",
    [_LANGGRAPH, _PYDANTIC_AI, _LETTA, _ZEP, *({"data": [span], "next_cursor": None} for span in _SPANS)],
    ids=["langgraph", "pydantic_ai", "letta", "zep", "ai_sdk", "logfire", "pydantic_ai_span"],
)
def test_what_agents_and_their_tools_export_is_read(tmp_path: Path, written: Any) -> None:
    ((conversation,), warnings) = read(tmp_path, written)
    assert (said(conversation), warnings) == (["u Hi", "a Hello"], [])


def test_a_call_that_is_sent_the_latest_messages_alone_continues_them_though_they_repeat(tmp_path: Path) -> None:
    talk = [("user", "I live in Girona"), *[("assistant", "Nice city"), ("user", "ok")] * 2, ("assistant", "Done")]
    messages = [{"role": role, "content": content} for role, content in talk]
    lines = [
        {"timestamp": f"2026-01-01T10:0{end}:00Z", "messages": messages[start:end], "response": messages[end]}
        for start, end in ((0, 1), (0, 3), (2, 5))
    ]
    spans = [
        {
            "context": {"trace_id": "t", "span_id": str(number)},
            "name": "chat",
            "start_time": each["timestamp"],
            "attributes": {
                "ai.prompt.messages": json.dumps(each["messages"]),
                "ai.response.text": each["response"]["content"],
            },
        }
        for number, each in enumerate(lines)
    ]
    ((conversation,), warnings) = read(tmp_path, {"data": spans, "next_cursor": None})
    assert (said(conversation), warnings) == ([f"{role[0]} {content}" for role, content in talk], [])


def test_what_a_model_says_in_parts_is_one_text(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Green"}, {"type": "text", "text": " or black?"}]
    langchain = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}
    for reply in ({**langchain, "kwargs": {"content": parts}}, {"role": "assistant", "content": parts}):
        ((conversation,), _) = read(tmp_path, {"messages": [{"role": "user", "content": parts}, reply]})
        assert said(conversation) == ["u Green\n or black?", "a Green or black?"]


def test_agents_of_letta_speak_with_a_tool_and_users_in_json(tmp_path: Path) -> None:
    packed = json.dumps({"type": "user_message", "message": "I moved to Nara", "time": "2024-05-02"})
    written: list[dict[str, Any]] = [
        {"message_type": "user_message", "content": packed},
        {"message_type": "reasoning_message", "reasoning": "Deer live there."},
    ]
    for name, arguments in (
        ("archival_memory_insert", {"content": "Nara"}),
        ("send_message", {"message": "Deer!"}),
    ):
        call = {"name": name, "arguments": json.dumps(arguments), "tool_call_id": name}
        written.append({"message_type": "tool_call_message", "tool_call": call})
    written.append({"message_type": "user_message", "content": [{"type": "text", "text": packed}]})
    ((conversation,), warnings) = read(tmp_path, {"messages": written})
    assert warnings == []
    assert shown(conversation) == [
        ("User", "I moved to Nara"),
        ("Thinking", "Deer live there."),
        ("Tool call", 'archival_memory_insert({"content": "Nara"})'),
        ("AI", "Deer!"),
        ("User", "I moved to Nara"),
    ]


def test_parts_that_are_not_known_are_counted(tmp_path: Path) -> None:
    hello = {"role": "user", "content": [{"type": "text", "text": "Hi"}, *[{"type": "hologram"}] * 3]}
    ((conversation,), warnings) = read(tmp_path, {"messages": [hello]})
    assert said(conversation) == ["u Hi"]
    assert [warning.split(": ")[1] for warning in warnings] == [
        "3 parts of type hologram are not shown (first at line 1/messages/0/content/1)"
    ]


def test_names_tell_two_users_apart(tmp_path: Path) -> None:
    both = [{"role": "user", "name": name, "content": "Hi"} for name in ("Ada", "Bob")]
    ((conversation,), _) = read(tmp_path, both)
    assert shown(conversation) == [("Ada", "Hi"), ("Bob", "Hi")]


def test_a_long_silence_begins_a_session_with_its_date(tmp_path: Path) -> None:
    times = ("2025-01-01T10:00:00Z", "2025-01-01T11:00:00Z", "2025-03-01T10:00:00Z")
    ((conversation,), _) = read(tmp_path, [{"role": "user", "content": "Hi", "timestamp": time} for time in times])
    assert [session.date for session in conversation.sessions] == [
        datetime(2025, 1, 1, 10),
        datetime(2025, 3, 1, 10),
    ]
    assert [turn.session for turn in conversation.turns] == [1, 1, 2]


def test_a_chat_that_cannot_be_read_is_skipped_and_ids_are_made_unique(tmp_path: Path) -> None:
    good = {"id": "c", "conversations": [{"from": "human", "value": "Hi"}]}
    found, warnings = read(tmp_path, [good, {"conversations": None}, good | {"conversations": []}, good])
    assert [conversation.id for conversation in found] == ["c", "c-2"]
    assert [warning.split(": ", 1)[1] for warning in warnings[:2]] == [
        "/1: is an object: left out",
        "/2/conversations: has no message of a user or an assistant: left out",
    ]


PARTS = st.sampled_from(
    [
        {"type": "text", "text": "Ahoy"},
        {"type": "text"},
        {"type": "hologram", "data": 1},
        {"type": "image_url", "image_url": {}},
        {"type": "tool_result", "content": "14:20"},
        {"type": "reasoning", "summary": []},
    ]
)
MESSAGES = st.one_of(
    st.builds(
        lambda role, parts: {"role": role, "content": parts},
        st.sampled_from(["user", "assistant", "system", "wizard"]),
        st.lists(PARTS, max_size=1),
    ),
    st.sampled_from([{"type": "function_call", "name": "f", "arguments": "{}"}, {"type": "puzzle"}, 7, None, {}]),
)


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=8))
def test_every_message_is_a_turn_or_is_announced(messages: list[Any]) -> None:
    first = {"role": "user", "content": "First"}
    with TemporaryDirectory() as folder:
        ((conversation,), warnings) = read(Path(folder), {"messages": [first, *messages]})
    announced = [warning.split(": ")[1] for warning in warnings]
    left_out = sum(int(sentence.split()[0]) for sentence in announced if "not shown" in sentence)
    assert len(conversation.turns) + left_out == len(messages) + 1


# ---- traces ------------------------------------------------------------------------------------------------------

U1, A1 = {"role": "user", "content": "My boat is the Petrel."}, {"role": "assistant", "content": "Noted, a boat."}
U2, A2 = (
    {"role": "user", "content": "What is my boat called?"},
    {"role": "assistant", "content": "The Petrel it is."},
)
U3, A3 = {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "You are welcome."}
ALL = [
    f"{message['role'][0]} {message['content']}"  # u or a, as in said()
    for message in (U1, A1, U2, A2, U3, A3)
]


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def trace(*calls: tuple[list[Any], Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(number),
            "type": "GENERATION",
            "traceId": f"t{number}",
            "sessionId": "s",
            "startTime": f"2025-01-01T10:{number:02}:00Z",
            "input": messages,
            "output": answer,
        }
        for number, (messages, answer) in enumerate(calls)
    ]


SUMMARY = {"role": "user", "content": "Summary so far: the user has a boat."}
TITLE = [system("Write a short title for this conversation."), U1]
CONTEXT = {"role": "user", "content": "Memories: boat=Petrel\n\nWhat is my boat called?"}
FACTS = [
    system("Extract the facts that the user states."),
    {"role": "user", "content": "user: boat\nNoted, a boat."},
]

TRACES: dict[str, list[dict[str, Any]]] = {
    "plain": trace(([U1], A1), ([U1, A1, U2], A2), ([U1, A1, U2, A2, U3], A3)),
    "system prompts change": trace(
        ([system("1"), U1], A1), ([system("2"), U1, A1, U2], A2), ([system("3"), U1, A1, U2, A2, U3], A3)
    ),
    "the window is trimmed": trace(([U1], A1), ([U1, A1, U2], A2), ([A1, U2, A2, U3], A3)),
    "the beginning is a summary": trace(([U1], A1), ([U1, A1, U2], A2), ([SUMMARY, U2, A2, U3], A3)),
    "the newest message has context": trace(([U1], A1), ([U1, A1, CONTEXT], A2), ([U1, A1, U2, A2, U3], A3)),
    "a title is made": trace(([U1], A1), (TITLE, "Boats"), ([U1, A1, U2], A2), ([U1, A1, U2, A2, U3], A3)),
    "facts are extracted": trace(([U1], A1), (FACTS, "[]"), ([U1, A1, U2], A2), ([U1, A1, U2, A2, U3], A3)),
    "a call is repeated": trace(([U1], A1), ([U1, A1, U2], A2), ([U1, A1, U2], A2), ([U1, A1, U2, A2, U3], A3)),
    "each call has the newest message": trace(([U1], A1), ([U2], A2), ([U3], A3)),
    "each call returns the whole state": [
        call | {"output": {"messages": [*before, *call["input"], call["output"]]}}
        for call, before in zip(
            trace(([U1], A1), ([U2], A2), ([U3], A3)), ([], [U1, A1], [U1, A1, U2, A2]), strict=True
        )
    ],
    "as JSON in strings": [
        call | {"input": json.dumps({"messages": call["input"]}), "output": json.dumps(call["output"])}
        for call in trace(([U1], A1), ([U1, A1, U2], A2), ([U1, A1, U2, A2, U3], A3))
    ],
}


@pytest.mark.parametrize("kind", TRACES)
def test_a_trace_says_everything_once(tmp_path: Path, kind: str) -> None:
    ((conversation,), _) = read(tmp_path, TRACES[kind])
    assert said(conversation) == ALL


@pytest.mark.parametrize("kind", ["a title is made", "facts are extracted", "the newest message has context"])
def test_what_is_set_apart_is_announced(tmp_path: Path, kind: str) -> None:
    _, warnings = read(tmp_path, TRACES[kind])
    assert warnings


def test_history_and_the_newest_input_are_one_input(tmp_path: Path) -> None:
    calls = trace(([U1], A1), ({"input": U2["content"], "chat_history": [U1, A1]}, {"output": A2["content"]}))  # type: ignore[arg-type]
    ((conversation,), _) = read(tmp_path, calls)
    assert said(conversation) == ALL[:4]


def test_an_input_that_holds_no_known_message_is_announced_with_its_keys(tmp_path: Path) -> None:
    ((_,), warnings) = read(tmp_path, trace(({"latitude": 1, "longitude": 2}, A1)))  # type: ignore[arg-type]
    assert any("latitude, longitude" in warning for warning in warnings)


def test_messages_in_spans_are_read_in_every_generation(tmp_path: Path) -> None:
    numbered = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": U1["content"],
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": A1["content"],
    }
    inference = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": U1["content"],
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": A1["content"],
    }
    events = [
        {"name": "gen_ai.user.message", "attributes": {"content": U1["content"]}},
        {"name": "gen_ai.choice", "attributes": {"message": json.dumps(A1)}},
    ]
    said_in = {"role": "user", "contents": [{"message_content": {"type": "text", "text": U1["content"]}}]}
    nested = {"llm": {"input_messages": [{"message": said_in}], "output_messages": [{"message": A1}]}}
    for attributes, of_span in ((numbered, []), (inference, []), (nested, []), ({}, events)):
        span = {"context": {"trace_id": "t", "span_id": "s"}, "attributes": attributes, "events": of_span}
        ((conversation,), _) = read(tmp_path, [span])
        assert said(conversation) == ALL[:2]


def test_a_table_of_phoenix_is_spans(tmp_path: Path) -> None:
    row = {
        "context.trace_id": "t",
        "context.span_id": "s",
        "start_time": "2025-01-01T10:00:00+00:00",
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": U1["content"]}],
        "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": A1["content"]}],
        "attributes.session.id": "s1",
    }
    ((conversation,), warnings) = read(tmp_path, [row])
    assert (conversation.id, said(conversation), warnings) == ("s1", ALL[:2], [])


@pytest.mark.parametrize("target", ["openai", "sharegpt"])
def test_tool_calls_and_results_survive_conversion(tmp_path: Path, target: str) -> None:
    asked, answered = {"role": "user", "content": "When?"}, {"role": "assistant", "content": "At 14:20."}
    (original,), _ = read(tmp_path, {"messages": [asked, *TOOL_USE["anthropic"], answered]})
    written = LOG_FORMATS[target].write([original])
    assert "system" not in written
    (again,), warnings = read(tmp_path, written, "again.json")
    assert shown(again)[0] == ("User", "When?") and shown(again)[2:] == [RESULT, ("AI", "At 14:20.")]
    assert shown(again)[1][0] == "Tool call" and "Brill" in shown(again)[1][1]
    assert warnings == []


def test_what_a_trace_holds_beside_its_calls_is_counted(tmp_path: Path) -> None:
    runs = [
        {"id": "1", "run_type": "chain", "inputs": {"input": "Hi"}, "outputs": {"output": "Hello"}},
        {"id": "2", "trace_id": "1", "parent_run_id": "1", "run_type": "llm", "inputs": {"input": "Title?"}},
        {"id": "3", "trace_id": "1", "parent_run_id": "1", "run_type": "tool", "inputs": {"port": "Brill"}},
    ]
    observations = [
        {"id": "1", "traceId": "t", "type": "GENERATION", "input": "Hi", "output": "Hello"},
        {"id": "2", "traceId": "t", "type": "SPAN", "input": {"port": "Brill"}},
    ]
    span = {"context": {"trace_id": "t"}, "attributes": {"gen_ai.prompt.0.content": "Hi"}}
    spans = [span, {"context": {"trace_id": "t"}, "attributes": {"db.system": "redis"}}]
    records = [
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Hi"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Hi"}},
        {"type": "compacted", "payload": {"message": "A greeting."}},
    ]
    expected = {
        "langsmith": ["1 run of type tool", "1 run inside another one"],
        "langfuse": ["1 observation of type SPAN"],
        "otel": ["1 span without messages"],
        "codex": ["1 record of type event_msg (user_message)", "1 record of type compacted"],
    }
    files = {"langsmith": runs, "langfuse": observations, "otel": spans, "codex": records}
    for name, values in files.items():
        ((_,), warnings) = read(tmp_path, "\n".join(map(json.dumps, values)), f"{name}.jsonl")
        assert [warning.partition(": ")[2].partition(" is not shown")[0] for warning in warnings] == expected[name]


def _node(number: int, before: int | None, text: str, **others: Any) -> dict[str, Any]:
    links = {"messageId": f"m{number}", "parentMessageId": f"m{before}" if before else None}
    return {
        **links,
        "isCreatedByUser": number % 2 == 1,
        "text": text,
        "createdAt": f"2025-01-01T10:0{number}:00Z",
    } | others


ANSWER = _node(4, 1, "Hello again")
BRANCHES = {
    "flat": {"conversationId": "c", "messages": [_node(1, None, "Hi"), _node(2, 1, "Hello"), ANSWER]},
    "nested": {"conversationId": "c", "messages": [_node(1, None, "Hi", children=[_node(2, 1, "Hello"), ANSWER])]},
}


@pytest.mark.parametrize("kind", BRANCHES)
def test_a_chat_with_branches_is_read_along_the_newest_one(tmp_path: Path, kind: str) -> None:
    ((conversation,), warnings) = read(tmp_path, BRANCHES[kind])
    assert said(conversation) == ["u Hi", "a Hello again"]
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "1 message on another branch is not shown (first at line 1/messages)"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {
            "output": [
                {"type": "reasoning", "summary": [{"text": "Hm"}]},
                {"type": "message", "role": "assistant", "content": [{"text": "Hello"}]},
            ]
        },
        {"content": '<details type="reasoning" done="true"><summary>Thought</summary>Hm</details>\nHello'},
    ],
    ids=["items", "details"],
)
def test_thoughts_of_open_webui_are_no_speech(tmp_path: Path, answer: dict[str, Any]) -> None:
    messages = {
        "1": {"role": "user", "content": "Hi"},
        "2": {"role": "assistant", "parentId": "1", "content": ""} | answer,
    }
    chat = {"id": "c", "chat": {"history": {"currentId": "2", "messages": messages}}}
    ((conversation,), _) = read(tmp_path, [chat])
    assert shown(conversation) == [("User", "Hi"), ("Thinking", "Hm"), ("AI", "Hello")]


def test_chats_of_one_object_are_conversations(tmp_path: Path) -> None:
    (conversations, _) = read(
        tmp_path, {"version": 4, "history": [{"id": "a", "messages": BOTH}, {"messages": BOTH}]}
    )
    assert [said(each) for each in conversations] == [["u Hi", "a Hello"]] * 2


def test_the_states_of_a_thread_are_one_conversation(tmp_path: Path) -> None:
    states = [
        {"values": {"messages": messages}, "next": [], "checkpoint": {"thread_id": "t"}, "created_at": at}
        for messages, at in (([U1, A1], "2025-01-01T10:00:01Z"), ([U1], "2025-01-01T10:00:00Z"))
    ]
    ((conversation,), warnings) = read(tmp_path, states)
    assert (conversation.id, said(conversation), warnings) == ("t", ALL[:2], [])


def test_a_call_in_the_parts_and_beside_them_is_shown_once_with_its_result(tmp_path: Path) -> None:
    call = {"toolCallId": "t", "toolName": "tide", "args": ARGUMENTS, "result": "14:20", "state": "result"}
    answer = {"role": "assistant", "content": "At 14:20.", "toolInvocations": [call]}
    answer["parts"] = [{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": "At 14:20."}]
    ((conversation,), _) = read(tmp_path, [{"role": "user", "content": "When?"}, answer])
    assert shown(conversation) == [("User", "When?"), CALL, RESULT, ("AI", "At 14:20.")]


def test_messages_of_gemini_keep_thoughts_and_calls(tmp_path: Path) -> None:
    session = {
        "messages": [
            {"type": "user", "content": "When?"},
            {
                "type": "gemini",
                "content": "At 14:20.",
                "thoughts": [{"subject": "Tide", "description": "Hm"}],
                "toolCalls": [{"id": "t", "name": "tide", "args": ARGUMENTS, "result": "14:20"}],
            },
        ]
    }
    studio = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "chunkedPrompt": {
            "chunks": [{"role": "user", "text": "When?"}, {"role": "model", "text": "Hm", "isThought": True}]
        },
    }
    ((conversation,), _) = read(tmp_path, session)
    assert shown(conversation) == [("User", "When?"), ("Thinking", "Hm"), ("AI", "At 14:20."), CALL, RESULT]
    ((conversation,), warnings) = read(tmp_path, studio)
    assert shown(conversation) == [("System", "Be brief."), ("User", "When?"), ("Thinking", "Hm")]
    assert warnings == []


@pytest.mark.parametrize(
    "line",
    [
        {"request": {"model": "small", "messages": BOTH[:1]}, "response": {"choices": [{"message": BOTH[1]}]}},
        {"request": {"messages": BOTH[:1]}, "response": {"role": "assistant", "content": [{"text": "Hello"}]}},
        {"prompt": "Hi", "completion": "Hello"},
        {"instruction": "Hi", "input": "", "output": "Hello"},
    ],
)
def test_an_input_with_its_output_is_a_chat(tmp_path: Path, line: dict[str, Any]) -> None:
    ((conversation,), warnings) = read(tmp_path, json.dumps(line) + "\n", "log.jsonl")
    assert (said(conversation), warnings) == (["u Hi", "a Hello"], [])


def test_settings_of_a_call_are_no_speech(tmp_path: Path) -> None:
    calls = trace(({"model": "small", "contents": "Hi"}, {"response": "Hello"}))  # type: ignore[arg-type]
    ((conversation,), _) = read(tmp_path, calls)
    assert said(conversation) == ["u Hi", "a Hello"]


# ---- the shared cases, and any mixture ---------------------------------------------------------------------------

CASES: dict[str, list[str]] = {
    "K1_traces_dynamic_system_prompt.json": ["SuaSuaSua"],
    "K2_traces_input_beside_history.json": ["uaua"],
    "K3_langfuse_ui_download.json": ["ua"],
    "K4_one_session_for_months.json": ["ua|ua"],
    "K4_roles_responses_items_in_traces.json": ["uTTa"],
    "K5_blocks_ai_sdk.json": ["uTTTa"],
    "K5_blocks_tool_result.json": ["uaTTa"],
    "K6_chatgpt_without_links.json": ["ua"],
    "K6_one_bad_chat.json": ["u"],
    "K7_expected_claude_export.json": ["ua"],
    "K7_expected_responses_items.json": ["uTTa"],
    "K8_message_misleading.json": ["ua"],
    "K8_message_text_not_found.jsonl": ["ua"],
    "K9_convert_loses_tool_calls.json": ["uTTa"],
    "K10_picker_without_titles.json": ["u", "u"],
    "K11_silent_folder": ["uaTTa", "ua"],
}
"""The turns of each conversation: u and a are said, S is a system prompt, T a call, a result or a thought; | begins
a session."""
_MARKS = {"user": "u", "assistant": "a"}


def marks(conversation: Conversation) -> str:
    found = ""
    for before, turn in zip((None, *conversation.turns), conversation.turns, strict=False):
        begins = before is not None and before.session != turn.session
        found += ("|" if begins else "") + _MARKS.get(turn.role, "S" if turn.speaker == "System" else "T")
    return found


@pytest.mark.shared_data
@pytest.mark.parametrize("case", CASES)
def test_a_shared_case_comes_out_right(shared_data: Path, case: str) -> None:
    path = shared_data.parent / "cases" / "files" / case
    if not path.exists():
        pytest.skip("this case is not beside the project")
    assert [marks(conversation) for conversation in load([str(path)])] == CASES[case]


_PARTS: list[Callable[[str], dict[str, Any]]] = [
    lambda mark: {"type": "text", "text": mark},
    lambda mark: {"type": "thinking", "thinking": mark},
    lambda mark: {"type": "tool_use", "id": mark, "name": "tide", "input": {"port": mark}},
    lambda mark: {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": mark}]},
    lambda mark: {"type": "tool-tide", "state": "output-available", "input": {"port": mark}},
    lambda mark: {"functionResponse": {"name": "tide", "response": {"high": mark}}},
    lambda mark: {"type": "image", "file_name": mark},
    lambda mark: {"type": "input_audio", "transcript": mark},
    lambda mark: {"type": "unheard_of", "data": mark},
    lambda mark: {"unheard": mark},
    lambda mark: {"type": "text", "words": mark},
]
_LEFT_OUT = re.compile(r"([\d,]+) \w+ .*(?:is|are) not shown")
_roles = st.sampled_from(["user", "assistant", "system", "tool", "narrator"])


@settings(max_examples=200)
@given(
    st.lists(st.tuples(_roles, st.lists(st.sampled_from(range(len(_PARTS))), min_size=1, max_size=4)), min_size=1)
)
def test_every_part_of_any_mixture_is_shown_once_or_announced(mixture: list[tuple[str, list[int]]]) -> None:
    count = 0
    messages = [{"role": "user", "content": "Ahoy"}]
    for role, kinds in mixture:
        content = []
        for kind in kinds:
            count += 1
            content.append(_PARTS[kind](f"<{count}>"))
        messages.append({"role": role, "content": content})
    with TemporaryDirectory() as folder:
        ((conversation,), warnings) = read(Path(folder), {"messages": messages})
    text = "\n".join(turn.text for turn in conversation.turns)
    times = [text.count(f"<{number}>") for number in range(1, count + 1)]
    announced = sum(int(found[1].replace(",", "")) for each in warnings if (found := _LEFT_OUT.search(each)))
    assert max(times) <= 1
    assert sum(times) + announced == count


@settings(max_examples=200)
@given(st.lists(st.tuples(_roles, st.one_of(st.none(), st.sampled_from(range(len(_PARTS)))))))
def test_messages_in_are_turns_and_messages_announced(mixture: list[tuple[str, int | None]]) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Ahoy"}]
    messages += [{"role": r, "content": None if kind is None else [_PARTS[kind]("x")]} for r, kind in mixture]
    with TemporaryDirectory() as folder:
        ((conversation,), warnings) = read(Path(folder), {"messages": messages})
    announced = sum(int(found[1].replace(",", "")) for each in warnings if (found := _LEFT_OUT.search(each)))
    assert len(conversation.turns) + announced == len(messages)
