"""The grammar of breakpoints and its transformer. This module loads lark: import it only to parse a breakpoint."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final, get_args

from lark import Lark, Token, UnexpectedInput, v_args
from lark.exceptions import VisitError
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from memreplay.debugger.breakpoints import (
    Both,
    BreakpointError,
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
)

MAX_DEPTH = 50
"""Parentheses and ``not`` inside each other."""

_MEASURES = "|".join(get_args(Measured))
_KEYWORDS = f"and|or|not|key|text|hit|changed|exists|contains|{_MEASURES}"
_END = r"(?![\w-])"

_GRAMMAR = rf"""
?start: both | start _OR both                   -> either
?both: negation | both _AND negation            -> conjunction
?negation: test | _NOT negation                 -> denial
    | "(" start ")"
test: subject condition
    | subject                                   -> default_test
    | condition                                 -> implicit_test

subject: _KEY STRING _part*                     -> key
    | _TEXT                                     -> text
    | _HIT STRING                               -> hit
    | (NAME | _item) _part*                     -> path
_part: "." (FIELD | INDEX) | _item
_item: "[" (STRING | INDEX) "]"

condition: predicate
predicate: _CHANGED                             -> changed
    | _EXISTS                                   -> exists
    | _CONTAINS STRING                          -> contains
    | COMPARISON _json                          -> compare
    | MEASURE COMPARISON NUMBER                 -> measure

_json: STRING | NUMBER | CONSTANT | array | object
array: "[" (_json ("," _json)*)? "]"
object: "{{" (member ("," member)*)? "}}"
member: STRING ":" _json

