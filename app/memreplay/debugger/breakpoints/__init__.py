"""Breakpoints: what one means, as a tree of frozen values, and how its text is read.

Nothing in the text is ever evaluated; a syntax error names its column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from memreplay.errors import MemreplayError

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
        """Return it as it is typed: ``shared_data["user.city"]``."""
        written = ""
        for part in self.path:
            if not part.isidentifier() or part in _WORDS:
                written += f"[{_quoted(part)}]"
            else:
                written += f".{part}" if written else part
        return written


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


_WORDS: Final = frozenset("and or not key text hit changed exists contains rank score true false null".split())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


GRAMMAR_HELP: Final = """\
breakpoint = test | not breakpoint | breakpoint and breakpoint | breakpoint or breakpoint | (breakpoint)
test       = subject condition
             subject alone: its value changed, the hit was retrieved
             condition alone: of the selected line; rank and score: of any hit
subject    = path | key "redis key" | key "redis key".path | text | hit "id of a hit or of a turn"
path       = name | path.name | path.0 | path["a name"] | path[0]
condition  = changed | exists | contains "text" | comparison JSON | rank comparison number | score comparison number
comparison = == | != | < | <= | > | >=
"""
"""The language for its users, in lines that fit a screen. ``key`` is a Redis key; a path alone is a place in any
state; ``text`` is that of the turn at the position; ``hit`` is something that the turn's read path retrieved."""

MAX_LENGTH = 1000
"""Characters of a breakpoint."""


class BreakpointError(MemreplayError):
    """A text that is no breakpoint. ``column`` is 1-based."""

    def __init__(self, column: int, problem: str) -> None:
        self.column, self.problem = column, problem
        super().__init__(f"column {column}: {problem}")


def parse_breakpoint(
    text: str, subject: Subject | None = None, backend: str | None = None, *, enabled: bool = True
) -> Breakpoint:
    """Parse a breakpoint. A condition that names no subject is about ``subject``, the selected line.

    The text of the result names that subject in every such condition, so it can be saved and parsed again.

    Raises:
        BreakpointError: with the column, and what was expected there.
    """
    from memreplay.debugger.breakpoints.grammar import default_condition, parse_expression  # loads lark

    if len(text) > MAX_LENGTH:
        raise BreakpointError(MAX_LENGTH + 1, f"a breakpoint has at most {MAX_LENGTH} characters")
    if subject is None:
        return Breakpoint(text, parse_expression(text, None)[0], backend, enabled)
    if not text.strip():
        return Breakpoint(str(subject), Test(subject, default_condition(subject, 1)), backend, enabled)
    expression, implicit = parse_expression(text, subject)
    for column in sorted(implicit, reverse=True):
        text = f"{text[: column - 1]}{subject} {text[column - 1 :]}"
    return Breakpoint(text.strip(), expression, backend, enabled)
