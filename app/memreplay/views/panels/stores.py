"""The contents of an architecture's stores, the commands and decisions that wrote it, and the raw events."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any, Final, Literal, cast

from memory_backends.stores.trace import (
    AppendChange,
    Change,
    ExpireChange,
    MemoryOperation,
    PatchChange,
    PromotionDecision,
    PublishChange,
    ReadChange,
    RemoveChange,
    SearchChange,
    SignificanceFactors,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.engine.events import ReplayEvent
from memreplay.numbers import counted
from memreplay.timeline.fold import MISSING, MissingValue, Path
from memreplay.timeline.timeline import Ledger, Timeline
from memreplay.views.document import LazyDocument
from memreplay.views.panels import DiffBase, View, lines_view, placeholder, short_key, waiting
from memreplay.views.subjects import DecisionSubject, StoredSubject, ValueSubject, WholeStateSubject
from memreplay.views.text import Line, Span, Tone, line, one_line, paragraphs, visible

_ROWS_AROUND = 2

_NOTHING: Final = Span("  (this key does not exist here)", "dim")

_SIGNS: Final[Mapping[str, tuple[tuple[str, Tone], tuple[str, Tone]]]] = {
    "equal": (("  ", "plain"), ("  ", "plain")),
    "replace": (("~ ", "changed"), ("~ ", "changed")),
    "delete": (("− ", "removed"), ("  ", "plain")),
    "insert": (("  ", "plain"), ("+ ", "added")),
}


def sides(before: Any, after: Any) -> tuple[list[Line], list[Line]]:
    """Two columns of equal length, before and after. Either value may be missing."""
    old, new = _text(before), _text(after)
    left: list[Line] = [line(_NOTHING)] if isinstance(before, MissingValue) else []
    right: list[Line] = [line(_NOTHING)] if isinstance(after, MissingValue) else []
    for group in SequenceMatcher(None, old, new, False).get_grouped_opcodes(_ROWS_AROUND):
        if group[0][1] or group[0][3]:
            _both(left, right, line(Span("  ⋯", "dim")))
        for kind, i1, i2, j1, j2 in group:
            for place in range(max(i2 - i1, j2 - j1)):
                left.append(_side(old, i1 + place, i2, *_SIGNS[kind][0]))
                right.append(_side(new, j1 + place, j2, *_SIGNS[kind][1]))
    if not left and not right:
        _both(left, right, line(Span("  nothing changed", "dim")))
    return left, right


def _both(left: list[Line], right: list[Line], one: Line) -> None:
    left.append(one)
    right.append(one)


def _side(lines: list[str], at: int, end: int, sign: str, tone: Tone) -> Line:
    if at >= end:
        return line("")
    return line(Span(sign, tone), Span(visible(lines[at]), tone), most=1)


def _text(value: Any) -> list[str]:
    return [] if isinstance(value, MissingValue) else json.dumps(value, ensure_ascii=False, indent=2).split("\n")


Sign = Literal[" ", "+", "−", "~"]

_TONE: Final[dict[Sign, Tone]] = {" ": "plain", "+": "added", "−": "removed", "~": "changed"}

_INDENT = 2

_SHORT = 60

_ROWS_OF_REMOVED = 2

_AROUND = 1


@dataclass(frozen=True)
class StateLines:
    """The lines of a state, and the index of the first changed one; None if nothing changed.

    ``about`` of a line is its path in the state; closing brackets and removed items have none.
    ``changed`` holds the indexes of the marked lines, if two values were compared.
    """

    lines: tuple[Line, ...]
    first_change: int | None
    changed: frozenset[int] = frozenset()


def state_lines(before: Any, after: Any) -> StateLines:
    """Return the state ``after``, marked where it differs from ``before``. Either may be missing."""
    if isinstance(after, MissingValue):
        removed = () if isinstance(before, MissingValue) else (_removed(0, "", before, ()),)
        return StateLines(removed, 0 if removed else None)
    if isinstance(before, MissingValue):
        return StateLines(tuple(_value("+", 0, "", after, "", ())), 0)
    compared = list(_compared(0, "", before, after, "", ()))
    changed = [number for number, (sign, _) in enumerate(compared) if sign != " "]
    return StateLines(tuple(line for _, line in compared), min(changed, default=None), frozenset(changed))


def folded(state: StateLines) -> StateLines:
    """Return the same state with unchanged stretches folded, except one line around each change."""
    if state.first_change is None:
        return StateLines((_fold(len(state.lines)),) if state.lines else (), None)
    if not state.changed:
        return state
    kept = {near for number in state.changed for near in range(number - _AROUND, number + _AROUND + 1)}
    lines: list[Line] = []
    first: int | None = None
    hidden = 0
    for number, each in enumerate(state.lines):
        if number not in kept:
            hidden += 1
            continue
        if hidden:
            lines.append(_fold(hidden))
            hidden = 0
        if number == state.first_change:
            first = len(lines)
        lines.append(each)
    if hidden:
        lines.append(_fold(hidden))
    return StateLines(tuple(lines), first)


def _fold(count: int) -> Line:
    return Line((Span(f"  ⋯ {count} unchanged", "dim"),), hang=2)


def _compared(
    depth: int, label: str, before: Any, after: Any, comma: str, path: Path
) -> Iterator[tuple[Sign, Line]]:
    if before == after and type(before) is type(after):
        for each in _value(" ", depth, label, after, comma, path):
            yield " ", each
    elif isinstance(before, Mapping) and isinstance(after, Mapping) and before and after:
        yield " ", _line(" ", depth, label, "{", path)
        yield from _compared_members(depth + 1, before, after, path)
        yield " ", _line(" ", depth, "", "}" + comma, None)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        yield " ", _line(" ", depth, label, "[", path)
        yield from _compared_items(depth + 1, before, after, path)
        yield " ", _line(" ", depth, "", "]" + comma, None)
    else:
        yield from _replaced(depth, label, before, after, comma, path)


def _compared_members(
    depth: int, before: Mapping[str, Any], after: Mapping[str, Any], path: Path
) -> Iterator[tuple[Sign, Line]]:
    for index, (key, value) in enumerate(after.items(), start=1):
        comma = "," if index < len(after) else ""
        if key in before:
            yield from _compared(depth, key, before[key], value, comma, (*path, key))
        else:
            for each in _value("+", depth, key, value, comma, (*path, key)):
                yield "+", each
    for key, value in before.items():
        if key not in after:
            yield "−", _removed(depth, key, value, (*path, key))


def _compared_items(
    depth: int, before: Sequence[Any], after: Sequence[Any], path: Path
) -> Iterator[tuple[Sign, Line]]:
    matcher = SequenceMatcher(None, [_json(item) for item in before], [_json(item) for item in after], False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            for item in before[i1:i2]:
                yield "−", _removed(depth, "", item, None)
        sign: Sign = " " if kind == "equal" else "+"
        for index in range(j1, j2):
            comma = "," if index + 1 < len(after) else ""
            for each in _value(sign, depth, "", after[index], comma, (*path, str(index))):
                yield sign, each


def _replaced(
    depth: int, label: str, before: Any, after: Any, comma: str, path: Path
) -> Iterator[tuple[Sign, Line]]:
    lines = list(_value("~", depth, label, after, comma, path))
    was = Span(f"   was {visible(_json(before))}", "dim")
    lines[-1] = replace(lines[-1], spans=(*lines[-1].spans, was))
    for each in lines:
        yield "~", each


def _value(sign: Sign, depth: int, label: str, value: Any, comma: str, path: Path) -> Iterator[Line]:
    """Yield all lines of a value; a single line if it is short."""
    text = _json(value)
    container = isinstance(value, Mapping | list) and bool(value)
    if not container or (len(text) <= _SHORT and not _nested(value)):
        yield _line(sign, depth, label, text + comma, path)
        return
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    yield _line(sign, depth, label, opening, path)
    named = isinstance(value, Mapping)
    members = (
        list(value.items()) if isinstance(value, Mapping) else [(str(at), one) for at, one in enumerate(value)]
    )
    for index, (key, item) in enumerate(members, start=1):
        comma_here = "," if index < len(members) else ""
        yield from _value(sign, depth + 1, key if named else "", item, comma_here, (*path, key))
    yield _line(sign, depth, "", closing + comma, None)


def _removed(depth: int, label: str, value: Any, path: Path | None) -> Line:
    return replace(_line("−", depth, label, _json(value), path), most=_ROWS_OF_REMOVED)


def _nested(value: Mapping[str, Any] | list[Any]) -> bool:
    items = value.values() if isinstance(value, Mapping) else value
    return any(isinstance(item, Mapping | list) and item for item in items)


def _line(sign: Sign, depth: int, label: str, text: str, path: Path | None) -> Line:
    tone = _TONE[sign]
    margin = " " * (_INDENT * depth)
    name = (Span(f"{visible(_json(label))}: ", tone if sign != " " else "key"),) if label else ()
    return Line(
        (Span(f"{sign} ", tone), Span(margin), *name, Span(visible(text), tone)),
        hang=2 + _INDENT * (depth + 1),
        about=path,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_ROWS_OF_TEXT = 4

_LOG_PIECES = 6


def state_view(name: str, prefix: str, timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """Return the states under a key prefix, diffed against the base; the first change is scrolled into view.

    What is known comes first; the rest of a state is bookkeeping, behind a line. A state that never has facts is
    shown as JSON.
    """
    keys = [key for key in timeline.state_keys(backend) if key.startswith(prefix)]
    lines: list[Line] = []
    in_view: int | None = None
    shown: list[str] = []
    folds: dict[Hashable, Sequence[Line]] = {}
    known = {key: _facts(timeline, backend, key, cursor, base) for key in keys}
    is_known, last = any(facts for facts, _ in known.values()), timeline.last_turn
    names_slots = any(store.slots for store in timeline.description(backend).stores)
    keeps_facts = is_known or names_slots or any(_facts(timeline, backend, key, last, base)[0] for key in keys)
    for key in keys:
        state = _state(timeline, backend, key, cursor, base)
        if not state.lines:
            continue
        shown.append(key)
        if len(shown) > 1:  # the first one is named in the title
            lines.append(line(Span(short_key(key, timeline.conversation.id, backend), "title")))
        facts, first = known[key]
        whole = _with_subjects(state, backend, key)
        if not keeps_facts:
            first = state.first_change
        elif not base.folds:  # there what changed is asked for, all of it
            about = WholeStateSubject(backend, key)
            folds[about] = whole
            whole = [line(Span("▸ the whole state as JSON", "dim"), about=about)]
        if in_view is None and first is not None:
            in_view = len(lines) + first
        lines += [*facts, *whole]
    if keeps_facts and shown and not is_known:
        lines = [*placeholder("nothing is known yet"), *lines]
    others = f" (+{len(shown) - 1})" if len(shown) > 1 else ""
    key = short_key(shown[0] if shown else "", timeline.conversation.id, backend)
    # The state's own name says what the beginning of its key does.
    words = key.removeprefix(prefix).removeprefix(prefix.rstrip(":")).lstrip(":")
    title = " · ".join(part for part in (name, words) if part) + others
    shown_lines = lines or placeholder(waiting(cursor, "not written yet"))
    return replace(lines_view(title, shown_lines, in_view=in_view), folds=folds)


def _state(timeline: Timeline, backend: str, key: str, cursor: int, base: DiffBase) -> StateLines:
    # Read the earlier state first: folding forward from it takes one step.
    before = timeline.state_at(backend, key, base.position_before(cursor))
    after = timeline.state_at(backend, key, cursor)
    if base.kind in ("off", "architecture"):
        return state_lines(after, after)
    return folded(state_lines(before, after)) if base.folds else state_lines(before, after)


def _facts(
    timeline: Timeline, backend: str, key: str, cursor: int, base: DiffBase
) -> tuple[list[Line], int | None]:
    """Return a line for each slot of a state, or for each note in one without slots: what it says, the turn that
    said it, and whether it changed; and the place of the first that changed. Nothing of a state with neither.
    """
    name = timeline.description(backend).store_of(key).slots
    after = timeline.state_at(backend, key, cursor)
    before = timeline.state_at(backend, key, base.position_before(cursor))
    held, known = (_slots(state, name) if name is not None else _notes(state) for state in (after, before))
    lines: list[Line] = []
    first: int | None = None
    for path, (slot, value) in held.items():
        was = known[path][1] if path in known else MISSING
        sign: Sign = " " if base.kind in ("off", "architecture") else _sign_of(was, value)
        if sign != " " and first is None:
            first = len(lines)
        about = ValueSubject(backend, key, path)
        lines.append(line(Span(f"{sign} ", _TONE[sign]), *_fact(slot, value), hang=4, about=about))
    return lines, first


def _slots(state: Any, name: str) -> dict[Path, tuple[str, Any]]:
    """Return the slots of a state by their path, with their names."""
    slots = state.get(name) if isinstance(state, Mapping) else None
    return {(name, slot): (f"{slot} =", held) for slot, held in slots.items()} if isinstance(slots, Mapping) else {}


def _notes(state: Any) -> dict[Path, tuple[str, Any]]:
    """Return the notes of a state by their path: items with a text, in a list that one of its parts holds."""
    return {
        (part, name, str(place)): (
            f"{name}:",
            {"value": note["text"], "turn": ", ".join(map(str, note.get("turns") or ()))},
        )
        for part, held in (state.items() if isinstance(state, Mapping) else ())
        if isinstance(held, Mapping)
        for name, notes in held.items()
        if isinstance(notes, list)
        for place, note in enumerate(notes)
        if isinstance(note, Mapping) and isinstance(note.get("text"), str)
    }


def _sign_of(before: Any, after: Any) -> Sign:
    return "+" if isinstance(before, MissingValue) else " " if before == after else "~"


def facts_in_words(timeline: Timeline, backend: str, key: str, turn: int) -> str:
    """Return what a state knows at a turn; empty if nothing."""
    name, state = timeline.description(backend).store_of(key).slots, timeline.state_at(backend, key, turn)
    held = _slots(state, name) if name is not None else _notes(state)
    return "; ".join(fact_words(slot, value) for slot, value in held.values())


def fact_words(slot: str, held: Any) -> str:
    """Return a slot in words; ``slot`` is the part up to the sign."""
    return "".join(span.text for span in _fact(slot, held))


def _fact(slot: str, held: Any) -> Iterator[Span]:
    """Yield a slot as ``user.name = Arnau Ferrusola · turn 3``; ``slot`` is the part up to the sign."""
    several = held.get("values") if isinstance(held, Mapping) else None
    values = several if isinstance(several, list) else [held]
    yield Span(f"{one_line(slot)} ", "key")
    for place, each in enumerate(values):
        kept = each if isinstance(each, Mapping) and "value" in each else {"value": each}
        said = kept["value"] if isinstance(kept["value"], str) else _json(kept["value"])
        turn = kept.get("turn")
        yield Span("; " if place else "", "dim")
        yield Span(one_line(said), "value")
        yield Span(f" · turn {one_line(str(turn))}" if turn else "", "dim")


def _with_subjects(state: StateLines, backend: str, key: str) -> list[Line]:
    """Return the lines of a state; each leads to the value at its path."""
    return [
        one if one.about is None else replace(one, about=ValueSubject(backend, key, cast("Path", one.about)))
        for one in state.lines
    ]


def written_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return the points written to the collections at exactly this position, and how many points they hold."""
    lines: list[Line] = []
    counts: dict[str, int] = {}
    for name in timeline.collections(backend):
        history = timeline.collection(backend, name)
        counts[name] = history.count_at(cursor)
        for point in history.written_at(cursor):
            lines += _point_lines(backend, name, point)
    shown = lines or placeholder(waiting(cursor, "nothing was written at this turn"))
    return lines_view("written at this turn", shown, note=_points_words(counts))


