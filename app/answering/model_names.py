"""Names that stand where a model's does, and are ours. They are here alone, so that naming one imports nothing."""

from __future__ import annotations

EXTRACTIVE_MODEL = "memreplay/extractive"
AGENT_MODEL = "agent"
"""Stands where a model's name does when a remote agent has answered by itself."""
