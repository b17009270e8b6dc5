"""Calls models: prompts, the LiteLLM client, rate limits, the reply cache, the embedded reader.

This module imports nothing of the project: the command line needs the names below before any model.
"""

from typing import Literal

EXTRACTIVE_MODEL = "memreplay/extractive"
"""The embedded reader."""

AGENT_MODEL = "agent"
"""The model's name of a remote agent, which answers by itself."""
AS_RECORDED = "as recorded"
"""Stands where a model's name does: the reply is that of an agent that was recorded."""

RubricChoice = Literal["auto", "plain", "locomo", "longmemeval"]
"""Which rubric a judge grades by. ``auto``: that of the benchmark that the question comes from, else ``plain``."""
