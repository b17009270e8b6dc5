"""Text from outside, as it may be printed: no character acts on a terminal, ends a line or is invisible."""

from __future__ import annotations

import json
import re

_SUSPECT = re.compile(r"[^ -~]")


def printable(text: str, keep: str = "") -> str:
    """The text with control characters, direction marks and line breaks escaped as in JSON, except ``keep``."""
    if text.isprintable():
        return text

    def shown(match: re.Match[str]) -> str:
        char = match[0]
        return char if char.isprintable() or char in keep else json.dumps(char)[1:-1]

    return _SUSPECT.sub(shown, text)
