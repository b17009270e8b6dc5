"""Keeps keys and passwords out of everything that is shown or saved."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

_SHORTEST_SECRET = 8
_SHORTEST_NAMED = 4
"""Characters of a value that was registered as a secret."""
_UNMISTAKABLE = 12
"""Characters from which a secret is unlikely to be an ordinary word."""
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
"""Secrets from the configuration, besides those in the environment."""


def register_secret(value: str | None) -> None:
    """Redact this value from now on."""
    if value is not None and len(value) >= _SHORTEST_NAMED:
        _given.update(_written(value))


def register_url_secrets(url: str | None) -> None:
    """Redact the credentials of a URL: its password, its user where there is none, and secrets in its query."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    for value in (password or user, parts.password or parts.username):
        register_secret(value)
    if password:
        register_secret(b64encode(f"{user}:{password}".encode()).decode().rstrip("="))
    for name, value in parse_qsl(parts.query):
        if len(value) >= _SHORTEST_SECRET or _NAMES_A_SECRET.search(name):
            register_secret(value)


def without_secrets(url: str | None) -> str | None:
    """Return a URL without user, password, query and fragment."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def known_secrets() -> tuple[str, ...]:
    """Return the secrets that are known now, the longest first, as they are written in text, URLs and JSON."""
    return tuple(sorted({*_given, *_in_environment()}, key=len, reverse=True))


def redact_secrets(text: str) -> str:
    """Return the text without known secrets."""
    return _without(text, (*_given, *_in_environment()))


def redact_reply(text: str) -> str:
    """Return a model's reply without secrets that cannot be ordinary words: it is scored, and a password may be a
    city.
    """
    known = (*_given, *_in_environment())
    return _without(text, [value for value in known if len(value) >= _UNMISTAKABLE and not value.isalpha()])


def scrubbed(text: str) -> str:
    """Return the text without known secrets and without anything that looks like a key."""
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
    """Return a secret as it is written in text, in a URL and in JSON."""
    return {value, quote(value), quote(value, safe=""), json.dumps(value)[1:-1]}
