"""What is known of a model before it is called, from the table that LiteLLM ships, without importing it."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.conversations.models import Frozen

_TABLE = "model_prices_and_context_window_backup.json"
# Names that tell a reasoning model apart where the table does not know it (local and brand-new models).
_REASONING_NAME = re.compile(
    r"(?:^|[/:_-])(?:o[1-9]|gpt-5|r1|qwq|reason\w*|think\w*|magistral)(?:$|[/:._-])", re.IGNORECASE
)


class ModelFacts(Frozen):
    """``context_window`` in tokens, None where it is unknown. ``reasons_first``: it thinks before it answers.

    ``keeps_prompts``: its provider charges less for the beginning of a prompt that it has read before. Prices are
    US dollars a token, None where they are unknown.
    """

    context_window: int | None = None
    reasons_first: bool = False
    keeps_prompts: bool = False
    prompt_price: float | None = None
    completion_price: float | None = None


def litellm_folder() -> Path | None:
    """Where LiteLLM is installed, found without importing it (its import takes seconds)."""
    spec = find_spec("litellm")
    return Path(spec.origin).parent if spec and spec.origin else None


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    folder = litellm_folder()
    path = folder / _TABLE if folder else None
    if path is None or not path.is_file():
        return {}
    table: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    return table


@lru_cache(maxsize=64)
def model_facts(model: str) -> ModelFacts:
    """What the table says of a model, under its full name or without the provider before the first slash."""
    table = _table()
    entry = table.get(model) or table.get(model.partition("/")[2]) or {}
    window = entry.get("max_input_tokens") or entry.get("max_tokens")
    return ModelFacts(
        context_window=window if isinstance(window, int) and window > 0 else None,
        reasons_first=bool(entry.get("supports_reasoning")) or bool(_REASONING_NAME.search(model)),
        keeps_prompts=bool(entry.get("supports_prompt_caching")),
        prompt_price=entry.get("input_cost_per_token"),
        completion_price=entry.get("output_cost_per_token"),
    )
