"""A breakpoint is parsed into a tree or refused with a column; nothing in it is ever evaluated."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memreplay.debugger.breakpoints import (
    MAX_LENGTH,
    Both,
    BreakpointError,
    Changed,
    Compare,
    Contains,
    Either,
    Exists,
    HitSubject,
    KeySubject,
    Measure,
    Not,
    PathSubject,
    Subject,
    Test,
    TextSubject,
    parse_breakpoint,
)
from memreplay.debugger.breakpoints.grammar import MAX_DEPTH
from tests.tables import failing

CITY = PathSubject(("shared_data", "city"))


def test_a_test_is_a_condition_on_a_subject() -> None:
    def check(text: str, expected: Test) -> None:
        assert parse_breakpoint(text).expression == expected

    assert (
        failing(
            [
                ('shared_data.city == "Girona"', Test(CITY, Compare("==", "Girona"))),
                ("shared_data.city", Test(CITY, Changed())),
                ("shared_data.city changed", Test(CITY, Changed())),
                (
                    'shared_data["user.name"][0].x exists',
                    Test(PathSubject(("shared_data", "user.name", "0", "x")), Exists()),
                ),
                ('["text"] > -1.5e2', Test(PathSubject(("text",)), Compare(">", -150))),
                ('key "shared_state:a b" changed', Test(KeySubject("shared_state:a b"), Changed())),
                ('key "k".a.0 <= 3', Test(KeySubject("k", ("a", "0")), Compare("<=", 3))),
                ('text contains "¿qué?"', Test(TextSubject(), Contains("¿qué?"))),
                ('hit "D1:3"', Test(HitSubject("D1:3"), Exists())),
                ('hit "D1:3" rank > 5', Test(HitSubject("D1:3"), Measure("rank", ">", 5))),
                ('hit "D1:3" score<0.3', Test(HitSubject("D1:3"), Measure("score", "<", 0.3))),
                ("status != null", Test(PathSubject(("status",)), Compare("!=", None))),
                ('año == "and"', Test(PathSubject(("año",)), Compare("==", "and"))),
                ('tags == ["a", {"b": 1}]', Test(PathSubject(("tags",)), Compare("==", ["a", {"b": 1}]))),
            ],
            check,
        )
        == []
    )


def test_not_binds_tighter_than_and_which_binds_tighter_than_or() -> None:
    a, b, c = (Test(PathSubject((name,)), Exists()) for name in "abc")
    assert parse_breakpoint("a exists or b exists and not c exists").expression == Either(a, Both(b, Not(c)))
    assert parse_breakpoint("(a exists or b exists) and c exists").expression == Both(Either(a, b), c)


@pytest.mark.parametrize(
    ("subject", "condition", "expected"),
    [
        (KeySubject("k"), "", Test(KeySubject("k"), Changed())),
        (HitSubject("7"), "", Test(HitSubject("7"), Exists())),
        (HitSubject("7"), "rank > 5 or score < 0.3", None),
        (CITY, '(== "Vic" and changed) or not exists', None),
        (KeySubject('a "b"\n', ("x.y", "0")), 'contains "z" and text contains "w"', None),
    ],
)
def test_a_condition_alone_is_about_the_subject_it_is_set_on(
    subject: Subject, condition: str, expected: Test | None
) -> None:
    parsed = parse_breakpoint(condition, subject)
    if expected is not None:
        assert parsed.expression == expected
    assert parse_breakpoint(parsed.text).expression == parsed.expression


@pytest.mark.parametrize("subject", [None, CITY, TextSubject()])
def test_rank_and_score_are_of_any_hit_where_no_hit_is_selected(subject: Subject | None) -> None:
    parsed = parse_breakpoint("rank > 2 or score <= 0.5", subject)
    any_hit = HitSubject(None)
    assert parsed.expression == Either(
        Test(any_hit, Measure("rank", ">", 2)), Test(any_hit, Measure("score", "<=", 0.5))
    )
    assert parse_breakpoint(parsed.text) == parsed


@pytest.mark.parametrize("text", ["[" * 400 + "]" * 400, '{"a":' * 150 + "1" + "}" * 150])
def test_a_deeply_nested_value_is_parsed(text: str) -> None:
    assert parse_breakpoint(f"a == {text}").expression == Test(PathSubject(("a",)), Compare("==", json.loads(text)))


def test_many_terms_are_no_nesting() -> None:
    parse_breakpoint(" and ".join(["not (a)"] * (MAX_DEPTH + 10)))


def test_a_syntax_error_names_its_column_and_what_was_expected() -> None:
    def check(text: str, column: int, problem: str) -> None:
        with pytest.raises(BreakpointError, match=re.escape(problem)) as refused:
            parse_breakpoint(text)
        assert refused.value.column == column
        assert "\n" not in str(refused.value)

    assert (
        failing(
            [
                ("", 1, "expected a path"),
                ("exists", 1, "expected a path, “key”, “text” or “hit” before exists, since no line is selected"),
                ('a == 1 or == "b"', 11, "before a comparison, since no line is selected"),
                ("shared_data.city ==", 20, "expected a JSON value"),
                ("shared_data.city == Girona", 21, "expected a JSON value"),
                ("shared_data.city = 3", 18, "expected a condition, “and”, “or” or the end"),
                ("a == 1 b == 2", 8, "expected “and”, “or” or the end"),
                ("(a == 1", 8, "expected “and”, “or” or “)”"),
                ("a. == 1", 4, "expected a name after the point"),
                ("a[x]", 3, "expected a name in quotes, or a number"),
                ("text", 5, "a turn's text needs a condition"),
                ("text changed", 6, "a turn's text has no such condition"),
                ('hit "7" changed', 9, "a hit has no such condition"),
                ("a rank > 5", 3, "a path has no such condition"),
                ('hit "7" rank 5', 14, "expected a comparison"),
                ('hit "7" rank > "x"', 16, "expected a number"),
                ("hit 7", 5, "expected the id of a hit or of a turn"),
                ("a == NaN", 6, "expected a JSON value"),
                ("not", 4, "expected a path"),
                ("and exists", 1, "expected a path"),
                ('hit "7', 5, "expected the id of a hit or of a turn"),
                ('tags == ["a" "b"]', 14, "expected “,” or “]”"),
                ("not " * (MAX_DEPTH + 1) + "a", 4 * MAX_DEPTH + 1, "levels"),
                ("(" * (MAX_DEPTH + 1), MAX_DEPTH + 1, "levels"),
                ("a" * (MAX_LENGTH + 1), MAX_LENGTH + 1, "characters"),
                ("__import__('os').system('x')", 11, "expected a condition, “and”, “or” or the end; found “(”"),
            ],
            check,
        )
        == []
    )


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"(?:[a-z(]+[.\[ ]){1,5}(==|contains|rank >) .{0,10}", fullmatch=True))
def test_any_text_is_a_breakpoint_or_a_breakpoint_error(text: str) -> None:
    try:
        parsed = parse_breakpoint(text)
    except BreakpointError as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert parse_breakpoint(parsed.text) == parsed
