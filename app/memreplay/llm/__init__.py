"""Asking models: prompts, the LiteLLM client, rate limits, the reply cache, the embedded reader.

Importing this package loads nothing: the command line names models before any is needed.
"""

EXTRACTIVE_MODEL = "memreplay/extractive"
"""The embedded reader."""

AGENT_MODEL = "agent"
"""Stands in for a model's name when a remote agent has answered by itself."""
