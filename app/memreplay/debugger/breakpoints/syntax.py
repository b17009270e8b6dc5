"""What a breakpoint means, as a tree of frozen values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
Measured = Literal["rank", "score"]


@dataclass(frozen=True)
class KeySubject:
    """A key, or a place in the state that it holds. Parts are names of fields, and indexes as text."""

    key: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"key {_quoted(self.key)}{''.join(f'[{_quoted(part)}]' for part in self.path)}"


@dataclass(frozen=True)
class PathSubject:
    """A place in whichever state has it. Neighbouring parts may be one name with a dot in it."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f"[{_quoted(part)}]" for part in self.path)


@dataclass(frozen=True)
class TextSubject:
    """The text of the turn at the position."""

    def __str__(self) -> str:
        return "text"


@dataclass(frozen=True)
class HitSubject:
    """Something that the read path of a turn retrieved, by its id or that of a turn that it holds; None: any."""

    item: str | None

    def __str__(self) -> str:
        return "any hit" if self.item is None else f"hit {_quoted(self.item)}"


Subject = KeySubject | PathSubject | TextSubject | HitSubject


@dataclass(frozen=True)
class Changed:
    """The value differs from that at the position before."""


@dataclass(frozen=True)
class Exists:
    """The key or place exists; the hit was retrieved, above the cut."""


@dataclass(frozen=True)
class Compare:
    """A value compared with a JSON literal. It never holds for a value that is missing or of another type."""

    op: CompareOp
    literal: Any


@dataclass(frozen=True)
class Contains:
    """A text contains this, ignoring case and accents; an object has this field, or a list this item."""

    text: str


@dataclass(frozen=True)
class Measure:
    """The rank or score of a hit, or of a candidate that missed the cut."""

    what: Measured
    op: CompareOp
    number: float


Condition = Changed | Exists | Compare | Contains | Measure


@dataclass(frozen=True)
class Test:
    """A condition on a subject."""

    __test__ = False

    subject: Subject
    condition: Condition


@dataclass(frozen=True)
class Not:
    of: Expression


@dataclass(frozen=True)
class Both:
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Either:
    left: Expression
    right: Expression


Expression = Test | Not | Both | Either


@dataclass(frozen=True)
class Breakpoint:
    """A breakpoint as it was typed, and what it means. ``backend`` limits it to one architecture; None: all."""

    text: str
    expression: Expression
    backend: str | None = None
    enabled: bool = True


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
