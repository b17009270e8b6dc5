"""Edits by hand: what a person changes in a memory to see what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal, Protocol, runtime_checkable

from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from memory_backends.base import BackendError
from memory_backends.stores.trace import Frozen

BY_HAND = "you"
"""The actor of an edit in the trace."""


class KeyEdit(Frozen):
    """Set or remove a value inside a state.

    ``key`` is its key, or a part of it before a colon or slash: ``shared_state``, ``personal_state:planner_agent``.

    ``pointer`` is a JSON pointer (RFC 6901), such as ``/shared_data/deadline``.
    """

    kind: Literal["key"] = "key"
    key: str
    pointer: str
    value: Any = None
    removes: bool = False

    def fits(self, key: str) -> bool:
        """Return whether it is meant for a key."""
        return key == self.key or key.startswith((f"{self.key}:", f"{self.key}/"))


class PointEdit(Frozen):
    """Replace the content of a stored point, or delete the point (``content`` is None)."""

    kind: Literal["point"] = "point"
    id: str
    content: str | None = None


StoreEdit = KeyEdit | PointEdit


@runtime_checkable
class Editable(Protocol):
    """A memory whose stores can be edited by hand."""

    async def edit(self, edit: StoreEdit) -> bool:
        """Apply an edit; False if this memory holds nothing of the kind.

        Raises:
            BackendError: it cannot be applied.
        """
        ...


def edited_state(state: Mapping[str, Any], edit: KeyEdit) -> dict[str, Any] | None:
    """Return the state after an edit; None if it has no such place."""
    changed = deepcopy(dict(state))
    try:
        pointer = JsonPointer(edit.pointer)
        holder, part = pointer.to_last(changed)
    except JsonPointerException:
        return None
    if part is None:
        raise BackendError(
            f"{edit.key}{edit.pointer}: expected a place inside the state, such as /shared_data/name"
        )
    if isinstance(holder, list):
        return _edited_list(changed, holder, part, edit)
    if not isinstance(holder, dict) or (edit.removes and part not in holder):
        return None
    if edit.removes:
        del holder[part]
    else:
        holder[part] = edit.value
    return changed


def _edited_list(changed: dict[str, Any], holder: list[Any], part: Any, edit: KeyEdit) -> dict[str, Any] | None:
    if isinstance(part, EndOfList):
        part = len(holder)
    if not isinstance(part, int) or part > len(holder) or (edit.removes and part == len(holder)):
        return None
    if edit.removes:
        del holder[part]
    else:
        holder[part : part + 1] = [edit.value]
    return changed
