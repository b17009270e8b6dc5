"""Of all that was judged on account of a turn, the decision that tells what became of the fact asked for."""

from __future__ import annotations

from app.conversations.models import Question
from app.conversations.normalise import stands_in
from app.replay.ledger import Entry, Ledger


def telling_judgement(ledger: Ledger, turn_id: str, question: Question, until: int) -> Entry | None:
    """The decision to look at, of those made up to a position on candidates from a turn; None where none was.

    A candidate that holds what was expected comes before others, one that was dropped before those that were kept,
    and then the most significant.
    """
    wanted = (question.expected, *question.expected_entities)

    def weight(entry: Entry) -> tuple[bool, bool, float]:
        decision = entry[1]
        answers = any(stands_in(phrase, decision.content) for phrase in wanted)
        return answers, decision.decision == "DROP", decision.score

    return max((entry for entry in ledger.about_turn(turn_id) if entry[0] <= until), key=weight, default=None)
