"""Importing LiteLLM: once, late, offline and silent, with the embedded reader as one of its providers."""

from __future__ import annotations

import logging
import os
import warnings
from functools import lru_cache
from threading import Lock, Thread
from types import ModuleType

_importing = Lock()


def loaded_litellm() -> ModuleType:
    """The module, ready for use. The first call takes some seconds: make it in a thread."""
    with _importing:
        return _load()


def warm_up() -> Thread:
    """Begin the import in a thread, ahead of need. The thread never holds the process open."""
    thread = Thread(target=loaded_litellm, name="import-litellm", daemon=True)
    thread.start()
    return thread


@lru_cache(maxsize=1)
def _load() -> ModuleType:
    # Set before the import: else it fetches its price list from the network, and says so on standard error.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    from memreplay.llm.extractive.provider import ExtractiveProvider

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # A call that is let go of in its first moment (Ctrl-C twice) leaves a coroutine of theirs behind.
    warnings.filterwarnings("ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.custom_provider_map = [
        *litellm.custom_provider_map,
        {"provider": "memreplay", "custom_handler": ExtractiveProvider()},
    ]
    return litellm
