"""ShareGPT: objects with ``conversations``, a list of messages with ``from`` and ``value``.

Source of the format: the published ShareGPT files, and the data formats of FastChat and LLaMA-Factory.
"""

from __future__ import annotations

from collections.abc import Iterator

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatMessage, ChatSession, conversation_of, role_of
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "ShareGPT"
SIGNATURE = 'ShareGPT (with "conversations")'


def detect(file: DatasetFile) -> bool:
    return "conversations" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each object, named by its ``id`` or its place."""
    for number, (place, value) in enumerate(file.values(callbacks), start=1):
        try:
            conversation = _conversation(file, number, value, place)
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        yield conversation


def _conversation(file: DatasetFile, number: int, value: object, place: Place) -> Conversation:
    if not isinstance(value, dict) or not isinstance(value.get("conversations"), list):
        raise place.error(f"is {shown(value)}", 'an object with "conversations", a list')
    inside = place.at("conversations")
    messages = [_message(each, inside.at(index)) for index, each in enumerate(value["conversations"])]
    if isinstance(value.get("system"), str) and value["system"].strip():
        messages.insert(0, ChatMessage("other", value["system"], "System"))
    name = value.get("id")
    conversation_id = str(name) if isinstance(name, str | int) and str(name).strip() else f"{file.dataset}-{number}"
    return conversation_of(conversation_id, file.dataset, [ChatSession(messages)], inside)


def _message(value: object, place: Place) -> ChatMessage:
    if not isinstance(value, dict) or not isinstance(value.get("value"), str):
        raise place.error(f"is {shown(value)}", 'an object with "from" and "value", a text')
    role = role_of(value.get("from"), place.at("from"))
    return ChatMessage(role, value["value"], str(value["from"]).capitalize() if role == "other" else None)
