"""A memory server that speaks MCP: ``--backend "mcp:COMMAND"``, started once for each conversation.

In COMMAND, ``{folder}`` is an empty folder of the conversation's own. The tools that add, search and list memories
are found by name, or named: ``mcp[add=TOOL.ARGUMENT search=TOOL.ARGUMENT list=TOOL]:COMMAND``. A server without a
tool that lists cannot show what it holds.

A URL in place of the command is a server that runs already, and speaks streamable HTTP. In it, ``{session}`` is an
id of the conversation's own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TextIO, get_args

from memory_backends.adapters.library import Found, LibraryMemory, library, require
from memory_backends.addresses import Address, parse_address
from memory_backends.base import BackendError, ClosingStatus, Exchange, Namespace, Recall, Snapshot
from memory_backends.resources import Resources
from memory_backends.storable import finite_score

Use = Literal["add", "search", "list"]

_NAME = re.compile(r"mcp(?:\[(?P<tools>[^\]]*)\])?:(?P<command>.+)", re.DOTALL)
_NAMED = re.compile(r"(?P<use>add|search|list)=(?P<tool>[^.\s]+)(?:\.(?P<argument>\S+))?")
_LIKELY: Mapping[Use, re.Pattern[str]] = {
    "add": re.compile(r"(^|[_-])(add|store|save|remember|retain|write|insert)([_-]|$)", re.IGNORECASE),
    "search": re.compile(r"(^|[_-])(search|query|retrieve|recall|find)([_-]|$)", re.IGNORECASE),
    "list": re.compile(r"(^|[_-])(list|get[_-]all|dump)([_-]|$)", re.IGNORECASE),
}
_TEXTS = ("memory", "text", "content", "fact", "document", "value")
"""Fields of an item that may hold its text, in order of preference."""
_SESSION = "{session}"
_OWN_QUERY = re.compile(r"[\w.-]+=\{session\}")
_LIMITS = ("limit", "top_k", "k", "n_results", "max_results")


@dataclass(frozen=True)
class Tool:
    """A tool, the argument that takes the text, and the one that takes the number of results, if any."""

    name: str
    argument: str | None = None
    takes_a_list: bool = False
    limit: str | None = None

    def arguments(self, text: str, most: int) -> dict[str, Any]:
        """Return what to call it with."""
        given: dict[str, Any] = {self.argument: [text] if self.takes_a_list else text} if self.argument else {}
        return given | ({self.limit: most} if self.limit else {})


def read_name(spelled: str) -> tuple[dict[Use, Tool], str]:
    """Return the named tools, and the command. Raises :class:`BackendError`."""
    match = _NAME.fullmatch(spelled)
    expected = 'expected "mcp:COMMAND" or "mcp[add=TOOL.ARGUMENT search=TOOL.ARGUMENT list=TOOL]:COMMAND"'
    if match is None or not match["command"].strip():
        raise BackendError(f"{spelled!r} names no MCP server; {expected}")
    tools: dict[Use, Tool] = {}
    for part in (match["tools"] or "").split():
        named = _NAMED.fullmatch(part)
        if named is None:
            raise BackendError(f"{part!r} names no tool; {expected}")
        tools[named["use"]] = Tool(named["tool"], named["argument"])  # type: ignore[index]  # one of Use
    try:
        shlex.split(match["command"])
    except ValueError as error:
        raise BackendError(f"the command of the MCP server cannot be read: {error}") from None
    address_of(match["command"])
    return tools, match["command"]


def address_of(command: str) -> Address | None:
    """Return the address that takes the place of a command; None for a command. It is never run as one.

    Raises:
        BackendError: it is no valid URL, or one that could hold a secret, which would be recorded.
    """
    if not command.lower().lstrip().startswith(("http:", "https:")):
        return None
    try:
        # Braces are no characters of a URL, so they are checked as what will stand there.
        address = parse_address(command.replace(_SESSION, "session"), ("http", "https"))
    except ValueError as error:
        raise BackendError(f"the address of the MCP server is no valid URL: {error}") from None
    query = command.partition("?")[2]
    if address.user or address.password or "#" in command or (query and not _OWN_QUERY.fullmatch(query)):
        raise BackendError(
            "the address of an MCP server is recorded, so it must contain no secret: expected no user, password or"
            f" fragment, and no query but NAME={_SESSION}; put a token into {TOKEN_VARIABLE}"
        )
    return address


def tool_for(use: Use, named: Mapping[Use, Tool], listed: Sequence[Any]) -> Tool | None:
    """Return the tool for a use; None if there is no tool that lists. Raises :class:`BackendError`."""
    schemas = {
        tool.name: getattr(tool, "input_schema", None) or getattr(tool, "inputSchema", {}) for tool in listed
    }
    if use in named:
        chosen = [named[use].name] if named[use].name in schemas else []
    else:
        chosen = [
            name
            for name in schemas
            if _LIKELY[use].search(name) and (use != "list" or not _required(schemas[name]))
        ]
    if len(chosen) != 1:
        if use == "list" and use not in named:
            return None
        have = ", ".join(f"{name}({', '.join(schema.get('properties', {}))})" for name, schema in schemas.items())
        raise BackendError(
            f"which tool of the MCP server is to {use} memories? Name it: mcp[{use}=TOOL.ARGUMENT]:COMMAND."
            f" It has {have or 'none'}"
        )
    fields = schemas[chosen[0]].get("properties", {})
    limit = next((name for name in _LIMITS if name in fields), None)
    argument = named[use].argument if use in named else None
    if use != "list" and argument is None:
        required = _required(schemas[chosen[0]]) or list(fields)
        if len(required) != 1:
            raise BackendError(
                f"which argument of {chosen[0]} takes the text? Name it: mcp[{use}={chosen[0]}.ARGUMENT]:COMMAND."
                f" It has {', '.join(fields) or 'none'}"
            )
        argument = required[0]
    takes_a_list = bool(argument) and fields.get(argument, {}).get("type") == "array"
    return Tool(chosen[0], argument, takes_a_list, limit)


def _required(schema: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in schema.get("required", ())]


def items_of(result: Any) -> Iterator[tuple[str, str, float | None]]:
    """Id, text and score of each item in a tool's result."""
    structured = getattr(result, "structured_content", getattr(result, "structuredContent", None))
    values = (
        [structured] if structured else [_parsed(block.text) for block in result.content if hasattr(block, "text")]
    )
    for value in values:
        for item in _listed(value):
            text = _text(item)
            if text.strip():
                digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                known = item if isinstance(item, Mapping) else {}
                yield str(known.get("id") or digest), text, finite_score(known.get("score"))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _listed(value: Any) -> list[Any]:
    """Return the items of a result: a list, or the one list in an object, else the value itself."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        if len(lists) == 1:
            return lists[0]
        if set(value) == {"result"}:
            return _listed(_parsed(value["result"]) if isinstance(value["result"], str) else value["result"])
    return [value]


def _text(item: Any) -> str:
    if isinstance(item, Mapping):
        named = next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), None)
        return named if named is not None else json.dumps(item, ensure_ascii=False)
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


CALL_SECONDS = 120.0
TOKEN_VARIABLE = "MEMREPLAY_MEMORY_TOKEN"
"""Sent to a server behind a URL."""


class McpMemory(LibraryMemory):
    """One server process a conversation, or a session with a server behind a URL.

    What the server's own models cost cannot be seen.
    """

    takes: tuple[str, ...] = ()
    store = "mcp"
    distribution = "mcp"
    works_elsewhere = True

    def __init__(self, resources: Resources, spelled: str) -> None:
        super().__init__(resources)
        require("mcp", "mcp")
        self._named, self._command = read_name(spelled)
        self._server: _Server | None = None
        self._tools: dict[Use, Tool] = {}

    @staticmethod
    def check_name(spelled: str) -> None:
        """Read a name. Raises :class:`BackendError`."""
        read_name(spelled)

    @staticmethod
    def contacts_a_server(spelled: str) -> bool:
        """Return whether a name is the address of a server. Raises :class:`BackendError`."""
        return address_of(read_name(spelled)[1]) is not None

    async def open(self, namespace: Namespace) -> None:
        await self.close("cancelled")
        self.forget_all()
        self._server = _Server(self._command, namespace.point_id("mcp"))
        listed = await self._server.start()
        self._tools = {use: tool for use in get_args(Use) if (tool := tool_for(use, self._named, listed))}
        if held := await self._held():
            away = address_of(self._command)
            what = f"{_SESSION} into its address" if away else "{folder} into its command"
            of_its_own = "an id" if away else "an empty folder"
            raise BackendError(
                f"the MCP server starts with {len(held)} items of before; put {what}, {of_its_own} of each"
                " conversation's own"
            )

    async def add(self, exchange: Exchange) -> None:
        await self._call("add", exchange.text, 0)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        items = list(items_of(await self._call("search", question, top_k)))[:top_k]
        found = (Found(id_, text, score, order=rank) for rank, (id_, text, score) in enumerate(items))
        return self.recall_of(found, context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        return await self._held() if "list" in self._tools else None

    async def snapshot(self) -> Snapshot:
        """Return what the server lists; unknown where it has no tool that lists."""
        if self._server is not None and "list" not in self._tools:
            return Snapshot(is_known=False)
        return await super().snapshot()

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
    """The process or the connection, and the session with it, which one task opens and closes."""

    def __init__(self, command: str, session: str) -> None:
        self._command, self._conversation = command, session
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
            async with self._streams(mcp) as streams, mcp.ClientSession(*streams[:2]) as session:
                await session.initialize()
                self._session = session
                ready.set_result((await session.list_tools()).tools)
                await self._stop.wait()
        except Exception as error:
            if not ready.done():
                verb = "started" if address_of(self._command) is None else "reached"
                ready.set_exception(BackendError(f"the MCP server cannot be {verb}: {_reason(error)}"))

    @asynccontextmanager
    async def _streams(self, mcp: Any) -> AsyncIterator[Any]:
        """Open the streams of the client: to a new process, or to a server behind a URL."""
        if address_of(self._command) is not None:
            async with _over_http(self._command.replace(_SESSION, self._conversation)) as streams:
                yield streams
            return
        with TemporaryDirectory(prefix="memreplay-mcp-") as folder, _nowhere() as nowhere:
            program, *arguments = (part.replace("{folder}", folder) for part in shlex.split(self._command))
            how = mcp.StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
            async with mcp.stdio_client(how, errlog=nowhere) as streams:
                yield streams

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's result. Raises :class:`BackendError`."""
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


def _over_http(url: str) -> Any:
    """Return the library's client of streamable HTTP. Its name and arguments depend on the version."""
    client = library("mcp.client.streamable_http")
    token = os.environ.get(TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if hasattr(client, "streamable_http_client"):
        return client.streamable_http_client(url, http_client=client.create_mcp_http_client(headers=headers))
    return client.streamablehttp_client(url, headers=headers)


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _nowhere() -> TextIO:
    """Return where the server's standard error goes."""
    return Path(os.devnull).open("w")
