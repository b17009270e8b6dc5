"""Text as it is looked for: without case and accents. Lengths change, so a place in it is none in the text."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """Text without case, accents and differences of form; punctuation and blanks stay as they are."""
    if text.isascii():
        return text.casefold()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))
