"""Which panels an architecture has: those that its memory asked for when it was opened."""

from __future__ import annotations

from memory_backends.base import PanelInfo
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.context import CompositionPanel, LogPanel
from memreplay.tui.panels.operations import OperationsPanel, RawEventsPanel
from memreplay.tui.panels.panel import Page, Panel
from memreplay.tui.panels.promotions import LedgerPanel, PromotionsPanel
from memreplay.tui.panels.retrievals import CandidatesPanel, RetrievalsPanel
from memreplay.tui.panels.stores import StatePanel, StoresPanel, WrittenPanel


def panels_of(timeline: Timeline, backend: str, page: Page = "memory") -> list[Panel]:
    """The panels of one page, top to bottom."""
    chosen = timeline.description(backend).panels
    match page:
        case "memory":
            return [_panel(timeline, backend, info) for info in chosen]
        case "retrieval":
            panels: list[Panel] = [CompositionPanel(timeline, backend, 2), CandidatesPanel(timeline, backend, 6)]
            if any(info.panel == "promotions" for info in chosen):
                panels.append(LedgerPanel(timeline, backend, 4))
            return panels
        case "trace":
            return [OperationsPanel(timeline, backend, 2), RawEventsPanel(timeline, backend, 3)]


def _panel(timeline: Timeline, backend: str, info: PanelInfo) -> Panel:
    match info.panel:
        case "state":
            return StatePanel(timeline, backend, info.title, info.prefix, info.weight)
        case "log":
            return LogPanel(timeline, backend, info.weight)
        case "stores":
            return StoresPanel(timeline, backend, info.weight)
        case "written":
            return WrittenPanel(timeline, backend, info.weight)
        case "retrievals":
            return RetrievalsPanel(timeline, backend, info.weight)
        case "promotions":
            return PromotionsPanel(timeline, backend, info.weight)
        case "operations":
            return OperationsPanel(timeline, backend, info.weight)
