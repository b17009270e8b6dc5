"""``memreplay record``: record a running agent by its OpenTelemetry spans, or between it and an MCP server."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import UsageError
from memreplay.numbers import counted
from memreplay.terminal import say

if TYPE_CHECKING:
    from memreplay.capture.journal import Journal

command = typer.Typer(**COMMAND_OPTIONS)

_DEFAULT_PORT = 4318
_SPAN_FILES = (".json", ".jsonl")


@command.command()
def record(
    file: Annotated[Path, typer.Argument(help="SQLite file to record into; an existing recording goes on.")],
    agent: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Run the agent too, with its exporter set to --otlp."),
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|FILE", help="Receive OpenTelemetry spans here, or read them from a file."),
    ] = None,
    mcp: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND|URL",
            help="Stand between an MCP client and this memory server, and record: over standard input and output,"
            " or for a URL at --listen.",
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Where to stand for the server of --mcp URL: an address of this machine."
        ),
    ] = "127.0.0.1:4319",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MEMREPLAY_OTLP_TOKEN",
            show_default=False,
            help="Token that exporters must send. [default: none on loopback, else one is made and shown]",
        ),
    ] = None,
) -> None:
    """Record a running agent into a file; memreplay FILE --follow shows it meanwhile."""
    if mcp is not None:
        if otlp is not None or agent:
            raise UsageError("--mcp records an MCP server alone: leave out --otlp and the agent's command")
        if re.match(r"https?://", mcp):
            _stand_for(mcp, listen, file)
            return
        raise typer.Exit(_stand_between(mcp, file))
    if otlp is None:
        raise UsageError("what to record is missing: --otlp 127.0.0.1:4318, --otlp spans.json, or --mcp COMMAND")
    if Path(otlp).is_file():
        _read(Path(otlp), file)
        return
    if otlp.endswith(_SPAN_FILES) or os.sep in otlp:
        raise UsageError(f"--otlp {otlp}: no such file; to receive spans, give HOST:PORT")
    raise typer.Exit(_receive(otlp, token, tuple(agent or ()), file))


def _stand_for(url: str, listen: str, file: Path) -> None:
    """Pass everything between MCP clients and a server behind a URL, and note the tool calls, until ctrl-c."""
    from memreplay.server.app import is_loopback
    from memreplay.server.mcp import McpHttpProxy, serve_mcp, url_of_server
    from memreplay.server.otlp import refuse_busy_address

    host, port = _address(listen, "--listen")
    if not is_loopback(host):
        raise UsageError(f"--listen {listen}: expected an address of this machine alone, such as 127.0.0.1:4319")
    try:
        server = url_of_server(url)
    except ValueError as error:
        raise UsageError(f"--mcp {url}: {error}") from None
    refuse_busy_address(host, port)
    with _journal_of(file) as journal:
        proxy = McpHttpProxy(server, journal)
        say(f"give MCP clients {proxy.address(host, port)} in place of {proxy.server}; ctrl+c stops it")
        try:
            asyncio.run(serve_mcp(proxy, host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    _make_ready(file)
    say(f"memreplay {file} shows what was recorded")


def _stand_between(command: str, file: Path) -> int:
    """Pass everything between an MCP client and a server, and note the tool calls; the server's exit code."""
    from memreplay.capture.mcp_proxy import run_mcp_proxy

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--mcp {command}: {error}") from None
    if not words:
        raise UsageError("--mcp: expected the command that starts the server")
    _refuse_missing_command(words[0])
    with _journal_of(file) as journal:
        try:
            return run_mcp_proxy(words, journal)
        except OSError as error:
            raise UsageError(f"--mcp: {words[0]} cannot be started: {error.strerror or error}") from None


def _read(path: Path, file: Path) -> None:
    """Note the spans of a file: an OTLP request, a list of them or one a line."""
    from memreplay.capture.journal import Journal
    from memreplay.capture.spans import note_spans, spans_of
    from memreplay.conversations.json_files import open_dataset_file
    from memreplay.conversations.validation_errors import SILENT

    # All of it is read before anything is written: a file that breaks off leaves no part of itself in a recording.
    if not sum(1 for _, value in open_dataset_file(path).values(SILENT) for _ in spans_of(value)):
        raise UsageError(
            f"{path}: holds no spans; expected OTLP JSON with resourceSpans, one span a line, or runs of LangSmith"
        )
    journal = Journal(file)
    noted = sum(note_spans(journal, value) for _, value in open_dataset_file(path).values(SILENT))
    journal.close()
    _make_ready(file)
    say(f"{counted(noted, 'span')} recorded; memreplay {file} shows them")


def _receive(otlp: str, given: str | None, agent: Sequence[str], file: Path) -> int:
    """Receive spans until the agent ends, or until ctrl-c."""
    from memreplay.server.app import is_loopback
    from memreplay.server.otlp import SpanReceiver, environment_of_exporter, receive, refuse_busy_address

    host, port = _address(otlp)
    token = given or (None if is_loopback(host) else secrets.token_urlsafe(24))
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise UsageError(f"--token: expected at least {_SHORTEST_TOKEN} characters")
    refuse_busy_address(host, port)
    if agent:
        _refuse_missing_command(agent[0])
    variables = environment_of_exporter(host, port, token)
    if not agent:
        say(f"receiving spans at {variables['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces; ctrl+c stops it")
        if token is not None and given is None:
            say(f"exporters must send: authorization=Bearer {token}")
    with _journal_of(file) as journal:
        receiver = SpanReceiver(journal)
        try:
            code = asyncio.run(receive(receiver, host, port, token, agent, {**os.environ, **variables}))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        refused = f", {counted(receiver.refused, 'request')} refused" if receiver.refused else ""
        shown = f"; memreplay {file} shows them" if receiver.received else ""
        say(f"{counted(receiver.received, 'span')} recorded{refused}{shown}")
    _make_ready(file)
    return code


@contextmanager
def _journal_of(file: Path) -> Iterator[Journal]:
    """Open the journal of a recording. A recording that is created here does not stay if nothing can be started."""
    from memreplay.capture.journal import Journal

    journal = Journal(file)
    try:
        yield journal
    except UsageError:
        journal.abandon()
        raise
    finally:
        journal.close()


def _refuse_missing_command(command: str) -> None:
    """Raise UsageError for a command that is not found, before a recording is created."""
    if shutil.which(command) is None:
        raise UsageError(
            f"{command}: command not found; check its name, or give the path of a file that may be executed"
        )


def _make_ready(recording: Path) -> None:
    """Assemble the recording from its notes now, so that opening it does not have to."""
    from memreplay.capture.assembling import bring_up_to_date
    from memreplay.errors import MemreplayError

    with suppress(MemreplayError):
        bring_up_to_date(recording)


_SHORTEST_TOKEN = 16


def _address(otlp: str, option: str = "--otlp") -> tuple[str, int]:
    """Return host and port of HOST:PORT, HOST or PORT."""
    host, separator, port = otlp.rpartition(":")
    if not separator:
        host, port = ("127.0.0.1", otlp) if otlp.isdecimal() else (otlp, str(_DEFAULT_PORT))
    if not port.isdecimal() or not 0 < int(port) < 2**16 or not host:
        or_file = ", or a file of spans" if option == "--otlp" else ""
        raise UsageError(f"{option} {otlp}: expected HOST:PORT, such as 127.0.0.1:4318{or_file}")
    return host.strip("[]"), int(port)
