"""Tokens as the scheduler counts them, offline: one tokenizer for every agent, so that runs can be compared."""

from __future__ import annotations

from app.answering.tokens import TokenCounter, token_counter

count_tokens: TokenCounter = token_counter("cl100k_base")
"""Text to its number of tokens in cl100k."""
