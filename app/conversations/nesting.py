"""How deep JSON is nested, told while it streams by: the parser of arrays takes memory with the square of it."""

from __future__ import annotations

import re
from pathlib import Path

DEEPEST = 1024
"""As deep as values are read that are parsed whole."""

_ROUNDS = 8
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_TELLING = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)
_CHUNK = 1 << 18


class NestingGuard:
    """Hears what is read of a file, and says when it goes too deep.

    Innermost pairs of brackets are taken away a few times, and what is left is counted. That takes brackets in
    texts for structure, so where too many are left the file is looked through once more, properly.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._level = 0
        self._is_sure = False

    def too_deep(self, data: bytes) -> bool:
        """Whether, with this next piece, it goes deeper than :data:`DEEPEST`."""
        if self._is_sure:
            return False
        left = data.translate(None, _NO_BRACKETS)
        for _ in range(_ROUNDS):
            left = left.replace(b"[]", b"").replace(b"{}", b"")
        opened = left.count(b"[") + left.count(b"{")
        if self._level + opened + _ROUNDS > DEEPEST:
            self._is_sure = True
            return _depth(self._path) > DEEPEST
        self._level = max(self._level + 2 * opened - len(left), 0)
        return False


def _depth(path: Path) -> int:
    """How deep the values of a file go; no more than one beyond what is allowed is told."""
    level, deepest, in_text, rest = 0, 0, False, b""
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            data = rest + data
            rest = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
            for found in _TELLING.finditer(data[: len(data) - len(rest)]):
                match found[0]:
                    case b'"':
                        in_text = not in_text
                    case b"[" | b"{" if not in_text:
                        level += 1
                        deepest = max(deepest, level)
                    case b"]" | b"}" if not in_text:
                        level -= 1
                    case _:
                        pass
            if deepest > DEEPEST:
                break
    return deepest
