"""Chat messages: a list of them, lists of lists, or objects with ``messages``; as JSON or JSON Lines.

Read are the messages of OpenAI (chat, Responses items, Assistants, fine-tuning and preference files), Anthropic
(with ``system`` beside the messages), Gemini (``contents``), the AI SDK, LangChain and chat applications
(LibreChat, Open WebUI, SillyTavern, Claude Code and Codex sessions). Sources: the API references of OpenAI,
Anthropic and Gemini, the documentation of the AI SDK (UIMessage, ModelMessage) and LangChain
(``messages_to_dict``, ``dumpd``), and the types of LibreChat, Open WebUI and Codex in their repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from memreplay.conversations.chat_logs import Chat, ChatLog, read_chats
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import (
    ChatMessage,
    MessageReader,
    is_item,
    is_message,
    side,
    system_of,
    time_of,
)
from memreplay.conversations.models import Conversation
from memreplay.conversations.traces import Call, read_calls
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "OpenAI messages"
SIGNATURE = 'chat messages (with "role" and "content", or "messages")'

_LISTS = ("messages", "contents", "chat_messages", "items", "messagesTree", "loglines")
_CONTAINERS = ("history", "conversations", "chats", "sessions", "threads", "data", "agents", "samples")
"""Fields of an object that holds a list of chats (``agents``: an agent file of Letta, ``samples``: a log of
inspect_ai)."""
_LINKS = (("messageId", "parentMessageId"), ("uuid", "parent_message_uuid"))
"""Fields with the id of a message and of the one before it, where chats have branches (LibreChat, Claude)."""
_PAIRS = (("request", "response"), ("prompt", "completion"), ("instruction", "output"))
"""Fields of the lines of request logs and fine-tuning files that hold an input and its output."""
_NO_PARENT = (None, "", "00000000-0000-0000-0000-000000000000", "00000000-0000-4000-8000-000000000000")
_RECORDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
"""The types of the lines of a Codex session."""
_ABOUT_THE_SESSION = frozenset({"session_meta", "turn_context"})
_BOOKKEEPING = frozenset(
    (
        *("summary", "file-history-snapshot", "progress", "queue-operation", "custom-title", "system", "mode"),
        *("permission-mode", "ai-title", "last-prompt", "agent-name", "worktree-state", "pr-link", "cost-state"),
    )
)
"""The types of the lines of a Claude Code session that are no messages."""
_MADE_BY_THE_PROGRAM = ("isMeta", "isCompactSummary")
"""Marks of messages that Claude Code sends in the user's name."""
_TAGGED = re.compile(r"\s*(?:<([a-z]+(?:[-_][a-z]+)+)>(?:(?!</\1>).)*</\1>\s*)+", re.DOTALL)
"""Matches what an agent program sends in the user's name, such as the output of a command."""


def detect(file: DatasetFile) -> bool:
    fields = file.fields
    if not fields.isdisjoint({*_LISTS, "chosen", "preferred_output", "chat"} - {"items"}):
        return True
    if _listed_chats(file.first) is not None or _pair(file.first) is not None:
        return True
    return isinstance(file.first, list) or _is_listed(file.first) or _inside(file.first) is not None


def _inside(value: object) -> tuple[str, Any] | None:
    """Return the object or the list that holds the messages of a value, with its field.

    These are the state of a graph (``values``), the store of LobeChat (``state``, ``data``), a prompt of AI Studio,
    a page of messages (``data``) and a response (``output``).
    """
    if not isinstance(value, dict):
        return None
    for name in ("values", "channel_values", "state", "checkpoint", "data", "chunkedPrompt"):
        inside = value.get(name)
        if isinstance(inside, dict) and (
            not {"messages", "chunks"}.isdisjoint(inside) or _inside(inside) is not None
        ):
            return name, inside
    for name, mark in (("data", "list"), ("output", "response")):
        listed = value.get(name)
        if value.get("object") == mark and isinstance(listed, list) and listed and all(map(is_message, listed)):
            return name, listed
    return None


def _pair(value: object) -> tuple[str, str] | None:
    """Return the fields with an input and its output, where a value has nothing else to say."""
    if not isinstance(value, dict):
        return None
    return next((pair for pair in _PAIRS if value.keys() >= set(pair)), None)


