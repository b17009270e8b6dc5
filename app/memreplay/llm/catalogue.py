"""What is known about a model before calling it: its limits, its prices, and whether its key is set."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memreplay.conversations.models import Frozen
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.keys import DUMMY_KEY, missing_keys
from memreplay.llm.litellm_setup import loaded_litellm

_TABLE = "model_prices_and_context_window_backup.json"
# Names of reasoning models that are missing from the table (local and brand-new ones).
_REASONING_NAME = re.compile(
    r"(?:^|[/:_-])(?:o[1-9]|gpt-5|r1|qwq|reason\w*|think\w*|magistral)(?:$|[/:._-])", re.IGNORECASE
)


class ModelFacts(Frozen):
    """``context_window`` in tokens; prices in US dollars per token; None where unknown.

    ``reasons_first``: it thinks before it answers. ``caches_prompts``: its provider charges less for a prompt
    prefix that it has seen before.
    """

    context_window: int | None = None
    reasons_first: bool = False
    caches_prompts: bool = False
    prompt_price: float | None = None
    completion_price: float | None = None


def litellm_folder() -> Path | None:
    """Where LiteLLM is installed, without importing it (which takes seconds)."""
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


def table_entry(model: str) -> dict[str, Any] | None:
    """What LiteLLM's table says of a model: under its full name, or under the name that its provider has for it."""
    table = _table()
    provider, _, name = model.partition("/")
    entry = table.get(model)
    if entry is None and name and table.get(name, {}).get("litellm_provider") == provider:
        entry = table[name]
    return entry


@lru_cache(maxsize=64)
def model_facts(model: str) -> ModelFacts:
    """The facts in LiteLLM's table, under the model's full name or without its provider."""
    table = _table()
    entry = table.get(model) or table.get(model.partition("/")[2]) or {}
    window = entry.get("max_input_tokens") or entry.get("max_tokens")
    return ModelFacts(
        context_window=window if isinstance(window, int) and window > 0 else None,
        reasons_first=bool(entry.get("supports_reasoning")) or bool(_REASONING_NAME.search(model)),
        caches_prompts=bool(entry.get("supports_prompt_caching")),
        prompt_price=entry.get("input_cost_per_token"),
        completion_price=entry.get("output_cost_per_token"),
    )


_OWN_PREFIX = EXTRACTIVE_MODEL.partition("/")[0] + "/"


def ensure_reachable(model: str, api_base: str | None) -> None:
    """Check that a model can be called. A local server needs no key.

    The first check of any model but the embedded reader imports LiteLLM, which takes seconds.

    Raises:
        UsageError: an unknown model or provider.
        MissingServerOrKeyError: a hosted model without its key; names the environment variable.
    """
    if model == EXTRACTIVE_MODEL:
        return
    if model.startswith(_OWN_PREFIX):
        raise UsageError(f"unknown model {model!r}; the embedded reader is {EXTRACTIVE_MODEL!r}")
    if api_base is not None and "@" in urlsplit(api_base).netloc:
        raise UsageError(
            "--api-base must not contain a user or password, which model clients do not send; put the key into the"
            " provider's variable"
        )
    litellm = loaded_litellm()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except Exception:
        raise UsageError(
            f"unknown model {model!r}; LiteLLM names are provider/model, such as openai/gpt-4o-mini"
        ) from None
    missing = missing_keys(model, api_base)
    if missing and not is_local(api_base):
        raise MissingServerOrKeyError(f"{model} needs a key: set {missing}")


def key_for(model: str, api_base: str | None) -> str | None:
    """A dummy key for a local server where the user has set none; None lets LiteLLM find the real one."""
    return DUMMY_KEY if is_local(api_base) and missing_keys(model, api_base) else None


def variable_of_key(model: str) -> str | None:
    """The environment variable that holds, or would hold, the key; None where that is unknown."""
    try:
        name = f"{loaded_litellm().get_llm_provider(model)[1].upper()}_API_KEY"
    except Exception:
        return None
    return name if os.environ.get(name) else missing_keys(model, None)


def is_local(api_base: str | None) -> bool:
    """Whether a URL points to this machine or its private network."""
    host = urlsplit(api_base).hostname if api_base else None
    if host is None:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine."""
    host = urlsplit(url).hostname
    try:
        return host is None or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
