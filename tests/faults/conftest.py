"""The command line in this process, and the app."""

from tests.cli.conftest import run_cli
from tests.tui.conftest import _garbage_of_other_tests_is_left_alone, launch

__all__ = ["_garbage_of_other_tests_is_left_alone", "launch", "run_cli"]
