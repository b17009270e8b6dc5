"""Sequences whose items are made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

Key = TypeVar("Key")
Item = TypeVar("Item")


class Lazily(Sequence[Item], Generic[Key, Item]):
    """One item for each key, made by ``make`` each time it is looked at. Equal to any sequence of equal items."""

    def __init__(self, keys: Sequence[Key], make: Callable[[Key], Item]) -> None:
        self._keys, self._make = keys, make

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._make(key) for key in self._keys[index]]
        return self._make(self._keys[index])
