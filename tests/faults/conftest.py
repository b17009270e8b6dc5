"""The command line, in this process and in processes that can be killed."""

from tests.cli.conftest import launcher, run_cli

__all__ = ["launcher", "run_cli"]
