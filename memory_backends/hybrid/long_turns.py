"""How much of a very long turn, such as a pasted log, the hybrid memory reads sentence by sentence."""

from __future__ import annotations

from memory_backends.base import Message
from memory_backends.hybrid.candidates import LONGEST_CONTENT
from memory_backends.hybrid.consolidation import PROMOTION_THRESHOLD, factors_of
from memory_backends.hybrid.verbatim import MOST_SENTENCES_READ
from memory_backends.stores.trace import PromotionDecision
from memory_backends.text import sentences_of


def decision_on_the_rest(message: Message) -> PromotionDecision | None:
    """The decision to read no more of a message than its beginning; None where it is read to its end."""
    sentences = sentences_of(message.text)
    unread = len(sentences) - MOST_SENTENCES_READ
    if unread <= 0:
        return None
    return PromotionDecision(
        candidate_id=f"{message.turn_number}.rest",
        content=f"{message.label}: {sentences[MOST_SENTENCES_READ]}"[:LONGEST_CONTENT],
        slot=None,
        sources=(message.turn_id,),
        factors=factors_of(0.0, 0.0, 0.0, 0),
        score=0.0,
        threshold=PROMOTION_THRESHOLD,
        decision="DROP",
        justification=(
            f"Of the {len(sentences):,} sentences of this turn the first {MOST_SENTENCES_READ:,} were looked at,"
            f" and the other {unread:,}, from this one on, were not. The turn is stored whole."
        ),
    )
