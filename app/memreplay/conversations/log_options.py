"""The user's options for chat logs. This module is light, since every command has these options."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogOptions:
    """How chat logs are read.

    ``session_gap`` is the silence in hours after which a session begins; ``user`` the name of the user in a
    transcript.
    """

    session_gap: float = 6.0
    user: str | None = None


DEFAULT_LOG_OPTIONS = LogOptions()
