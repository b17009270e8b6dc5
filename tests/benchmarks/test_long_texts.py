"""Candidates of facts in long texts: no pattern goes over such a text more often than its length allows."""

from __future__ import annotations

import time

import pytest

from memory_backends.hybrid.candidates import candidates_of
from tests.stubs.memory import exchange

MOST_SECONDS = 30


@pytest.mark.parametrize(
    "piece", ["1 ", "1.", "a-", "a.b=", "A ", "Ana and ", "my old ", "`", "error: ", "a_", "/a"]
)
def test_no_text_takes_long(piece: str) -> None:
    started = time.perf_counter()
    candidates_of(exchange(1, piece * 8000, "Noted."))
    took = time.perf_counter() - started
    print(f"\n{piece!r}: {took:.2f} s")
    assert took < MOST_SECONDS
