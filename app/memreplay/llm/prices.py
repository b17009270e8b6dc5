"""What a reply costs, from LiteLLM's table of prices: computed once a reply, and by LiteLLM only where it must be.

LiteLLM's own calculator takes milliseconds a reply. Almost all replies need none of what it knows: they are text,
of a model with a price per token, served at the standard tier.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memreplay.llm.catalogue import table_entry
from memreplay.llm.model import TokenUsage

_TIER = re.compile(r"(?P<price>\w+_cost_per_token|cache_read_input_token_cost)_above_(?P<thousands>\d+)k_tokens")
_OF_OTHER_THINGS = re.compile(
    r"_(?:batches|priority|flex|balanced|ultrafast|decisions|above_1hr)|audio|image|video|per_query|per_session"
    r"|^(?:cache_creation|citation|output_cost_per_reasoning)"
)
"""Prices that a plain reply never pays: of other service tiers and media, and what its usage would mention."""

_INPUT, _OUTPUT, _CACHED = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"
_PLAIN_DETAILS = frozenset({"cached_tokens", "text_tokens"})


@dataclass(frozen=True)
class _Prices:
    """US dollars per token from ``above`` prompt tokens on; ``cached`` None: cached tokens have no known price."""

    above: int
    prompt: float
    completion: float
    cached: float | None


@lru_cache(maxsize=64)
def _prices_of(model: str) -> tuple[_Prices, ...]:
    """The prices of a model, the tier of the longest prompts first; empty where they are not this simple."""
    entry = table_entry(model) or {}
    priced = {name: price for name, price in entry.items() if re.search("cost|pric|multiplier", name)}
    tiers: dict[int, dict[str, Any]] = {0: {}}
    for name, price in priced.items():
        tier = _TIER.fullmatch(name)
        if name in (_INPUT, _OUTPUT, _CACHED):
            tiers[0][name] = price
        elif tier is not None and tier["price"] in (_INPUT, _OUTPUT, _CACHED):
            tiers.setdefault(int(tier["thousands"]) * 1000, {})[tier["price"]] = price
        elif not _OF_OTHER_THINGS.search(name):
            return ()
    found = []
    for above, prices in sorted(tiers.items(), reverse=True):
        given = {**tiers[0], **prices}
        if not all(_is_price(given.get(name)) for name in (_INPUT, _OUTPUT)):
            return ()
        cached = given.get(_CACHED) if above == 0 or _CACHED in prices else None
        found.append(_Prices(above, given[_INPUT], given[_OUTPUT], cached if _is_price(cached) else None))
    return tuple(found)


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


class CostMeter:
    """Computes costs. Remembers models of which LiteLLM knows no price, since finding that out takes as long."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    def cost(self, litellm: Any, model: str, response: Any, usage: TokenUsage) -> float | None:
        """US dollars of LiteLLM's response, cached tokens at their lower price; None where the price is unknown."""
        if model in self._unknown:
            return None
        if usage.prompt and _is_plain(response):
            tier = next(
                (prices for prices in _prices_of(model) if usage.prompt > prices.above or not prices.above), None
            )
            if tier is not None and (tier.cached is not None or not usage.cached):
                cached = usage.cached * (tier.cached or 0.0)
                return (
                    max(usage.prompt - usage.cached, 0) * tier.prompt + cached + usage.completion * tier.completion
                )
        try:
            cost = float(litellm.completion_cost(completion_response=response, model=model))
        except Exception:
            if table_entry(model) is None:
                self._unknown.add(model)
            return None
        return cost if math.isfinite(cost) else None


def _is_plain(response: Any) -> bool:
    """Whether the provider counted only text, read or cached, and served it at the standard tier."""
    if getattr(response, "service_tier", None) not in (None, "default", "standard"):
        return False
    usage = getattr(response, "usage", None)
    if getattr(usage, "cost", None) is not None or getattr(usage, "server_tool_use", None) is not None:
        return False
    counted = [
        name
        for details in ("prompt_tokens_details", "completion_tokens_details")
        for name, count in _counts(getattr(usage, details, None))
        if count
    ]
    return _PLAIN_DETAILS.issuperset(counted)


def _counts(details: Any) -> list[tuple[str, Any]]:
    return list(vars(details).items()) if details is not None and hasattr(details, "__dict__") else []
