"""Conversations put together from traces of model calls: each call repeats what was said before it.

The tools name threads differently, and their calls have many shapes; what they have in common is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memreplay.conversations.formats.messages import (
    ChatMessage,
    ChatSession,
    continued,
    conversation_of,
    read_message,
    read_messages,
)
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.models import Conversation, TurnRole
from memreplay.conversations.validation_errors import LoadCallbacks, Place
from memreplay.errors import DatasetError

_TEXTS = ("input", "question", "query", "prompt", "output", "answer", "response", "text", "content", "result")
_WRAPPERS = ("messages", "message", "choices", "generations", "input", "output", "chat_history")


@dataclass(frozen=True)
class Call:
    """What went into a model or an application, and what came out of it."""

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
    """The messages of an input or an output, in any of the shapes in use; a bare text is one by ``default``.

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
