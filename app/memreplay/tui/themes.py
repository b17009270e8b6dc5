"""The theme: that of the config file, or the one that was picked since."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

DEFAULT = "textual-dark"
FEW_COLOURS = "ansi-dark"
"""The theme of terminals with 16 colours: the terminal's own, so that none is lost."""


@dataclass(frozen=True)
class ThemeChoice:
    """``configured`` is the setting, ``file`` remembers what was picked; without a file nothing is remembered.

    A picked theme stands until the setting changes: the later of the two choices counts.
    """

    configured: str | None = None
    file: Path | None = None

    def theme(self) -> str | None:
        """The theme to start with; None for the default."""
        picked = self._picked()
        if picked is not None and picked.get("instead_of") == self.configured:
            name = picked.get("theme")
            return name if isinstance(name, str) else self.configured
        return self.configured

    def remember(self, theme: str) -> None:
        """Keep a picked theme. A folder that cannot be written is no reason to stop."""
        if self.file is None:
            return
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({"theme": theme, "instead_of": self.configured}), encoding="utf-8")
        except OSError:
            return

    def _picked(self) -> dict[str, object] | None:
        if self.file is None:
            return None
        try:
            read = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return read if isinstance(read, dict) else None
