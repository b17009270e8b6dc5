"""The command line: ``memreplay`` itself and its commands. The module of a command is imported when it runs."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.cli.replay import replay

COMMANDS = {
    "record": "Record a running agent by its OpenTelemetry spans, or by the calls of its MCP memory.",
    "redact": "Copy an agent's recording without names, numbers, addresses and keys.",
    "mark": "Say what a running agent's memory should have returned at a turn: which stage lost it?",
    "shadow": "Replay a running agent's conversation into another memory: what would it have returned?",
    "report": "Write the results of a finished run again. Asks no model.",
    "why": "Ask wrong answers again under one change at a time: what repairs them?",
    "fork": "Change something in a recorded session at a turn, play on, and compare.",
    "budget": "Show how much reaches the prompt at which budget, by memory. Asks no model.",
    "bisect": "Show from which turn on a question could be answered, and until when.",
    "shrink": "Find the smallest conversation on which a memory still fails at the same stage.",
    "sweep": "Compare settings of memories: answers in the prompt against tokens.",
    "compare": "Compare two runs on the same questions. Asks no model.",
    "rejudge": "Judge the same answers by several judges and rubrics, and compare them.",
    "autopsy": "Say where the wrong answers of published results were lost. Asks no model.",
    "export": "Write a recorded conversation as a web page or an asciicast. Asks no model.",
    "serve": "Serve the app to browsers.",
    "doctor": "Check which Redis, Qdrant, embedder and model this configuration reaches.",
    "validate": "Check dataset files: one line per error, with its place and what was expected.",
    "check-backend": "Test a memory against the contract, one line per rule.",
    "serve-backend": "Serve a memory over HTTP, as an agent for benchmark runners.",
    "recordings": "List recordings, show one, import a run of another program.",
    "datasets": "List datasets, show their coverage; export, convert, draft questions about a chat log.",
}
"""Name and help of each command; its module in this package has a ``command``."""


RECORDING_SUFFIX = ".sqlite3"


class _LazyGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``memreplay FILE.sqlite3`` opens that recording."""
        if args and args[0] not in COMMANDS and args[0].endswith(RECORDING_SUFFIX):
            args = ["--recording", *args]
        for name in args:
            if name.endswith(RECORDING_SUFFIX) and Path(name).is_file():
                _bring_up_to_date(Path(name))
                if args[0] in COMMANDS:
                    _say_what_cannot_be_read()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return typer.main.get_command(import_module(f"memreplay.cli.{cmd_name.replace('-', '_')}").command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _bring_up_to_date(recording: Path) -> None:
    """Show what an agent did since the recording was last opened. Any fault of the file is the command's to say."""
    from memreplay.capture.assembling import bring_up_to_date
    from memreplay.errors import MemreplayError
    from memreplay.terminal import say

    with suppress(MemreplayError):
        for sentence in bring_up_to_date(recording):
            say(f"memreplay: {sentence}")


def _say_what_cannot_be_read() -> None:
    from memreplay.recording.reader import Recording
    from memreplay.terminal import say

    Recording.warn = staticmethod(lambda sentence: say(f"memreplay: {sentence}"))


cli = typer.Typer(
    name="memreplay",
    cls=_LazyGroup,
    **COMMAND_OPTIONS,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.callback(invoke_without_command=True)(replay)
