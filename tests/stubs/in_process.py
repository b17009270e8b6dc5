"""The command line in this process: what it imports is imported once, and what tests share of it is shared."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from memreplay.__main__ import main
from tests.stubs.own_machine import set_up


def exit_code(*arguments: object) -> int:
    """Run ``memreplay`` with these arguments, here and now; what it prints is printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["memreplay", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
    return 0


def made_in(folder: Path, *arguments: object, **more: Any) -> None:
    """What a run makes that is given no path of its own lies in the folder, its caches too.

    It has to succeed, and says nothing: a test that needs it would else take what is said for its own.
    ``more`` is for :func:`set_up`.
    """
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        set_up(patch, folder, **more)
        patch.chdir(folder)
        assert exit_code(*arguments) == 0, said.getvalue()
