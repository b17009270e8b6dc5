"""Reading the history of a turn: one text, in which every message begins on a line of its own with its speaker.

Text that looks like a speaker's label at the start of a line is taken for one: the format cannot tell them apart.
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


def labels_in(text: str) -> tuple[str, str] | None:
    """The labels of user and assistant: ``User`` and ``AI`` where either begins a line, else the first two names.

    None where no line begins with a label.
    """
    found = list(dict.fromkeys(match[1] for line in text.split("\n") if (match := _LABEL.match(line))))
    if not found:
        return None
    if set(USUAL_LABELS) & set(found):
        return USUAL_LABELS
    return (found[0], found[1] if len(found) > 1 else USUAL_LABELS[1])


def read_transcript(text: str, labels: tuple[str, str], said_at: datetime | None = None) -> list[Said]:
    """The messages of a text, in order. ``said_at`` is the date that is in force where it begins.

    Lines without a label belong to the message before; before the first, they are the user's.
    """
    return [
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


def date_of_heading(line: str) -> datetime | None:
    """The date of a line such as ``[8 May 2023, 13:56]``; None of any other."""
    match = _HEADING.fullmatch(line)
    if match is None or match[2] not in MONTHS:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), int(match[4]), int(match[5]))
    except ValueError:
        return None
