"""Which panels an architecture has. One that is not named here gets those that suit any memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from app.replay.timeline import Timeline
from app.tui.views.context_log import LogPanel
from app.tui.views.memory import StoresPanel
from app.tui.views.operations import OperationsPanel
from app.tui.views.promotions import PromotionsPanel
from app.tui.views.retrievals import RetrievalsPanel
from app.tui.views.stores import StatePanel, WrittenPanel
from app.tui.views.view import Panel

PanelMaker = Callable[[Timeline, str], Panel]

_PANELS: Final[dict[str, tuple[PanelMaker, ...]]] = {
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


def panels_of(timeline: Timeline, backend: str) -> list[Panel]:
    """The panels of an architecture, top to bottom. A variant (``rag:keyword``) has those of its kind."""
    makers = _PANELS.get(backend.split(":")[0], _ANY_MEMORY)
    return [make(timeline, backend) for make in makers]
