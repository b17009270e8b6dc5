"""Find parts of a conversation in a context that somebody else assembled: turns word for word, session dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from memreplay.conversations.models import Conversation, Turn
from memreplay.text import normalised

_PHOTO = re.compile(r"\s*\[shares a photo: .*\]\s*\Z", re.DOTALL)
"""Text that our reader of LoCoMo adds to a turn; other harnesses put the picture elsewhere, or leave it out."""

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrtbf])|(["\\/]))')
_SHINGLE = 4
"""Words; a turn with fewer occurs in other turns too, so that its id or its speaker has to stand before it."""
_BEGUN = 6
"""Words that stand at the end of a text for a turn to count as begun there."""

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" if len(month) > 3 else month for month in _MONTHS) + "|sept"
_DAY = r"([0-3]?\d)(?:st|nd|rd|th)?"
_DATES = (
    re.compile(rf"\b{_DAY}(?: of)?[\s\-/]+({_MONTH})\b", re.IGNORECASE),
    re.compile(rf"\b({_MONTH})\.?[\s\-/]+{_DAY}\b(?!:)", re.IGNORECASE),
)
_NUMERIC = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|\b(\d{1,2})/(\d{1,2})/(\d{2,4})\b")

MonthDay = tuple[int, int]


def unescaped(text: str) -> str:
    """Return the text as it reads: many contexts are JSON inside JSON."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return " " if match[2] else match[3]

    if "\\" not in text:
        return text
    # A half of a surrogate pair cannot be stored.
    return _ESCAPE.sub(plain, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def dates_in(text: str) -> frozenset[MonthDay]:
    """Return the days that a text names, as month and day, however they are written."""
    found: set[MonthDay] = set()
    for number, form in enumerate(_DATES):
        for match in form.finditer(text):
            day, month = (match[1], match[2]) if number == 0 else (match[2], match[1])
            found.add((_month_of(month), int(day)))
    for match in _NUMERIC.finditer(text):
        if match[1]:
            found.add((int(match[2]), int(match[3])))
        else:
            found |= {(int(match[4]), int(match[5])), (int(match[5]), int(match[4]))}
    return frozenset(found)


def _month_of(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, start=1) if month[:3] == name[:3].lower())


@dataclass(frozen=True)
class SaidTurns:
    """The turns of a conversation, ready to be found in many contexts."""

    conversation: Conversation

    @cached_property
    def _words(self) -> Mapping[str, str]:
        return {turn.id: normalised(_PHOTO.sub("", turn.text)) for turn in self.conversation.turns}

    @cached_property
    def _by_shingle(self) -> Mapping[str, Sequence[Turn]]:
        found: dict[str, list[Turn]] = {}
        for turn in self.conversation.turns:
            words = self._words[turn.id].split()
            if len(words) >= _SHINGLE:
                found.setdefault(" ".join(words[:_SHINGLE]), []).append(turn)
        return found

    @cached_property
    def _short(self) -> Sequence[Turn]:
        return [turn for turn in self.conversation.turns if 0 < len(self._words[turn.id].split()) < _SHINGLE]

    def words_of(self, turn: str) -> str:
        """Return a turn's words, as they are looked for."""
        return self._words.get(turn, "")

    def within(self, text: str) -> tuple[str, ...]:
        """Return the turns whose words a text holds, all of them and in a row, in the order of the conversation."""
        words = normalised(unescaped(text)).split()
        padded = f" {' '.join(words)} "
        found = {
            turn.id
            for place in range(len(words) - _SHINGLE + 1)
            for turn in self._by_shingle.get(" ".join(words[place : place + _SHINGLE]), ())
            if f" {self._words[turn.id]} " in padded
        }
        for turn in self._short:
            before = [turn.id, *([turn.speaker] if turn.speaker else ())]
            if any(
                f" {normalised(name)} {word}{self._words[turn.id]} " in padded
                for name in before
                for word in _FIELDS
            ):
                found.add(turn.id)
        return tuple(turn.id for turn in self.conversation.turns if turn.id in found)

    def said_by(self, turn_ids: Sequence[str] | None) -> tuple[str, ...] | None:
        """Return these turns with date and speaker, as a context has them; None where one is unknown."""
        turns = [self.conversation.turns_by_id.get(turn_id) for turn_id in turn_ids or ()]
        if turn_ids is None or None in turns:
            return None
        lines = []
        for turn in turns:
            assert turn is not None
            date = self.conversation.date_of(turn)
            dated = f"{date.strftime('%d %B %Y, %H:%M')}: " if date is not None else ""
            lines.append(f"{dated}{self.conversation.label_of(turn)}: {turn.text}")
        return tuple(lines)

    def broken_off_in(self, text: str, among: Iterable[str]) -> tuple[str, ...]:
        """Return which of these turns a text begins to say at its end, and does not finish."""
        words = normalised(unescaped(text)).split()
        found = []
        for turn in among:
            said = self._words.get(turn, "").split()
            longest = min(len(said) - 1, len(words))
            if any(words[-count:] == said[:count] for count in range(longest, _BEGUN - 1, -1)):
                found.append(turn)
        return tuple(found)

    def has_date_of(self, turn: str, dates: frozenset[MonthDay]) -> bool | None:
        """Return whether these dates have that of a turn's session; None where the session has none."""
        said = self.conversation.turns_by_id.get(turn)
        date = self.conversation.date_of(said) if said is not None else None
        return None if date is None else (date.month, date.day) in dates

    @cached_property
    def session_dates(self) -> Sequence[datetime]:
        """Return the dates of the sessions that have one."""
        return [session.date for session in self.conversation.sessions if session.date is not None]

    @cached_property
    def full_text(self) -> str:
        """Return the whole conversation as a log with its dates: what a memory may at most give."""
        lines: list[str] = []
        session = None
        for turn in self.conversation.turns:
            if turn.session != session:
                session = turn.session
                date = self.conversation.date_of(turn)
                lines.append(date.strftime("%d %B %Y, %H:%M") if date is not None else "")
            lines.append(f"{self.conversation.label_of(turn)}: {turn.text}")
        return "\n".join(lines)


_FIELDS = ("", "text ", "content ", "said ", "says ")
"""Text between a speaker and the words: nothing, the name of a JSON field, or a verb."""


def context_of(memories: Sequence[str]) -> str:
    """Return the context that these memories make."""
    return "\n".join(memories)
