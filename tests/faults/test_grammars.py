"""What a user types, mutated at random: breakpoints and settings are understood or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.debugger.breakpoints import BreakpointError, parse_breakpoint
from memreplay.errors import MemreplayError
from memreplay.settings import read_settings
from tests.faults.effort import examples

_PIECES = st.sampled_from(
    ["changed", "rank", "shared_data.city", "==", "!=", ">", "<", "and", "or", "not", "(", ")", '"Girona"',
     '"', "5", "1e999", "-1", "9" * 400, ".", "[", "]", "\\", "\0", "\ud83d", " ", "{", "}", "$", "~", "x" * 500]
)  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(_PIECES, max_size=12).map(" ".join) | st.text(max_size=60))
def test_a_breakpoint_is_understood_or_refused(text: str) -> None:
    try:
        parse_breakpoint(text)
    except BreakpointError as error:
        assert str(error)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["top_k", "backend", "timeout", "tier_share", "redis_url", "seed", "keys", "odd"]),
    value=st.sampled_from(
        ["-1", "0", "1e400", "nan", '"x"', "[]", "{}", "true", '"\\u0000"', "[[1]]", "9" * 400, "["]
    ),
)
def test_a_config_file_is_understood_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    (tmp_path / "config.toml").write_text(f"{name} = {value}\n")
    with monkeypatch.context() as patch:
        patch.setenv("MEMREPLAY_CONFIG", str(tmp_path / "config.toml"))
        try:
            read_settings()
        except MemreplayError as error:
            assert "\n" not in str(error)
