"""Chat messages as APIs, libraries and tracing tools write them, and the conversations that they make up.

The shapes: OpenAI (``role``, ``content`` as text or parts, ``tool_calls``), LangChain (``type``, or a serialized
message with ``kwargs``) and OpenTelemetry (``role`` with ``parts``). What neither the user nor the assistant says
to the other, such as a system prompt or a tool call, becomes a turn of the role ``other``.

In traces of model calls each call repeats what was said before it. The tools name threads differently, and their
calls have many shapes; what they have in common is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.models import Conversation, Session, Turn, TurnRole
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

_ROLES: Mapping[str, TurnRole] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "gpt", "chatgpt", "bot", "model", "bing", "bard"), "assistant"),
    **dict.fromkeys(
        ("system", "developer", "tool", "function", "observation", "function_call", "function_response"), "other"
    ),
}
"""The roles in use, folded, and what they are to a memory."""


@dataclass(frozen=True)
class ChatMessage:
    """A message. ``label`` names who or what is speaking where the role is ``other``."""

    role: TurnRole
    text: str
    label: str | None = None


def role_of(written: object, place: Place) -> TurnRole:
    """Raises DatasetError for a role that no format knows."""
    role = _ROLES.get(written.casefold()) if isinstance(written, str) else None
    if role is None:
        raise place.error(f"is {shown(written)}", "user, assistant, system or tool")
    return role


def read_messages(values: object, place: Place) -> list[ChatMessage]:
    """Return the messages of a list. A message without text, such as a picture, is left out.

    Raises:
        DatasetError: it is no list of messages.
    """
    if not isinstance(values, list):
        raise place.error(f"is {shown(values)}", "a list of messages")
    return [each for index, value in enumerate(values) for each in read_message(value, place.at(index))]


def read_message(value: object, place: Place) -> Iterator[ChatMessage]:
    """Yield a message, then its tool calls.

    Raises:
        DatasetError: it is no message.
    """
    if isinstance(value, dict) and isinstance(value.get("kwargs"), dict):
        names = value.get("id")
        last = str(names[-1]) if isinstance(names, list) and names else ""
        value = {"type": last.removesuffix("Chunk").removesuffix("Message").lower(), **value["kwargs"]}
    if not isinstance(value, dict):
        raise place.error(f"is {shown(value)}", 'a message with "role" and "content"')
    field = "role" if "role" in value else "type"
    role = role_of(value.get(field), place.at(field))
    label = _label(str(value[field]), value.get("name")) if role == "other" else None
    calls = list(_calls(value))
    parts = value.get("parts", value.get("content"))
    text = text_of(parts, place.at("parts" if "parts" in value else "content"))
    if text.strip():
        yield ChatMessage(role, text, label)
    for name, arguments in calls:
        yield ChatMessage("other", f"{name}({arguments})", "Tool call")
    if isinstance(parts, list):
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "tool_call_response":
                yield ChatMessage("other", _as_text(part.get("response", part.get("result"))), "Tool")


def _label(role: str, name: object) -> str:
    base = {"function": "Tool", "observation": "Tool"}.get(role.casefold(), role.capitalize())
    return f"{base} {name}" if isinstance(name, str) and name else base


def text_of(content: object, place: Place) -> str:
    """Return the text of a content: a string, or parts of which those that hold text count.

    Raises:
        DatasetError: it is neither.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise place.error(f"is {shown(content)}", "text, or a list of parts")
    return "\n".join(text for part in content if (text := _part(part)))


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "input_text", "output_text"):
        return ""
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else ""


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    listed = message.get("tool_calls")
    candidates = list(listed) if isinstance(listed, list) else []
    candidates += [message["function_call"]] if isinstance(message.get("function_call"), dict) else []
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, list):
        candidates += [
            part for part in parts if isinstance(part, dict) and part.get("type") in ("tool_call", "tool_use")
        ]
    for call in candidates:
        if not isinstance(call, dict):
            continue
        function = call["function"] if isinstance(call.get("function"), dict) else call
        arguments = function.get("arguments", function.get("args", function.get("input")))
        yield str(function.get("name", "tool")), _as_text(arguments)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def continued(history: list[ChatMessage], messages: Iterable[ChatMessage]) -> None:
    """Add the messages that are new: a call to a model repeats what was said before it."""
    messages = [each for each in messages if each.label != "System" or each not in history]
    longest = min(len(history), len(messages))
    known = next((count for count in range(longest, 0, -1) if history[-count:] == messages[:count]), 0)
    history += messages[known:]


