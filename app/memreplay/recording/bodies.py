"""Events as JSON text in a recording; long texts are stored once, by hash, and referenced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, cast

import orjson

from memory_backends.storable import storable_value
from memreplay.conversations.models import Conversation
from memreplay.engine.events import (
    REPLAY_EVENT,
    AnswerScored,
    AskEvent,
    FactsExtracted,
    ModelCalled,
    ReplayEvent,
    ReplyReceived,
    TurnPlayed,
)
from memreplay.llm.model import MOST_DOLLARS, MOST_TOKENS
from memreplay.numbers import finite, finite_count
from memreplay.recording.damage import reporting_damaged_event

Share = Callable[[dict[str, Any]], int]
"""Keeps what recurs, and returns the number of its part: equal ones have the same."""

PartOf = Callable[[int], Mapping[str, Any]]
"""The part with a number."""

PART = "part"

_IN_COLUMNS = ("conversation", "turn", "backend", "kind")
"""Fields of every event that its row has in columns."""

_OF_A_CANDIDATE = ("id", "store", "place", "text", "turns", "sources", "excerpts")

_OF_A_FOUND_POINT = ("id",)

_OF_A_CUT = ("place", "turns")

_OF_A_COMMAND = ("kind", "store", "command", "key", "phase", "actor")
"""Fields that recur, by what they are fields of."""

MOST_FIELDS_OF_A_TABLE = 4_000_000
"""Limit of fields: a short body could refer to a part of many fields many times (300,000 candidates)."""

_TABLES = {"hits": _OF_A_CANDIDATE, "missed": _OF_A_CANDIDATE, "cut": _OF_A_CUT}


def packed(fields: dict[str, Any], share: Share) -> dict[str, Any]:
    """Return the body of an event with these fields, in JSON form. :func:`unpacked` gives them back."""
    body = {name: value for name, value in fields.items() if name not in _IN_COLUMNS}
    for name, recurring in _TABLES.items():
        if body.get(name):
            body[name] = _table(body[name], recurring, share)
    if "operation" in body:
        body["operation"] = _packed_operation(body["operation"], share)
    return body


def unpacked(
    body: Mapping[str, Any], columns: Mapping[str, Any], part_of: PartOf, *, with_candidates: bool = True
) -> dict[str, Any]:
    """Return the fields of an event from its body and the columns of its row; bodies of older formats have all of
    them.

    Without ``with_candidates`` it has no hits, missed candidates and cuts.
    """
    fields = {**columns, **body}
    for name in _TABLES:
        if name in fields:
            fields[name] = list(rows_of(fields[name], part_of)) if with_candidates else ()
    if isinstance(fields.get("operation"), dict):
        fields["operation"] = _unpacked_operation(fields["operation"], part_of)
    return fields


def with_part(operation: Mapping[str, Any], part_of: PartOf) -> dict[str, Any]:
    """Return a store command with what it shares with others, and its change as it stands in the body."""
    rest = {"error": None, **operation}
    part = rest.pop(PART, None)
    return rest if part is None else {**part_of(part), **rest}


def parts_and_ranks(table: Any) -> Iterable[tuple[Any, int]]:
    """Return, for each candidate in a table, its part's number (or itself if it has none), and its rank."""
    if not isinstance(table, dict):
        return [(row, row["rank"]) for row in table]
    parts, first = table[PART], table.get("first")
    return zip(parts, table["rank"] if first is None else range(first, first + len(parts)), strict=True)


def rows_of(table: Any, part_of: PartOf) -> Sequence[dict[str, Any]]:
    """Return the rows of a table, in JSON form. Bodies of older formats, and empty tables, have a list of rows.

    Raises:
        ValueError: they have more than :data:`MOST_FIELDS_OF_A_TABLE`.
    """
    if not isinstance(table, dict):
        return cast("Sequence[dict[str, Any]]", table)
    columns = dict(table)
    parts = columns.pop(PART)
    first = columns.pop("first", None)
    channels = columns.pop("channels", None)
    rows: list[dict[str, Any]] = []
    fields = 0
    for part in parts:
        recurring = part_of(part)
        fields += len(recurring) + len(columns) + len(channels or ())
        if fields > MOST_FIELDS_OF_A_TABLE:
            raise ValueError(f"a table of it has more than {MOST_FIELDS_OF_A_TABLE:,} fields")
        rows.append(dict(recurring))
    for number, row in enumerate(rows):
        if first is not None:
            row["rank"] = first + number
        for name, column in columns.items():
            row[name] = column[number] if isinstance(column, list) else column
        if channels is not None:
            row["channels"] = {}
    for name, channel in (channels or {}).items():
        _unpack_channel(name, channel, rows)
    return rows