_AND: /and{_END}/
_OR: /or{_END}/
_NOT: /not{_END}/
_KEY: /key{_END}/
_TEXT: /text{_END}/
_HIT: /hit{_END}/
_CHANGED: /changed{_END}/
_EXISTS: /exists{_END}/
_CONTAINS: /contains{_END}/
MEASURE: /({_MEASURES}){_END}/
CONSTANT: /(true|false|null){_END}/
NAME: /(?!({_KEYWORDS}){_END})[^\W\d][\w-]*/
FIELD: /[^\W\d][\w-]*/
INDEX: /[0-9]+/
COMPARISON: /[=!<>]=|<|>/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{{4}}))*"/
%ignore /\s+/
"""

_CALLED: Final[dict[type, str]] = {
    KeySubject: "a key",
    PathSubject: "a path",
    TextSubject: "a turn's text",
    HitSubject: "a hit",
    Changed: "changed",
    Exists: "exists",
    Compare: "a comparison",
    Contains: "contains",
    Measure: "rank or score",
}
_CONDITIONS_OF: Final[dict[type, tuple[type, ...]]] = {
    KeySubject: (Changed, Exists, Compare, Contains),
    PathSubject: (Changed, Exists, Compare, Contains),
    TextSubject: (Compare, Contains),
    HitSubject: (Exists, Measure),
}
_SUBJECTS = "a path, “key”, “text” or “hit”"


def parse_expression(text: str, subject: Subject | None) -> tuple[Expression, list[int]]:
    """Return the syntax tree of a breakpoint, and the 1-based columns of conditions that are about ``subject``.

    Raises:
        BreakpointError: the text is no breakpoint.
    """
    state = _parser().parse_interactive(text)
    try:
        _feed(state)
        tree = state.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        is_end = isinstance(token := getattr(error, "token", None), Token) and token.type == "$END"
        at = len(text) if is_end or error.pos_in_stream is None else error.pos_in_stream
        found = re.compile(r"[\w-]+|.", re.DOTALL).match(text, at)
        problem = f"expected {_expected_after(text[:at])}; found {f'“{found[0]}”' if found else 'the end'}"
        raise BreakpointError(at + 1, problem) from None
    builder = _SyntaxTreeBuilder(subject)
    try:
        return builder.transform(tree), builder.implicit
    except VisitError as error:
        raise error.orig_exc from None


def default_condition(subject: Subject, column: int) -> Condition:
    """Return the condition of a subject that has none: a state changed, a hit was retrieved."""
    match subject:
        case TextSubject():
            raise BreakpointError(column, 'a turn\'s text needs a condition, such as: text contains "Girona"')
        case HitSubject():
            return Exists()
        case KeySubject() | PathSubject():
            return Changed()


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True)


def _feed(state: InteractiveParser) -> None:
    """Feed the parser every token. The depth is limited here, since expressions are evaluated recursively."""
    nested: list[str] = []
    for token in state.iter_parse():
        if token.type in ("_OR", "_AND", "RPAR"):
            while nested and nested[-1] == "_NOT":
                nested.pop()
        if token.type == "RPAR" and nested:
            nested.pop()
        elif token.type in ("_NOT", "LPAR"):
            nested.append(token.type)
            if len(nested) > MAX_DEPTH:
                raise BreakpointError((token.start_pos or 0) + 1, f"more than {MAX_DEPTH} levels")


_EXPECTED_ALONE: Final = {
    "NAME": _SUBJECTS,
    "CONSTANT": 'a JSON value, such as "Girona", 3, true or null',
    "NUMBER": "a number",
    "FIELD": "a name after the point",
    "INDEX": "a name in quotes, or a number",
}
_EXPECTED_STRING: Final = {
    "_KEY": 'the key in double quotes, such as "personal_state:planner"',
    "_HIT": 'the id of a hit or of a turn in double quotes, such as "D1:3"',
    "_CONTAINS": 'the text to look for in double quotes, such as "Girona"',
}
_EXPECTED_AMONG_OTHERS: Final = {
    "_CHANGED": "a condition",
    "COMPARISON": "a comparison, such as > or <=",
    "_AND": "“and”",
    "_OR": "“or”",
    "COLON": "“:”",
    "COMMA": "“,”",
    "RSQB": "“]”",
    "RBRACE": "“}”",
    "RPAR": "“)”",
    "$END": "the end",
}


def _expected_after(text: str) -> str:
    """Return what may follow the valid beginning of a breakpoint. A parser that failed has forgotten part of it."""
    state = _parser().parse_interactive(text)
    state.exhaust_lexer()
    accepted: set[str] = state.accepts()  # type: ignore[no-untyped-call]
    if alone := next((phrase for name, phrase in _EXPECTED_ALONE.items() if name in accepted), None):
        return alone
    if "STRING" in accepted:
        last = state.parser_state.value_stack[-1]
        return _EXPECTED_STRING.get(getattr(last, "type", ""), "a name in double quotes")
    if "_CHANGED" in accepted:
        accepted.discard("COMPARISON")
    *others, last = (phrase for name, phrase in _EXPECTED_AMONG_OTHERS.items() if name in accepted)
    return f"{', '.join(others)} or {last}" if others else last


@v_args(inline=True)
class _SyntaxTreeBuilder(Transformer_NonRecursive[Token, Expression]):
    """Builds the frozen tree of :mod:`.syntax` from lark's. ``subject`` is what a condition alone is about.

    ``implicit`` collects the 1-based columns of these conditions.
    """

    STRING = NUMBER = CONSTANT = staticmethod(json.loads)
    NAME = FIELD = INDEX = COMPARISON = MEASURE = staticmethod(str)
    either, conjunction, denial = Either, Both, Not
    text, hit = TextSubject, HitSubject
    changed, exists, contains, compare = Changed, Exists, Contains, Compare

    def __init__(self, subject: Subject | None) -> None:
        super().__init__()
        self._subject = subject
        self.implicit: list[int] = []

    def array(self, *items: Any) -> list[Any]:
        return list(items)

    def object(self, *members: tuple[str, Any]) -> dict[str, Any]:
        return dict(members)

    def member(self, name: str, value: Any) -> tuple[str, Any]:
        return name, value

    def key(self, key: str, *path: str) -> KeySubject:
        return KeySubject(key, path)

    def path(self, *path: str) -> PathSubject:
        return PathSubject(path)

    def measure(self, what: Measured, op: CompareOp, number: float) -> Measure:
        return Measure(what, op, float(number))

    @v_args(meta=True)
    def condition(self, meta: Meta, children: list[Condition]) -> tuple[int, Condition]:
        return meta.start_pos + 1, children[0]

    def test(self, subject: Subject, located: tuple[int, Condition]) -> Test:
        column, condition = located
        allowed = _CONDITIONS_OF[type(subject)]
        if not isinstance(condition, allowed):
            offered = ", ".join(_CALLED[each] for each in allowed)
            problem = f"{_CALLED[type(subject)]} has no such condition; it has {offered}"
            raise BreakpointError(column, f"{problem}; found {_CALLED[type(condition)]}")
        return Test(subject, condition)

    @v_args(meta=True)
    def default_test(self, meta: Meta, children: list[Subject]) -> Test:
        return Test(children[0], default_condition(children[0], meta.end_pos + 1))

    def implicit_test(self, located: tuple[int, Condition]) -> Test:
        """Return a condition alone. Only hits have a rank or a score: where no hit is selected, any hit may meet
        it.
        """
        column, condition = located
        if isinstance(condition, Measure) and not isinstance(self._subject, HitSubject):
            return Test(HitSubject(None), condition)
        if self._subject is None and isinstance(condition, Changed):
            return Test(PathSubject(()), condition)  # any state
        if self._subject is None:
            problem = f"expected {_SUBJECTS} before {_CALLED[type(condition)]}, since no line is selected"
            raise BreakpointError(column, problem)
        self.implicit.append(column)
        return self.test(self._subject, located)
