"""A machine that nobody has set up: no settings, no keys and no caches of the user who runs the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from memory_backends.base import TextEmbedder
from memory_backends.retrieval.embedding import MiniLMEmbedder
from memreplay.paths import cache_folder, vectors_file

_OF_THE_USER = (
    "NO_COLOR", "TEXTUAL_THEME", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES",
    "OPENAI_BASE_URL", "OPENAI_API_BASE",
)  # fmt: skip
"""Variables that change what is printed, or where a model is looked for."""

_one_embedder = cache(MiniLMEmbedder)

_shared_vectors: Path | None = None


def share_vectors(path: Path) -> None:
    """Let every machine of this session keep its vectors in one file, so that a text is embedded once."""
    global _shared_vectors
    _shared_vectors = path


def set_up(patch: pytest.MonkeyPatch, folder: Path, embedder: Callable[[], TextEmbedder] = _one_embedder) -> None:
    """Caches, config and data in the folder, and the model that embeds loaded once for all that is run."""
    for name in list(os.environ):
        begins, ends = name.startswith("MEMREPLAY_"), name.casefold().endswith(("_api_key", "_proxy"))
        if begins or ends or name in _OF_THE_USER:
            patch.delenv(name)
    patch.setattr("memreplay.llm.secrets._given", set())
    patch.setenv("MEMREPLAY_TABLES", "all")
    patch.setenv("TZ", "UTC")
    time.tzset()
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        patch.setenv(name, str(folder / name.lower()))
    patch.setattr("memreplay.runtime.embedders.MiniLMEmbedder", embedder)
    if _shared_vectors is not None:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            vectors_file().symlink_to(_shared_vectors)
