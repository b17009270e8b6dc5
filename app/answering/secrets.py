"""Keeping keys out of what is shown and saved."""

from __future__ import annotations

import os
import re

_SHORTEST_SECRET = 8
_NAMES_A_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|AIza|AKIA|key|api)[-_]?[A-Za-z0-9*_-]{12,}"
    r"|(?<=Bearer )\S+"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|\b(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{32,}\b",
    re.IGNORECASE,
)


def scrubbed(text: str) -> str:
    """The text with every value of a secret environment variable, and all that looks like a key, taken out."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _NAMES_A_SECRET.search(name):
            text = text.replace(value, "[key]")
    return _LOOKS_LIKE_A_KEY.sub("[key]", text)