def _listed_chats(value: object) -> str | None:
    """Return the field that holds a list of chats."""
    if not isinstance(value, dict):
        return None
    for name in _CONTAINERS:
        listed = value.get(name)
        if (
            isinstance(listed, list)
            and (chats := [each for each in listed if isinstance(each, dict)])
            and not any(each.keys().isdisjoint(_LISTS) for each in chats)
        ):
            return name
    return None


def _is_listed(first: object) -> bool:
    """Return whether the values of a file are messages, and not objects that hold them."""
    if not isinstance(first, dict):
        return False
    if "parentUuid" in first or _text(first, "type") in _RECORDS | _BOOKKEEPING:
        return True
    if _begins_a_session(first):
        return True
    if {"user_name", "character_name"} <= set(first):
        return True
    return is_message(first) or is_item(first)


def _begins_a_session(value: Mapping[str, Any]) -> bool:
    """Return whether a line is the first one of a Codex session of before September 2025."""
    return {"id", "timestamp", "instructions"} <= value.keys() and value.keys().isdisjoint(
        {"role", "content", "type"}
    )


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield one conversation for a list of messages, or one for each object that holds ``messages``."""
    if not file.fields.isdisjoint({"values", "checkpoint"}) and not file.fields.isdisjoint({"next", "config"}):
        yield from read_calls(file, callbacks, _states)
        return
    if not _is_listed(file.first) or "chat_messages" in file.fields:
        yield from read_chats(file, callbacks, _chats)
        return
    log = ChatLog(file, callbacks)
    written: dict[str | int, tuple[Place, Any]] = {}
    for place, value in file.values(log.callbacks):
        log.values_go_on()
        key = (_text(value, "uuid") if "parentUuid" in _object(value) else None) or len(written)
        if key in written:
            log.reader.left_out.add("message", "that stands again with the same uuid is shown once", place)
        written[key] = (place, value)
    lines: list[_Line] = []
    for place, value in log.reader.oldest_first(list(written.values())):
        undone = _undone(value)
        if undone:
            _undo(lines, undone, log.reader)
        else:
            lines.append((value, place, _listed(value, place, log.reader)))
    sessions = _sessions(lines)
    for session, of_session in sessions.items():
        messages = _without_rewound(of_session, log.reader)
        if _object(file.first).get("object") == "thread.message":
            messages = _by_time(messages)
        yield from log.conversations(Chat(messages, Place(file.path), session if len(sessions) > 1 else None))
    log.finish()


_Line = tuple[Any, Place, list[ChatMessage]]


def _by_time(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of OpenAI's lists in the order of their times, which are in whole seconds: those of one
    time stay as they are where the list begins with the oldest, and are turned around elsewhere.
    """
    groups = [list(group) for _, group in groupby(messages, key=lambda each: each.id or id(each))]
    times = [each.at for each in messages if each.at is not None]
    if times and times[0] > times[-1]:
        groups.reverse()
    groups.sort(key=lambda group: (group[0].at is None, group[0].at))
    return [each for group in groups for each in group]


def _undone(value: Any) -> int:
    """Return how many exchanges the user of Codex takes back with a line."""
    payload = _object(_object(value).get("payload"))
    number = payload.get("num_turns") if payload.get("type") == "thread_rolled_back" else None
    return max(0, number) if isinstance(number, int) else 0


def _undo(lines: list[_Line], number: int, reader: MessageReader) -> None:
    """Remove the last exchanges, each from what the user said on."""
    first = index = len(lines)
    while number and index:
        index -= 1
        if _is_the_users(lines[index][2]):
            number, first = number - 1, index
    for _, place, said in lines[first:]:
        reader.left_out.add("message", "that the user took back is not shown", place, len(said))
    del lines[first:]


def _sessions(lines: Sequence[_Line]) -> dict[str | None, list[_Line]]:
    """Return the lines of each session of Claude Code: a file may hold several, one of which may continue another.

    A line that names none belongs to the session of the line before it; at the beginning, to the first one.
    """
    of_message: dict[str, str] = {}
    found: dict[str | None, list[_Line]] = {}
    same: dict[str, str] = {}
    current = next((named for value, _, _ in lines if (named := _session_of(value)) is not None), None)
    for line in lines:
        id_, parent, named = _text(line[0], "uuid"), _parent_of(line[0]), _session_of(line[0])
        if id_ is not None and named is not None:
            current = same.setdefault(named, of_message.get(parent or id_, named))
            of_message.setdefault(id_, current)
        found.setdefault(current, []).append(line)
    return found or {None: []}


