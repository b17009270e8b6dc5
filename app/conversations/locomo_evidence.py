"""Evidence that LoCoMo publishes, for LoCoMo-MC10 rows, which name none.

The n-th question of a conversation in ``locomo10.json`` is the row ``{sample_id}_q{n}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.conversations.listener import Listener
from app.conversations.locomo import load_locomo
from app.conversations.models import Conversation, Question


@dataclass(frozen=True)
class SampleEvidence:
    """The questions of one conversation by id, and how many turns each of its sessions has."""

    questions: dict[str, Question]
    turns_by_session: dict[int, int]

    def is_of(self, turns_by_session: dict[int, int]) -> bool:
        """Whether sessions of these lengths are this conversation: else its turn ids would name other turns."""
        return self.turns_by_session == turns_by_session


EvidenceIndex = dict[str, SampleEvidence]
"""By ``sample_id``."""


def evidence_index(paths: Iterable[Path], listener: Listener) -> EvidenceIndex:
    """The evidence in locomo10 files; of a conversation that several hold, the first file's."""
    index: EvidenceIndex = {}
    for path in paths:
        for conversation in load_locomo(path, path.stem, listener):
            index.setdefault(conversation.id, _sample_evidence(conversation))
    return index


def _sample_evidence(conversation: Conversation) -> SampleEvidence:
    return SampleEvidence(
        questions={question.id: question for question in conversation.questions},
        turns_by_session=count_by_session([turn.session for turn in conversation.turns]),
    )


def count_by_session(sessions_of_turns: Sequence[int]) -> dict[int, int]:
    """How many turns lie in each session, given the session number of every turn."""
    return {number: sessions_of_turns.count(number) for number in dict.fromkeys(sessions_of_turns)}
