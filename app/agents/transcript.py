"""Reading the history of a turn: one text, in which every message begins on a line of its own with its speaker.

In what the assistant said, text that looks like a speaker's label at the start of a line is taken for one: the
format cannot tell them apart. The user's words are known from the turn before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memory_backends.base import Role
from memory_backends.rendering import MONTHS

USUAL_LABELS = ("User", "AI")

_LABEL = re.compile(r"([^\s:][^\n:]{0,39}): ?")
_HEADING = re.compile(r"\[(\d{1,2}) ([A-Z][a-z]+) (\d{1,4}), (\d\d):(\d\d)\]")


@dataclass(frozen=True)
class Said:
    """A message of a transcript. ``begins_session`` marks one that stands under a date line."""

    role: Role
    label: str
    text: str
    said_at: datetime | None
    begins_session: bool


def labels_in(text: str, users_words: str = "") -> tuple[str, str] | None:
    """The labels of user and assistant in a text that a message of the user follows.

    ``User`` and ``AI`` where either begins a line. Else the user's is the name that stands before ``users_words``,
    and the assistant's the next one; where none does, the assistant's is the one that spoke last. None where no
    line begins with a label.
    """
    names = _names_in(text)
    if not names or set(USUAL_LABELS) & set(names):
        return USUAL_LABELS if names else None
    for name in names if users_words else ():
        _, found, rest = f"\n{text}\n".partition(f"\n{name}: {users_words}\n")
        if found:
            return (name, next((other for other in _names_in(rest) if other != name), USUAL_LABELS[1]))
    assistant = names[-1]
    return (next((name for name in names if name != assistant), USUAL_LABELS[0]), assistant)


def _names_in(text: str) -> list[str]:
    """What stands before a colon at the start of a line, one for each such line."""
    lines = (line for line in text.split("\n") if date_of_heading(line) is None)
    return [match[1] for line in lines if (match := _LABEL.match(line))]


def read_transcript(
    text: str, labels: tuple[str, str], said_at: datetime | None = None, users_words: str = ""
) -> list[Said]:
    """The messages of a text, in order. ``said_at`` is the date that is in force where it begins.

    Lines without a label belong to the message before; before the first, they are the user's. Where the text begins
    with ``users_words``, these are one message, whatever they look like.
    """
    text = text.lstrip("\n")
    date = date_of_heading(text.partition("\n")[0])
    opening = f"{labels[0]}: {users_words}\n"
    known: list[Said] = []
    if users_words and (rest := without_heading(text)).startswith(opening):
        said_at = date or said_at
        known, text = [Said("user", labels[0], users_words, said_at, date is not None)], rest[len(opening) :]
    return known + [
        Said("user" if label == labels[0] else "assistant", label, "\n".join(lines), date, begins)
        for label, lines, date, begins in _blocks(text, labels, said_at)
    ]


def _blocks(
    text: str, labels: tuple[str, str], said_at: datetime | None
) -> Iterator[tuple[str, list[str], datetime | None, bool]]:
    label, lines, begins = "", list[str](), False
    for line in text.removesuffix("\n").split("\n"):
        heading, match = date_of_heading(line), _LABEL.match(line)
        labelled = match is not None and match[1] in labels
        if (heading or labelled) and lines:
            yield label or labels[0], lines, said_at, begins
            label, lines, begins = "", [], False
        if heading:
            said_at, begins = heading, True
        elif labelled and match is not None:
            label, lines = match[1], [line[match.end() :]]
        elif line or lines:
            lines.append(line)
    if lines:
        yield label or labels[0], lines, said_at, begins


def without_heading(text: str) -> str:
    """The text without the date line that it may begin with."""
    heading, _, rest = text.partition("\n")
    return rest if rest and date_of_heading(heading) else text


def date_of_heading(line: str) -> datetime | None:
    """The date of a line such as ``[8 May 2023, 13:56]``; None of any other."""
    match = _HEADING.fullmatch(line)
    if match is None or match[2] not in MONTHS:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), int(match[4]), int(match[5]))
    except ValueError:
        return None
