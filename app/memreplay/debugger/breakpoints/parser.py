"""Parse the text of a breakpoint. Nothing in it is ever evaluated; a syntax error names its column."""

from __future__ import annotations

from typing import Final

from memreplay.debugger.breakpoints.syntax import Breakpoint, Subject, Test
from memreplay.errors import MemreplayError

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
