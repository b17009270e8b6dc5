"""Parse the text of a breakpoint. Nothing in it is ever evaluated; a syntax error names its column."""

from __future__ import annotations

from memreplay.debugger.breakpoints.syntax import Breakpoint, BreakpointError, Subject, Test

MAX_LENGTH = 1000
"""Characters of a breakpoint."""


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
