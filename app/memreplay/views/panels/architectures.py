"""The panels of an architecture: those that its memory described when it was opened, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from memory_backends.base import PanelInfo
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels import DiffBase, Page, Panel, View
from memreplay.views.panels.context import ContextLog, candidates_view, composition_view, retrievals_view
from memreplay.views.panels.stores import (
    ledger_view,
    operations_view,
    promotions_view,
    raw_events_view,
    state_view,
    stores_view,
    written_view,
)
from memreplay.views.panels.writer import writer_view

_Show = Callable[[Timeline, str, int], View]
_ShowDiff = Callable[[Timeline, str, int, DiffBase], View]


def panels_of(timeline: Timeline, backend: str, page: Page = "memory") -> list[Panel]:
    """Return the panels of one page, top to bottom."""
    chosen = timeline.description(backend).panels

    def panel(name: str, weight: int, show: _Show) -> Panel:
        return Panel(name, weight, lambda cursor, _: show(timeline, backend, cursor))

    match page:
        case "memory":
            panels = [_PANELS[info.panel](timeline, backend, info) for info in chosen]
            return [*panels, panel("writer", 3, writer_view)] if timeline.calls_a_model(backend) else panels
        case "retrieval":
            panels = [
                panel("context", 2, composition_view),
                Panel("candidates", 6, partial(candidates_view, timeline, backend)),
            ]
            if any(info.panel == "promotions" for info in chosen):
                panels.append(panel("promotion ledger", 4, ledger_view))
            return panels
        case "trace":
            return [panel("operations", 2, operations_view), panel("raw events", 3, raw_events_view)]


_Make = Callable[[Timeline, str, PanelInfo], Panel]


def _plain(name: str, show: _Show) -> _Make:
    return lambda timeline, backend, info: Panel(
        name, info.weight, lambda cursor, _: show(timeline, backend, cursor)
    )


def _diff(name: str, show: _ShowDiff) -> _Make:
    """Return a panel that also compares the position with a base."""
    return lambda timeline, backend, info: Panel(name, info.weight, partial(show, timeline, backend))


def _state(timeline: Timeline, backend: str, info: PanelInfo) -> Panel:
    show = partial(state_view, info.title, info.prefix)
    return Panel(info.title, info.weight, partial(show, timeline, backend))


def _log(timeline: Timeline, backend: str, info: PanelInfo) -> Panel:
    log = ContextLog(timeline, backend)
    return Panel("context log", info.weight, lambda cursor, _: log.at(cursor))


_PANELS: Final[Mapping[str, _Make]] = {
    "state": _state,
    "log": _log,
    "stores": _plain("stores", stores_view),
    "written": _plain("written", written_view),
    "retrievals": _diff("retrievals", retrievals_view),
    "promotions": _plain("promotions", promotions_view),
    "operations": _plain("operations", operations_view),
}
