"""Read the notes of a journal as operations on a memory: what was written, found, listed or removed, and said.

Most memories take and return the same things under other names: messages or a text, a query, and items with an id,
a text and a score. :data:`LIBRARIES` says which of a library's methods do what; what follows reads their arguments
and results. What is not understood is counted, and the operation keeps its error or its duration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson

from memory_backends.base import MemoryDescription, StoreInfo
from memreplay.capture.journal import Note
from memreplay.conversations.messages import ChatMessage, LeftOut, MessageReader
from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

Kind = Literal["message", "write", "read", "get", "list", "remove", "clear", "chat", "state"]
"""The effect of an operation. ``get`` reads items by their ids, ``list`` all of them; ``clear`` removes all. A
``chat`` is a call in which an agent that has a memory was spoken to; ``state`` replaces a whole state."""


@dataclass(frozen=True)
class Item:
    """Something that a memory holds, as an operation showed it. ``fields`` are what it has besides its text.

    ``is_assumed`` is True where a write returned only its id: the text is the one that the memory was given.
    """

    id: str
    text: str
    score: float | None = None
    place: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    is_assumed: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        """Return the item as it is stored in a point."""
        return {"content": self.text, **self.fields}


@dataclass(frozen=True)
class Operation:
    """One operation on a memory, or a message that was said.

    ``owner`` is whose memory it is, as far as the call says; ``turn`` is the marked message during which it ran.
    ``place`` is the part of the memory that it works on. ``call`` is the library's own name for it. ``given`` are
    the texts of a write that are no messages. ``is_silent`` is True of a write or read that does not show what it
    stored or found.
    """

    note: int
    kind: Kind
    memory: str
    call: str
    at: float
    ms: float = 0.0
    owner: str | None = None
    session: str | None = None
    turn: str | None = None
    place: str = ""
    messages: tuple[ChatMessage, ...] = ()
    given: tuple[str, ...] = ()
    query: str = ""
    items: tuple[Item, ...] = ()
    removed: tuple[str, ...] = ()
    state: Any = None
    error: str | None = None
    prompt: str = ""
    is_silent: bool = False

    @property
    def is_of_model(self) -> bool:
        """Return whether it is a call of the agent's model, and not of a memory."""
        return self.kind == "chat" and not self.memory


@dataclass(frozen=True)
class Library:
    """A library whose calls are known.

    ``methods`` are those that are recorded; a dotted name is a method of an attribute. A memory is one of
    this library if the module of its class begins with one of ``modules`` and has its first method.
    """

    name: str
    modules: tuple[str, ...]
    methods: Mapping[str, Kind]
    description: MemoryDescription | None = None


def _with_async(methods: Mapping[str, Kind]) -> dict[str, Kind]:
    return {f"{prefix}{name}": kind for name, kind in methods.items() for prefix in ("", "a")}


_GRAPHITI = MemoryDescription(stores=(StoreInfo(prefix="graphiti", superseded_field="invalid_at"),))

LIBRARIES: Final[tuple[Library, ...]] = (
    Library(
        "mem0",
        ("mem0",),
        {
            "add": "write",
            "search": "read",
            "get_all": "list",
            "get": "get",
            "update": "write",
            "delete": "remove",
            "delete_all": "clear",
            "reset": "clear",
        },
    ),
    Library(
        "langgraph",
        ("langgraph.store", "langgraph.checkpoint", "langgraph_checkpoint"),
        _with_async(
            {"put": "write", "search": "read", "get": "get", "delete": "remove", "delete_thread": "remove"}
        ),
    ),
    Library(
        "graphiti",
        ("graphiti_core",),
        {
            "add_episode": "write",
            "add_episode_bulk": "write",
            "add_triplet": "write",
            "search": "read",
            "search_": "read",
            "remove_episode": "remove",
        },
        _GRAPHITI,
    ),
    Library(
        "chroma",
        ("chromadb",),
        {"add": "write", "upsert": "write", "update": "write", "query": "read", "get": "get", "delete": "remove"},
    ),
    Library(
        "letta",
        ("letta_client",),
        {
            "agents.messages.create": "chat",
            "agents.messages.create_async": "chat",
            "agents.passages.create": "write",
            "agents.passages.search": "read",
            "agents.passages.list": "list",
            "agents.passages.delete": "remove",
            "agents.blocks.modify": "write",
            "agents.blocks.update": "write",
        },
    ),
)
BY_NAME: Final[Mapping[str, Library]] = {library.name: library for library in LIBRARIES}


