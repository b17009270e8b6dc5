"""The embedded reader in a conversation: it answers what is asked from what is remembered, and notes the rest."""

from __future__ import annotations

import re

from app.answering.extractive.evidence import read_history
from app.answering.extractive.recall_answer import answer_recall
from app.answering.extractive.words import is_spanish

NOTED = "Noted."
"""What it says to a message that asks nothing."""

_ASKS = re.compile(
    r"[?？]|^\W*(?:tell|list|name|recite|repeat|remind|give|say|reply|answer|what|which|who|when|where|how)\b",
    re.IGNORECASE,
)


def reply_to_message(context: str, message: str) -> str:
    """A sentence or two of the context, or that it does not say; a word of confirmation to what asks nothing."""
    if not _ASKS.search(message):
        return NOTED
    return answer_recall(read_history(context, is_spanish(message)), message)
