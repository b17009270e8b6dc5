"""Places inside a JSON value, and values that are changed there without copying the rest of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from memory_backends.operations import PatchStep


class Missing:
    """There is nothing at this place, or at this position."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

Path = tuple[str, ...]
"""From the root of a value to a place in it: names of fields, and indexes of items as text."""


def parts_of(pointer: str) -> Path:
    """A JSON pointer (RFC 6901) as a path; ``""`` is the root."""
    if not pointer:
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def pointer_of(path: Sequence[str]) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def value_in(value: Any, path: Sequence[str]) -> Any:
    """What stands at a place; :data:`MISSING` where there is no such place."""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def patched(value: Any, steps: Iterable[PatchStep]) -> Any:
    """The value after the steps of a patch. Parts that they do not touch are shared with the old one."""
    for step in steps:
        value = _stepped(value, parts_of(step.path), step)
    return value


def _stepped(value: Any, path: Path, step: PatchStep) -> Any:
    if not path:
        return MISSING if step.op == "remove" else step.value
    name, rest = path[0], path[1:]
    if isinstance(value, list):
        items = list(value)
        index = len(items) if name == "-" else int(name)
        if rest:
            items[index] = _stepped(items[index], rest, step)
        elif step.op == "remove":
            del items[index]
        elif step.op == "add":
            items.insert(index, step.value)
        else:
            items[index] = step.value
        return items
    fields = dict(value)
    if rest:
        fields[name] = _stepped(fields[name], rest, step)
    elif step.op == "remove":
        del fields[name]
    else:
        fields[name] = step.value
    return fields
