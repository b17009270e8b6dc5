"""The command line in this process: what it imports is imported once, and what tests share of it is shared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.__main__ import main


def exit_code(*arguments: object) -> int:
    """Run ``memreplay`` with these arguments, here and now; what it prints is printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["memreplay", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
    return 0


def made_in(folder: Path, *arguments: object) -> None:
    """What a run makes that is given no path of its own lies in the folder, its caches too. It has to succeed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        assert exit_code(*arguments) == 0
