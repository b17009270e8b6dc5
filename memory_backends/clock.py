"""The real time of a write. It stands in stored records and reaches no prompt."""

from __future__ import annotations

from datetime import UTC, datetime


def system_clock() -> datetime:
    """Now, in UTC and timezone-aware."""
    return datetime.now(UTC)
