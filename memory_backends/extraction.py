"""A port: who reads candidate facts out of an exchange, where the rules are not to do it."""

from __future__ import annotations

from typing import Protocol

from memory_backends.base import Exchange
from memory_backends.operations import Extraction, Frozen


class ExtractedFact(Frozen):
    """A fact as a model read it.

    ``text`` says it in one sentence; ``slot`` is where its ``value`` belongs (``user.name``, ``deadline``), if
    anywhere; ``certainty`` and ``impact`` lie in 0..1; ``turn_id`` is the message that says it.
    """

    turn_id: str
    text: str
    slot: str | None
    value: str
    certainty: float
    impact: float
    justification: str


class FactExtractor(Protocol):
    """Reads facts out of an exchange. ``name`` stands in every justification."""

    name: str

    async def extract(self, exchange: Exchange) -> tuple[tuple[ExtractedFact, ...], Extraction]:
        """The facts, and what the call cost. A failure is an :class:`Extraction` with an error, and no facts."""
        ...
