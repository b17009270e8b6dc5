"""Which panels an architecture shows on each page, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.context import ContextLog, composition_view
from memreplay.tui.panels.operations import operations_view, raw_events_view
from memreplay.tui.panels.panel import DiffBase, Page, Panel, View
from memreplay.tui.panels.promotions import ledger_view, promotions_view
from memreplay.tui.panels.retrievals import candidates_view, retrievals_view
from memreplay.tui.panels.stores import state_view, stores_view, written_view

PanelMaker = Callable[[Timeline, str], Panel]


def _panel(name: str, weight: int, show: Callable[[Timeline, str, int], View]) -> PanelMaker:
    return lambda timeline, backend: Panel(name, weight, lambda cursor, _: show(timeline, backend, cursor))


def _diff_panel(name: str, weight: int, show: Callable[[Timeline, str, int, DiffBase], View]) -> PanelMaker:
    """A panel that also compares the position with a base."""
    return lambda timeline, backend: Panel(name, weight, partial(show, timeline, backend))


def _state_panel(name: str, weight: int, prefix: str) -> PanelMaker:
    return _diff_panel(name, weight, partial(state_view, name, prefix))


def _log_panel(timeline: Timeline, backend: str) -> Panel:
    log = ContextLog(timeline, backend)
    return Panel("context log", 5, lambda cursor, _: log.at(cursor))


@dataclass(frozen=True)
class _Layout:
    """The panels of an architecture, top to bottom. The trace page is the same for all."""

    memory: tuple[PanelMaker, ...]
    retrieval: tuple[PanelMaker, ...]


_RETRIEVAL: Final = (
    _panel("context", 2, composition_view),
    _diff_panel("candidates", 6, candidates_view),
)
_TRACE: Final = (
    _panel("operations", 2, operations_view),
    _panel("raw events", 3, raw_events_view),
)
_LAYOUTS: Final[Mapping[str, _Layout]] = {
    "hybrid": _Layout(
        memory=(
            _state_panel("personal state", 7, "personal_state:"),
            _state_panel("shared state", 6, "shared_state:"),
            _panel("promotions", 5, promotions_view),
            _diff_panel("retrievals", 6, retrievals_view),
        ),
        retrieval=(*_RETRIEVAL, _panel("promotion ledger", 4, ledger_view)),
    ),
    "rag": _Layout(
        memory=(_diff_panel("retrievals", 5, retrievals_view), _panel("written", 3, written_view)),
        retrieval=_RETRIEVAL,
    ),
    "full_context": _Layout(
        memory=(_log_panel, _panel("operations", 1, operations_view)),
        retrieval=_RETRIEVAL,
    ),
}
_ANY_MEMORY: Final = _Layout(
    memory=(
        _panel("stores", 5, stores_view),
        _diff_panel("retrievals", 4, retrievals_view),
        _panel("operations", 3, operations_view),
    ),
    retrieval=_RETRIEVAL,
)


def _layout_of(backend: str) -> _Layout:
    """The only place that knows backends by name. A variant (``rag:keyword``) has the layout of its base."""
    return _LAYOUTS.get(backend.split(":")[0], _ANY_MEMORY)


def panels_of(timeline: Timeline, backend: str, page: Page = "memory") -> list[Panel]:
    """The panels of one page, top to bottom."""
    layout = _layout_of(backend)
    match page:
        case "memory":
            makers = layout.memory
        case "retrieval":
            makers = layout.retrieval
        case "trace":
            makers = _TRACE
    return [make(timeline, backend) for make in makers]