def _table(rows: Sequence[dict[str, Any]], recurring: Sequence[str], share: Share) -> Any:
    """Return the rows as a table, or as they are if a table would not give them back as they were."""
    names = [name for name in rows[0] if name not in recurring]
    channels = _channels(rows) if "channels" in names else {}
    if channels is None or any(len(row) != len(rows[0]) for row in rows):
        return rows
    table: dict[str, Any] = {PART: [share({name: row[name] for name in recurring}) for row in rows]}
    for name in names:
        column = [row[name] for row in rows]
        if name == "channels":
            table[name] = channels
        elif name == "rank" and _counts_up(column):
            table["first"] = column[0]
        else:
            table[name] = _column(column)
    return table


def _column(values: list[Any]) -> Any:
    """Return one value if all rows share it, else the list of values. Values must not be lists."""
    return values[0] if all(value == values[0] for value in values) else values


def _counts_up(ranks: Sequence[Any]) -> bool:
    return list(ranks) == list(range(ranks[0], ranks[0] + len(ranks)))


def _channels(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the channels of candidates by name, each with its ranks, and scores unless they are the candidates'
    own.

    A candidate without a channel has a null there. None if the candidates list their channels in no common order.
    """
    names = list(dict.fromkeys(name for row in sorted(rows, key=_by_most_channels) for name in row["channels"]))
    if any(list(row["channels"]) != [name for name in names if name in row["channels"]] for row in rows):
        return None
    packed: dict[str, Any] = {}
    for name in names:
        found = [row["channels"].get(name) for row in rows]
        ranks = [each and each["rank"] for each in found]
        scores = [each and each["score"] for each in found]
        packed[name] = {"first": ranks[0]} if None not in ranks and _counts_up(ranks) else {"rank": ranks}
        if scores != [row["score"] for row in rows]:
            packed[name]["score"] = scores
    return packed


def _by_most_channels(row: dict[str, Any]) -> int:
    return -len(row["channels"])


def _unpack_channel(name: str, channel: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    ranks = channel.get("rank") or range(channel["first"], channel["first"] + len(rows))
    scores = channel.get("score")
    for number, row in enumerate(rows):
        if ranks[number] is not None:
            score = row["score"] if scores is None else scores[number]
            row["channels"][name] = {"rank": ranks[number], "score": score}


def _packed_operation(operation: dict[str, Any], share: Share) -> dict[str, Any]:
    packed: dict[str, Any] = {PART: share({name: operation[name] for name in _OF_A_COMMAND})}
    packed |= {name: value for name, value in operation.items() if name not in _OF_A_COMMAND}
    change = packed["change"]
    if change is not None and change.get("found") and change["kind"] == "search":
        packed["change"] = change | {"found": _table(change["found"], _OF_A_FOUND_POINT, share)}
    if packed["error"] is None:
        del packed["error"]
    return packed


def _unpacked_operation(operation: dict[str, Any], part_of: PartOf) -> dict[str, Any]:
    fields = with_part(operation, part_of)
    change = fields["change"]
    if change is not None and change["kind"] == "search":
        fields["change"] = change | {"found": rows_of(change["found"], part_of)}
    return fields


LONG_TEXT = 160
"""Texts of at least this many characters are stored once, in the table ``texts``."""

_REFERENCE = "$"


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def intern(value: Any, store: Callable[[str, str], None]) -> Any:
    """Replace long texts by references ``{"$": hash}``; pass each to ``store`` as (hash, text)."""
    match value:
        case str() if len(value) >= LONG_TEXT:
            digest = text_hash(value)
            store(digest, value)
            return {_REFERENCE: digest}
        case dict():
            interned = {key: intern(item, store) for key, item in value.items()}
            return {_escaped(key): item for key, item in interned.items()} if len(interned) == 1 else interned
        case list() | tuple():
            return [intern(item, store) for item in value]
        case _:
            return value


MOST_JOINED_CHARACTERS = 64 * 2**20
"""Limit of characters in texts joined from pieces: a short body could refer to a long text many times."""


def resolve(value: Any, look_up: Callable[[str], str]) -> Any:
    """Replace references by their texts. ``{"$": [piece, …]}`` is a text in pieces, which may be references.

    Raises:
        ValueError: joined, the pieces have more than :data:`MOST_JOINED_CHARACTERS`.
    """
    return _Resolver(look_up).resolve(value)


class _Resolver:
    def __init__(self, look_up: Callable[[str], str]) -> None:
        self._look_up = look_up
        self._room = MOST_JOINED_CHARACTERS

    def resolve(self, value: Any) -> Any:
        match value:
            case {"$": str(digest)} if len(value) == 1:
                return self._look_up(digest)
            case {"$": list(pieces)} if len(value) == 1:
                return self._joined([self.resolve(piece) for piece in pieces])
            case dict():
                resolved = {key: self.resolve(item) for key, item in value.items()}
                return {_unescaped(key): item for key, item in resolved.items()} if len(resolved) == 1 else resolved
            case list():
                return [self.resolve(item) for item in value]
            case _:
                return value

    def _joined(self, pieces: Sequence[str]) -> str:
        self._room -= sum(map(len, pieces))
        if self._room < 0:
            raise ValueError(f"its texts have more than {MOST_JOINED_CHARACTERS:,} characters")
        return "".join(pieces)


def _looks_like_reference(key: str) -> bool:
    return bool(key) and set(key) == {_REFERENCE}


def _escaped(key: str) -> str:
    return key + _REFERENCE if _looks_like_reference(key) else key


def _unescaped(key: str) -> str:
    return key[:-1] if _looks_like_reference(key) else key


def to_json(value: Any, option: int | None = None) -> bytes:
    """Plain data as JSON. What JSON and SQLite cannot hold is replaced (:mod:`memory_backends.storable`)."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(storable_value(value), option=option)


def conversation_to_json(conversation: Conversation, store: Callable[[str, str], None]) -> str:
    """Return the body of a conversation's row. Long texts go to ``store`` as (hash, text)."""
    fields = conversation.model_dump(mode="json")
    try:
        written = orjson.dumps(fields)
    except TypeError:
        return to_json(intern(storable_value(fields), store)).decode()
    return (orjson.dumps(intern(fields, store)) if _MAYBE_INTERNED.search(written) else written).decode()


def event_to_json(event: ReplayEvent, store: Callable[[str, str], None], share: Share) -> str:
    """Return the body of an event's row. Long texts go to ``store`` as (hash, text), and what recurs to ``share``.

    What its row has in columns is not in it, nor what is empty or unset.
    """
    if isinstance(event, TurnPlayed):
        return "{}"
    fields = _fields(event)
    try:
        return _body(fields, store, share).decode()
    except (TypeError, UnicodeEncodeError):
        # What is stored before the error stays in its table, which does no harm.
        return _body(storable_value(fields), store, share).decode()


def _fields(event: ReplayEvent) -> dict[str, Any]:
    if isinstance(event, ReplyReceived | AnswerScored):
        ask = event.model_dump(include=set(AskEvent.model_fields))
        return ask | event.model_dump(mode="json", exclude_defaults=True)
    fields = event.model_dump(mode="json")
    match event:
        case ModelCalled(call=call):
            fields["call"] = call.model_dump(mode="json", exclude_defaults=True)
        case FactsExtracted(extraction=extraction):
            fields["extraction"] = extraction.model_dump(mode="json", exclude_defaults=True)
    declared = type(event).model_fields
    empty = [name for name, value in fields.items() if value in (None, []) and declared[name].default in (None, ())]
    return {name: value for name, value in fields.items() if name not in empty}


def _body(fields: dict[str, Any], store: Callable[[str, str], None], share: Share) -> bytes:
    body = packed(fields, share)
    prompt = body.pop("prompt", None) if any(fields.get(name) for name in _CANDIDATES) else None
    if not prompt:
        written = orjson.dumps(body if prompt is None else {**body, "prompt": prompt})
        if _MAYBE_INTERNED.search(written) is None:
            return written
    body = {name: intern(value, store) for name, value in body.items()}
    if prompt is not None:
        asked = [text for name in _CANDIDATES for hit in fields.get(name, ()) if (text := hit["text"])]
        body["prompt"] = [_interned_message(message, asked, store) for message in prompt]
    return orjson.dumps(body)


_MAYBE_INTERNED = re.compile(rb'"[^"]{%d,}"|\\|"\$' % LONG_TEXT)
"""Matches JSON that may hold a long text, or a key that looks like a reference. :func:`intern` leaves other JSON as
it is."""

_CANDIDATES = ("hits", "missed")


def _interned_message(
    message: dict[str, Any], hits: Sequence[str], store: Callable[[str, str], None]
) -> dict[str, Any]:
    """Return a message whose context is made of the texts of hits, which are stored anyway."""
    segments = []
    for segment in message["segments"]:
        pieces = _split(segment, hits) if len(segment) >= LONG_TEXT else [segment]
        whole = intern(pieces if len(pieces) > 1 else segment, store)
        segments.append({_REFERENCE: whole} if len(pieces) > 1 else whole)
    return {**message, "segments": segments}


def _split(text: str, known: Sequence[str]) -> list[str]:
    """Pieces that make up a text, as many as possible of them known. Known texts that overlap are not all found."""
    places = sorted((place, -len(each)) for each in dict.fromkeys(known) if (place := text.find(each)) >= 0)
    pieces, end = [], 0
    for place, negative_length in places:
        if place < end:
            continue
        if place > end:
            pieces.append(text[end:place])
        end = place - negative_length
        pieces.append(text[place:end])
    return [*pieces, text[end:]] if end < len(text) else pieces


class Shelf(Protocol):
    """The texts and parts that bodies of events refer to."""

    def text(self, digest: str, /) -> str:
        """Return the text with a hash."""
        ...

    def part(self, number: int, /) -> Mapping[str, Any]:
        """Return the part with a number, with its texts."""
        ...

    def raw_part(self, number: int, /) -> Mapping[str, Any]:
        """Return the same with references in place of long texts."""
        ...

    def odd_number(self, field: str, /) -> None:
        """Count a number that cannot be one: it is read as unknown, or as 0."""
        ...


_MOST_MS = 1e11
"""Three years."""

_LARGEST_SCORE = 1e15

_COUNTS = (
    "tokens", "context_tokens", "distance_tokens", "prompt_tokens", "completion_tokens", "cached_tokens",
)  # fmt: skip
_BOUNDS: Mapping[str, tuple[float, float, float | None]] = {
    "ms": (0, _MOST_MS, 0.0),
    "recall_ms": (0, _MOST_MS, 0.0),
    "cost_usd": (0, MOST_DOLLARS, None),
    "score": (-_LARGEST_SCORE, _LARGEST_SCORE, None),
    "recorded_score": (-_LARGEST_SCORE, _LARGEST_SCORE, None),
    "entity_recall": (0, 1, None),
    "f1": (0, 1, None),
    "reciprocal_rank": (0, 1, None),
}
"""Least and most of the numbers of an event, and what stands for one that is neither."""

_WITH_NUMBERS = ("reply", "judgement", "call", "extraction", "operation", "score", "retrieval", "usage")
"""Parts of events that have numbers of their own. What a memory wrote is data, and is not looked at."""


_MEASURED = frozenset({"context_tokens", "recall_ms"})
"""Numbers of an asked question: it is not measured where one of them is unknown."""


def _with_usable_numbers(fields: Any, odd: Callable[[str], None]) -> Any:
    """Return the fields of an event, or of a part of one, in which every number is finite and within its bounds."""
    if not isinstance(fields, dict):
        return fields
    usable = dict(fields)
    for name, value in fields.items():
        if name in _WITH_NUMBERS and isinstance(value, dict):
            usable[name] = _with_usable_numbers(value, odd)
        elif name in _TABLES:
            usable[name] = [_with_usable_score(row, odd) for row in value]
        elif name in _COUNTS and finite_count(value, MOST_TOKENS) is None:
            odd(name)
            usable[name] = 0
        elif (
            name in _BOUNDS and value != (unknown := _BOUNDS[name][2]) and finite(value, *_BOUNDS[name][:2]) is None
        ):
            odd(name)
            usable[name] = unknown
    if any(usable[name] != fields.get(name) for name in _MEASURED & usable.keys()):
        usable["measured"] = False
    return usable


def _with_usable_score(row: Any, odd: Callable[[str], None]) -> Any:
    if not isinstance(row, dict):
        return row
    usable = _with_usable_numbers(row, odd)
    channels = row.get("channels")
    if isinstance(channels, dict):
        usable["channels"] = {name: _with_usable_numbers(found, odd) for name, found in channels.items()}
    return usable


class EventRow(NamedTuple):
    """A row of the table of events; ``conversation`` is its id."""

    conversation: str
    backend: str | None
    turn: int
    kind: str
    body: str


def event_from_row(row: EventRow, shelf: Shelf) -> ReplayEvent:
    """Return the event of a row.

    Raises:
        DamagedEventError: the row is not an event's.
    """
    with reporting_damaged_event():
        return _validated(row, orjson.loads(row.body), shelf, with_candidates=True)


def ask_from_row(row: EventRow, shelf: Shelf) -> ReplayEvent:
    """Return the event of an ask without hits, cuts and the prompt's text, which are most of it and its slowest
    part.

    Raises:
        DamagedEventError: the row is not an event's.
    """
    with reporting_damaged_event():
        body: dict[str, Any] = orjson.loads(row.body)
        judgement = body.get("judgement", {})
        for message in (*body.get("prompt", ()), *judgement.get("prompt", ())):
            message["segments"] = ()
        return _validated(row, body, shelf, with_candidates=False)


def _validated(row: EventRow, body: dict[str, Any], shelf: Shelf, *, with_candidates: bool) -> ReplayEvent:
    columns = {"conversation": row.conversation, "turn": row.turn, "kind": row.kind}
    if row.backend is not None:
        columns["backend"] = row.backend
    if f'{{"{_REFERENCE}' in row.body:
        body = resolve(body, shelf.text)
    fields = unpacked(body, columns, shelf.part, with_candidates=with_candidates)
    return REPLAY_EVENT.validate_python(_with_usable_numbers(fields, shelf.odd_number))
