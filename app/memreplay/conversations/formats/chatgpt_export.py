"""ChatGPT's data export, ``conversations.json``: each conversation is a tree of messages, with one current leaf.

What is read is the path from the root to ``current_node``: answers that were replaced by another stand on other
branches. Hidden messages (weight 0) are left out. Messages of a trimmed export without links are read in the
order of their times. Source of the format: files that ChatGPT exports, and published descriptions of them; OpenAI
documents no schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memreplay.conversations.chat_logs import Chat, read_chats
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import ChatMessage, MessageReader, label_of, moment
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown

NAME = "ChatGPT export"
SIGNATURE = 'a ChatGPT export (with "mapping")'

_SAID = frozenset({"text", "multimodal_text", None})
"""Content types of what is said; code, its output and thoughts are shown only."""


def detect(file: DatasetFile) -> bool:
    return "mapping" in file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the conversations, named by their ids."""
    return read_chats(file, callbacks, _chats)


def _chats(value: Any, place: Place, reader: MessageReader) -> Iterator[Chat]:
    if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
        raise place.error(
            f"is {shown(value)}" if not isinstance(value, dict) else "no mapping",
            'an object with "mapping", an object',
        )
    messages = list(_messages(value, place.at("mapping"), reader))
    named, begun = value.get("conversation_id", value.get("id")), moment(value.get("create_time"))
    yield Chat(messages, place, named, begun, title=value.get("title"))


def _messages(written: Mapping[str, Any], place: Place, reader: MessageReader) -> Iterator[ChatMessage]:
    nodes = written["mapping"]
    for name in _order(nodes, written.get("current_node"), place, reader):
        message, at = nodes[name].get("message"), place.at(name, "message")
        if message is None:
            continue
        if not isinstance(message, dict) or not isinstance(message.get("author"), dict):
            reader.left_out.add("message", f"is {shown(message)} and is not shown", at)
            continue
        metadata = message.get("metadata")
        hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
        if message.get("weight") == 0 or hidden:
            if reader.parts(_parts(message.get("content")), at):
                reader.left_out.add("message", "that ChatGPT hides is not shown", at)
            continue
        yield from _said(message, reader, at)


def _said(message: Mapping[str, Any], reader: MessageReader, place: Place) -> Iterator[ChatMessage]:
    content, author = message.get("content"), message["author"]
    kind = content.get("content_type") if isinstance(content, dict) else None
    read = reader.message({**message, "role": author.get("role"), "content": _parts(content)}, place)
    if kind in _SAID and message.get("recipient") in (None, "all"):
        yield from read
        return
    label = label_of(str(author.get("name") or author.get("role")))
    for each in read:
        yield ChatMessage("other", each.text, label if each.role != "other" else each.label, each.at, each.id)


def _parts(content: object) -> object:
    """Return the parts of a content; those of code, quotes and thoughts stand in other fields."""
    if not isinstance(content, dict):
        return content
    if "parts" in content:
        return content["parts"]
    for name in ("text", "result", "thoughts", "content"):
        if content.get(name):
            return [{"type": "thinking", "thoughts": content[name]}] if name == "thoughts" else content[name]
    return [content[name] for name in ("user_profile", "user_instructions") if content.get(name)] or None


def _order(nodes: Mapping[str, Any], leaf: object, place: Place, reader: MessageReader) -> list[str]:
    """Return the names of the nodes from the root to the leaf, or by time where nothing links them."""
    linked = any(isinstance(node, dict) and (node.get("parent") or node.get("children")) for node in nodes.values())
    with_messages = [name for name, node in nodes.items() if isinstance(node, dict) and node.get("message")]
    if not linked and len(with_messages) > 1:
        reader.left_out.add("chat", "has no links between its messages, which are read by their times", place)
        return sorted(with_messages, key=lambda name: _time(nodes[name]["message"]))
    path = _path(nodes, leaf, place, reader)
    others = len(set(with_messages) - set(path))
    reader.left_out.add("message", "on a branch that ChatGPT does not show is not shown", place, others)
    return path


def _time(message: object) -> datetime:
    return (moment(message.get("create_time")) if isinstance(message, dict) else None) or datetime.min


def _path(nodes: Mapping[str, Any], leaf: object, place: Place, reader: MessageReader) -> list[str]:
    """Return the names of the nodes from the root to the leaf; without a leaf among them, to the last one that has
    no children.
    """
    if leaf is not None and not isinstance(nodes.get(leaf) if isinstance(leaf, str) else None, dict):
        known = [name for name, node in nodes.items() if isinstance(node, dict) and node.get("message")]
        if not known:
            raise place.error(f"has no node {shown(leaf)}", "every parent, and the current node, among the nodes")
        reader.left_out.add("chat", f"has no node {shown(leaf)}, its current one: the last branch is read", place)
        leaf = None
    if leaf is None:
        leaves = [name for name, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        leaf = leaves[-1] if leaves else None
    path: list[str] = []
    seen: set[object] = set()
    while leaf is not None:
        if not isinstance(leaf, str) or not isinstance(nodes.get(leaf), dict):
            if not any(nodes[name].get("message") for name in path):
                raise place.error(
                    f"has no node {shown(leaf)}", "every parent, and the current node, among the nodes"
                )
            reader.left_out.add("chat", f"has no node {shown(leaf)}, a parent, and is read from there on", place)
            break
        if leaf in seen:
            raise place.at(leaf).error("is its own ancestor", "a tree")
        seen.add(leaf)
        path.append(leaf)
        leaf = nodes[leaf].get("parent")
    return path[::-1]
