"""Exports of messengers, which are refused: people talk to each other in them, and nobody is the assistant.

Sources of the shapes: Telegram Desktop's export (``result.json``), WhatsApp's exported text, Slack's export guide
(a folder for each channel, a file for each day), Meta's data downloads and DiscordChatExporter.
"""

from __future__ import annotations

import re
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

_WHATSAPP = re.compile(
    r"[\u200e\u200f]?\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4}, \d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"(?:[ \u202f]?[APap]\.?[Mm]\.?)?(?:\]| -) "
)


def refuse_messengers(file: DatasetFile) -> None:
    """Raises DatasetError for the export of a messenger, and says how to convert it."""
    name = _messenger(file)
    if name is not None:
        raise refusal(name, Place(file.path))


def is_whatsapp(text: str) -> bool:
    """Return whether a text begins as the lines of WhatsApp do."""
    return _WHATSAPP.match(text) is not None


def refusal(name: str, place: Place, more: str = "") -> DatasetError:
    """Return the error for the export of a messenger."""
    return place.error(
        f"is an export of {name}, in which nobody is the assistant",
        "a chat with an assistant. To replay it all the same, choose who is the assistant and write each message"
        f' as a line "User: …" or "Assistant: …" of a text file, or as {{"role", "content"}} of a list{more}',
    )


def _messenger(file: DatasetFile) -> str | None:
    first = file.first
    if not isinstance(first, dict):
        return None
    listed = first.get("messages")
    message = next((each for each in listed if isinstance(each, dict)), {}) if isinstance(listed, list) else {}
    chats = first.get("chats")
    if (isinstance(chats, dict) and "list" in chats) or _is_telegram(message):
        return "Telegram"
    if {"sender_name", "timestamp_ms"} <= set(message):
        return "Messenger or Instagram"
    if {"guild", "channel"} <= set(first):
        return "Discord"
    if _is_slack(first) or _is_slack(message):
        return "Slack"
    return None


def _is_telegram(message: dict[str, Any]) -> bool:
    return {"from_id", "date"} <= set(message) or {"actor_id", "action"} <= set(message)


def _is_slack(message: dict[str, Any]) -> bool:
    return (
        {"type", "ts"} <= set(message)
        and not {"user", "bot_id", "subtype"}.isdisjoint(message)
        and ("role" not in message and isinstance(message.get("ts"), str))
    )