def _points_words(counts: Mapping[str, int]) -> str:
    """Return how many points the collections hold, all together and each."""
    if not counts:
        return ""
    total = sum(counts.values())
    words = f"{total:,} {'point' if total == 1 else 'points'} stored"
    if len(counts) == 1:
        return f"{words} · in {one_line(next(iter(counts)))}"
    return " · ".join([words, *(f"{one_line(name)}: {count:,}" for name, count in counts.items())])


def _point_lines(backend: str, collection: str, point: StoredPoint) -> Iterator[Line]:
    """Yield a written point: its collection and id, then its payload, field by field."""
    replaced = point.replaced is not None
    head = Span(f"{'~' if replaced else '+'} {one_line(collection)}", "changed" if replaced else "added")
    about = StoredSubject(backend, collection, point.id, ())
    yield line(head, Span(f"  {one_line(point.id)}", "dim"), hang=2, about=about)
    for key, value in point.payload.items():
        if key == "id":
            continue
        changed = point.replaced is not None and point.replaced.get(key) != value
        sign = Span("~ ", "changed") if changed else Span("  ")
        text = value if isinstance(value, str) else _json(value)
        yield line(sign, Span(f"{one_line(key)}: ", "key"), one_line(text), hang=4, most=_ROWS_OF_TEXT)


