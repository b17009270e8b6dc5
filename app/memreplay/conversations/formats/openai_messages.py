"""OpenAI chat messages: a list of messages, or objects with ``messages`` (fine-tuning files); also as JSON Lines.

Source of the format: the Chat Completions API reference of OpenAI, and its fine-tuning guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatSession, conversation_of, read_message, read_messages
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "OpenAI messages"
SIGNATURE = 'chat messages (with "role" and "content", or "messages")'


def detect(file: DatasetFile) -> bool:
    return "messages" in file.fields or _is_message(file)


def _is_message(file: DatasetFile) -> bool:
    return "role" in file.fields and not file.fields.isdisjoint({"content", "tool_calls", "parts"})


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield one conversation for a list of messages, or one for each object that holds ``messages``."""
    if _is_message(file):
        messages = []
        for place, value in file.values(callbacks):
            try:
                messages += list(read_message(value, place))
            except DatasetError as error:
                callbacks.on_error(error)
        yield conversation_of(file.dataset, file.dataset, [ChatSession(messages)], Place(file.path))
        return
    for number, (place, value) in enumerate(file.values(callbacks), start=1):
        try:
            if not isinstance(value, dict):
                raise place.error(f"is {shown(value)}", 'an object with "messages"')
            messages = read_messages(value.get("messages"), place.at("messages"))
            name = file.dataset if file.is_one_object else f"{file.dataset}-{number}"
            conversation = conversation_of(name, file.dataset, [ChatSession(messages)], place.at("messages"))
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        yield conversation
