"""What it took to write a conversation to memory: time, and the calls of models that extract facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_backends.registry import BACKEND_NAMES
from memory_backends.stores.trace import Extraction
from memreplay.engine.events import BackgroundWorkSettled, Observed
from memreplay.scoring.results import ExtractionResults, Tokens, WritingResults

_REMOTE_EMBEDDER = "litellm:"


@dataclass
class Writing:
    """What one backend's write path took, over all conversations.

    An exchange that a resumed run wrote again counts once, with its last time.
    """

    extractions: list[Extraction] = field(default_factory=list)
    _ms: dict[tuple[str, int, str], float] = field(default_factory=dict)

    def add(self, event: Observed | BackgroundWorkSettled) -> None:
        """Count an exchange, or the background work after it."""
        self._ms[event.conversation, event.turn, event.kind] = event.ms

    def merge(self, other: Writing) -> None:
        """Add what another conversation took."""
        self.extractions += other.extractions
        self._ms |= other._ms

    @property
    def exchanges(self) -> int:
        return sum(kind == "observed" for _, _, kind in self._ms)

    @property
    def ms(self) -> float:
        """Duration of the write path and of the background work that it started."""
        return sum(self._ms.values())


def writing_of(backend: str, writing: Writing | None, settings: Mapping[str, Any]) -> WritingResults | None:
    """The results of a backend's write path; None if it wrote nothing, as an agent that was never told anything.

    Without extractor our own memories call no model, hence 0 tokens; what a plug-in does by itself is unknown.
    """
    if writing is None or not writing.exchanges:
        return None
    extraction = extraction_of(writing.extractions)
    if extraction is not None:
        tokens: int | None = extraction.tokens.prompt + extraction.tokens.completion
        cost = extraction.cost_usd
    else:
        tokens, cost = (0, 0.0) if backend in BACKEND_NAMES else (None, None)
    if str(settings.get("embedder", "")).startswith(_REMOTE_EMBEDDER):
        cost = None
    return WritingResults(exchanges=writing.exchanges, ms=writing.ms, model_tokens=tokens, cost_usd=cost)


def extraction_of(calls: Sequence[Extraction]) -> ExtractionResults | None:
    """Aggregate a backend's calls of its extractor; None if there are none."""
    if not calls:
        return None
    costs = [call.cost_usd for call in calls if call.error is None or call.cost_usd is not None]
    known = [cost for cost in costs if cost is not None]
    reasons = Counter(call.error for call in calls if call.error is not None)
    return ExtractionResults(
        model=calls[0].model,
        calls=len(calls),
        reused=sum(call.reused for call in calls),
        errors=reasons.total(),
        error=reasons.most_common(1)[0][0] if reasons else None,
        facts=sum(call.facts for call in calls),
        tokens=Tokens(
            prompt=sum(call.prompt_tokens for call in calls),
            completion=sum(call.completion_tokens for call in calls),
            cached=sum(call.cached_tokens for call in calls),
        ),
        cost_usd=sum(known) if costs and len(known) == len(costs) else None,
    )