def stores_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return everything in the stores of any architecture, whatever it calls its keys and collections."""
    lines = [
        *_states(timeline, backend, cursor),
        *_logs(timeline, backend, cursor),
        *_collections(timeline, backend, cursor),
    ]
    is_known = timeline.description(backend).is_known
    empty = "this memory has written to no store" if is_known else "what this memory stored was not recorded"
    return lines_view("stores", lines or placeholder(waiting(cursor, empty)))


def _states(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for key in timeline.state_keys(backend):
        before = timeline.state_at(backend, key, cursor - 1)
        after = timeline.state_at(backend, key, cursor)
        if before is not MISSING or after is not MISSING:
            yield line(Span(one_line(key), "title"))
            yield from _with_subjects(state_lines(before, after), backend, key)


def _logs(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for key in timeline.log_keys(backend):
        pieces = timeline.log_at(backend, key, cursor)
        yield line(Span(one_line(key), "title"), Span(f"  {len(pieces):,} appended", "dim"))
        for turn, text in pieces[-_LOG_PIECES:]:
            tone: Tone = "added" if turn == cursor else "plain"
            yield from paragraphs(text.removesuffix("\n"), tone, indent=2)


def _collections(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for name in timeline.collections(backend):
        history = timeline.collection(backend, name)
        points = counted(history.count_at(cursor), "point")
        seen = "" if timeline.description(backend).is_known else " seen; others may be stored"
        yield line(Span(one_line(name), "title"), Span(f"  {points}{seen}", "dim"))
        for point in history.written_at(cursor):
            yield from _point_lines(backend, name, point)
        for point in history.removed_at(cursor):
            yield from _removed_lines(backend, name, point)


def _removed_lines(backend: str, collection: str, point: StoredPoint) -> Iterator[Line]:
    """Yield a point that was removed, with the texts that it had."""
    about = StoredSubject(backend, collection, point.id, ())
    yield line(
        Span(f"− {one_line(collection)}", "removed"), Span(f"  {one_line(point.id)}", "dim"), hang=2, about=about
    )
    for key, value in point.payload.items():
        if isinstance(value, str) and key != "id":
            text = Span(one_line(value), "removed")
            yield line("  ", Span(f"{one_line(key)}: ", "key"), text, hang=4, most=_ROWS_OF_TEXT)


_MOST_TIMED = 100
"""Summing durations loads every command, and the last turn has those of all questions."""

_MOST_LINES_OF_AN_EVENT = 400


def operations_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return the store commands executed at exactly this position, in order, with their durations."""
    operations = timeline.operations_at(backend, cursor)
    if not operations:
        return lines_view("operations", placeholder(waiting(cursor, "no store was used at this turn")))
    note = f"{len(operations):,}"
    if len(operations) <= _MOST_TIMED:
        note += f" · {sum(operation.ms for operation in operations):.1f} ms"
    short = partial(short_key, conversation_id=timeline.conversation.id, backend=backend)
    read = timeline.perceived_at(backend, cursor)
    unknown = read is not None and read.turn == cursor and read.why_empty == "not_recorded"

    def line_at(place: int) -> list[Line]:
        operation = operations[place]
        is_unseen = unknown and isinstance(operation.change, SearchChange)
        return [_operation_line(operation, "what it found was not recorded" if is_unseen else None, short)]

    document = LazyDocument(len(operations), line_at, guessed=2)
    return View("operations", document, note)


