"""A receiver of OpenTelemetry spans: OTLP over HTTP, ``POST /v1/traces`` as JSON or protobuf, plain or gzipped.

Every span is a note in the journal of a recording before the exporter gets its answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from aiohttp import web

from memreplay.capture.journal import Journal
from memreplay.capture.spans import note_spans
from memreplay.errors import UsageError
from memreplay.server.app import authorize, errors_in_json, refuse_other_sites
from memreplay.signals import requests_to_end, signal_handlers

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request, unpacked; an exporter sends 512 spans at once."""
SECONDS_TO_STOP: Final = 2.0

_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"


class SpanReceiver:
    """Receives spans and counts them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.received = 0
        self.refused = 0

    def application(self, host: str, token: str | None) -> web.Application:
        """Return the web application. With a token it serves only clients that send it, else only this machine."""
        checks = [errors_in_json, authorize(host, token), refuse_other_sites]
        application = web.Application(client_max_size=MAX_REQUEST_BYTES, middlewares=checks)
        application.add_routes([web.post("/v1/traces", self._traces)])
        return application

    async def _traces(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            sent = _from_protobuf(body) if request.content_type == _PROTOBUF else orjson.loads(body)
            if not isinstance(sent, dict):
                raise ValueError("not an object")
        except Exception as error:
            # The library of protobuf raises errors of its own.
            self.refused += 1
            reason = f"no ExportTraceServiceRequest: {type(error).__name__}"
            raise web.HTTPBadRequest(text=orjson.dumps({"error": reason}).decode(), content_type=_JSON) from None
        self.received += note_spans(self._journal, sent)
        if request.content_type == _PROTOBUF:
            return web.Response(body=b"", content_type=_PROTOBUF)
        return web.Response(text="{}", content_type=_JSON)


def _from_protobuf(body: bytes) -> dict[str, Any]:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request: Any = ExportTraceServiceRequest()
    request.ParseFromString(body)
    convert: Any = json_format.MessageToDict
    read: dict[str, Any] = convert(request)
    return read


def environment_of_exporter(host: str, port: int, token: str | None) -> dict[str, str]:
    """Return the variables that make an OpenTelemetry exporter send to this receiver, with the messages."""
    at = f"[{host}]" if ":" in host else host
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{at}:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    return variables | ({"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {token}"} if token else {})


async def receive(
    receiver: SpanReceiver,
    host: str,
    port: int,
    token: str | None,
    command: Sequence[str],
    environment: Mapping[str, str],
) -> int:
    """Receive spans until a command ends, or until it is interrupted; returns the command's exit code.

    Raises:
        OSError: the address is in use.
        UsageError: the command cannot be started.
    """
    async with listening(receiver.application(host, token), host, port) as stop:
        return await _until_it_ends(command, environment, stop)


def refuse_busy_address(host: str, port: int) -> None:
    """Bind an address for a moment.

    Raises:
        UsageError: nothing can listen there, as where it is in use.
    """
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, socket.SOCK_STREAM) as bound:
                if os.name == "posix":  # on Windows the option would let two servers share the address
                    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(address)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


@asynccontextmanager
async def listening(application: web.Application, host: str, port: int) -> AsyncIterator[asyncio.Event]:
    """Serve an application; yields what is set when this process is told to end.

    Raises:
        OSError: the address is in use.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SECONDS_TO_STOP)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(stop.set)

    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        with signal_handlers(dict.fromkeys([signal.SIGINT, *requests_to_end()], end)):
            yield stop
    finally:
        await runner.cleanup()


async def _until_it_ends(command: Sequence[str], environment: Mapping[str, str], stop: asyncio.Event) -> int:
    """Run a command until it ends or is told to; without one, wait for the signal to stop."""
    stopped = asyncio.create_task(stop.wait())
    if not command:
        await stopped
        return 0
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror or error}") from None
    ended = asyncio.create_task(process.wait())
    await asyncio.wait([stopped, ended], return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.terminate()
    return await ended
