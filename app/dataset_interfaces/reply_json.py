"""JSON in a model's reply: bare, in a code fence, or with words around it."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[A-Za-z0-9_-]*\s*\n?(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")


def sanitize_and_parse_json(text: str) -> Any:
    """The JSON value in a text; ``ValueError`` where there is none.

    Tried in this order: the whole text, each fenced block, then the first list or object that parses.
    """
    for candidate in (text, *_FENCE.findall(text)):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    decoder = json.JSONDecoder()
    for opening in _OPENING.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except ValueError:
            continue
        return value
    raise ValueError("There is no JSON in the reply")
