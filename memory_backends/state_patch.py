"""How one JSON object became another: a JSON Patch (RFC 6902) that can also be taken back."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch

from memory_backends.operations import PatchStep


def patch_between(old: dict[str, Any], new: dict[str, Any]) -> tuple[PatchStep, ...] | None:
    """The steps from ``old`` to ``new``, each with the value it replaced.

    Only add, remove and replace: a move is written as the remove and the add that it stands for. None where the
    steps would not lead to ``new``, so that a trace never holds a patch that lies.
    """
    document = deepcopy(old)
    steps: list[PatchStep] = []
    for raw in jsonpatch.make_patch(old, new).patch:
        if raw["op"] == "move":
            removed = _take(document, PatchStep(op="remove", path=raw["from"]))
            steps += [removed, _take(document, PatchStep(op="add", path=raw["path"], value=removed.replaced))]
        else:
            steps.append(_take(document, PatchStep(op=raw["op"], path=raw["path"], value=raw.get("value"))))
    return tuple(steps) if document == new else None


def _take(document: Any, step: PatchStep) -> PatchStep:
    """Apply one step in place; return it with what it replaced."""
    parent, key = _holder(document, step.path)
    if step.op == "add" and isinstance(parent, list):
        parent.insert(key, deepcopy(step.value))
        return step
    replaced = parent.get(key) if isinstance(parent, dict) else parent[key]
    if step.op == "remove":
        del parent[key]
    else:
        parent[key] = deepcopy(step.value)
    return step.model_copy(update={"replaced": replaced})


def _holder(document: Any, path: str) -> tuple[Any, Any]:
    """The object or list that a path's last part lies in, and that part: a field's name or an index."""
    pointed: tuple[Any, Any] = jsonpatch.JsonPointer(path).to_last(document)
    return pointed
