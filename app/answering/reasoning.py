"""Taking away what a model thought aloud before its answer."""

from __future__ import annotations

import re

_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
# Some servers swallow the opening tag, so everything before a closing one is taken for thought.
_CLOSED = re.compile(r"\A.*</" + _TAG + r"\s*>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<" + _TAG + r"\s*>.*\Z", re.IGNORECASE | re.DOTALL)


def without_reasoning(reply: str) -> str:
    """The reply after its last reasoning block; empty where a block was never closed."""
    return _OPEN.sub("", _CLOSED.sub("", reply)).strip()
