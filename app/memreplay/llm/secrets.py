"""Keeping keys out of what is shown and saved."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_SHORTEST_SECRET = 8
_SHORTEST_NAMED = 4
"""Characters of what was given as a secret and as nothing else."""
_UNMISTAKABLE = 12
"""Characters from which a secret is no word by chance."""
_NAMES_A_SECRET = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|JWT|SIG|SIGNATURE)(?:_|$)", re.IGNORECASE
)
_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|AIza|AKIA|key|api)[-_]?[A-Za-z0-9*_-]{12,}"
    r"|(?<=Bearer )\S+"
    r"|(?<=Basic )[A-Za-z0-9+/]{8,}=*"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|\b(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{32,}\b",
    re.IGNORECASE,
)

_given: set[str] = set()
"""Secrets that this process was configured with, beside those of its environment."""


def register_secret(value: str | None) -> None:
    """Let nothing that is shown or saved hold this, from now on."""
    if value is not None and len(value) >= _SHORTEST_NAMED:
        _given.update(_written(value))


def register_url_secrets(url: str | None) -> None:
    """Keep what an address lets in by to ourselves: a password, a user alone, what its query holds."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    for said in (password or user, parts.password or parts.username):
        register_secret(said)
    if password:
        register_secret(b64encode(f"{user}:{password}".encode()).decode().rstrip("="))
    for name, value in parse_qsl(parts.query):
        if len(value) >= _SHORTEST_SECRET or _NAMES_A_SECRET.search(name):
            register_secret(value)


def redact_secrets(text: str) -> str:
    """The text without any secret that is known for one."""
    return _without(text, (*_given, *_in_environment()))


def redact_reply(text: str) -> str:
    """What a model or an agent said, without the secrets in it that cannot be mistaken for words.

    A reply is scored, and a password may be the name of a city.
    """
    known = (*_given, *_in_environment())
    return _without(text, [value for value in known if len(value) >= _UNMISTAKABLE and not value.isalpha()])


def scrubbed(text: str) -> str:
    """The text without any secret that is known for one, and without all that looks like a key."""
    return _LOOKS_LIKE_A_KEY.sub("[key]", redact_secrets(text))


def _without(text: str, secrets: Iterable[str]) -> str:
    for value in sorted(secrets, key=len, reverse=True):
        text = text.replace(value, "[key]")
    return text


def _in_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _NAMES_A_SECRET.search(name):
            yield from _written(value)


def _written(value: str) -> set[str]:
    """A secret, as it stands in a text, in an address and in JSON."""
    return {value, quote(value), quote(value, safe=""), json.dumps(value)[1:-1]}
