"""The screens. Importing this package loads no textual; :func:`run_tui` does."""

from __future__ import annotations

from app.tui.launch import Launch


def run_tui(launch: Launch) -> None:
    """Open the app and stay in it until the user leaves."""
    from app.tui.app import MemreplayApp

    MemreplayApp(launch).run()
