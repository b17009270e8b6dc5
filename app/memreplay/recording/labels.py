"""Reads the labels by hand of a recording. A recording that nobody labelled may have no table of them."""

from __future__ import annotations

from sqlite_utils import Database

from memreplay.llm.judging import Verdict
from memreplay.timeline.timeline import AskKey


def labels_of_conversation(db: Database, conversation: int) -> dict[AskKey, Verdict]:
    """The labelled answers of a conversation, by its key."""
    if not db.table("labels").exists():
        return {}
    query = "select backend, model, question_id, repeat, turn, by_hand, label from labels where conversation = ?"
    return {
        AskKey(backend, model, question_id, repeat, turn, bool(by_hand)): label
        for backend, model, question_id, repeat, turn, by_hand, label in db.execute(query, [conversation])
    }
