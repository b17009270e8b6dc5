"""Text to a watch. Nothing is evaluated; what cannot be read is told with its column."""

from __future__ import annotations

from typing import Final, cast, get_args

from memreplay.debugger.breakpoints.scanner import BreakpointError, Token, Tokens
from memreplay.debugger.breakpoints.syntax import (
    Both,
    Changed,
    Compare,
    CompareOp,
    Condition,
    Contains,
    Either,
    Exists,
    Expression,
    HitSubject,
    KeySubject,
    Measure,
    Measured,
    Not,
    PathSubject,
    Subject,
    Test,
    TextSubject,
    Watch,
)

LONGEST = 1000
"""Characters of a watch."""

DEEPEST = 50
"""Parentheses and denials inside each other."""

_MEASURES: Final[frozenset[str]] = frozenset(get_args(Measured))
_RESERVED = frozenset({"and", "or", "not", "key", "text", "hit", "changed", "exists", "contains", *_MEASURES})
_ALLOWED: Final[dict[type, tuple[type, ...]]] = {
    KeySubject: (Changed, Exists, Compare, Contains),
    PathSubject: (Changed, Exists, Compare, Contains),
    TextSubject: (Compare, Contains),
    HitSubject: (Exists, Measure),
}
_CALLED: Final[dict[type, str]] = {
    KeySubject: "a key",
    PathSubject: "a path",
    TextSubject: "a turn's text",
    HitSubject: "a hit",
}
_OFFERED: Final[dict[type, str]] = {
    Changed: "changed",
    Exists: "exists",
    Compare: "a comparison",
    Contains: "contains",
    Measure: "rank or score",
}


def parse_breakpoint(
    text: str, subject: Subject | None = None, backend: str | None = None, *, enabled: bool = True
) -> Watch:
    """Read a watch. ``subject`` is what a condition without a subject of its own is about.

    Raises:
        BreakpointError: where, and what was expected.
    """
    if len(text) > LONGEST:
        raise BreakpointError(LONGEST + 1, f"a watch has at most {LONGEST} characters")
    if not text.strip() and subject is not None:
        expression: Expression = Test(subject, _default(subject, 1))
    else:
        expression = _Parser(text, subject).parse()
    return Watch(text if subject is None else _with_subject(text, subject), expression, backend, enabled)


def _with_subject(text: str, subject: Subject) -> str:
    """The watch as it can be saved and read again without the subject that it was set on."""
    tokens = _Parser(text, subject)
    pieces, last = [], 0
    for column in tokens.columns_without_subject():
        pieces += [text[last:column], f"{subject} "]
        last = column
    return ("".join(pieces) + text[last:]).strip() or str(subject)


class _Parser:
    """Recursive descent. Tokens are read on demand, since a JSON literal may only stand after an operator."""

    def __init__(self, text: str, subject: Subject | None) -> None:
        self._tokens = Tokens(text)
        self._subject = subject
        self._depth = 0
        self._bare: list[int] = []

    def parse(self) -> Expression:
        expression = self._either()
        token = self._tokens.peek()
        if token.kind != "end":
            self._tokens.fail(token, "expected “and”, “or” or the end")
        return expression

    def columns_without_subject(self) -> list[int]:
        """0-based places at which a condition stands without a subject of its own."""
        if self._tokens.peek().kind != "end":
            self.parse()
        return self._bare

    # ---- and, or, not -----------------------------------------------------------------------------------

    def _either(self) -> Expression:
        left = self._both()
        while self._tokens.take_name("or"):
            left = Either(left, self._both())
        return left

    def _both(self) -> Expression:
        left = self._denial()
        while self._tokens.take_name("and"):
            left = Both(left, self._denial())
        return left

    def _denial(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            self._tokens.fail(self._tokens.peek(), f"more than {DEEPEST} levels")
        try:
            if self._tokens.take_name("not"):
                return Not(self._denial())
            if self._tokens.take_mark("("):
                inner = self._either()
                self._tokens.expect_mark(")")
                return inner
            return self._test()
        finally:
            self._depth -= 1

    # ---- a test -----------------------------------------------------------------------------------------

    def _test(self) -> Test:
        start = self._tokens.peek()
        subject = self._own_subject()
        if subject is None:
            if self._subject is None or not self._starts_condition(start):
                self._tokens.fail(start, "expected a path, “key”, “text” or “hit”")
            self._bare.append(start.column - 1)
            subject = self._subject
        token = self._tokens.peek()
        condition = self._condition() if self._starts_condition(token) else _default(subject, token.column)
        if not isinstance(condition, _ALLOWED[type(subject)]):
            offered = ", ".join(_OFFERED[kind] for kind in _ALLOWED[type(subject)])
            self._tokens.fail(token, f"{_CALLED[type(subject)]} has no such condition; it has {offered}")
        return Test(subject, condition)

    def _own_subject(self) -> Subject | None:
        token = self._tokens.peek()
        match token.kind, token.value:
            case "name", "key":
                self._tokens.next()
                return KeySubject(self._tokens.string("the key"), self._parts())
            case "name", "text":
                self._tokens.next()
                return TextSubject()
            case "name", "hit":
                self._tokens.next()
                return HitSubject(self._tokens.string("the id of a hit or of a turn"))
            case "name", str(name) if name not in _RESERVED:
                self._tokens.next()
                return PathSubject((name, *self._parts()))
            case "mark", "[":
                return PathSubject(self._parts())
            case _:
                return None

    def _parts(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            if self._tokens.take_mark("."):
                parts.append(self._name_or_index())
            elif self._tokens.take_mark("["):
                parts.append(self._tokens.index() or self._tokens.string("a name in quotes, or a number"))
                self._tokens.expect_mark("]")
            else:
                return tuple(parts)

    def _name_or_index(self) -> str:
        found = self._tokens.name() or self._tokens.index()
        if found is None:
            self._tokens.fail(self._tokens.peek(), "expected a name after the point")
        return found

    @staticmethod
    def _starts_condition(token: Token) -> bool:
        return token.kind == "op" or (
            token.kind == "name" and token.value in {"changed", "exists", "contains", *_MEASURES}
        )

    def _condition(self) -> Condition:
        token = self._tokens.next()
        match token.value:
            case "changed":
                return Changed()
            case "exists":
                return Exists()
            case "contains":
                return Contains(self._tokens.string("the text to look for"))
            case "rank" | "score" as what:
                op = self._tokens.next()
                if op.kind != "op":
                    self._tokens.fail(op, "expected a comparison, such as > or <=")
                return Measure(what, cast(CompareOp, op.value), self._tokens.number())
            case op:
                return Compare(cast(CompareOp, op), self._tokens.literal())


def _default(subject: Subject, column: int) -> Condition:
    """What is meant where no condition is given: a state changed, a hit was retrieved."""
    match subject:
        case TextSubject():
            raise BreakpointError(column, 'a turn\'s text needs a condition, such as: text contains "Girona"')
        case HitSubject():
            return Exists()
        case KeySubject() | PathSubject():
            return Changed()
