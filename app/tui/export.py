"""The screen as an SVG file in the current folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from textual.screen import Screen


def export_screen(screen: Screen[Any], name: str) -> None:
    """Save the screen, and say where. ``name`` may hold anything: only letters, digits, ``-`` and ``_`` stay."""
    path = Path.cwd() / f"memreplay-{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-')}.svg"
    try:
        path.write_text(screen.app.export_screenshot(), encoding="utf-8")
    except OSError as error:
        screen.notify(f"{path}: cannot be written: {error.strerror}.", severity="error", markup=False)
    else:
        screen.notify(f"Saved as {path}", markup=False)
