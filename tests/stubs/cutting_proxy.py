"""A TCP proxy that cuts connections: before a request has gone through, or after it was carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from ssl import SSLContext
from typing import Literal, get_args

Loss = Literal["request", "reply"]

_BEGINNINGS = (b"*", b"GET ", b"POST ", b"PUT ", b"DELETE ")
"""Of a command to Redis and of requests over HTTP."""


@dataclass
class CuttingProxy:
    """``losses`` decides for each chunk that a client sends to port ``upstream``: what is lost of it, if anything.

    A lost request never reaches the server; of a lost reply the request did, and was carried out. Either way the
    connection is cut, and the next ``away`` connections are closed as soon as they are made.
    """

    upstream: int
    losses: Callable[[bytes], Loss | None] = lambda chunk: None
    away: int = 0
    cuts: list[tuple[Loss, bytes]] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client; it is closed at once where no server is."""
        if self.away:
            self.away -= 1
            writer.close()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.close()
            return
        lost: list[Loss] = []

        async def replies() -> None:
            while chunk := await server_reader.read(65536):
                if lost:
                    break
                writer.write(chunk)
                await writer.drain()
            writer.close()

        task = asyncio.create_task(replies())
        with suppress(ConnectionError):
            while chunk := await reader.read(65536):
                loss = self.losses(chunk)
                if loss:
                    lost.append(loss)
                    self.cuts.append((loss, chunk))
                if loss == "request":
                    writer.close()
                    break
                # A request may come in several chunks: its reply is lost when there is one.
                server_writer.write(chunk)
                await server_writer.drain()
        server_writer.close()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def cutting_proxy(upstream: int, tls: SSLContext | None = None) -> AsyncIterator[CuttingProxy]:
    """A proxy to a port of this machine, for the length of the block; with ``tls`` clients speak TLS to it."""
    proxy = CuttingProxy(upstream)
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.CancelledError):
            await proxy.serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def every(number: int) -> Callable[[bytes], Loss | None]:
    """Lose every so manyth request, by turns before and after it was carried out; greetings get through.

    Only what begins a request is counted: how many pieces one comes in is a matter of chance.
    """
    requests, ways = count(1), cycle(get_args(Loss))

    def losses(chunk: bytes) -> Loss | None:
        greets = b"HELLO" in chunk or b"CLIENT" in chunk
        if greets or not chunk.startswith(_BEGINNINGS) or next(requests) % number:
            return None
        return next(ways)

    return losses


def once(command: bytes, loss: Loss) -> Callable[[bytes], Loss | None]:
    """Lose one of these commands, the first that comes by."""
    left = [loss]

    def losses(chunk: bytes) -> Loss | None:
        return left.pop() if left and command in chunk else None

    return losses