@dataclass(frozen=True)
class ChatSession:
    """Messages that belong together, with the date of the first where it is known."""

    messages: Sequence[ChatMessage]
    date: datetime | None = None
    id: str = ""


def conversation_of(
    conversation_id: str, dataset: str, sessions: Sequence[ChatSession], place: Place
) -> Conversation:
    """Return a conversation without questions. Turn ids are 1-based numbers.

    Raises:
        DatasetError: nobody says anything in it.
    """
    turns: list[Turn] = []
    kept = [session for session in sessions if session.messages]
    for number, session in enumerate(kept, start=1):
        for message in session.messages:
            count = len(turns) + 1
            turns.append(
                Turn(
                    id=str(count),
                    number=count,
                    session=number,
                    role=message.role,
                    speaker=message.label,
                    text=message.text,
                )
            )
    if not any(turn.role != "other" for turn in turns):
        raise place.error("has no message of a user or an assistant", "at least one")
    return Conversation(
        id=conversation_id,
        dataset=dataset,
        sessions=tuple(
            Session(number=number, id=session.id or str(number), date=session.date)
            for number, session in enumerate(kept, start=1)
        ),
        turns=tuple(turns),
        questions=(),
    )


def moment(value: object) -> datetime | None:
    """Return a time as exports write it (ISO 8601, or a count since 1970), in UTC without a zone; None if it is
    none.
    """
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return parsed.astimezone(UTC).replace(tzinfo=None) if parsed.tzinfo else parsed
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1e9 if value > 1e17 else value / 1e3 if value > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=0)
    except (ValueError, OverflowError, OSError):
        return None
    return None


_TEXTS = ("input", "question", "query", "prompt", "output", "answer", "response", "text", "content", "result")
_WRAPPERS = ("messages", "message", "choices", "generations", "input", "output", "chat_history")


@dataclass(frozen=True)
class Call:
    """A call of a model or an application: its input and its output."""

    thread: str
    at: datetime | None
    order: str
    given: tuple[ChatMessage, ...]
    returned: tuple[ChatMessage, ...]


def threads(file: DatasetFile, calls: Iterable[Call], callbacks: LoadCallbacks) -> Iterator[Conversation]:
    """Yield a conversation for each thread, its calls in the order of their times."""
    by_thread: dict[str, list[Call]] = {}
    for call in calls:
        by_thread.setdefault(call.thread, []).append(call)
    if not by_thread:
        callbacks.on_error(Place(file.path).error("has no call with messages", "inputs and outputs with messages"))
    for thread, of_thread in by_thread.items():
        history: list[ChatMessage] = []
        for call in sorted(of_thread, key=lambda call: (call.at or datetime.min, call.order)):
            continued(history, call.given)
            continued(history, call.returned)
        begun = min((call.at for call in of_thread if call.at is not None), default=None)
        try:
            conversation = conversation_of(thread, file.dataset, [ChatSession(history, begun)], Place(file.path))
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        yield conversation


def messages_in(value: Any, default: TurnRole, place: Place) -> tuple[ChatMessage, ...]:
    """Return the messages of an input or an output, in any of the shapes in use; a bare text is one by
    ``default``.

    Raises:
        DatasetError: a message has an unknown role or content.
    """
    if isinstance(value, str):
        return (ChatMessage(default, value),) if value.strip() else ()
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list):
            return messages_in(value[0], default, place.at(0))
        if value and all(_is_message(each) for each in value):
            return tuple(read_messages(value, place))
        return tuple(m for i, each in enumerate(value) for m in messages_in(each, default, place.at(i)))
    if not isinstance(value, dict):
        return ()
    if _is_message(value):
        return tuple(read_message(value, place))
    for name in _WRAPPERS:
        if isinstance(value.get(name), dict | list):
            return messages_in(value[name], default, place.at(name))
    text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "")
    return (ChatMessage(default, text),) if text.strip() else ()


def _is_message(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("kwargs"), dict):
        return "content" in value["kwargs"]
    names = {"content", "parts", "tool_calls"}
    return (isinstance(value.get("role"), str) and not names.isdisjoint(value)) or (
        value.get("type") in ("human", "ai", "system", "tool") and "content" in value
    )
