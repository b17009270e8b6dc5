"""The plainest fold of a trace: what the stores must hold if the trace says the truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jsonpatch

from memory_backends.base import Snapshot
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

    Each change is also held against what it claims to have replaced.
    """
    redis: dict[str, Any] = {}
    qdrant: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in collections}
    for entry in entries:
        if not isinstance(entry, MemoryOperation) or entry.error is not None:
            continue
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
                assert offset == len(before.encode())
                redis[entry.key] = before + text
            case RemoveChange(ids=ids) if entry.store == "qdrant":
                for point in ids:
                    del qdrant[entry.key][point]
            case RemoveChange():
                redis.pop(entry.key, None)
            case UpsertChange(points=points):
                for point in points:
                    assert qdrant[entry.key].get(point.id) == point.replaced
                    qdrant[entry.key][point.id] = dict(point.payload)
    return Snapshot(redis=redis, qdrant=qdrant)
