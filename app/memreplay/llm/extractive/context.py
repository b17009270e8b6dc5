"""Parses the history in a prompt into lines: who said what, and when.

Memories lay it out as ``[date] Speaker: text``, as headings with a date above ``Speaker: text`` lines, or as
bullets of distilled facts. A line without a speaker continues the line above it.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from memory_backends.text import sentences_of
from memreplay.llm.extractive.dates import absolute_spans

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_STAMP = re.compile(r"^\s*[\[(](?P<stamp>[^\])]{4,60})[\])]\s*")
_LABEL = re.compile(r"^\s*\[?(?P<label>[^\W\d_][\w.'’ -]{0,39}?)\]?\s*(?:\((?P<stamp>[^)]{4,60})\))?:\s+(?=\S)")
ROLES = frozenset({"user", "ai", "assistant", "human", "agent"})
"""Labels that are not names, folded."""

_LONGEST_HEADING = 90


class Line(NamedTuple):
    """What one speaker said. ``block`` is the number of its section: lines under one heading share it."""

    speaker: str | None
    text: str
    said: date | None
    block: int

    @property
    def sentences(self) -> list[str]:
        return sentences_of(self.text)


@lru_cache(maxsize=8)
def read_lines(context: str) -> tuple[Line, ...]:
    """The lines of a history, in order. Cached, since many questions share a history."""
    only_roles = sum(1 for row in context.split("\n") if _role_label(row)) > 0
    lines: list[Line] = []
    said: date | None = None
    block = 0
    for row in context.split("\n"):
        if not row.strip():
            continue
        body = _BULLET.sub("", row)
        bullet = body is not row and body != row
        own = said
        stamp = _STAMP.match(body)
        if stamp and (found := _date_in(stamp.group("stamp"))):
            own, body = found, body[stamp.end() :]
        label = _LABEL.match(body)
        if label and only_roles and label.group("label").casefold() not in ROLES:
            label = None
        if label and label.group("stamp") and (found := _date_in(label.group("stamp"))):
            own = found
        if label:
            lines.append(Line(label.group("label"), body[label.end() :].strip(), own, block))
        elif _is_heading(row):
            block += 1
            said = _date_in(row) or said
        elif bullet or stamp or not lines or lines[-1].block != block:
            if body.strip():
                lines.append(Line(None, body.strip(), own, block))
        else:
            last = lines[-1]
            lines[-1] = last._replace(text=last.text + "\n" + body.strip())
    return tuple(lines)


def _role_label(row: str) -> bool:
    label = _LABEL.match(_STAMP.sub("", _BULLET.sub("", row)))
    return bool(label) and label is not None and label.group("label").casefold() in ROLES


def _date_in(text: str) -> date | None:
    spans = absolute_spans(text)
    return spans[0].start if spans and spans[0].days == 1 else None


def _is_heading(row: str) -> bool:
    """A short line, marked as a heading, or with a date and without the end of a sentence."""
    text = row.strip()
    if len(text) > _LONGEST_HEADING:
        return False
    marked = text.startswith(("#", "==", "--", "[")) and text.rstrip("]")[-1:] not in ".!?"
    return marked or text.endswith(":") or (_date_in(text) is not None and text[-1] not in ".!?")
