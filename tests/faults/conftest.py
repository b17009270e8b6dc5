"""The command line in this process, and the app."""

from tests.cli.conftest import run_cli
from tests.tui.conftest import launch

__all__ = ["launch", "run_cli"]
