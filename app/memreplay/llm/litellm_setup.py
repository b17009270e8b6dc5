"""Imports LiteLLM once, late, offline and silently."""

from __future__ import annotations

import logging
import os
import warnings
from functools import lru_cache
from threading import Lock, Thread
from types import ModuleType

_importing = Lock()


def loaded_litellm() -> ModuleType:
    """The configured module. The first call takes seconds: make it in a thread."""
    with _importing:
        return _load()


def warm_up() -> Thread:
    """Start the import in a daemon thread, ahead of need."""
    thread = Thread(target=loaded_litellm, name="import-litellm", daemon=True)
    thread.start()
    return thread


@lru_cache(maxsize=1)
def _load() -> ModuleType:
    # Set before the import, or LiteLLM downloads its price list and logs that to standard error.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # A call cancelled right after its start (Ctrl-C twice) leaves one of LiteLLM's coroutines behind.
    warnings.filterwarnings("ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning)
    # A reply of another shape than OpenAI's; what cannot be read becomes an error with its reason.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    return litellm
