"""``--embedder`` and ``--reranker``: from a name to a model whose vectors, or scores, are cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memory_backends.base import BackendError, TextEmbedder, TextReranker
from memory_backends.retrieval.embedding import MiniLMEmbedder, StoredEmbedder, stored_dimension
from memory_backends.retrieval.fastembed_models import FastembedEmbedder, FastembedReranker
from memory_backends.retrieval.reranking import StoredReranker
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.paths import cache_folder, vectors_file

if TYPE_CHECKING:
    from memory_backends.retrieval.embedding import Vector
    from memreplay.runtime.counting import Counting

EMBEDDED = "minilm"
"""The bundled embedder."""

SCORES = "scores.sqlite3"
"""The cache of a reranker's scores, in the folder of caches."""

REMOTE = "litellm:"
"""Prefix of the names of models that a provider runs."""

_NAMED = "fastembed:NAME, litellm:NAME"

_PROBE = "ready"
"""The text that shows whether a model answers."""

_ANY_DIMENSION = 384
"""Dimension of vectors in an estimate whose embedder was never asked."""

Made = TypeVar("Made")
Maker = Callable[[str, str | None], Made]


def _litellm_embedder(name: str, api_base: str | None) -> TextEmbedder:
    from memreplay.llm.embeddings import LiteLLMEmbedder

    return LiteLLMEmbedder(name, api_base)


def _litellm_reranker(name: str, api_base: str | None) -> TextReranker:
    from memreplay.llm.embeddings import LiteLLMReranker

    return LiteLLMReranker(name, api_base)


_EMBEDDERS: Mapping[str, Maker[TextEmbedder]] = {
    "fastembed": lambda name, api_base: FastembedEmbedder(name),
    "litellm": _litellm_embedder,
}
_RERANKERS: Mapping[str, Maker[TextReranker]] = {
    "fastembed": lambda name, api_base: FastembedReranker(name),
    "litellm": _litellm_reranker,
}


def plain_embedder(spec: str, api_base: str | None) -> TextEmbedder:
    """Return an embedder without a cache. Loads no model and opens no connection yet.

    Raises:
        UsageError: an unknown form of name, or its package is not installed.
    """
    if spec == EMBEDDED:
        return MiniLMEmbedder()
    return _made("embedder", spec, api_base, _EMBEDDERS, f"{EMBEDDED}, {_NAMED}")


def plain_reranker(spec: str, api_base: str | None) -> TextReranker:
    """Return a reranker; none is bundled, and none is loaded yet."""
    return _made("reranker", spec, api_base, _RERANKERS, _NAMED)


def _made(kind: str, spec: str, api_base: str | None, makers: Mapping[str, Maker[Made]], forms: str) -> Made:
    maker, _, name = spec.partition(":")
    if maker not in makers or not name:
        raise UsageError(f"unknown {kind} {spec!r}; expected one of {forms}")
    try:
        return makers[maker](name, api_base)
    except BackendError as error:
        raise UsageError(str(error)) from None


def stored_embedder(
    spec: str, api_base: str | None, *, offline: bool, counting: Counting | None = None
) -> StoredEmbedder:
    """:func:`plain_embedder` with its vectors cached on disk; offline no provider is asked for others.

    For an estimate only the bundled one is used: texts that others have not embedded yet are counted.
    """
    made = plain_embedder(spec, api_base)
    path = vectors_file()
    if counting is not None and spec != EMBEDDED:
        dimension = stored_dimension(path, made.name, _PROBE) or _ANY_DIMENSION
        return StoredEmbedder(counting.embedder(made.name, dimension, _at_provider(spec)), path, writes=False)
    if offline and spec.startswith(REMOTE):
        made = _OfflineEmbedder(made.name, path)
    return StoredEmbedder(made, path)


def stored_reranker(
    spec: str, api_base: str | None, *, offline: bool, counting: Counting | None = None
) -> StoredReranker:
    """:func:`plain_reranker` with its scores cached on disk; offline no provider is asked for others.

    For an estimate, calls for scores that are not cached are counted.
    """
    made = plain_reranker(spec, api_base)
    if counting is not None:
        counted = counting.reranker(made.name, _at_provider(spec))
        return StoredReranker(counted, cache_folder() / SCORES, writes=False)
    if offline and spec.startswith(REMOTE):
        made = _OfflineReranker(made.name)
    return StoredReranker(made, cache_folder() / SCORES)


def _at_provider(spec: str) -> str | None:
    """Return the name of a model that a provider is called for; None for one in this process."""
    return spec.removeprefix(REMOTE) if spec.startswith(REMOTE) else None


class _OfflineEmbedder(TextEmbedder):
    """Knows only how long the vectors are that a provider returned before."""

    def __init__(self, name: str, cache: Path) -> None:
        self.name = name
        self._cache = cache

    @cached_property
    def dimension(self) -> int:
        """Raises :class:`BackendError` if the provider was never asked."""
        known = stored_dimension(self._cache, self.name, _PROBE)
        if known is None:
            raise BackendError(f"offline: no vector of {self.name} is in the cache")
        return known

    def embed(self, texts: Sequence[str]) -> Vector:
        raise BackendError(f"offline: {self.name} has not embedded {len(texts)} of these texts before")


class _OfflineReranker(TextReranker):
    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        raise BackendError(f"offline: {self.name} has not scored these texts for this question before")


def ensure_embedder_answers(spec: str, embedder: TextEmbedder, api_base: str | None) -> None:
    """Embed a word, unless the embedder is the bundled one.

    Raises:
        UsageError: unknown provider.
        MissingServerOrKeyError: no key, no server, or the model cannot be loaded.
    """
    if spec != EMBEDDED:
        _ensure_answers(spec, api_base, lambda: embedder.embed([_PROBE]))


def ensure_dimension_is_known(embedder: TextEmbedder) -> None:
    """Raises MissingServerOrKeyError for an embedder that is offline and has no vector in the cache."""
    try:
        _ = embedder.dimension
    except BackendError as error:
        raise MissingServerOrKeyError(str(error)) from None


def ensure_reranker_answers(spec: str, reranker: TextReranker, api_base: str | None) -> None:
    """Score a word. Raises what :func:`ensure_embedder_answers` does."""
    _ensure_answers(spec, api_base, lambda: reranker.score(_PROBE, [_PROBE]))


def _ensure_answers(spec: str, api_base: str | None, ask: Callable[[], object]) -> None:
    maker, _, name = spec.partition(":")
    if maker == "litellm":
        ensure_reachable(name, api_base)
    try:
        ask()
    except (BackendError, ModelUnavailableError) as error:
        raise MissingServerOrKeyError(str(error)) from None