def library_of(memory: object) -> Library | None:
    """Return the library that a memory comes from, by the modules of its class and of the classes it extends."""
    modules = [each.__module__ for each in type(memory).__mro__]
    for library in LIBRARIES:
        names = tuple(f"{name}." for name in library.modules)
        if any(f"{module}.".startswith(names) for module in modules):
            return library
    return None


_NAMED_BY_ITS_TOOL: Final[Mapping[Kind, re.Pattern[str]]] = {
    "remove": re.compile(r"delete|remove|forget|prune|drop|clear"),
    "write": re.compile(
        r"add|create|store|save|write|remember|insert|put|upsert|update|append|record|memorize|set"
    ),
    "list": re.compile(r"list|all|dump|graph|export"),
    "read": re.compile(r"search|recall|retrieve|query|find|read|get|open|lookup|context"),
}


def kind_by_name(name: str) -> Kind | None:
    """Return what a tool does, by the words of its name; None if they do not say."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    parts = [part for part in re.split(r"[^a-z0-9]+", words) if part]
    for kind, pattern in _NAMED_BY_ITS_TOOL.items():
        if any(pattern.fullmatch(part) for part in parts):
            return kind
    return None


class NoteReader:
    """Reads notes, and counts in ``left_out`` what it does not understand."""

    def __init__(self, path: Path) -> None:
        self.left_out = LeftOut()
        self._messages = MessageReader(self.left_out)
        self._path = path
        self._spans: set[str] = set()

    def operations(self, notes: Iterable[Note]) -> Iterator[Operation]:
        """Yield the operations of notes, in the order of their beginning."""
        found = [operation for note in notes for operation in self._readable(note)]
        yield from sorted(found, key=lambda operation: (operation.at, operation.note))

    def _readable(self, note: Note) -> list[Operation]:
        """Return the operations of a note; none of one that cannot be read, whatever is wrong with it."""
        try:
            return list(self._operations(note))
        except Exception as error:
            why = f"cannot be read ({type(error).__name__}) and is not shown"
            self.left_out.add("note", why, self._place(note))
            return []

    def _operations(self, note: Note) -> Iterator[Operation]:
        match note.source:
            case "message":
                yield self._message(note)
            case "call" | "mcp":
                yield from self._call(note)
            case "span":
                yield from self._span(note)
            case "lost":
                count = note.body.get("count")
                number = count if isinstance(count, int) else 1
                self.left_out.add("call", "could not be recorded", self._place(note), number)
            case "mark" | "redacted":
                return
            case _:
                self.left_out.add("note", f"of the kind {note.source} is not shown", self._place(note))

    def _span(self, note: Note) -> Iterator[Operation]:
        """Yield what a span tells; an exporter may send one again."""
        from memreplay.capture.spans import operations_of_span

        span = note.body.get("span")
        id_ = f"{span.get('traceId')}/{span['spanId']}" if isinstance(span, dict) and span.get("spanId") else ""
        if id_ and id_ in self._spans:
            return
        self._spans.add(id_)
        yield from operations_of_span(note, self._path, self.left_out)

    def _place(self, note: Note) -> Place:
        return Place(self._path, note.key)

    def _message(self, note: Note) -> Operation:
        body = note.body
        said = {"role": body.get("role"), "content": body.get("text")}
        messages = self._messages.message(said, self._place(note))
        if body.get("name"):
            messages = [replace(each, label=str(body["name"])) for each in messages]
        return Operation(
            note=note.key,
            kind="message",
            memory="",
            call="turn",
            at=note.at,
            owner=_text_or_none(body.get("user")),
            session=_text_or_none(body.get("session")),
            turn=str(body.get("turn")),
            messages=tuple(messages),
        )

    def _call(self, note: Note) -> Iterator[Operation]:
        body = note.body
        library = BY_NAME.get(str(body.get("library")))
        method = str(body.get("method"))
        noted = next((each for each in get_args(Kind) if each == body.get("kind")), None)
        kind = noted or (library and library.methods.get(method)) or kind_by_name(method)
        place = self._place(note)
        if kind is None:
            self.left_out.add("call", f"of {method} is not shown: whether it writes or reads is not known", place)
            return
        arguments = body.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        result = decoded(body.get("result"))
        base = Operation(
            note=note.key,
            kind=kind,
            memory=str(body.get("memory") or body.get("library") or "memory"),
            call=method,
            at=note.at,
            ms=_number(body.get("ms")) or 0.0,
            owner=_scope(arguments, _OWNERS),
            session=_scope(arguments, _SESSIONS),
            turn=_text_or_none(body.get("turn")),
            place=str(body.get("place") or ""),
            error=_text_or_none(body.get("error")),
        )
        if _is_left_out(result) or any(map(_is_left_out, arguments.values())):
            self.left_out.add("call", f"of {method} holds a value that was too large to be recorded", place)
        if library is not None and library.name == "langgraph" and "checkpoint" in arguments:
            yield self._checkpoint(base, arguments, place)
            return
        if library is not None and library.name == "chroma":
            read = _chroma(base, arguments, result)
            if read.kind == "remove" and not read.removed and read.error is None:
                self.left_out.add("call", f"of {method} removes something that it does not name", place)
            yield read
            return
        yield self._generic(base, arguments, result, place)

    def _generic(self, base: Operation, arguments: Mapping[str, Any], result: Any, place: Place) -> Operation:
        match base.kind:
            case "write" | "chat":
                if base.kind == "chat" and "input" in arguments:
                    arguments = {"messages": arguments["input"], **arguments}
                messages, contents = self._said(arguments, place)
                if base.kind == "chat":
                    messages += self._replies(result, place)
                given = tuple(text for text, _ in contents)
                base = replace(base, messages=tuple(messages), given=given)
                written, removed = self._written(base, arguments, contents, result)
                says_nothing = base.error is None and not written and not removed and not _lists_nothing(result)
                is_silent = says_nothing and bool(messages or given)
                return replace(base, items=written, removed=removed, is_silent=is_silent)
            case "read" | "get" | "list":
                items = tuple(items_in(result, _place_of(base, arguments)))
                if not items and result and base.error is None and not _is_empty(result):
                    self.left_out.add("result", f"of {base.call} holds no item with a text", place)
                return replace(base, query=_first_text(arguments, _QUERIES), items=items)
            case "remove":
                ids = tuple(_ids_in(arguments))
                if not ids and base.error is None:
                    self.left_out.add("call", f"of {base.call} removes something that it does not name", place)
                return replace(base, removed=ids, place=_place_of(base, arguments))
            case _:
                return base

    def _said(self, arguments: Mapping[str, Any], place: Place) -> tuple[list[ChatMessage], list[_Content]]:
        """Return the messages that a memory was given, and texts that are no messages, with their fields."""
        for name in ("messages", "message", "new_messages"):
            value = decoded(arguments.get(name))
            if isinstance(value, str) and value.strip():
                return [ChatMessage("user", value)], []
            if isinstance(value, dict):
                value = [value]
            if isinstance(value, list) and value:
                try:
                    return self._messages.messages(value, place.at(name), "user"), []
                except DatasetError as error:
                    self.left_out.add("message", f"is not shown: {error.problem}", place)
        if isinstance(body := arguments.get("episode_body"), str):
            return [ChatMessage("user", body)], []
        if isinstance(value := arguments.get("value"), dict | list):
            return [], [_described(value)]
        return [], [(text, {}) for name in _TEXTS for text in _texts_of(arguments.get(name))]

    def _replies(self, result: Any, place: Place) -> list[ChatMessage]:
        listed = result.get("messages") if isinstance(result, dict) else result
        if not isinstance(listed, list):
            return []
        if any(isinstance(each, dict) and "message_type" in each for each in listed):
            # Letta's: its thoughts and calls of tools are no part of the conversation.
            said = [each for each in listed if isinstance(each, dict)]
            said = [each for each in said if each.get("message_type") == "assistant_message"]
            listed = [{"role": "assistant", "content": each.get("content")} for each in said]
        return [each for each in self._messages.messages(listed, place.at("result")) if each.role == "assistant"]

    def _written(
        self, base: Operation, arguments: Mapping[str, Any], contents: Sequence[_Content], result: Any
    ) -> tuple[tuple[Item, ...], tuple[str, ...]]:
        """Return the items that a write left behind, and the ids of those that it removed.

        They are those that it returned, else what it was given, under the ids in its arguments or its result. What
        it made of a text without an id is not known.
        """
        where = _place_of(base, arguments)
        if base.error is not None:
            return (), ()
        returned = list(items_in(result, where))
        removed = tuple(item.id for item in returned if item.fields.get("event") in ("DELETE", "delete"))
        kept = tuple(
            item for item in returned if item.fields.get("event") not in ("DELETE", "delete", "NONE", "none")
        )
        if kept or removed:
            return kept, removed
        named = list(_ids_in(arguments))
        ids = named or list(_ids_of(result))
        if len(ids) != len(contents):
            return (), ()
        return tuple(
            Item(id_, text, place=where, fields=fields, is_assumed=not named)
            for id_, (text, fields) in zip(ids, contents, strict=True)
        ), ()

    def _checkpoint(self, base: Operation, arguments: Mapping[str, Any], place: Place) -> Operation:
        """Return the state of a LangGraph thread; its messages are those of the conversation."""
        config = arguments.get("config")
        configurable = config.get("configurable") if isinstance(config, dict) else None
        thread = _scope(configurable if isinstance(configurable, dict) else {}, ("thread_id",))
        checkpoint = arguments.get("checkpoint")
        values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
        values = dict(values) if isinstance(values, dict) else {}
        listed = values.pop("messages", [])
        messages = self._messages.messages(listed, place.at("messages")) if isinstance(listed, list) else []
        state = {name: value for name, value in values.items() if not name.startswith("__")}
        return replace(
            base,
            kind="state",
            session=thread or base.session,
            place=f"checkpoint/{thread or ''}",
            messages=tuple(messages),
            state=state,
        )


_Content = tuple[str, dict[str, Any]]
"""A text that a memory was given, and the other fields beside it."""

_OWNERS = ("user_id", "userId", "user", "agent_id", "agentId", "group_id", "bank_id", "owner", "owner_id")
_SESSIONS = ("session_id", "sessionId", "session", "run_id", "thread_id", "threadId", "conversation_id", "chat_id")
_QUERIES = ("query", "question", "q", "search_query", "query_text", "query_texts", "text", "input", "message")
_TEXTS = ("text", "content", "memory", "fact", "data", "documents", "document", "observation", "note", "value")
_IDS: tuple[str, ...] = (
    "id",
    "ids",
    "uuid",
    "key",
    "memory_id",
    "memoryId",
    "point_id",
    "passage_id",
    "block_label",
    "episode_uuid",
)
_ITEM_TEXTS = ("memory", "fact", "content", "text", "document", "data", "page_content", "summary", "value", "name")
_ITEM_IDS = ("id", "uuid", "memory_id", "key", "memoryId", "memoryRecordId", "eventId")
_SCORES = ("score", "similarity", "relevance", "relevance_score", "distance")
_LISTS: tuple[str, ...] = (
    "results",
    "memories",
    "hits",
    "items",
    "documents",
    "matches",
    "edges",
    "nodes",
    "points",
    "facts",
)
_LISTS += ("entities", "relations", "observations", "passages", "records", "data", "result", "chunks", "content")
_LISTS += ("episodes", "memoryRecordSummaries")
_WITHOUT_TEXT = frozenset({*_ITEM_TEXTS, *_ITEM_IDS, *_SCORES, "left_out", "namespace"})


def _scope(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    filters = arguments.get("filters") or arguments.get("filter")
    for within in (arguments, filters if isinstance(filters, dict) else {}):
        for name in names:
            value = within.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return str(value)
    groups = arguments.get("group_ids")
    if "group_id" in names and isinstance(groups, list) and len(groups) == 1:
        return str(groups[0])
    return None


def _place_of(base: Operation, arguments: Mapping[str, Any]) -> str:
    space = arguments.get("namespace") or arguments.get("namespace_prefix")
    if isinstance(space, list | tuple):
        return "/".join(map(str, space))
    named = arguments.get("collection") or arguments.get("collection_name") or space
    return str(named) if isinstance(named, str) else base.place


def items_in(result: Any, place: str = "", depth: int = 0) -> Iterator[Item]:
    """Yield the items in a result, in their order: objects with a text, wherever they are listed."""
    result = decoded(result)
    if depth > 4:
        return
    if isinstance(result, list | tuple):
        for each in result:
            if isinstance(each, str) and each.strip():
                yield Item(each, each, place=place)
            else:
                yield from items_in(each, place, depth + 1)
        return
    if not isinstance(result, dict):
        return
    listed = [name for name in _LISTS if name in result and isinstance(decoded(result[name]), list)]
    if listed and not any(isinstance(result.get(name), str) for name in ("memory", "fact", "text")):
        for name in listed:
            yield from items_in(result[name], place, depth + 1)
        return
    item = _item(result, place)
    if item is not None:
        yield item


def _item(value: Mapping[str, Any], place: str) -> Item | None:
    text = ""
    extra: dict[str, Any] = {}
    for name in _ITEM_TEXTS:
        if name not in value:
            continue
        written = decoded(value[name])
        if isinstance(written, str) and written.strip():
            text = written
            break
        if isinstance(written, dict) and written:
            text, extra = _described(written)
            break
    if not text:
        return None
    id_ = next((str(value[name]) for name in _ITEM_IDS if isinstance(value.get(name), str | int)), text)
    score = next((number for name in _SCORES if (number := _number(value.get(name))) is not None), None)
    space = value.get("namespace")
    if isinstance(space, list | tuple) and space:
        place = "/".join(map(str, space))
    fields = {
        name: each for name, each in value.items() if name not in _WITHOUT_TEXT and each not in (None, "", {}, [])
    }
    return Item(id_, text, score, place, {**fields, **extra})


def _described(value: Any) -> tuple[str, dict[str, Any]]:
    """Return the text of a value that is an object, and its other fields: one of its texts, else all as JSON."""
    if isinstance(value, dict):
        for name in ("content", "text", "memory", "fact", "data"):
            if isinstance(value.get(name), str):
                return value[name], {other: each for other, each in value.items() if other != name}
            if isinstance(value.get(name), dict):
                text, inner = _described(value[name])
                return text, inner
    return orjson.dumps(value, default=str).decode(), {}


def _chroma(base: Operation, arguments: Mapping[str, Any], result: Any) -> Operation:
    """Read the columns that Chroma takes and returns."""
    where = base.place
    if base.kind == "write":
        ids, documents = _listed(arguments.get("ids")), _listed(arguments.get("documents"))
        metadatas = _listed(arguments.get("metadatas"))
        items = tuple(
            Item(str(id_), str(documents[n]), None, where, _fields(metadatas, n))
            for n, id_ in enumerate(ids)
            if n < len(documents) and documents[n] is not None and base.error is None
        )
        return replace(base, items=items)
    if base.kind == "remove":
        ids = _listed(arguments.get("ids"))
        return replace(base, removed=tuple(map(str, ids)))
    columns = result if isinstance(result, dict) else {}
    rows = [_listed(columns.get(name)) for name in ("ids", "documents", "metadatas", "distances")]
    queries = [str(text) for text in _listed(arguments.get("query_texts"))]
    if base.kind == "read":
        # One list a query; the items of several queries follow each other.
        rows = [[each for group in row for each in _listed(group)] for row in rows]
    ids, documents, metadatas, distances = rows
    items = tuple(
        Item(
            str(id_),
            str(documents[n]),
            _number(distances[n]) if n < len(distances) else None,
            where,
            _fields(metadatas, n),
        )
        for n, id_ in enumerate(ids)
        if n < len(documents) and documents[n] is not None
    )
    return replace(base, query="\n".join(queries), items=items)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _fields(metadatas: list[Any], number: int) -> dict[str, Any]:
    found = metadatas[number] if number < len(metadatas) else None
    return dict(found) if isinstance(found, dict) else {}


def decoded(value: Any) -> Any:
    """Return what a string of JSON holds, and any other value as it is."""
    if isinstance(value, str) and value[:1] in "[{" and value[-1:] in "]}":
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return value


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, str) and each.strip())


def _first_text(arguments: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names for text in _texts_of(arguments.get(name))), "")


def _ids_in(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in _IDS:
        value = arguments.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield str(value)
            return
        if isinstance(value, list) and value:
            yield from map(str, value)
            return


def _ids_of(result: Any) -> Iterator[str]:
    if isinstance(result, dict):
        yield from _ids_in(result)
    elif isinstance(result, str) and 0 < len(result) <= 64:
        yield result
    elif isinstance(result, list):
        yield from (each for each in result if isinstance(each, str))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def _text_or_none(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _is_left_out(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"left_out"}


def _lists_nothing(result: Any) -> bool:
    """Return whether a result lists what was stored, and that nothing was."""
    if isinstance(result, dict):
        lists = [each for each in result.values() if isinstance(each, list)]
        return bool(lists) and not any(lists)
    return isinstance(result, list) and not result


def _is_empty(result: Any) -> bool:
    """Return whether a result says that nothing was found: lists without anything in them."""
    if isinstance(result, dict):
        return all(_is_empty(value) if isinstance(value, dict | list) else True for value in result.values())
    return isinstance(result, list) and all(map(_is_empty, result))
