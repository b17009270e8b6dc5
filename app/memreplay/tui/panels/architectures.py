"""Which panels an architecture has. One that is not named here gets those that suit any memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.context import CompositionPanel, LogPanel
from memreplay.tui.panels.operations import OperationsPanel, RawEventsPanel
from memreplay.tui.panels.panel import Page, Panel
from memreplay.tui.panels.promotions import LedgerPanel, PromotionsPanel
from memreplay.tui.panels.retrievals import CandidatesPanel, RetrievalsPanel
from memreplay.tui.panels.stores import StatePanel, StoresPanel, WrittenPanel

PanelMaker = Callable[[Timeline, str], Panel]

_MEMORY: Final[dict[str, tuple[PanelMaker, ...]]] = {
    "hybrid": (
        lambda timeline, backend: StatePanel(timeline, backend, "personal state", "personal_state:", 7),
        lambda timeline, backend: StatePanel(timeline, backend, "shared state", "shared_state:", 6),
        lambda timeline, backend: PromotionsPanel(timeline, backend, 5),
        lambda timeline, backend: RetrievalsPanel(timeline, backend, 6),
    ),
    "rag": (
        lambda timeline, backend: RetrievalsPanel(timeline, backend, 5),
        lambda timeline, backend: WrittenPanel(timeline, backend, 3),
    ),
    "full_context": (
        lambda timeline, backend: LogPanel(timeline, backend, 5),
        lambda timeline, backend: OperationsPanel(timeline, backend, 1),
    ),
}
_ANY_MEMORY: Final[tuple[PanelMaker, ...]] = (
    lambda timeline, backend: StoresPanel(timeline, backend, 5),
    lambda timeline, backend: RetrievalsPanel(timeline, backend, 4),
    lambda timeline, backend: OperationsPanel(timeline, backend, 3),
)
_RETRIEVAL: Final[tuple[PanelMaker, ...]] = (
    lambda timeline, backend: CompositionPanel(timeline, backend, 2),
    lambda timeline, backend: CandidatesPanel(timeline, backend, 6),
)
_LEDGER: Final[PanelMaker] = lambda timeline, backend: LedgerPanel(timeline, backend, 4)  # noqa: E731
_TRACE: Final[tuple[PanelMaker, ...]] = (
    lambda timeline, backend: OperationsPanel(timeline, backend, 2),
    lambda timeline, backend: RawEventsPanel(timeline, backend, 3),
)


def panels_of(timeline: Timeline, backend: str, page: Page = "memory") -> list[Panel]:
    """The panels of one page, top to bottom. A variant (``rag:keyword``) has those of its kind."""
    kind = backend.split(":")[0]
    match page:
        case "memory":
            makers = _MEMORY.get(kind, _ANY_MEMORY)
        case "retrieval":
            makers = (*_RETRIEVAL, _LEDGER) if kind == "hybrid" else _RETRIEVAL
        case "trace":
            makers = _TRACE
    return [make(timeline, backend) for make in makers]
