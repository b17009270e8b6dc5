"""How deep JSON is nested, told while it streams by: the parser of arrays takes memory with the square of it."""

from __future__ import annotations

import re
from itertools import accumulate

DEEPEST = 1024
"""As deep as values are read that are parsed whole."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NestingGuard:
    """Hears all that is read of a file, and says when it goes too deep."""

    def __init__(self) -> None:
        self._level = 0
        self._in_text = False
        self._escape = b""

    def too_deep(self, data: bytes) -> bool:
        """Whether, with this next piece, it goes deeper than :data:`DEEPEST`."""
        data = self._escape + data
        self._escape = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        piece = data[: len(data) - len(self._escape)]
        # A text that goes on from the piece before, or into the next, is given its other end.
        begun = b'"' if self._in_text else b""
        self._in_text ^= bool(_quotes(piece) % 2)
        structure = _TEXT.sub(b"", begun + piece + (b'"' if self._in_text else b"")).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEPS.__getitem__, structure), initial=self._level))
        self._level = levels[-1]
        return max(levels) > DEEPEST


def _quotes(data: bytes) -> int:
    """How many quotes begin or end a text."""
    unambiguous = data.replace(b"\\\\", b"")
    return unambiguous.count(b'"') - unambiguous.count(b'\\"')