def _operation_line(operation: MemoryOperation, unseen: str | None, short: Callable[[str], str]) -> Line:
    """Return a store command: store, command, key, effect, duration and actor. Raw events hold key and actor in
    full.
    """
    effect = unseen or _effect(operation.change)
    spans = [
        Span(f"{one_line(operation.store):<6} ", "dim"),
        Span(f"{one_line(operation.command)} ", "strong"),
        Span(short(operation.key)),
        Span(f"{f'  {effect}' if effect else ''}  {operation.ms:.1f} ms · {short(operation.actor)}", "dim"),
    ]
    if operation.error is not None:
        spans.append(Span(f"  ! {one_line(operation.error)}", "bad"))
    return Line(tuple(spans), hang=7)


def _effect(change: Change | None) -> str:
    match change:
        case None:
            return ""
        case ReadChange(found=found, size=size):
            return f"{size:,} bytes" if found else "not found"
        case WriteChange():
            return "whole value"
        case PatchChange(steps=steps):
            return f"{len(steps)} changed"
        case AppendChange(offset=offset, text=text):
            return f"+{len(text.encode()):,} bytes at {offset:,}"
        case RemoveChange(count=count):
            return f"{count:,} removed"
        case PublishChange(receivers=receivers):
            return f"{receivers} listening"
        case ExpireChange(seconds=seconds):
            return f"in {seconds:,} s"
        case UpsertChange(points=points):
            return f"{len(points)} written"
        case SearchChange(found=hits, stored=stored):
            return f"{len(hits)} of {stored:,} found"


