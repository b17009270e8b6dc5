"""One question of a run at two memories: the prompt of one held the answer, that of the other did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation
from memreplay.debugger.provenance import prompt_lines
from memreplay.engine.events import QuestionAsked
from memreplay.pages.questions import Asks, row_key, without_prefix
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import Results
from memreplay.text import shortened

_LINES: Final = 8
_BEFORE: Final = 2
_LONGEST_LINE: Final = 240
_LONGEST_REPLY: Final = 300


@dataclass(frozen=True)
class Side:
    """A memory's answer, and lines of its prompt, each with whether it is evidence."""

    memory: str
    row: QuestionRow
    lines: tuple[tuple[str, bool], ...] = ()

    @property
    def held(self) -> bool:
        return bool(self.row.answer_in_prompt)

    @property
    def reply(self) -> str:
        return shortened(self.row.predicted or self.row.reply or self.row.error or "no words", _LONGEST_REPLY)

    @property
    def is_right(self) -> bool:
        return self.row.outcome == "correct"


def telling_question(results: Results) -> tuple[Side, Side] | None:
    """Return the sides of the question that tells most: of the two memories that differ most often, the first one
    that the holder answers rightly and the other wrongly. None if no prompt holds what another lacks.
    """
    by_name = {
        name: {(*row_key(row), row.repeat): row for row in rows}
        for name, rows in contestants_of(results.questions).items()
        if without_prefix(rows[0].backend) not in CONTROLS
    }
    found: list[tuple[Side, Side]] = []
    for one, other in permutations(by_name, 2):
        for key, row in by_name[one].items():
            against = by_name[other].get(key)
            if against is not None and row.answer_in_prompt and against.answer_in_prompt is False:
                found.append((Side(one, row), Side(other, against)))
    if not found:
        return None
    often = Counter((left.memory, right.memory) for left, right in found)

    def worth(pair: tuple[Side, Side]) -> tuple[bool, int, bool]:
        left, right = pair
        is_clear = left.is_right and right.row.outcome == "wrong"
        return is_clear, often[left.memory, right.memory], left.row.kind == "recall"

    return max(found, key=worth)


def with_prompt(side: Side, conversation: Conversation, asks: Asks) -> Side:
    """Return a side with the part of its prompt around the evidence, or the beginning of what memory returned."""
    row = side.row
    answer = asks.get((row.backend, row.model, row.question_id, row.repeat))
    if answer is None:
        return side
    return Side(side.memory, row, tuple(_excerpt(conversation, answer.asked, row.evidence)))


def _excerpt(
    conversation: Conversation, asked: QuestionAsked, evidence: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    lines = [each for each in prompt_lines(conversation, asked, evidence) if each.source != "frame"]
    marked = [each.source in ("evidence", "distilled") for each in lines]
    first = max(0, (marked.index(True) if True in marked else 0) - _BEFORE)
    if first:
        yield "…", False
    for line, is_evidence in list(zip(lines, marked, strict=True))[first : first + _LINES]:
        if line.text.strip():
            yield shortened(line.text, _LONGEST_LINE), is_evidence
    if first + _LINES < len(lines) and lines[first + _LINES - 1].text.strip() != "…":
        yield "…", False
