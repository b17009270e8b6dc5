"""A memory server that speaks MCP: ``--backend "mcp:COMMAND"``, started once for each conversation.

In COMMAND, ``{folder}`` is an empty folder of the conversation's own. :mod:`memory_backends.adapters.mcp_tools`
says which tools are used.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO, get_args

from memory_backends.adapters.library import Found, LibraryMemory, library, require
from memory_backends.adapters.mcp_tools import Tool, Use, items_of, read_name, tool_for
from memory_backends.base import BackendError, ClosingStatus, Exchange, Namespace, Recall
from memory_backends.resources import Resources

CALL_SECONDS = 120.0


class McpMemory(LibraryMemory):
    """One server process a conversation. What the server's own models cost cannot be seen."""

    takes: tuple[str, ...] = ()
    store = "mcp"
    distribution = "mcp"

    def __init__(self, resources: Resources, spelled: str) -> None:
        super().__init__(resources)
        require("mcp", "mcp")
        self._named, self._command = read_name(spelled)
        self._server: _Server | None = None
        self._tools: dict[Use, Tool] = {}

    async def open(self, namespace: Namespace) -> None:
        await self.close("cancelled")
        self.forget_all()
        self._server = _Server(self._command)
        listed = await self._server.start()
        self._tools = {use: tool for use in get_args(Use) if (tool := tool_for(use, self._named, listed))}
        if held := await self._held():
            raise BackendError(
                f"the MCP server starts with {len(held)} items of before; put {{folder}} into its command, an empty"
                " folder of each conversation's own"
            )

    async def add(self, exchange: Exchange) -> None:
        await self._call("add", exchange.text, 0)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        items = list(items_of(await self._call("search", question, top_k)))[:top_k]
        found = (Found(id_, text, score, order=rank) for rank, (id_, text, score) in enumerate(items))
        return self.recall_of(found, context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        return await self._held() if "list" in self._tools else None

    async def close(self, status: ClosingStatus) -> None:
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def _held(self) -> dict[str, Mapping[str, Any]]:
        if self._server is None or "list" not in self._tools:
            return {}
        return {id_: {"text": text} for id_, text, _ in items_of(await self._call("list", "", 100_000))}

    async def _call(self, use: Use, text: str, most: int) -> Any:
        tool = self._tools[use]
        assert self._server is not None
        return await self._server.call(tool.name, tool.arguments(text, most))


class _Server:
    """The process, and the session with it, which one task opens and closes."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._session: Any = None

    async def start(self) -> Sequence[Any]:
        """Start it; returns its tools. Raises :class:`BackendError`."""
        ready: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(ready))
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await ready
        except TimeoutError:
            await self.stop()
            raise BackendError(f"the MCP server did not start within {CALL_SECONDS:g} s") from None

    async def _serve(self, ready: asyncio.Future[Sequence[Any]]) -> None:
        mcp = await asyncio.to_thread(library, "mcp")
        try:
            with TemporaryDirectory(prefix="memreplay-mcp-") as folder, _nowhere() as nowhere:
                program, *arguments = (part.replace("{folder}", folder) for part in shlex.split(self._command))
                how = mcp.StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
                async with mcp.stdio_client(how, errlog=nowhere) as streams, mcp.ClientSession(*streams) as session:
                    await session.initialize()
                    self._session = session
                    ready.set_result((await session.list_tools()).tools)
                    await self._stop.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(BackendError(f"the MCP server cannot be started: {_reason(error)}"))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The tool's result. Raises :class:`BackendError`."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                result = await self._session.call_tool(tool, dict(arguments))
        except TimeoutError:
            raise BackendError(f"the tool {tool} did not answer within {CALL_SECONDS:g} s") from None
        except Exception as error:
            raise BackendError(f"the tool {tool} failed: {_reason(error)}") from None
        if getattr(result, "is_error", getattr(result, "isError", False)):
            said = " ".join(" ".join(getattr(block, "text", "") for block in result.content).split())
            raise BackendError(f"the tool {tool} failed: {said[:200]}")
        return result

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            with suppress(Exception):
                await self._task


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _nowhere() -> TextIO:
    """Where the server's standard error goes."""
    return Path(os.devnull).open("w")
