"""Bodies of events without what a recording says elsewhere: in a row's columns, or in a part that events share.

A list of rows becomes a table of columns: ``part`` has the numbers of the rows' parts, which hold what recurs (a
point's id, place and text; a place and its turns), and every other field is a list, or a single value if it is the
same in all rows. Ranks that count up from ``first`` are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

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
"""Of 300,000 candidates: a short body could refer to a part of many fields many times."""

_TABLES = {"hits": _OF_A_CANDIDATE, "missed": _OF_A_CANDIDATE, "cut": _OF_A_CUT}


def packed(fields: dict[str, Any], share: Share) -> dict[str, Any]:
    """The body of an event with these fields, in JSON form. :func:`unpacked` gives them back."""
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
    """The fields of an event from its body and the columns of its row; bodies of older formats have all of them.

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
    """A store command with what it shares with others, and its change as it stands in the body."""
    rest = {"error": None, **operation}
    part = rest.pop(PART, None)
    return rest if part is None else {**part_of(part), **rest}


def parts_and_ranks(table: Any) -> Iterable[tuple[Any, int]]:
    """Of each candidate in a table the number of its part, or the candidate itself where it has none; its rank."""
    if not isinstance(table, dict):
        return [(row, row["rank"]) for row in table]
    parts, first = table[PART], table.get("first")
    return zip(parts, table["rank"] if first is None else range(first, first + len(parts)), strict=True)


def rows_of(table: Any, part_of: PartOf) -> Sequence[dict[str, Any]]:
    """The rows of a table, in JSON form. Bodies of older formats, and empty tables, have a list of rows.

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
    """The rows as a table, or as they are if a table would not give them back as they were."""
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
    """A column: the values, or the only one. Values are no lists."""
    return values[0] if all(value == values[0] for value in values) else values


def _counts_up(ranks: Sequence[Any]) -> bool:
    return list(ranks) == list(range(ranks[0], ranks[0] + len(ranks)))


def _channels(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The channels of candidates by name, each with its ranks, and scores unless they are the candidates' own.

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
