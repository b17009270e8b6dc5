"""The screens. Importing this package loads no textual; :func:`run_tui` does."""

from __future__ import annotations

import sys

from memreplay.tui.launch import Launch


def run_tui(launch: Launch) -> None:
    """Open the app and stay in it until the user leaves; by then everything is recorded."""
    from memreplay.tui.app import MemreplayApp
    from memreplay.tui.terminal import run

    code = run(MemreplayApp(launch))
    if code:
        sys.exit(code)
