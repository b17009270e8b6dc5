"""``--embedder``: from a name to an embedder whose vectors are cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memory_backends.base import BackendError, TextEmbedder
from memory_backends.retrieval.embedding import FastembedEmbedder, MiniLMEmbedder, StoredEmbedder
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.embeddings import LiteLLMEmbedder
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.paths import cache_folder

EMBEDDED = "minilm"
"""The bundled embedder."""

VECTORS = "vectors.sqlite3"
"""The cache of vectors, in the folder of caches."""

FORMS = f"{EMBEDDED}, fastembed:NAME, litellm:NAME"

_MADE_BY_NAME: Mapping[str, Callable[[str, str | None], TextEmbedder]] = {
    "fastembed": lambda name, api_base: FastembedEmbedder(name),
    "litellm": LiteLLMEmbedder,
}


def plain_embedder(spec: str, api_base: str | None) -> TextEmbedder:
    """An embedder without a cache. Loads no model and opens no connection yet.

    Raises:
        UsageError: an unknown form of name, or its package is not installed.
    """
    if spec == EMBEDDED:
        return MiniLMEmbedder()
    maker, _, name = spec.partition(":")
    if maker not in _MADE_BY_NAME or not name:
        raise UsageError(f"unknown embedder {spec!r}; expected one of {FORMS}")
    try:
        return _MADE_BY_NAME[maker](name, api_base)
    except BackendError as error:
        raise UsageError(str(error)) from None


def stored_embedder(spec: str, api_base: str | None) -> StoredEmbedder:
    """:func:`plain_embedder` with its vectors cached on disk."""
    return StoredEmbedder(plain_embedder(spec, api_base), cache_folder() / VECTORS)


def ensure_embedder_answers(spec: str, embedder: TextEmbedder, api_base: str | None) -> None:
    """Embed a word, unless the embedder is the bundled one.

    Raises:
        UsageError: unknown provider.
        MissingServerOrKeyError: no key, no server, or the model cannot be loaded.
    """
    if spec == EMBEDDED:
        return
    maker, _, name = spec.partition(":")
    if maker == "litellm":
        ensure_reachable(name, api_base)
    try:
        embedder.embed(["ready"])
    except (BackendError, ModelUnavailableError) as error:
        raise MissingServerOrKeyError(str(error)) from None
