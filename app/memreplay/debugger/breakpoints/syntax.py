"""What a watch says, as a tree of frozen values.

    watch     = conj {"or" conj}
    conj      = neg {"and" neg}
    neg       = "not" neg | "(" watch ")" | test
    test      = subject [condition] | condition          (a condition alone is about the watch's own subject)
    subject   = "key" STRING {part} | "text" | "hit" STRING | NAME {part} | part {part}
    part      = "." NAME | "." NUMBER | "[" STRING "]" | "[" NUMBER "]"
    condition = "changed" | "exists" | ("==" | "!=" | "<" | "<=" | ">" | ">=") JSON
              | "contains" STRING | ("rank" | "score") ("==" | "!=" | "<" | "<=" | ">" | ">=") NUMBER

Strings and literals are JSON. ``key "K"`` is a key of a store, with parts a place in its state; a path alone is a
place in any state. ``text`` is the text of the turn at the position. ``hit "X"`` is something retrieved: X is the
id of a hit, or of a turn that a hit holds.
"""

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
    """What the read path of a turn gave: a hit by its id, or any that holds a turn."""

    item: str

    def __str__(self) -> str:
        return f"hit {_quoted(self.item)}"


Subject = KeySubject | PathSubject | TextSubject | HitSubject


@dataclass(frozen=True)
class Changed:
    """Its value is another than at the position before."""


@dataclass(frozen=True)
class Exists:
    """There is such a key or place; a hit was retrieved, above the cut."""


@dataclass(frozen=True)
class Compare:
    """A value against a JSON literal. What is missing, or not comparable, compares to nothing."""

    op: CompareOp
    literal: Any


@dataclass(frozen=True)
class Contains:
    """A text holds this, whatever the case and accents; an object has such a field; a list such an item."""

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
    """The opposite."""

    of: Expression


@dataclass(frozen=True)
class Both:
    """Both hold."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Either:
    """At least one holds."""

    left: Expression
    right: Expression


Expression = Test | Not | Both | Either


@dataclass(frozen=True)
class Watch:
    """A watch as it was typed and what it means. ``backend`` is the architecture it looks at, None for all."""

    text: str
    expression: Expression
    backend: str | None = None
    enabled: bool = True


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
