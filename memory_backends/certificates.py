"""The certificates that memory servers are checked against: reading them takes longer than a request."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx's own choice of certificates, read once in a process."""
    return httpx.create_ssl_context()