def raw_events_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return every event of one architecture at exactly this position, as recorded."""
    events = timeline.events_at(backend, cursor)
    if not events:
        return lines_view("raw events", placeholder("nothing happened at this turn"), note="0")
    document = LazyDocument(len(events), lambda place: list(_event_lines(events[place])), guessed=12)
    return View("raw events", document, f"{len(events):,}")


def _event_lines(event: ReplayEvent) -> Iterator[Line]:
    """Yield an event: its kind, then its JSON."""
    yield line(Span(event.kind, "title"))
    text = json.dumps(event.model_dump(mode="json", exclude={"kind"}), ensure_ascii=False, indent=2).split("\n")
    for part in text[1:-1][:_MOST_LINES_OF_AN_EVENT]:
        yield line(Span(one_line(part)), hang=len(part) - len(part.lstrip()) + 2)
    if len(text) - 2 > _MOST_LINES_OF_AN_EVENT:
        yield line(Span(f"… {len(text) - 2 - _MOST_LINES_OF_AN_EVENT:,} more lines", "dim"))


_DECISION_SIGNS: Final[Mapping[str, tuple[str, Tone]]] = {
    "ADD": ("+ ADD   ", "added"),
    "UPDATE": ("~ UPDATE", "changed"),
    "NO-OP": ("= NO-OP ", "dim"),
    "DROP": ("− DROP  ", "removed"),
}

_MOST_DECISIONS = 100


def promotions_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return the candidates judged at exactly this position, and counts of all decisions up to it."""
    ledger = timeline.ledger(backend)
    lines = [one for decision in ledger.at(cursor) for one in _decision_lines(decision, cursor, backend)]
    shown = lines or placeholder("no candidate was judged at this turn")
    return lines_view("promotions", shown, note=_counts(ledger, cursor))


