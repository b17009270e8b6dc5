"""Plain text with a label before each message, ``User:`` or ``Assistant:``. A message may have several lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memreplay.conversations.chat_logs import ChatSession, conversation_of
from memreplay.conversations.json_files import DatasetFile, read_text
from memreplay.conversations.messages import ChatMessage, role_of
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place

NAME = "plain text"
SIGNATURE = 'text that begins with "User:" or "Assistant:"'

_LABEL = re.compile(
    r"^[ \t]*(?:\*\*|#{1,4}[ \t]+)?(user|human|assistant|ai|bot|chatgpt|system|tool)"
    r"(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)


def begins_with_label(text: str) -> bool:
    """Return whether the first line with content begins with the label of a speaker."""
    return _LABEL.match(text.lstrip()) is not None


def detect(file: DatasetFile) -> bool:
    return file.container == "text"


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the one conversation of the file."""
    text, place = read_text(file.path), Place(file.path)
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    messages = []
    for label, end in zip(labels, ends, strict=True):
        said = text[label.end() : end].strip()
        role = role_of(label[1], place)
        if said:
            messages.append(ChatMessage(role, said, label[1].capitalize() if role == "other" else None))
    yield conversation_of(file.dataset, file.dataset, [ChatSession(messages)], place)
