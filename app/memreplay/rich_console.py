"""The console for tables and progress: its own escape sequences reach the terminal, those in texts do not."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from memreplay.printable import printable_lines


class PrintableConsole(Console):
    """A console that escapes in every text whatever would act on the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of the renderable, with printable text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


def terminal_console(*, stderr: bool = False, width: int | None = None, **more: Any) -> Console:
    """Return a console on standard output or standard error. ``width`` in characters applies where that is no
    terminal.
    """
    stream = sys.stderr if stderr else sys.stdout
    trusted = getattr(stream, "trusted", stream)
    return PrintableConsole(file=trusted, width=None if stream.isatty() else width, **more)
