"""Whether a model can be asked at all: is its name known, and is its key there? Nothing is sent."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from app.answering.litellm_setup import loaded_litellm
from app.answering.model_names import EXTRACTIVE_MODEL
from app.errors import MissingServerOrKeyError, UsageError

DUMMY_KEY = "no-key-needed"
"""Sent to a local server where the user has no key: most clients insist on one."""

_OWN_PREFIX = EXTRACTIVE_MODEL.partition("/")[0] + "/"


def ensure_reachable(model: str, api_base: str | None) -> None:
    """Raise what keeps a model from being asked.

    :class:`UsageError` for an unknown model or provider, :class:`MissingServerOrKeyError`, which names the
    environment variable, for a hosted model without its key. A local server needs no key. The first call for
    any model but the embedded reader imports LiteLLM, which takes seconds.
    """
    if model == EXTRACTIVE_MODEL:
        return
    if model.startswith(_OWN_PREFIX):
        raise UsageError(f"unknown model {model!r}; the embedded reader is {EXTRACTIVE_MODEL!r}")
    litellm = loaded_litellm()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except Exception:
        raise UsageError(
            f"unknown model {model!r}; LiteLLM names are provider/model, such as openai/gpt-4o-mini"
        ) from None
    missing = _missing_keys(model)
    if missing and not is_local(api_base):
        raise MissingServerOrKeyError(f"{model} needs a key: set {' or '.join(missing)}")


def key_for(model: str, api_base: str | None) -> str | None:
    """A stand-in key for a local server where the user has set none; None lets LiteLLM find the real one."""
    return DUMMY_KEY if is_local(api_base) and _missing_keys(model) else None


def variable_of_key(model: str) -> str | None:
    """The environment variable that holds the key, or would hold it; None where that cannot be told."""
    try:
        name = f"{loaded_litellm().get_llm_provider(model)[1].upper()}_API_KEY"
    except Exception:
        return None
    return name if name in os.environ else " or ".join(_missing_keys(model)) or None


def is_local(api_base: str | None) -> bool:
    """Whether an address lies on this machine or its private network."""
    host = urlsplit(api_base).hostname if api_base else None
    if host is None:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))


def is_loopback(url: str) -> bool:
    """Whether an address lies on this machine."""
    host = urlsplit(url).hostname
    try:
        return host is None or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _missing_keys(model: str) -> list[str]:
    """Environment variables that would hold the key; empty where one is set or none is needed."""
    found = loaded_litellm().validate_environment(model)
    names = [name for name in found["missing_keys"] if not name.endswith("_BASE")]
    return [] if found["keys_in_environment"] or any(os.environ.get(name) for name in names) else names
