"""The tokens of a watch, read as the grammar asks for them: a JSON value may only stand where one is expected."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from memreplay.errors import MemreplayError

TokenKind = Literal["name", "op", "mark", "end"]

_NAME = re.compile(r"[^\W\d][\w-]*")
_OP = re.compile(r"==|!=|<=|>=|<|>")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INDEX = re.compile(r"[0-9]+")
_JSON = json.JSONDecoder(parse_constant=lambda name: _refuse_constant(name))


class BreakpointError(MemreplayError):
    """A watch that cannot be read. ``column`` is 1-based."""

    def __init__(self, column: int, problem: str) -> None:
        self.column, self.problem = column, problem
        super().__init__(f"column {column}: {problem}")


@dataclass(frozen=True)
class Token:
    """A token; ``column`` is 1-based."""

    kind: TokenKind
    value: str
    column: int


class Tokens:
    """A watch, read from the left. Everything may raise :class:`BreakpointError`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _skipped(self) -> int:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at

    def peek(self) -> Token:
        """The next token, which stays where it is."""
        at = self._skipped()
        if at == len(self._text):
            return Token("end", "", at + 1)
        if name := _NAME.match(self._text, at):
            return Token("name", name[0], at + 1)
        if op := _OP.match(self._text, at):
            return Token("op", op[0], at + 1)
        return Token("mark", self._text[at], at + 1)

    def next(self) -> Token:
        """The next token, taken."""
        token = self.peek()
        self._at += len(token.value)
        return token

    def _taken(self, found: re.Match[str]) -> str:
        self._at = found.end()
        return found[0]

    def take_name(self, name: str) -> bool:
        """Take this word, if it is next."""
        token = self.peek()
        return (token.kind, token.value) == ("name", name) and self.next() is not None

    def take_mark(self, mark: str) -> bool:
        """Take this mark, if it is next."""
        token = self.peek()
        return (token.kind, token.value) == ("mark", mark) and self.next() is not None

    def expect_mark(self, mark: str) -> None:
        """Take this mark; anything else is an error."""
        if not self.take_mark(mark):
            self.fail(self.peek(), f"expected “{mark}”")

    def string(self, what: str) -> str:
        """Take a text in double quotes."""
        token, at = self.peek(), self._skipped()
        value = self.literal() if self._text[at : at + 1] == '"' else None
        if not isinstance(value, str):
            self.fail(token, f'expected {what} in double quotes, such as "Girona"')
        return value

    def number(self) -> float:
        """Take a number."""
        token = self.peek()
        found = _NUMBER.match(self._text, self._skipped())
        if found is None:
            self.fail(token, "expected a number")
        return float(self._taken(found))

    def literal(self) -> Any:
        """Take a JSON value."""
        token = self.peek()
        try:
            value, self._at = _JSON.raw_decode(self._text, self._skipped())
        except (ValueError, RecursionError):
            self.fail(token, 'expected a JSON value, such as "Girona", 3, true or null')
        return value

    def fail(self, token: Token, problem: str) -> NoReturn:
        """Say what is wrong with a token."""
        found = "the end" if token.kind == "end" else f"“{token.value}”"
        raise BreakpointError(token.column, f"{problem}; found {found}")

    def index(self) -> str | None:
        """Take the index of an item, if one is next."""
        found = _INDEX.match(self._text, self._skipped())
        return self._taken(found) if found else None

    def name(self) -> str | None:
        """Take a name, if one is next."""
        found = _NAME.match(self._text, self._skipped())
        return self._taken(found) if found else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
