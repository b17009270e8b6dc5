"""Sessions of coding agents give a memory the words of the user, all of them, and no others."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conversations.test_messages_and_traces import read, said, shown

Json = dict[str, Any]
SENT = "made by the agent's program"
NEWEST_FIRST = "1 list of messages stands newest first and was turned around"


def read_lines(folder: Path, lines: list[Json]) -> Any:
    return read(folder, "\n".join(map(json.dumps, lines)), "session.jsonl")


def claude(id_: str, role: str, content: Any, **more: Any) -> Json:
    """A line of Claude Code that follows the one with the number before."""
    parent = str(int(id_) - 1) if id_ != "1" else None
    message = {"role": role, "content": content}
    return {"type": role, "uuid": id_, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def attached(id_: str, **attachment: Any) -> Json:
    return {
        "type": "attachment",
        "uuid": id_,
        "parentUuid": str(int(id_) - 1),
        "timestamp": "2026-01-01T10:00:00Z",
        "attachment": attachment,
    }


def codex(role: str, *texts: str) -> Json:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


# ---- what is typed while the agent works, and what is written twice ----------------------------------------------


@pytest.mark.parametrize(
    "more",
    [{}, {"commandMode": "prompt", "origin": {"kind": "human"}}],
    ids=["of before", "with its origin"],
)
def test_what_is_typed_while_claude_code_works_is_the_users(tmp_path: Path, more: Json) -> None:
    prompts = ["I moved to Girona.", [{"type": "text", "text": "With Ana."}]]
    lines = [
        claude("1", "user", "Build it."),
        *(attached(str(n), type="queued_command", prompt=each, **more) for n, each in enumerate(prompts, 2)),
        claude("4", "assistant", "Built. Girona it is."),
    ]
    ((conversation,), warnings) = read_lines(tmp_path, lines)
    expected = ["u Build it.", "u I moved to Girona.", "u With Ana.", "a Built. Girona it is."]
    assert (said(conversation), warnings) == (expected, [])


@pytest.mark.parametrize(
    "more",
    [
        {"commandMode": "task-notification"},
        {"commandMode": "prompt", "origin": {"kind": "peer"}},
        {"isMeta": True},
    ],
    ids=["a notice", "another session", "the program"],
)
def test_what_programs_send_while_claude_code_works_is_not_the_users(tmp_path: Path, more: Json) -> None:
    queued = attached("2", type="queued_command", prompt="I live in Paris.", **more)
    for sent in (queued, claude("2", "user", "I live in Paris.", **more)):
        lines = [claude("1", "user", "Hi"), sent, claude("3", "assistant", "Hello")]
        ((conversation,), (warning,)) = read_lines(tmp_path, lines)
        assert shown(conversation)[1] == ("Program", "I live in Paris.")
        assert f"1 message {SENT}" in warning


def test_of_what_claude_code_attaches_files_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    lines = [
        claude("1", "user", "Hi"),
        attached("2", type="file", filename="/x/a.py", content={}),
        attached("3", type="todo_reminder", content=[]),
        claude("4", "assistant", "Hello"),
    ]
    ((conversation,), (warning,)) = read_lines(tmp_path, lines)
    assert shown(conversation) == [("User", "Hi"), ("File", "[file: /x/a.py]"), ("AI", "Hello")]
    assert "1 entry of type attachment (todo_reminder) is not shown" in warning


def test_a_prompt_typed_on_the_way_is_not_a_branch_that_was_taken_back(tmp_path: Path) -> None:
    beside = attached("3", type="queued_command", prompt="In Girona.") | {"parentUuid": "1"}
    lines = [claude("1", "user", "Hi"), claude("2", "assistant", "Hello"), beside]
    lines.append(claude("4", "user", "Bye") | {"parentUuid": "2"})
    ((conversation,), warnings) = read_lines(tmp_path, lines)
    assert (said(conversation), warnings) == (["u Hi", "a Hello", "u In Girona.", "u Bye"], [])


def test_lines_with_the_same_uuid_are_one(tmp_path: Path) -> None:
    lines = [claude("1", "user", "Hi"), claude("2", "assistant", "Hel")]
    resumed = [claude("1", "user", "Hi"), claude("2", "assistant", "Hello"), claude("3", "user", "Bye")]
    ((conversation,), (warning,)) = read_lines(
        tmp_path, [*lines, *({**each, "sessionId": "t"} for each in resumed)]
    )
    assert said(conversation) == ["u Hi", "a Hello", "u Bye"]
    assert "2 messages that stand again with the same uuid are shown once" in warning


def test_a_line_with_an_odd_type_costs_no_other_line(tmp_path: Path) -> None:
    odd = {"type": ["user"], "parentUuid": "1", "attachment": {"type": ["file"]}}
    ((conversation,), (warning,)) = read_lines(tmp_path, [claude("1", "user", "Hi"), odd])
    assert said(conversation) == ["u Hi"]
    assert "1 message without a known role" in warning


@pytest.mark.parametrize("kind", ["permission-mode", "mode", "last-prompt", "ai-title"])
def test_a_session_may_begin_with_any_line_of_its_bookkeeping(tmp_path: Path, kind: str) -> None:
    lines = [{"type": kind, "sessionId": "s"}, claude("1", "user", "Hi"), claude("2", "assistant", "Hello")]
    ((conversation,), (warning,)) = read_lines(tmp_path, lines)
    assert said(conversation) == ["u Hi", "a Hello"]
    assert f"1 entry of type {kind} is not shown" in warning


# ---- what programs send in the user's name -----------------------------------------------------------------------

INSTRUCTIONS = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nThe owner lives in Paris.\n</INSTRUCTIONS>"
PLACE = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"


@pytest.mark.parametrize(
    "texts",
    [
        (INSTRUCTIONS,),
        (INSTRUCTIONS, PLACE),
        ("<skill>\n<name>boats</name>\nThe owner lives in Paris.\n</skill>",),
        ('<hook_prompt hook_run_id="1">The owner lives in Paris.</hook_prompt>',),
        ("<turn_aborted>\nThe user lives in Paris.\n</turn_aborted>",),
        ("Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead.",),
    ],
)
def test_what_codex_sends_in_the_users_name_is_not_the_users(tmp_path: Path, texts: tuple[str, ...]) -> None:
    lines = [codex("user", *texts), codex("user", "I live in Girona."), codex("assistant", "Noted.")]
    ((conversation,), (warning,)) = read_lines(tmp_path, lines)
    assert shown(conversation)[0] == ("Program", "\n".join(texts))
    assert said(conversation) == ["u I live in Girona.", "a Noted."]
    assert f"1 message {SENT}" in warning


_LETTA_SAYS = json.dumps({"type": "user_message", "message": "I live in Girona.", "time": "2026"})
WORDS = {
    "claude code, with a command": (
        "<command-name>/boat</command-name>\n  <command-message>boat</command-message>\nI live in Girona.",
        1,
    ),
    "claude code": ("<system-reminder>\nIn Paris?\n</system-reminder>\nI live in Girona.", 1),
    "claude code, with an editor": (
        "<ide_opened_file>paris.md</ide_opened_file>\nI live in Girona.\n[Request interrupted by user]",
        2,
    ),
    "codex, with an editor": (
        "# Context from my IDE setup:\n\n## Active file: paris.md\n\n## My request for Codex:\nI live in Girona.",
        1,
    ),
    "cursor": ("<timestamp>Monday</timestamp>\n<user_query>\nI live in Girona.\n</user_query>", 1),
    "copilot": (
        "<context>\nIt is Monday in Paris.\n</context>\n<userRequest>\nI live in Girona.\n</userRequest>\n",
        1,
    ),
    "cline": (
        "<task>\nI live in Girona.\n</task>\n\n<environment_details>\n# Tabs\nparis.md\n</environment_details>",
        1,
    ),
    "cline, with tags in the task": (
        "<task>\nI live in Girona.\n</task>\n\n<environment_details>\nSee </task>.\n</environment_details>",
        1,
    ),
    "with details alone": ("<environment_details>\nprod\n</environment_details>\nI live in Girona.", 1),
    "cline, with a result": (
        "[execute_command for 'ls'] Result:\nParis\n<feedback>\nI live in Girona.\n</feedback>",
        1,
    ),
    "letta": (_LETTA_SAYS, 0),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_users_words_are_taken_out_of_their_envelope(tmp_path: Path, name: str) -> None:
    text, others = WORDS[name]
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    for written in (messages, [{"role": "user", "message": {"content": text}}, messages[1]]):
        ((conversation,), warnings) = read(tmp_path, written)
        assert said(conversation) == ["u I live in Girona.", "a Noted."]
        assert [turn.speaker for turn in conversation.turns if turn.role == "other"] == ["Program"] * others
        assert [SENT in warning for warning in warnings] == [True] * bool(others)


@pytest.mark.parametrize(
    "text",
    [
        "This is the Gemini CLI. We are setting up the context for our chat.\nI'm working in /paris.",
        "<session_context>\nThis is the Gemini CLI, in /paris.\n</session_context>",
        "[read_file for 'paris.md'] Result:\nParis\n<environment_details>\nNone\n</environment_details>",
        "<task-notification>\nIn /paris.\n</task-notification>\nRead the output file: /paris",
        json.dumps({"type": "login", "last_login": "Never (first login)", "time": "2026"}),
        json.dumps({"type": "system_alert", "message": "The user lives in Paris.", "time": "2026"}),
        json.dumps({"type": "heartbeat", "reason": "Paris", "time": "2026"}),
    ],
)
def test_a_message_without_words_of_the_user_is_none_of_the_users(tmp_path: Path, text: str) -> None:
    words = [("user_message", _LETTA_SAYS), ("assistant_message", "Noted.")]
    letta = [{"message_type": kind, "content": content} for kind, content in [("user_message", text), *words]]
    plain = [{"role": each["message_type"].removesuffix("_message"), "content": each["content"]} for each in letta]
    for written in (letta, plain):
        ((conversation,), (warning,)) = read(tmp_path, written)
        assert shown(conversation)[0] == ("Program", text)
        assert said(conversation) == ["u I live in Girona.", "a Noted."]
        assert f"1 message {SENT}" in warning


@pytest.mark.parametrize(
    "text",
    [
        "Why does Claude send me a <system-reminder>x</system-reminder>?",
        "<skill> is a tag that I never close",
        "What is # AGENTS.md instructions for?",
        "<task>Sum it up</task> as I said",
        "Who puts <user_query>this</user_query> there?",
        "<user_query>\nwas cut",
        "[sum] Result: 5",
        "How do I read this template?\n<user_query>find me</user_query>\nI live in Girona.",
        "This session is being continued from a previous conversation that ran out of context - why? I am Ana.",
        "<task-notification> what is this tag?",
        "[use_mcp_tool] Result: what does this mean?",
        "My config:\n```xml\n<system-reminder>\nx\n</system-reminder>\n```\nI am Ana.",
        "<skill>Cooking</skill>\n<skill>Golf</skill> are my skills.",
        "In my file:\n<user_info>\n  Ana\n</user_info>",
        "My notes\n## My request for Codex:\nis a heading that I saw.",
        '{"type": "login", "name": "Ana"}',
        '{"time": ',
        "  A [link] and 1 < 2.\n\n",
    ],
)
def test_what_only_looks_like_an_envelope_is_the_users(tmp_path: Path, text: str) -> None:
    ((conversation,), warnings) = read(tmp_path, [{"role": "user", "content": text}])
    assert ([turn.text for turn in conversation.turns], warnings) == ([text], [])
    assert conversation.turns[0].role == "user"


@pytest.mark.parametrize(
    "text",
    [" " * 200_000 + "x" + "\n<skill>\n" * 20_000 + "</skill>", "```\n" * 50_000 + "<skill>\n" * 5_000],
    ids=["tags behind blanks", "tags behind blocks"],
)
def test_a_hostile_message_is_opened_in_linear_time(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    ((conversation,), _) = read(tmp_path, [{"role": "user", "content": text}])
    assert time.process_time() - started < 3
    assert conversation.turns[0].text.strip() == text.strip()


# ---- what the user took back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "kept"), [(1, 2), (2, 0), (9, 0)])
def test_exchanges_that_the_user_of_codex_took_back_are_left_out(tmp_path: Path, number: int, kept: int) -> None:
    undo = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": number}}
    before = [codex("user", "Hi"), codex("assistant", "Hello")]
    before += [codex("user", "I live in Paris."), codex("user", PLACE), codex("assistant", "Paris.")]
    lines = [codex("user", PLACE), *before, undo, codex("user", "In Girona."), codex("assistant", "Noted.")]
    ((conversation,), warnings) = read_lines(tmp_path, lines)
    assert said(conversation) == [*["u Hi", "a Hello"][:kept], "u In Girona.", "a Noted."]
    assert any(f"{5 - kept} messages that the user took back are not shown" in warning for warning in warnings)
    assert not any("thread_rolled_back" in warning for warning in warnings)


def test_sessions_of_gemini_cli_hold_each_message_once_and_as_it_was_last_written(tmp_path: Path) -> None:
    def line(id_: str, kind: str, content: str, **more: Any) -> Json:
        return {
            "id": id_,
            "type": kind,
            "timestamp": "2026-01-01T10:00:00Z",
            "content": [{"text": content}],
            **more,
        }

    lines: list[Any] = [
        {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T10:00:00Z", "messages": []},
        {"$set": {"messages": [line("0", "user", "<session_context>\nIn /paris.\n</session_context>")]}},
        line("1", "user", "Hi"),
        line("2", "gemini", "Hel"),
        line("2", "gemini", "Hello", toolCalls=[{"id": "t", "name": "look", "args": {}}]),
        {"$set": {"lastUpdated": "2026-01-01T10:00:01Z"}},
        line("3", "user", "I live in Paris."),
        line("4", "gemini", "Paris."),
        {"$rewindTo": "3"},
        line("5", "user", "I live in Girona."),
        {"$rewindTo": ["5"]},
        {"id": ["6"], "type": ["user"]},
    ]
    ((conversation,), warnings) = read_lines(tmp_path, lines)
    assert said(conversation) == ["u Hi", "a Hello", "u I live in Girona."]
    assert [turn.speaker for turn in conversation.turns if turn.role == "other"] == ["Program", "Tool call"]
    for expected in (
        "2 messages that the user took back are not shown",
        f"1 message {SENT}",
        "2 entries without a message are not shown",
    ):
        assert any(expected in warning for warning in warnings)
    assert len(warnings) == 3


def test_sessions_of_gemini_cli_in_one_file_are_conversations(tmp_path: Path) -> None:
    def session(id_: str, *messages: Json) -> Json:
        return {"sessionId": id_, "projectHash": "h", "messages": list(messages)}

    hello = [{"type": "user", "content": "Hi"}, {"id": "2", "type": "gemini", "content": "Hello"}]
    lines = [session("a"), {"id": "1", "type": "user", "content": "I live in Girona."}, session("b", *hello)]
    found, warnings = read_lines(tmp_path, lines)
    assert {each.id: said(each) for each in found} == {"a": ["u I live in Girona."], "b": ["u Hi", "a Hello"]}
    assert warnings == []


@pytest.mark.parametrize("cut", ['[{"role": "user"},', '[{"role": "user", "content": "I live in Gir'])
def test_a_cut_list_without_a_whole_message_is_shown_as_neither(tmp_path: Path, cut: str) -> None:
    ((conversation,), (warning,)) = read(tmp_path, [{"request": cut, "response": "Noted."}])
    assert shown(conversation) == [("Program", cut), ("AI", "Noted.")]
    assert "1 list of messages is cut short in its first and shown as neither" in warning


# ---- newest first ------------------------------------------------------------------------------------------------


def letta(second: int, kind: str, id_: str, **more: Any) -> Json:
    return {"id": id_, "date": f"2026-01-01T10:00:0{second}Z", "message_type": f"{kind}_message", **more}


def test_messages_that_stand_newest_first_are_turned_around(tmp_path: Path) -> None:
    called = {"name": "note", "arguments": '{"home": "Girona"}', "tool_call_id": "t"}
    of_letta = [
        letta(4, "assistant", "4", content="Noted."),
        letta(3, "tool_return", "3", tool_return="done", tool_call_id="t"),
        letta(2, "tool_call", "2", tool_call=called),
        letta(2, "reasoning", "2", reasoning="A home."),
        letta(1, "user", "1", content="I live in Girona."),
    ]
    for written in (of_letta, {"messages": of_letta}, "\n".join(map(json.dumps, of_letta))):
        ((conversation,), (warning,)) = read(tmp_path, written)
        assert [label for label, _ in shown(conversation)] == ["User", "Thinking", "Tool call", "Tool", "AI"]
        assert NEWEST_FIRST in warning
    assert conversation.sessions[0].date is not None
    assert conversation.sessions[0].date.second == 1


@pytest.mark.parametrize("field", ["created_at", "timestamp", "createdAt"])
def test_plain_messages_and_pages_of_them_are_turned_around_too(tmp_path: Path, field: str) -> None:
    messages = [
        {"role": "user", "content": "Bye.", field: 1_767_261_607},
        {"role": "assistant", "content": "Noted.", field: 1_767_261_605},
        {"role": "user", "content": "I live in Girona.", field: 1_767_261_601},
    ]
    for written in (messages, {"messages": messages}, {"object": "list", "data": messages}):
        ((conversation,), (warning,)) = read(tmp_path, written)
        assert said(conversation) == ["u I live in Girona.", "a Noted.", "u Bye."]
        assert NEWEST_FIRST in warning


@pytest.mark.parametrize(
    ("roles", "times"),
    [
        ("auau", (200, 200, 100, 100)),
        ("auau", (200, 201, 102, 100)),
        ("uaua", (100, 100, 200, 200)),
    ],
    ids=["newest first in whole seconds", "one pair by another clock", "oldest first"],
)
def test_messages_of_assistants_are_in_the_order_of_their_times(
    tmp_path: Path, roles: str, times: tuple[int, ...]
) -> None:
    names = {"u": "user", "a": "assistant"}
    messages = [
        {"object": "thread.message", "role": names[role], "content": f"{role}{time // 100}", "created_at": time}
        for role, time in zip(roles, times, strict=True)
    ]
    expected = ["u u1", "a a1", "u u2", "a a2"] if times[0] == times[1] else ["u u1", "a a1", "a a2", "u u2"]
    for written in (messages, {"object": "list", "data": messages}):
        ((conversation,), _) = read(tmp_path, written)
        assert said(conversation) == expected


def test_a_greeting_that_a_server_dates_later_stays_first(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "Hello", "created_at": "2026-01-01T10:00:01Z"},
        {"role": "user", "content": "Hi", "created_at": "2026-01-01T10:00:00Z"},
    ]
    ((conversation,), warnings) = read(tmp_path, messages)
    assert (said(conversation), warnings) == (["a Hello", "u Hi"], [])


def test_lines_with_the_uuid_of_their_user_are_messages_of_their_own(tmp_path: Path) -> None:
    lines = [
        {"role": role, "content": text, "uuid": "user-1"} for role, text in (("user", "Hi"), ("assistant", "Hello"))
    ]
    ((conversation,), warnings) = read_lines(tmp_path, lines)
    assert (said(conversation), warnings) == (["u Hi", "a Hello"], [])


def test_a_thought_of_openhands_without_a_text_costs_nothing_else(tmp_path: Path) -> None:
    events = [
        {"source": "user", "action": "message", "args": {"content": "Hi"}},
        {"source": "agent", "action": "run", "args": {"command": "ls", "thought": [1]}},
        {"source": "agent", "action": "message", "args": {"content": "Hello"}},
    ]
    ((conversation,), _) = read(tmp_path, events)
    assert said(conversation) == ["u Hi", "a Hello"]


def test_an_answer_that_a_slow_clock_dates_before_its_question_stays_behind_it(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Hi", "created_at": "2026-01-01T10:00:01Z"},
        {"role": "assistant", "content": "Hello", "created_at": "2026-01-01T10:00:00Z"},
    ]
    ((conversation,), warnings) = read(tmp_path, messages)
    assert (said(conversation), warnings) == (["u Hi", "a Hello"], [])


@pytest.mark.parametrize(
    "times",
    [(1, 2, 3), (3, 2, None), (3, 1, 2), (2, 2, 2), (5, 1, 1)],
    ids=["oldest first", "one without a time", "mixed", "all at once", "as a rule at once"],
)
def test_other_messages_stay_as_the_file_has_them(tmp_path: Path, times: tuple[int | None, ...]) -> None:
    texts = ("Hi", "Hello", "Bye")
    messages = [
        {"role": "user", "content": text, "id": text, "created_at": time and f"2026-01-01T10:00:0{time}Z"}
        for text, time in zip(texts, times, strict=True)
    ]
    ((conversation,), warnings) = read(tmp_path, messages)
    assert (said(conversation), warnings) == ([f"u {text}" for text in texts], [])
