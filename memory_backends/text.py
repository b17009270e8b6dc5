"""Splits a message into sentences, each as it was said."""

from __future__ import annotations

import re

_ABBREVIATION = (
    r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bSr)(?<!\bSra)(?<!\bDra)(?<!\bvs)(?<!e\.g)(?<!i\.e)"
)
_END = re.compile(rf"{_ABBREVIATION}(?:(?<=[.!?…])|(?<=[.!?][\"”»)]))\s+|\s*\n+\s*")
_WORD = re.compile(r"\w")


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in order, without surrounding white space. A line break always ends one."""
    return [part for raw in _END.split(text) if (part := raw.strip()) and _WORD.search(part)]
