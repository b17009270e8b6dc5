"""One question of a run at two memories: the prompt of one held the answer, that of the other did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation
from memreplay.debugger.provenance import prompt_lines
from memreplay.engine.events import QuestionAsked
from memreplay.grading.vocabulary import STOP_WORDS
from memreplay.pages.questions import Asks, row_key, without_prefix
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import Results
from memreplay.text import normalised, shortened, shortened_around

_LINES: Final = 8
_LEFT_OUT: Final = "…"
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
    return Side(side.memory, row, tuple(_excerpt(conversation, answer.asked, row)))


def _excerpt(conversation: Conversation, asked: QuestionAsked, row: QuestionRow) -> Iterator[tuple[str, bool]]:
    """Yield lines of what memory returned: those of the evidence with most words of the answer, and those around
    them.
    """
    lines = [
        each
        for each in prompt_lines(conversation, asked, row.evidence)
        if each.source != "frame" and each.text.strip()
    ]
    expected = frozenset(normalised(row.expected).split())
    words = expected - STOP_WORDS or expected
    marked = [place for place, each in enumerate(lines) if each.source in ("evidence", "distilled")]
    marked.sort(key=lambda place: -len(words.intersection(normalised(lines[place].text).split())))
    around = sorted(
        range(len(lines)), key=lambda place: min((abs(place - at) for at in marked[:_LINES]), default=place)
    )
    shown, before = "", -1
    for place in [*sorted(around[:_LINES]), len(lines)]:
        if place > before + 1 and shown != _LEFT_OUT:
            yield (shown := _LEFT_OUT), False
        if place < len(lines) and not shown == lines[place].text.strip() == _LEFT_OUT:
            yield (shown := shortened_around(lines[place].text, words, _LONGEST_LINE)), place in marked
        before = place
