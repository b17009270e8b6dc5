"""Text from outside as it may be shown: no character acts on a terminal, turns its direction or is invisible."""

from __future__ import annotations

import json
import re
from unicodedata import category

_SUSPECT = re.compile(r"[^ -~]")
_JOINER = "\u200d"


def printable(text: str) -> str:
    """Return the text on one line: control characters, direction marks and line breaks are escaped as in JSON."""
    return text if text.isprintable() else _SUSPECT.sub(_shown, text)


def printable_lines(text: str) -> str:
    """Return the text with its line breaks and tabs; whatever else :func:`printable` escapes is escaped."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    if char.isprintable() or category(char) == "Zs" or (char == _JOINER and _joins(match.string, match.start())):
        return char
    return json.dumps(char)[1:-1]


def _joins(text: str, place: int) -> bool:
    """Return whether a joiner stands inside an emoji. A dangling one would join with whatever is drawn beside
    it.
    """
    return all(
        beside > "\x7f" and beside != _JOINER and not beside.isspace()
        for beside in (text[place - 1 : place] or " ", text[place + 1 : place + 2] or " ")
    )
