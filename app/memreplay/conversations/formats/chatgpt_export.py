"""ChatGPT's data export, ``conversations.json``: each conversation is a tree of messages, with one current leaf.

What is read is the path from the root to ``current_node``: answers that were replaced by another stand on other
branches. Hidden messages (weight 0) are left out. Source of the format: files that ChatGPT exports, and published
descriptions of them; OpenAI documents no schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatMessage, ChatSession, conversation_of, moment, role_of
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "ChatGPT export"
SIGNATURE = 'a ChatGPT export (with "mapping")'

_SAID = frozenset({"text", "multimodal_text"})
"""Content types of what is said; code, its output and thoughts are shown only."""


def detect(file: DatasetFile) -> bool:
    return "mapping" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the conversations, named by their ids. One in which nothing was said is skipped with a warning."""
    for number, (place, value) in enumerate(file.values(callbacks), start=1):
        try:
            if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
                raise place.error(f"is {shown(value)}", 'an object with "mapping", an object')
            messages = list(_messages(value, place.at("mapping")))
            if not any(message.role != "other" for message in messages):
                callbacks.on_warning(f"{place.path}: {place.pointer or '/'}: nothing is said: left out")
                continue
            name = value.get("conversation_id", value.get("id"))
            conversation_id = name if isinstance(name, str) and name.strip() else f"{file.dataset}-{number}"
            session = ChatSession(messages, moment(value.get("create_time")))
            conversation = conversation_of(conversation_id, file.dataset, [session], place)
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        yield conversation


def _messages(written: Mapping[str, Any], place: Place) -> Iterator[ChatMessage]:
    nodes = written["mapping"]
    for name in _path(nodes, written.get("current_node"), place):
        message, at = nodes[name].get("message"), place.at(name, "message")
        if message is None:
            continue
        if not isinstance(message, dict) or not isinstance(message.get("author"), dict):
            raise at.error(f"is {shown(message)}", 'a message with "author" and "content"')
        metadata = message.get("metadata")
        hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
        if message.get("weight") == 0 or hidden:
            continue
        role = role_of(message["author"].get("role"), at.at("author", "role"))
        content = message.get("content")
        if not isinstance(content, dict):
            raise at.at("content").error(f"is {shown(content)}", "an object")
        parts = content.get("parts", [content.get("text")])
        if not isinstance(parts, list):
            raise at.at("content", "parts").error(f"is {shown(parts)}", "a list")
        text = "\n".join(part for part in parts if isinstance(part, str) and part.strip())
        if not text:
            continue
        if role != "other" and (content.get("content_type") in _SAID and message.get("recipient") in (None, "all")):
            yield ChatMessage(role, text)
        else:
            label = str(message["author"].get("name") or message["author"]["role"]).capitalize()
            yield ChatMessage("other", text, label)


def _path(nodes: Mapping[str, Any], leaf: object, place: Place) -> list[str]:
    """Return the names of the nodes from the root to the leaf; without a leaf, to the last one that has no
    children.
    """
    if leaf is None:
        leaves = [name for name, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        leaf = leaves[-1] if leaves else None
    path: list[str] = []
    seen: set[object] = set()
    while leaf is not None:
        if not isinstance(leaf, str) or not isinstance(nodes.get(leaf), dict):
            raise place.error(f"has no node {shown(leaf)}", "every parent, and the current node, among the nodes")
        if leaf in seen:
            raise place.at(leaf).error("is its own ancestor", "a tree")
        seen.add(leaf)
        path.append(leaf)
        leaf = nodes[leaf].get("parent")
    return path[::-1]
