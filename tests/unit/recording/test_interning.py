"""Large texts are stored once, and nothing in a conversation is mistaken for a reference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memreplay.recording.bodies import LONG_TEXT, intern, resolve

texts = st.text(max_size=8) | st.sampled_from(["$", "$$", "x" * LONG_TEXT, "é" * LONG_TEXT])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_interned_comes_back(value: Any) -> None:
    kept: dict[str, str] = {}
    interned = intern(value, kept.__setitem__)
    assert resolve(interned, kept.__getitem__) == value


def test_a_long_text_is_kept_once_and_a_short_one_stays() -> None:
    kept: dict[str, str] = {}
    interned = intern(["short", "x" * LONG_TEXT, {"again": "x" * LONG_TEXT}], kept.__setitem__)
    assert interned[0] == "short"
    assert list(kept.values()) == ["x" * LONG_TEXT]
    assert interned[1] == interned[2]["again"]


def test_data_that_looks_like_a_reference_is_data() -> None:
    value = {"$": "0" * 32}
    assert resolve(intern(value, lambda digest, text: None), lambda digest: "stolen") == value
