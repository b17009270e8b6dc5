"""ConvoMem: evidence items, each a question, its conversations, and the messages that hold the answer.

Source of the format: Pakhomov et al., "ConvoMem Benchmark", and ``EvidenceSchema.scala`` in its repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.chat_logs import Chat, ChatLog, ChatSession
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.models import UNTYPED, Conversation, Question
from memreplay.conversations.validation_errors import LoadCallbacks, Place
from memreplay.errors import DatasetError
from memreplay.text import normalised

NAME = "ConvoMem"
SIGNATURE = 'ConvoMem items (with "evidence_items", or "message_evidences" and "conversations")'

_ITEM = frozenset({"question", "answer", "conversations"})


def detect(file: DatasetFile) -> bool:
    return "evidence_items" in file.fields or file.fields >= {"message_evidences", "conversations"}


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation with one question for each item. Skips an invalid one unless ``on_error`` raises."""
    log = ChatLog(file, callbacks)
    for place, value in file.values(callbacks, ("evidence_items", "message_evidences", "conversations")):
        listed = value.get("evidence_items") if isinstance(value, dict) else None
        items = (
            [(place.at("evidence_items", i), each) for i, each in enumerate(listed)] if listed else [(place, value)]
        )
        for at, item in items:
            try:
                yield from _conversations(item, at, log)
            except DatasetError as error:
                callbacks.on_error(error)
    log.finish()


def _conversations(item: Any, place: Place, log: ChatLog) -> Iterator[Conversation]:
    if not isinstance(item, dict) or not set(item) >= _ITEM or not isinstance(item["conversations"], list):
        raise place.error("is no item", 'an object with "question", "answer" and "conversations", a list')
    sessions = []
    for index, each in enumerate(item["conversations"]):
        at = place.at("conversations", index)
        messages = each.get("messages") if isinstance(each, dict) else each
        identity = str(each.get("id") or "") if isinstance(each, dict) else ""
        sessions.append(ChatSession(log.reader.messages(messages, at.at("messages")), id=identity))
    for conversation in log.conversations(Chat((), place, item.get("id"), sessions=sessions)):
        question = _question(conversation, item, place, log)
        yield conversation.model_copy(update={"questions": (question,)})


def _question(conversation: Conversation, item: dict[str, Any], place: Place, log: ChatLog) -> Question:
    """Return the question with its evidence: the turns that say what the item quotes."""
    quoted = item.get("message_evidences")
    quotes = [str(each.get("text") or "") for each in quoted if isinstance(each, dict)] if quoted else []
    by_text = {normalised(turn.text): turn.id for turn in conversation.turns if turn.role != "other"}
    evidence = tuple(dict.fromkeys(by_text[normalised(each)] for each in quotes if normalised(each) in by_text))
    missing = sum(normalised(each) not in by_text for each in quotes)
    log.reader.left_out.add("piece of evidence", "stands in no turn", place.at("message_evidences"), missing)
    return Question(
        id=f"{conversation.id}-q",
        kind="recall",
        type=str(item.get("evidence_type") or item.get("category") or UNTYPED),
        text=str(item["question"]),
        expected=str(item["answer"]),
        abstain=bool(not quotes),
        evidence=evidence,
        evidence_role="supports" if evidence else None,
    )
