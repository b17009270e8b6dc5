"""Provenance: find the operation that wrote a value, a point, a hit or a line of a prompt.

The answers come from the trace: the last change to a place, the write of a point, the append of a line. Nothing is
guessed from the look of texts, except that a line of a prompt is searched for in the hits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory_backends.base import Hit
from memory_backends.stores.trace import MemoryOperation, PatchChange, PatchStep
from memreplay.conversations.models import Conversation, Turn
from memreplay.engine.events import QuestionAsked
from memreplay.timeline.event_store import operation_of
from memreplay.timeline.fold import Path, StateHistory, parts_of, value_in
from memreplay.timeline.timeline import Timeline


@dataclass(frozen=True)
class Origin:
    """The operation that wrote something: its position, and its 0-based index among its backend's operations there.

    ``before`` is the previous value; None if there was none, or it is unknown.
    """

    backend: str
    turn: int
    number: int
    operation: MemoryOperation
    before: Any = None

    @property
    def turns(self) -> tuple[str, ...]:
        """Return ids of the turns that caused the operation."""
        return self.operation.turns


@dataclass(frozen=True)
class LineOrigin:
    """The origin of a line of a prompt: its hit, the turn that said it, and the write that stored it."""

    hit: Hit
    said: Turn | None
    written: Origin | None


def value_written_by(timeline: Timeline, backend: str, key: str, path: Path, turn: int) -> Origin | None:
    """Return the last write, at or before a position, to a place in a state or to anything inside it.

    An item of a list is tracked through insertions and removals before it; a list inside a list counts as one
    value. None if the key holds no state.
    """
    history = timeline.state(backend, key)
    count = history.count_until(turn)
    if not count:
        return None
    list_at = _first_list(history.value_after(count - 1), path)
    if list_at is None:
        number = _last_touch(history, path, count)
        return None if number is None else _state_origin(timeline, backend, history, number, path)
    return _item_origin(timeline, backend, history, path, list_at, count)


def point_written_by(timeline: Timeline, backend: str, collection: str, point_id: str, turn: int) -> list[Origin]:
    """Return all writes of a point up to a position, oldest first; ``before`` is the overwritten payload."""
    writes = timeline.collection(backend, collection).writes_of(point_id, turn)
    return [_origin(timeline, backend, at, ref, point.replaced) for at, ref, point in writes]


def log_written_by(timeline: Timeline, backend: str, key: str, turn_id: str, turn: int) -> Origin | None:
    """Return the append that put a turn into a log."""
    said = timeline.conversation.turns_by_id.get(turn_id)
    for at, ref, _ in timeline.log(backend, key).writes_until(turn):
        if said is not None and at >= said.number:
            origin = _origin(timeline, backend, at, ref)
            return origin if turn_id in origin.turns else None
    return None


def hit_written_by(timeline: Timeline, backend: str, hit: Hit, turn: int) -> list[Origin]:
    """Return the writes that a hit rests on, oldest first: of its point, its slot, or its turns in a log."""
    if hit.place in timeline.collections(backend):
        point_id, _, _ = hit.id.partition("#")
        return point_written_by(timeline, backend, hit.place, point_id, turn)
    if hit.place in timeline.log_keys(backend):
        found = (log_written_by(timeline, backend, hit.place, said, turn) for said in hit.turns)
        return list({(origin.turn, origin.number): origin for origin in found if origin is not None}.values())
    slots = timeline.description(backend).store_of(hit.place).slots
    path = () if slots is None else (slots, hit.id.removeprefix(f"{hit.place}#"))
    origin = value_written_by(timeline, backend, hit.place, path, turn)
    return [] if origin is None else [origin]


def line_written_by(
    timeline: Timeline, backend: str, hits: Iterable[Hit], line: str, turn: int
) -> LineOrigin | None:
    """Return the origin of a line of a context; None if no hit in the prompt has this line."""
    wanted = line.strip()
    for hit in hits:
        if not hit.in_prompt or not wanted or wanted not in map(str.strip, hit.text.splitlines()):
            continue
        said = _turn_saying(timeline, hit.turns or hit.sources, wanted)
        origins = hit_written_by(timeline, backend, hit, turn)
        by_turn = (origin for origin in reversed(origins) if said is not None and said.id in origin.turns)
        written = next(by_turn, None) or (said and _stored_at(timeline, backend, hit.place, said, turn))
        return LineOrigin(hit, said, written or (origins[-1] if origins else None))
    return None


def _turn_saying(timeline: Timeline, turn_ids: Sequence[str], line: str) -> Turn | None:
    known = timeline.conversation.turns_by_id
    turns = [known[turn_id] for turn_id in turn_ids if turn_id in known]
    for turn in turns:
        spoken = f"{timeline.conversation.label_of(turn)}: {turn.text}"
        if line in map(str.strip, spoken.splitlines()):
            return turn
    return turns[0] if len(turns) == 1 else None


def _stored_at(timeline: Timeline, backend: str, place: str, said: Turn, turn: int) -> Origin | None:
    """Return the write to a place that a turn caused: the exchanges of a passage are points of their own."""
    at = timeline.observed_at(said.id)
    if at is None or at > turn:
        return None
    for operation in timeline.archive.written_at(backend, at):
        if operation.key == place and said.id in operation.turns:
            return _placed(timeline, backend, at, operation, None)
    return None


# ---- values of a state -------------------------------------------------------------------------------------


def _first_list(value: Any, path: Path) -> int | None:
    """Return the depth of the first list on a path, if there is one."""
    for depth, part in enumerate(path):
        if isinstance(value, list):
            return depth
        value = value_in(value, (part,))
    return None


def _last_touch(history: StateHistory, path: Path, count: int) -> int | None:
    """Return the last of the first ``count`` writes to a place, to anything inside it, or to a value around it."""
    touched = (*history.writes_around(path), history.writes_within(path))
    numbers = [_last_before(writes, count) for writes in touched]
    return max((number for number in numbers if number is not None), default=None)


def _last_before(numbers: Sequence[int], count: int) -> int | None:
    place = bisect_right(numbers, count - 1)
    return numbers[place - 1] if place else None


def _item_origin(
    timeline: Timeline, backend: str, history: StateHistory, path: Path, list_at: int, count: int
) -> Origin | None:
    holder, index, rest = (
        path[:list_at],
        int(path[list_at]) if path[list_at].isdecimal() else -1,
        path[list_at + 1 :],
    )
    before = count
    while (number := _last_touch(history, holder, before)) is not None:
        change = history.change(number)
        if not isinstance(change, PatchChange):
            return _state_origin(timeline, backend, history, number, path)
        for step in reversed(change.steps):
            place = parts_of(step.path)
            if place == holder[: len(place)]:
                return _state_origin(timeline, backend, history, number, path)
            if place[: len(holder)] != holder or not place[len(holder)].isdecimal():
                continue
            at, inside = int(place[len(holder)]), place[len(holder) + 1 :]
            if inside or step.op == "replace":
                if at == index and (inside[: len(rest)] == rest or rest[: len(inside)] == inside):
                    return _origin(timeline, backend, history.turns[number], history.refs[number], step.replaced)
            elif step.op == "remove":
                index += at <= index
            elif at == index:
                return _origin(timeline, backend, history.turns[number], history.refs[number])
            else:
                index -= at < index
        before = number
    return None


def _state_origin(timeline: Timeline, backend: str, history: StateHistory, number: int, path: Path) -> Origin:
    change = history.change(number)
    steps: Sequence[PatchStep] = change.steps if isinstance(change, PatchChange) else ()
    exact = [step.replaced for step in steps if parts_of(step.path) == path]
    return _origin(timeline, backend, history.turns[number], history.refs[number], exact[-1] if exact else None)


def _origin(timeline: Timeline, backend: str, turn: int, ref: int, before: Any = None) -> Origin:
    return _placed(timeline, backend, turn, operation_of(timeline.archive.event(ref)), before)


def _placed(timeline: Timeline, backend: str, turn: int, operation: MemoryOperation, before: Any) -> Origin:
    return Origin(backend, turn, timeline.operations_at(backend, turn).index(operation), operation, before)


LineSource = Literal["evidence", "distilled", "memory", "frame"]
"""``evidence``: from memory, with the words of an evidence turn. ``distilled``: from memory, made from an evidence
turn. ``memory``: anything else from memory. ``frame``: instructions, headings and the question."""


@dataclass(frozen=True)
class PromptLine:
    """A line of a message. ``turns`` are the evidence turns whose words it has; ``message`` counts from 0."""

    message: int
    text: str
    source: LineSource
    turns: tuple[str, ...]


def prompt_lines(conversation: Conversation, asked: QuestionAsked, evidence: Sequence[str]) -> Iterator[PromptLine]:
    """Yield the lines of all messages in order."""
    said = {turn: _lines_of(conversation, turn) for turn in evidence if turn in conversation.turns_by_id}
    hits = _hits_by_line(asked)
    for number, message in enumerate(asked.prompt):
        for text in message.content.split("\n"):
            hit = hits.get(text.strip())
            turns = (
                tuple(turn for turn, words in said.items() if any(part in text for part in words)) if hit else ()
            )
            yield PromptLine(number, text, _source(hit, turns, evidence), turns)


def _source(hit: Hit | None, turns: Sequence[str], evidence: Sequence[str]) -> LineSource:
    if turns:
        return "evidence"
    if hit is None:
        return "frame"
    return "distilled" if set(evidence).intersection(hit.sources) and not hit.turns else "memory"


def _hits_by_line(asked: QuestionAsked) -> dict[str, Hit]:
    """Return the hit that each line of the context came from."""
    return {
        text.strip(): hit for hit in asked.hits if hit.in_prompt for text in hit.text.split("\n") if text.strip()
    }


def _lines_of(conversation: Conversation, turn_id: str) -> list[str]:
    """Return the non-empty lines of a turn, which identify it in a prompt."""
    text = conversation.turns_by_id[turn_id].text
    return [part.strip() for part in text.split("\n") if part.strip()]
