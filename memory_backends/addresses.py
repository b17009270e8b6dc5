"""Parse the address of a server once: clients connect to the address as it was parsed here.

Two parsers that disagree on the host of a malformed URL would check one machine and call another.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, unquote

_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<credentials>[^/?#\[\]]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?#].*)?"
)
_FOREIGN = re.compile(r"[^!-~]|[\\\"<>^`{|}]")
"""Characters that no URL contains unescaped, and that parsers drop, replace or read as a separator."""

_LARGEST_PORT = 65_535


@dataclass(frozen=True)
class Address:
    """A URL taken apart. ``host`` has no brackets; ``rest`` is the path with query and fragment, as written."""

    scheme: str
    host: str
    port: int | None
    rest: str = ""
    user: str = ""
    password: str = ""

    @property
    def netloc(self) -> str:
        """``host[:port]``, without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the URL, with special characters of user and password escaped."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        credentials = f"{quote(self.user, safe='')}{secret}@" if self.user or self.password else ""
        return f"{self.scheme}://{credentials}{self.netloc}{self.rest}"


def parse_address(url: str, schemes: Collection[str] = ()) -> Address:
    """Parse ``scheme://[user[:password]@]host[:port][/path]``. Without ``schemes`` any is accepted.

    Raises:
        ValueError: it is no such URL. The message says why and shows no password.
    """
    if _FOREIGN.search(url):
        raise ValueError("it contains a character that has to be percent-encoded in a URL")
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise ValueError(
            "it is not scheme://host[:port]; percent-encode special characters of a password, [ as %5B"
        )
    scheme, port = found["scheme"].lower(), found["port"]
    if schemes and scheme not in schemes:
        raise ValueError(f"its scheme is {scheme}")
    if port is not None and not 0 < int(port) <= _LARGEST_PORT:
        raise ValueError(f"port {port} is not between 1 and {_LARGEST_PORT}")
    user, _, password = (found["credentials"] or "").partition(":")
    return Address(
        scheme=scheme,
        host=found["host"].strip("[]"),
        port=None if port is None else int(port),
        rest=found["rest"] or "",
        user=unquote(user),
        password=unquote(password),
    )
