"""What changed between two snapshots, recorded as operations: for memories that use no store of ours.

A panel then shows their state as it shows any other, and a recording can be stepped back through.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from memory_backends.base import BackendError, Snapshot
from memory_backends.stores.trace import (
    AppendChange,
    Change,
    MemoryOperation,
    MemoryTrace,
    PatchChange,
    RemoveChange,
    StoredPoint,
    TraceEntry,
    UpsertChange,
    WriteChange,
    patch_between,
)

COMMAND = "snapshot"
"""The command of such an operation: no command was seen, only its effect."""

KEYFRAME_EVERY = 64

_ABSENT: Final = object()


class SnapshotDiffer:
    """Records in a trace how each snapshot differs from the one before.

    A key or collection that the memory itself has ever named in its trace is left to the memory.
    """

    def __init__(self, trace: MemoryTrace) -> None:
        self._trace = trace
        self._values: Mapping[tuple[str, str], Any] = {}
        self._points: Mapping[tuple[str, str], Mapping[str, Any]] = {}
        self._traced: set[tuple[str, str]] = set()
        self._writes: Counter[str] = Counter()

    def leave_out(self, entries: Iterable[TraceEntry]) -> None:
        """Remember which places the memory traces by itself."""
        for entry in entries:
            if isinstance(entry, MemoryOperation):
                self._traced.add((entry.store, entry.key))

    def start_from(self, snapshot: Snapshot) -> None:
        """Record what changes from here on."""
        self._values, self._points = _by_key(plain(snapshot.values)), _by_key(plain(snapshot.points))

    def note(self, snapshot: Snapshot, ms: float) -> None:
        """Record what is new, changed or gone since the last call; ``ms`` is what taking the snapshot cost.

        Raises:
            BackendError: the snapshot holds something that is not plain data.
        """
        values, points = _by_key(plain(snapshot.values)), _by_key(plain(snapshot.points))
        for store, key in dict.fromkeys([*values, *self._values]):
            if (store, key) not in self._traced:
                old, new = self._values.get((store, key), _ABSENT), values.get((store, key), _ABSENT)
                for change in self._changes(key, old, new):
                    self._trace.note(store, COMMAND, key, change, ms)
        for store, key in dict.fromkeys([*points, *self._points]):
            if (store, key) not in self._traced:
                for change in _point_changes(self._points.get((store, key), {}), points.get((store, key), {})):
                    self._trace.note(store, COMMAND, key, change, ms)
        self._values, self._points = values, points

    def _changes(self, key: str, old: Any, new: Any) -> list[Change]:
        """A text that only grew is an append; a change between text and state is a removal and a new write."""
        if old is not _ABSENT and new is not _ABSENT and old == new:
            return []
        if new is _ABSENT:
            return [RemoveChange(count=1)]
        if isinstance(old, str) and isinstance(new, str) and new.startswith(old):
            return [AppendChange(offset=len(old.encode()), text=new[len(old) :])]
        changes_kind = old is not _ABSENT and (isinstance(old, str) or isinstance(new, str))
        gone: list[Change] = [RemoveChange(count=1)] if changes_kind else []
        if isinstance(new, str):
            return [*gone, AppendChange(offset=0, text=new)]
        return [*gone, self._state_change(key, old, new)]

    def _state_change(self, key: str, old: Any, new: Any) -> Change:
        self._writes[key] += 1
        steps = patch_between(old, new) if isinstance(old, dict) and isinstance(new, dict) else None
        if steps is None:
            return WriteChange(value=new)
        return PatchChange(steps=steps, keyframe=new if self._writes[key] % KEYFRAME_EVERY == 0 else None)


def _by_key(stores: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(store, key): held for store, keys in stores.items() for key, held in keys.items()}


def _point_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    written = tuple(
        StoredPoint(id=id_, payload=payload, replaced=old.get(id_))
        for id_, payload in new.items()
        if old.get(id_) != payload
    )
    gone = tuple(id_ for id_ in old if id_ not in new)
    changes: list[Change] = [UpsertChange(points=written)] if written else []
    return [*changes, RemoveChange(count=len(gone), ids=gone)] if gone else changes


def plain(value: Any) -> Any:
    """A copy as plain JSON, safe to keep while its owner changes the original.

    What JSON cannot express becomes text; half a surrogate pair becomes a question mark.

    Raises:
        BackendError: it cannot be written as JSON at all.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise BackendError(f"the snapshot cannot be written as JSON: {error}") from None
    return json.loads(text)
