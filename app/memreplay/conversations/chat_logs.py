"""Writing conversations in the formats of other programs. In chat logs questions have no place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memreplay.conversations.export import as_test_conversation_text, lost_in_export
from memreplay.conversations.locomo_export import as_locomo_text, lost_in_locomo
from memreplay.conversations.models import Conversation, Turn
from memreplay.errors import UsageError

_OPENAI = {"user": "user", "assistant": "assistant", "other": "system"}
_SHAREGPT = {"user": "human", "assistant": "gpt", "other": "system"}
_LABELS = {"user": "User", "assistant": "Assistant", "other": "System"}


@dataclass(frozen=True)
class LogFormat:
    """A format that can be written. ``write`` makes the file's text, ``lost`` says what it leaves out."""

    write: Callable[[Sequence[Conversation]], str]
    lost: Callable[[Conversation], Sequence[str]]
    holds_several: bool


def _as_openai(conversations: Sequence[Conversation]) -> str:
    return "".join(
        json.dumps(
            {"messages": [{"role": _OPENAI[turn.role], "content": _said(turn)} for turn in one.turns]},
            ensure_ascii=False,
        )
        + "\n"
        for one in conversations
    )


def _as_sharegpt(conversations: Sequence[Conversation]) -> str:
    written = [
        {
            "id": one.id,
            "conversations": [{"from": _SHAREGPT[turn.role], "value": _said(turn)} for turn in one.turns],
        }
        for one in conversations
    ]
    return json.dumps(written, ensure_ascii=False, indent=2) + "\n"


def _as_text(conversations: Sequence[Conversation]) -> str:
    return "".join(f"{_LABELS[turn.role]}: {_said(turn)}\n" for one in conversations for turn in one.turns)


def _as_test_conversation(conversations: Sequence[Conversation]) -> str:
    return "".join(map(as_test_conversation_text, conversations))


def _said(turn: Turn) -> str:
    """The text, with the speaker's name or the label that the format has no place for."""
    return f"{turn.speaker}: {turn.text}" if turn.speaker and turn.speaker != "System" else turn.text


def _lost_in_log(conversation: Conversation) -> list[str]:
    return list(_losses(conversation))


def _losses(conversation: Conversation) -> Iterator[str]:
    if conversation.questions:
        yield f"{len(conversation.questions)} questions"
    if len(conversation.sessions) > 1:
        yield f"the boundaries of {len(conversation.sessions)} sessions"
    if any(session.date for session in conversation.sessions):
        yield "the dates of the sessions"
    if any(turn.id != str(turn.number) for turn in conversation.turns):
        yield "the ids of the turns"


LOG_FORMATS: Mapping[str, LogFormat] = {
    "test-conversation": LogFormat(_as_test_conversation, lost_in_export, holds_several=False),
    "locomo": LogFormat(as_locomo_text, lost_in_locomo, holds_several=True),
    "openai": LogFormat(_as_openai, _lost_in_log, holds_several=True),
    "sharegpt": LogFormat(_as_sharegpt, _lost_in_log, holds_several=True),
    "text": LogFormat(_as_text, _lost_in_log, holds_several=False),
}
"""The formats of ``datasets convert``, by name."""


def log_format(name: str) -> LogFormat:
    """Raises UsageError for an unknown format."""
    if name not in LOG_FORMATS:
        raise UsageError(f"--to {name}: expected {', '.join(LOG_FORMATS)}")
    return LOG_FORMATS[name]