def _parent_of(value: Any) -> str | None:
    return _text(value, "parentUuid") or _text(value, "logicalParentUuid")


def _session_of(value: Any) -> str | None:
    return _text(value, "sessionId") if _text(value, "uuid") is not None else None


def _states(value: Any, place: Place, reader: MessageReader) -> Iterator[Call]:
    """Yield a state of a LangGraph thread: each one repeats the messages of those before it."""
    checkpoint = value.get("checkpoint") if isinstance(value, dict) else None
    checkpoint = checkpoint if isinstance(checkpoint, dict) else {}
    name = "values" if "values" in value else "channel_values"
    inside = value.get("values") if name == "values" else checkpoint.get(name)
    if not isinstance(inside, dict):
        raise place.error(
            "has no values", 'a state with "values", or a checkpoint with "channel_values", an object'
        )
    config = value.get("config")
    about = {**checkpoint, **_object(_object(config).get("configurable"))}
    yield Call(
        thread=str(about.get("thread_id") or place.path.stem),
        at=time_of(value) or time_of(checkpoint),
        order=str(about.get("checkpoint_id") or about.get("id") or ""),
        given=tuple(reader.messages(inside.get("messages") or [], place.at(name, "messages"))),
        returned=(),
        place=place,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any, place: Place, reader: MessageReader) -> list[ChatMessage]:
    """Return what a line or an element comes to: a message, or a record of a session that holds one."""
    if isinstance(value, dict):
        if {"user_name", "character_name"} <= set(value) or _begins_a_session(value):
            return []
        if value.get("record_type") == "state":
            return []
        kind, payload = _text(value, "type"), value.get("payload")
        if kind in _RECORDS and isinstance(payload, dict):
            if kind != "response_item":
                inner = payload.get("type")
                what = f"of type {kind} ({inner})" if isinstance(inner, str) else f"of type {kind}"
                if kind not in _ABOUT_THE_SESSION:
                    reader.left_out.add("record", f"{what} is not shown", place)
                return []
            said = reader.message({"timestamp": value.get("timestamp"), **payload}, place.at("payload"))
            return _by_whom(value, said, place, reader)
        if kind in _BOOKKEEPING and "role" not in value and not isinstance(value.get("message"), dict):
            reader.left_out.add("entry", f"of type {kind} is not shown", place)
            return []
        if value.get("isSidechain") is True or value.get("parent_tool_use_id"):
            reader.left_out.add("message", "of a helper agent is not shown", place)
            return []
        if kind == "attachment" and isinstance(value.get("attachment"), dict):
            return _attached(value, value["attachment"], place, reader)
        if "parentUuid" in value or value.get("type") == "message":
            return _by_whom(value, reader.message(value, place), place, reader)
    return reader.message(value, place)


def _attached(
    value: Mapping[str, Any], attachment: Mapping[str, Any], place: Place, reader: MessageReader
) -> list[ChatMessage]:
    """Return what Claude Code attaches: a file, or what was typed, or sent by a program, while it worked."""
    if attachment.get("type") == "queued_command":
        said = reader.message({**value, "role": "user", "content": attachment.get("prompt")}, place)
        return _by_whom(attachment, said, place, reader)
    if "filename" in attachment:
        return reader.message(value, place)
    reader.left_out.add("entry", f"of type attachment ({attachment.get('type')}) is not shown", place)
    return []


def _without_rewound(lines: Sequence[_Line], reader: MessageReader) -> list[ChatMessage]:
    """Return the messages of lines, without what the user took back: Claude Code keeps it on a branch of its own.

    A branch begins with what the user says. The results of tools that were called side by side are branches too.
    """
    parents: dict[str | None, str | None] = {
        id_: _parent_of(value)
        for value, _, _ in lines
        if (id_ := _text(value, "uuid")) is not None and value.get("isSidechain") is not True
    }
    kept: set[str | None] = set()
    leaf = next((id_ for value, _, said in lines[::-1] if said and (id_ := _text(value, "uuid")) in parents), None)
    while leaf is not None and leaf not in kept:
        kept.add(leaf)
        leaf = parents.get(leaf)
    siblings = {parents.get(each) for each in kept}
    roots = {id_ for id_ in kept if parents.get(id_) is None}
    if not any(_text(value, "uuid") in roots and _is_the_users(said) for value, _, said in lines):
        siblings.discard(None)  # it goes on from a summary, which nothing links to what it sums up
    dropped: set[str | None] = set()
    messages: list[ChatMessage] = []
    for value, place, said in lines:
        id_ = _text(value, "uuid")
        parent = parents.get(id_)
        begins = (
            parent in siblings and id_ not in kept and _is_the_users(said) and value.get("type") != "attachment"
        )
        if id_ in parents and (begins or parent in dropped):
            dropped.add(id_)
            reader.left_out.add("message", "on another branch is not shown", place, len(said))
        else:
            messages += said
    return messages


