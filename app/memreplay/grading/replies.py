"""What of a reply is read: no reasoning, and not all of a reply without end."""

from __future__ import annotations

import re

_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
# Some servers drop the opening tag, so everything before a closing tag is reasoning.
_CLOSED = re.compile(r"\A.*</" + _TAG + r"\s*>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<" + _TAG + r"\s*>.*\Z", re.IGNORECASE | re.DOTALL)


def without_reasoning(reply: str) -> str:
    """The reply after its last reasoning block; empty if a block is never closed."""
    return _OPEN.sub("", _CLOSED.sub("", reply)).strip()


_MOST_READ = 6_000
"""Characters."""


def shortened(reply: str) -> str:
    """The beginning and the end of a reply that is too long to be an answer; any other reply unchanged.

    A model that repeats itself without end must not hold up the grading of a run.
    """
    if len(reply) <= _MOST_READ:
        return reply
    half = _MOST_READ // 2
    return f"{reply[:half]}\n{reply[-half:]}"
