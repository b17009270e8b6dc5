"""Large texts are stored once, by content: in an event's JSON a reference stands in their place.

A reference is ``{"$": hash}``. A one-key object of the data that looks like one gets another ``$``, so that
nothing in a conversation can be mistaken for a reference.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

LONG = 160
"""Texts of this many characters and more are stored once."""

_MARK = "$"


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def intern(value: Any, keep: Callable[[str, str], None]) -> Any:
    """Replace long texts by references; ``keep`` is given each as (hash, text)."""
    match value:
        case str() if len(value) >= LONG:
            digest = text_hash(value)
            keep(digest, value)
            return {_MARK: digest}
        case dict():
            interned = {key: intern(item, keep) for key, item in value.items()}
            return {_escaped(key): item for key, item in interned.items()} if len(interned) == 1 else interned
        case list() | tuple():
            return [intern(item, keep) for item in value]
        case _:
            return value


def resolve(value: Any, look_up: Callable[[str], str]) -> Any:
    """Put the texts back in the place of their references."""
    match value:
        case {"$": str(digest)} if len(value) == 1:
            return look_up(digest)
        case dict():
            resolved = {key: resolve(item, look_up) for key, item in value.items()}
            return {_unescaped(key): item for key, item in resolved.items()} if len(resolved) == 1 else resolved
        case list():
            return [resolve(item, look_up) for item in value]
        case _:
            return value


def _is_mark(key: str) -> bool:
    return bool(key) and set(key) == {_MARK}


def _escaped(key: str) -> str:
    return key + _MARK if _is_mark(key) else key


def _unescaped(key: str) -> str:
    return key[:-1] if _is_mark(key) else key