def _is_the_users(said: Sequence[ChatMessage]) -> bool:
    return any(each.role == "user" for each in said)


def _text(value: Any, name: str) -> str | None:
    """Return a field that holds a text."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None


def _by_whom(
    value: Mapping[str, Any], said: list[ChatMessage], place: Place, reader: MessageReader
) -> list[ChatMessage]:
    """Return the messages of an agent's session, with those that its program made told from the user's."""
    is_made = (
        any(value.get(mark) is True for mark in _MADE_BY_THE_PROGRAM)
        or _object(value.get("origin")).get("kind") not in (None, "human")
        or value.get("commandMode") not in (None, "prompt")
    )
    is_error = value.get("isApiErrorMessage") is True
    return [
        replace(reader.of_the_program(each.text, place), at=each.at, id=each.id)
        if is_error or (each.role == "user" and (is_made or _TAGGED.fullmatch(each.text)))
        else each
        for each in said
    ]


def _chats(value: Any, place: Place, reader: MessageReader) -> Iterator[Chat | DatasetError]:
    """Yield the chat of an object or a list."""
    if isinstance(value, list):
        yield Chat(reader.messages(value, place), place)
        return
    if not isinstance(value, dict):
        raise place.error(f"is {shown(value)}", 'an object with "messages"')
    several = None if not value.keys().isdisjoint(_LISTS) else _listed_chats(value)
    if several is not None:
        for index, each in enumerate(value[several]):
            try:
                yield from _chats(each, place.at(several, index), reader)
            except DatasetError as error:
                yield error
        return
    pair = _pair(value) if value.keys().isdisjoint((*_LISTS, "chosen", "rejected")) else None
    if pair is not None:
        asked = side(value[pair[0]], "user", reader, place.at(pair[0]))
        if pair[0] == "instruction" and value.get("input"):
            asked = (*asked, *side(value["input"], "user", reader, place.at("input")))
        answered = side(value[pair[1]], "assistant", reader, place.at(pair[1]))
        yield Chat([*asked, *answered], place, date=time_of(value))
        return
    found = None if "messages" in value else _inside(value)
    if found is not None:
        yield from _chats_inside(value, *found, place, reader)
        return
    inner = value.get("chat")
    if isinstance(inner, dict):
        value = {**{name: value[name] for name in ("id", "title", "created_at") if name in value}, **inner}
        place = place.at("chat")
    name = next((name for name in _LISTS if name in value), "messages")
    written = value.get(name)
    if isinstance(written, dict) and isinstance(value.get("currentId"), str):
        written = list(_branch(written, value["currentId"]))
    history = value.get("history")
    if isinstance(history, dict) and isinstance(history.get("messages"), dict):
        written = list(_branch(history["messages"], history.get("currentId"))) or written
    messages: list[ChatMessage] = []
    if written is None and not {"chosen", "preferred_output", "rejected"}.isdisjoint(value):
        given = value.get("input", value.get("prompt"))
        messages += side(given, "user", reader, place) if given else ()
    else:
        if name == "loglines" and isinstance(written, list):
            for index, each in enumerate(written):
                messages += _listed(each, place.at(name, index), reader)
        else:
            shown_branch = _newest_branch(written, place.at(name), reader)
            messages += system_of(value, reader, place) + reader.messages(shown_branch, place.at(name))
    messages += _preferred(value, reader, place, messages)
    named = next((value[key] for key in ("conversationId", "uuid", "id", "thread_id") if value.get(key)), None)
    title = next(
        (value[key] for key in ("title", "name", "character_name") if isinstance(value.get(key), str)), None
    )
    known = named if name != "messages" or _is_export(value) else None
    yield Chat(messages, place.at(name), known, time_of(value), title=title)


def _chats_inside(
    value: Mapping[str, Any], name: str, inside: Any, place: Place, reader: MessageReader
) -> Iterator[Chat | DatasetError]:
    at = place.at(name)
    if name == "chunkedPrompt":
        chunks = reader.messages(inside.get("chunks"), at.at("chunks"))
        yield Chat([*system_of(value, reader, place), *chunks], at)
    elif name == "data" and isinstance(inside, list):
        yield Chat(_by_time(reader.messages(inside, at)), at)
    elif name == "output":
        asked = side(value["input"], "user", reader, place.at("input")) if value.get("input") else ()
        yield Chat([*system_of(value, reader, place), *asked, *reader.messages(inside, at)], at, value.get("id"))
    elif isinstance(inside.get("messages"), list) and any(
        isinstance(each, dict) and "sessionId" in each for each in inside["messages"]
    ):
        topics: dict[str, list[ChatMessage]] = {}
        for index, each in enumerate(inside["messages"]):
            topic = str(each.get("topicId") or each.get("sessionId")) if isinstance(each, dict) else ""
            topics.setdefault(topic, []).extend(reader.message(each, at.at("messages", index)))
        for topic, messages in topics.items():
            yield Chat(messages, at.at("messages"), topic)
    else:
        yield from _chats(inside, at, reader)


def _is_export(value: Mapping[str, Any]) -> bool:
    return any(name in value for name in ("conversationId", "title", "uuid", "currentId", "history"))


def _branch(nodes: Mapping[str, Any], leaf: object) -> Iterator[Any]:
    """Yield the messages from the root to the leaf of Open WebUI's tree."""
    path: list[Any] = []
    while isinstance(leaf, str) and isinstance(nodes.get(leaf), dict) and len(path) <= len(nodes):
        path.append(nodes[leaf])
        leaf = nodes[leaf].get("parentId")
    yield from path[::-1]


