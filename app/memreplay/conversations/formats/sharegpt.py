"""ShareGPT: objects with ``conversations``, a list of messages with ``from`` and ``value``.

Source of the format: the published ShareGPT files, and the data formats of FastChat and LLaMA-Factory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.chat_logs import Chat, read_chats
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatMessage, MessageReader, messages_beside
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown

NAME = "ShareGPT"
SIGNATURE = 'ShareGPT (with "conversations")'


def detect(file: DatasetFile) -> bool:
    return "conversations" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each object, named by its ``id`` or its place."""
    return read_chats(file, callbacks, _chats)


def _chats(value: Any, place: Place, reader: MessageReader) -> Iterator[Chat]:
    if not isinstance(value, dict) or not isinstance(value.get("conversations"), list):
        raise place.error(f"is {shown(value)}", 'an object with "conversations", a list')
    messages = messages_beside(value, "conversations", reader, place)
    for name, label in (("chosen", None), ("rejected", "Rejected")):
        for each in reader.message(value[name], place.at(name), "assistant") if value.get(name) else ():
            messages.append(each if label is None else ChatMessage("other", each.text, label))
    yield Chat(messages, place.at("conversations"), value.get("id"), title=value.get("title"))
