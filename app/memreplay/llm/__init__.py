"""Calls models: prompts, the LiteLLM client, rate limits, the reply cache, the embedded reader.

This package imports nothing: the command line needs the names below before any model.
"""

EXTRACTIVE_MODEL = "memreplay/extractive"
"""The embedded reader."""

AGENT_MODEL = "agent"
"""The model's name of a remote agent, which answers by itself."""
