"""The plainest fold of a trace: what the stores must hold if the trace says the truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jsonpatch

from memory_backends.base import Snapshot
from memory_backends.contract.rule import expect
from memory_backends.operations import (
    AppendChange,
    MemoryOperation,
    PatchChange,
    RemoveChange,
    TraceEntry,
    UpsertChange,
    WriteChange,
)


def fold(entries: Iterable[TraceEntry], collections: Iterable[str] = ()) -> Snapshot:
    """Apply every change in order to stores that begin with these empty collections.

    Each change is also held against what it claims to have replaced. Raises :class:`BrokenRuleError`.
    """
    redis: dict[str, Any] = {}
    qdrant: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in collections}
    for entry in entries:
        if isinstance(entry, MemoryOperation) and entry.error is None:
            match entry.store:
                case "redis":
                    _fold_key(redis, entry)
                case "qdrant":
                    _fold_points(qdrant.setdefault(entry.key, {}), entry)
    return Snapshot(redis=redis, qdrant=qdrant)


def _fold_key(redis: dict[str, Any], entry: MemoryOperation) -> None:
    match entry.change:
        case WriteChange(value=value):
            redis[entry.key] = value
        case PatchChange(keyframe=whole) if whole is not None:
            redis[entry.key] = whole
        case PatchChange(steps=steps):
            patch = [step.model_dump(include={"op", "path", "value"}) for step in steps]
            redis[entry.key] = jsonpatch.apply_patch(redis[entry.key], patch)
        case AppendChange(offset=offset, text=text):
            before = redis.get(entry.key, "")
            size = len(before.encode())
            expect(
                offset == size, f"the trace appends at byte {offset} of {entry.key}, which has {size} bytes by then"
            )
            redis[entry.key] = before + text
        case RemoveChange():
            redis.pop(entry.key, None)


def _fold_points(points: dict[str, dict[str, Any]], entry: MemoryOperation) -> None:
    match entry.change:
        case RemoveChange(ids=ids):
            for id_ in ids:
                expect(id_ in points, f"the trace removes the point {id_}, which is not in {entry.key} by then")
                del points[id_]
        case UpsertChange(points=written):
            for point in written:
                expect(
                    points.get(point.id) == point.replaced,
                    f"the trace says wrongly what the point {point.id} of {entry.key} replaced",
                )
                points[point.id] = dict(point.payload)
