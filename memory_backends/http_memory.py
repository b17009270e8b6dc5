"""A memory behind a URL, in any language: ``--backend http-memory:URL``. Four JSON requests, each with its session.

``examples/http_memory.openapi.json`` describes them. ``http-memory[FILE.toml]:URL`` says in a file how another
service spells them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from memory_backends.adapters.library import ORDINARY_LABELS, Found, LibraryMemory
from memory_backends.addresses import Address, parse_address
from memory_backends.base import BackendError, ClosingStatus, Exchange, Message, Namespace, Recall, Snapshot
from memory_backends.certificates import trusted
from memory_backends.resources import Resources
from memory_backends.storable import finite_score, storable, storable_value

TOKEN_VARIABLE = "MEMREPLAY_MEMORY_TOKEN"
SECONDS = 120.0
MAX_REPLY_BYTES = 4 * 1024 * 1024
_MAX_MAPPING_BYTES = 64 * 1024

EXPECTED = "expected http-memory:http://host[:port][/path] or http-memory[FILE.toml]:URL"

_NAME = re.compile(r"http-memory(?:\[(?P<file>[^\]]+)\])?:(?P<url>.+)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(session|messages|message_ids|text|query|top_k|id|role|content|line|name|time)\}")
_REQUEST = re.compile(r"(?P<method>GET|POST|PUT|DELETE) (?P<path>/(?!/)[!-~]*)")


@dataclass(frozen=True)
class Mapped:
    """One request of a service: how it is sent, and where its reply has what.

    In ``request`` and ``body`` names in braces stand for values. ``message`` is what becomes of each of
    ``{messages}``. ``found`` is where the reply lists hits or items; empty if the reply is that list. The other
    fields are those of a hit or item, with dots between levels. ``missing_ok``: 404 means that there was nothing.
    """

    request: str
    body: Mapping[str, Any] | None = None
    message: Mapping[str, Any] | None = None
    found: str = ""
    id: str = "id"
    text: str = "text"
    score: str = "score"
    message_ids: str = "message_ids"
    metadata: str = "metadata"
    missing_ok: bool = False


@dataclass(frozen=True)
class Spelling:
    """How a service spells the four requests. ``items`` is None if it cannot list them."""

    add: Mapped
    search: Mapped
    reset: Mapped
    items: Mapped | None = None
    token_header: str = "Authorization"
    token_prefix: str = "Bearer "


_OWN = Spelling(
    add=Mapped(
        "POST /add",
        {"session": "{session}", "messages": "{messages}"},
        {"id": "{id}", "role": "{role}", "content": "{content}", "name": "{name}", "time": "{time}"},
    ),
    search=Mapped("POST /search", {"session": "{session}", "query": "{query}", "top_k": "{top_k}"}, found="hits"),
    items=Mapped("GET /items?session={session}", found="items"),
    reset=Mapped("POST /reset", {"session": "{session}"}),
)


def read_name(spelled: str) -> tuple[Address, Path | None]:
    """Return the address, and the file of the mapping, if any. Reads no file. Raises :class:`BackendError`."""
    match = _NAME.fullmatch(spelled)
    if match is None:
        raise BackendError(f"{spelled!r} names no memory behind a URL; {EXPECTED}")
    try:
        address = parse_address(match["url"], ("http", "https"))
    except ValueError as error:
        raise BackendError(f"the memory's address is no valid URL: {error}; {EXPECTED}") from None
    if address.user or address.password or "?" in address.rest or "#" in address.rest:
        raise BackendError(
            f"a memory's address is recorded, so it must contain no secret: {EXPECTED}, without user, password,"
            f" query or fragment; put a token into {TOKEN_VARIABLE}"
        )
    return address, Path(match["file"]) if match["file"] else None


def read_mapping(path: Path) -> Spelling:
    """Read how a service spells the requests. Raises :class:`BackendError`, which names the file and the field."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_MAPPING_BYTES + 1)
        if len(raw) > _MAX_MAPPING_BYTES:
            raise BackendError(f"{path}: a mapping of more than {_MAX_MAPPING_BYTES:,} bytes")
        read = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise BackendError(f"{path}: the mapping cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BackendError(f"{path}: the mapping is no TOML: {error}".splitlines()[0]) from None
    if missing := [name for name in ("add", "search", "reset") if name not in read]:
        raise BackendError(f"{path}: the mapping has no [{missing[0]}]")
    given: dict[str, Any] = {}
    for name, value in read.items():
        if name in ("token_header", "token_prefix") and isinstance(value, str):
            given[name] = value
        elif name in ("add", "search", "items", "reset") and isinstance(value, dict):
            given[name] = _mapped(path, name, value)
        else:
            raise BackendError(f"{path}: {name} is not known, or not of its type")
    if not re.fullmatch(r"[A-Za-z0-9-]+", given.get("token_header", "Authorization")):
        raise BackendError(f"{path}: token_header is no name of a header")
    return Spelling(**given)


def _mapped(path: Path, name: str, value: Mapping[str, Any]) -> Mapped:
    types: dict[str, type] = {field.name: str for field in fields(Mapped)}
    types |= {"body": dict, "message": dict, "missing_ok": bool}
    for field, given in value.items():
        if not isinstance(given, types.get(field, ())):
            raise BackendError(f"{path}: {name}.{field} is not known, or not of its type")
    if not _REQUEST.fullmatch(value.get("request", "")):
        raise BackendError(f'{path}: {name}.request is not like "POST /path"')
    return Mapped(**value)


class HttpMemory(LibraryMemory):
    """A service that keeps memories by session. What its own models cost cannot be seen."""

    takes: tuple[str, ...] = ()
    store = "http"
    works_elsewhere = True

    def __init__(self, resources: Resources, spelled: str) -> None:
        super().__init__(resources)
        self._address, file = read_name(spelled)
        self._mapping = read_mapping(file) if file else _OWN
        self._http: httpx.AsyncClient | None = None
        self._session = ""
        self._said: dict[str, Message] = {}
        self._held: Mapping[str, Any] = {}
        self._latest: Exchange | None = None

    @staticmethod
    def check_name(spelled: str) -> None:
        """Read a name, and its mapping. Raises :class:`BackendError`."""
        _, file = read_name(spelled)
        if file:
            read_mapping(file)

    @staticmethod
    def contacts_a_server(spelled: str) -> bool:
        """Return whether a name is the address of a server."""
        return True

    async def open(self, namespace: Namespace) -> None:
        await self.close("cancelled")
        self.forget_all()
        self._said, self._held, self._latest = {}, {}, None
        self._session = f"memreplay-{namespace.point_id('http-memory')}"
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if token := os.environ.get(TOKEN_VARIABLE):
            headers[self._mapping.token_header] = f"{self._mapping.token_prefix}{token}"
        self._http = httpx.AsyncClient(headers=headers, timeout=SECONDS, follow_redirects=False, verify=trusted())
        await self._send(self._mapping.reset)
        if held := await self.items():
            raise BackendError(f"{self._where(self._mapping.reset)} left {len(held)} items of the session in place")

    async def add(self, exchange: Exchange) -> None:
        self._said |= {message.turn_id: message for message in exchange.messages}
        self._latest = exchange
        asked = self._mapping.add
        messages = [
            _filled(asked.message or {"role": "{role}", "content": "{content}"}, _values_of(message))
            for message in exchange.messages
        ]
        await self._send(asked, messages=messages, text=exchange.text, message_ids=list(exchange.turn_ids))

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        asked = self._mapping.search
        reply = await self._send(asked, query=question, top_k=top_k)
        listed = self._listed(asked, self._json(asked, reply))
        hits = [self._hit(asked, item, f"{asked.found or 'reply'}[{n}]") for n, item in enumerate(listed)]
        return self.recall_of(hits[:top_k], context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        """Return what the service lists; None where it cannot, so that what it holds is unknown."""
        asked = self._mapping.items
        if asked is None or self._http is None:
            return None
        reply = await self._send(asked, missing_ok=True)
        if reply is None and not asked.missing_ok:
            return None
        listed = [] if reply is None else self._listed(asked, self._json(asked, reply))
        held: dict[str, Mapping[str, Any]] = {}
        for number, item in enumerate(listed):
            at = f"{asked.found or 'reply'}[{number}]"
            id_, text = self._id_and_text(asked, item, at)
            if id_ in held:
                raise self._wrong(asked, f"{at}.{asked.id} repeats {id_[:80]!r}")
            metadata = _field(item, asked.metadata)
            held[id_] = {"text": text} | ({} if metadata is None else {"metadata": storable_value(metadata)})
        if self._latest is not None:
            self.changed(self._held, held, self._latest)
        self._held = held
        return held

    async def snapshot(self) -> Snapshot:
        """Return the items; where the service cannot list them, a snapshot that says so."""
        held = await self.items()
        if held is None:
            return Snapshot(is_known=self._http is None)
        return Snapshot(points={self.store: {self.place: held}})

    async def close(self, status: ClosingStatus) -> None:
        if self._http is None:
            return
        try:
            await self._send(self._mapping.reset)
        finally:
            http, self._http = self._http, None
            await http.aclose()

    def _hit(self, asked: Mapped, item: Any, at: str) -> Found:
        id_, text = self._id_and_text(asked, item, at)
        score = _field(item, asked.score)
        if score is not None and finite_score(score) is None:
            raise self._wrong(asked, f"{at}.{asked.score} is no finite number")
        named = _field(item, asked.message_ids)
        if named is None:
            return self.found(id_, text, finite_score(score))
        if not isinstance(named, list) or not all(isinstance(turn, str) for turn in named):
            raise self._wrong(asked, f"{at}.{asked.message_ids} is no list of texts")
        if unknown := [turn for turn in named if turn not in self._said]:
            raise self._wrong(
                asked, f"{at}.{asked.message_ids} names {unknown[0][:80]!r}, a message that it was never given"
            )
        messages = [self._said[turn] for turn in dict.fromkeys(named)]
        quoted = tuple(message.turn_id for message in messages if storable(message.text).strip() in text)
        latest = max(messages, key=lambda message: message.turn_number, default=None)
        return Found(
            id_,
            text,
            finite_score(score),
            said_at=latest.said_at if latest else None,
            order=latest.turn_number if latest else 0,
            turns=quoted,
            sources=tuple(message.turn_id for message in messages if message.turn_id not in quoted),
        )

    def _id_and_text(self, asked: Mapped, item: Any, at: str) -> tuple[str, str]:
        if not isinstance(item, dict):
            raise self._wrong(asked, f"{at} is no object")
        id_, text = _field(item, asked.id), _field(item, asked.text)
        if isinstance(id_, bool) or not isinstance(id_, str | int) or id_ == "":
            raise self._wrong(asked, f"{at}.{asked.id} is no text or whole number")
        if not isinstance(text, str):
            raise self._wrong(asked, f"{at}.{asked.text} is no text")
        return storable(str(id_)), storable(text)

    def _listed(self, asked: Mapped, reply: Any) -> Sequence[Any]:
        listed = _field(reply, asked.found) if asked.found else reply
        if not isinstance(listed, list):
            raise self._wrong(asked, f"{asked.found or 'the reply'} is no list")
        return listed

    def _where(self, asked: Mapped) -> str:
        method, path = asked.request.split(" ", 1)
        return f"{method} {self._address.url.rstrip('/')}{path.partition('?')[0]}"

    def _wrong(self, asked: Mapped, said: str) -> BackendError:
        return BackendError(f"{self._where(asked)}: {said}")

    def _json(self, asked: Mapped, reply: bytes | None) -> Any:
        try:
            return json.loads(reply or b"", parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise self._wrong(asked, "the reply is no JSON") from None

    async def _send(self, asked: Mapped, *, missing_ok: bool = False, **values: Any) -> bytes | None:
        """Return the body of the reply; None for a 404 that is no error. Raises :class:`BackendError`."""
        assert self._http is not None
        values["session"] = self._session
        method, path = asked.request.split(" ", 1)
        path = _PLACEHOLDER.sub(lambda found: quote(str(values.get(found[1], "")), safe=""), path)
        body = None if asked.body is None else json.dumps(storable_value(_filled(asked.body, values)))
        try:
            async with (
                asyncio.timeout(SECONDS),
                self._http.stream(
                    method,
                    self._address.url.rstrip("/") + path,
                    content=body,
                    headers={"Content-Type": "application/json"} if body is not None else {},
                ) as reply,
            ):
                content = await self._read(asked, reply)
        except TimeoutError:
            raise self._wrong(asked, f"no whole reply within {SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._wrong(asked, f"no reply: {type(error).__name__}") from None
        if reply.status_code == 404 and (missing_ok or asked.missing_ok):
            return None
        if reply.status_code in (401, 403):
            raise self._wrong(asked, f"the token is refused ({TOKEN_VARIABLE})")
        if not reply.is_success:
            said = " ".join(content[:800].decode("utf-8", "replace").split())[:200]
            raise self._wrong(
                asked, f"answered {reply.status_code}{': ' if said else ''}{self._without_token(said)}"
            )
        return content

    async def _read(self, asked: Mapped, reply: httpx.Response) -> bytes:
        if reply.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise self._wrong(asked, "the reply is packed, which was not asked for")
        content = bytearray()
        async for chunk in reply.aiter_raw():
            content += chunk
            if len(content) > MAX_REPLY_BYTES:
                raise self._wrong(asked, f"the reply has more than {MAX_REPLY_BYTES:,} bytes")
        return bytes(content)

    @staticmethod
    def _without_token(said: str) -> str:
        token = os.environ.get(TOKEN_VARIABLE)
        return said.replace(token, "[token]") if token else said


def _values_of(message: Message) -> dict[str, Any]:
    return {
        "id": message.turn_id,
        "role": message.role,
        "content": message.text,
        "line": message.line,
        "name": None if message.label in ORDINARY_LABELS else message.label,
        "time": message.said_at.isoformat() if message.said_at else None,
    }


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with values in place of names in braces; fields without a value are left out."""
    match template:
        case str() if whole := _PLACEHOLDER.fullmatch(template):
            return values.get(whole[1])
        case str():
            return _PLACEHOLDER.sub(lambda found: str(values.get(found[1]) or ""), template)
        case dict():
            made = {name: _filled(each, values) for name, each in template.items()}
            return {name: each for name, each in made.items() if each is not None}
        case list():
            return [_filled(each, values) for each in template]
    return template


def _field(value: Any, dotted: str) -> Any:
    """Return a field, with dots between levels; None where it is absent."""
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _no_number(spelled: str) -> float:
    raise ValueError(f"{spelled} is no JSON")