def ledger_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return the latest decisions up to the position, newest first."""
    ledger = timeline.ledger(backend)
    decided = ledger.until(cursor)
    lines: list[Line] = []
    previous: int | None = None
    for turn, decision in (decided[at] for at in range(len(decided) - 1, -1, -1)[:_MOST_DECISIONS]):
        if turn != previous:
            now = turn == cursor
            lines.append(line(Span(f"turn {turn}{' ← now' if now else ''}", "accent" if now else "dim")))
        lines += _decision_lines(decision, turn, backend)
        previous = turn
    if len(decided) > _MOST_DECISIONS:
        lines.append(line(Span(f"⋯ {len(decided) - _MOST_DECISIONS:,} earlier", "dim")))
    shown = lines or placeholder("no candidate has been judged yet")
    return lines_view("promotion ledger", shown, note=_counts(ledger, cursor))


def _counts(ledger: Ledger, cursor: int) -> str:
    counts = ledger.counts_until(cursor)
    return " · ".join(f"{name} {count}" for name in _DECISION_SIGNS if (count := counts.get(name)))


def _decision_lines(decision: PromotionDecision, turn: int, backend: str) -> Iterator[Line]:
    """Decision and score, content, why, and the factors of the score. The first line leads to the write."""
    sign, tone = _DECISION_SIGNS[decision.decision]
    yield line(
        Span(sign, tone),
        Span(f" {decision.score:.2f}", "value"),
        Span(f" of {decision.threshold:.2f}  ", "dim"),
        Span(one_line(decision.slot), "key") if decision.slot else "",
        Span(f"  from turn {one_line(', '.join(decision.sources))}", "dim"),
        hang=2,
        about=DecisionSubject.of(backend, turn, decision),
    )
    yield line("  ", one_line(decision.content), hang=2, most=4)
    yield line("  ", Span(one_line(decision.justification), "dim"), hang=2, most=3)
    yield line("  ", Span(_product(decision.factors), "dim"), hang=2)


def _product(factors: SignificanceFactors) -> str:
    return (
        f"certainty {factors.certainty:.2f} × impact {factors.impact:.2f}"
        f" × age {factors.age_decay:.2f} × recency {factors.recency_boost:.2f}"
    )