def _newest_branch(written: Any, place: Place, reader: MessageReader) -> Any:
    """Return the messages on the branch of the newest one, where messages have branches or hold their answers."""
    if not isinstance(written, list) or not all(isinstance(each, dict) for each in written):
        return written
    nested = any(isinstance(each.get("children"), list) for each in written)
    messages = list(_flat(written)) if nested else written
    names = next((pair for pair in _LINKS if messages and all(pair[0] in each for each in messages)), None)
    if names is None:
        return messages
    by_id = {each[names[0]]: each for each in messages if isinstance(each[names[0]], str)}
    parents = [each.get(names[1]) for each in messages]
    if len(by_id) < len(messages) or any(each not in by_id and each not in _NO_PARENT for each in parents):
        return messages
    if len(set(parents)) == len(parents) or by_id.keys().isdisjoint(parents):
        return messages
    path: list[Any] = []
    leaf = max(messages, key=lambda each: time_of(each) or datetime.min) if not nested else messages[-1]
    while leaf is not None and len(path) <= len(messages):
        path.append(leaf)
        leaf = by_id.get(leaf.get(names[1]))
    reader.left_out.add("message", "on another branch is not shown", place, len(messages) - len(path))
    return path[::-1]


def _flat(written: list[Any]) -> Iterator[Any]:
    """Yield messages before their answers, which LibreChat puts into ``children``."""
    waiting = written[::-1]
    while waiting:
        message = waiting.pop()
        if isinstance(message, dict):
            yield message
            children = message.get("children")
            waiting += children[::-1] if isinstance(children, list) else []


def _preferred(
    value: Mapping[str, Any], reader: MessageReader, place: Place, before: list[ChatMessage]
) -> list[ChatMessage]:
    """Return the answers of preference data: the chosen one is said, the other one is shown."""
    found: list[ChatMessage] = []
    for names, said in ((("preferred_output", "chosen"), True), (("non_preferred_output", "rejected"), False)):
        name = next((name for name in names if value.get(name)), None)
        if name is None:
            continue
        answer = [each for each in side(value[name], "assistant", reader, place.at(name)) if each not in before]
        found += (
            answer
            if said
            else [ChatMessage("other", each.text, "Rejected") for each in answer if each.role != "user"]
        )
    return found
