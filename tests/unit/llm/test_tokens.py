"""Counting tokens and dividing up a model's window, offline."""

from __future__ import annotations

import os
import socket

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from memreplay.llm.tokens import UNKNOWN_WINDOW_BUDGET, UNLIMITED, context_budget, context_window, token_counter


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("_no_network")
def test_token_counts_of_known_texts() -> None:
    assert token_counter("gpt-4")("hello world") == 2
    assert token_counter("gpt-4o")("hello world") == 2
    assert token_counter("memreplay/extractive")("") == 0
    # The newer table is better at Spanish.
    spanish = "¿En qué localidad tiene la familia el huerto?"
    assert token_counter("openai/gpt-4o-mini")(spanish) < token_counter("anthropic/claude-x")(spanish)


@pytest.mark.parametrize(("model", "table"), [("gpt-4", "cl100k_base"), ("gpt-4o", "o200k_base")])
@given(text=st.text(st.sampled_from(" \n\r\t/.!'abZ09éñ漢…\x1c\x85\u2028"), max_size=40))
def test_lines_are_counted_as_the_whole_text_would_be(model: str, table: str, text: str) -> None:
    count = token_counter(model)
    count("the table is loaded")
    assert count(text) == len(tiktoken.get_encoding(table).encode_ordinary(text))


def test_special_tokens_in_a_conversation_are_ordinary_text() -> None:
    assert token_counter("gpt-4o")("<|endoftext|>") > 1


def test_the_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_counter("gpt-4o")("hello")
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


def test_a_model_is_found_with_or_without_its_provider() -> None:
    assert context_window("gpt-4o-mini") == 128_000
    assert context_window("openai/gpt-4o-mini") == 128_000
    assert context_window("memreplay/extractive") is None
    assert context_window("ollama/never-heard-of") is None


def test_the_budget_leaves_room_for_prompt_and_reply() -> None:
    assert 120_000 < context_budget("gpt-4o-mini", None) < 128_000
    assert context_budget("o3-mini", None) <= 200_000 - 2048 - 1024


def test_an_unknown_window_gets_the_default_budget() -> None:
    assert context_budget("memreplay/extractive", None) == UNKNOWN_WINDOW_BUDGET == 8192


def test_a_memory_that_returns_everything_is_cut_by_no_assumed_window() -> None:
    assert context_budget("memreplay/extractive", None, limited_by_top_k=False) == UNLIMITED
    assert context_budget("memreplay/extractive", 500, limited_by_top_k=False) == 500
    assert context_budget("ollama/never-heard-of", None, limited_by_top_k=False) == UNKNOWN_WINDOW_BUDGET
    assert context_budget("gpt-4o-mini", None, limited_by_top_k=False) == context_budget("gpt-4o-mini", None)


def test_a_configured_budget_is_limited_by_the_window() -> None:
    assert context_budget("memreplay/extractive", 20_000) == 20_000
    assert context_budget("gpt-4o-mini", 1000) == 1000
    assert context_budget("gpt-4o-mini", 1_000_000) == context_budget("gpt-4o-mini", None)
