"""Models of the package fastembed, which run in this process: embedders and rerankers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memory_backends.base import BackendError, TextEmbedder, TextReranker
from memory_backends.retrieval.embedding import unit_vectors

if TYPE_CHECKING:
    from memory_backends.retrieval.embedding import Vector

PACKAGE = "fastembed"


class _FastembedModel:
    """A model by its fastembed name. It is loaded, and where need be fetched, at its first use."""

    def __init__(self, kind: str, model: str, module: str, class_name: str) -> None:
        """Raises :class:`BackendError` where the package is not installed."""
        if find_spec(PACKAGE) is None:
            raise BackendError(f"the {kind} fastembed:{model} needs a package: pip install 'memreplay[fastembed]'")
        self.name = f"fastembed:{model}"
        self.made_by: Any = getattr(import_module(module), class_name)
        self._model_name = model
        self._loading = threading.Lock()
        self._model: Any = None

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Return what fastembed says of it. Raises :class:`BackendError` where it knows no such model."""
        for known in self.made_by.list_supported_models():
            if known["model"].casefold() == self._model_name.casefold():
                return dict(known)
        raise BackendError(f"fastembed knows no model {self._model_name!r}")

    def loaded(self) -> Any:
        """Raises :class:`BackendError` where the model cannot be loaded."""
        with self._loading:
            if self._model is None:
                try:
                    self._model = self.made_by(model_name=self._model_name)
                except Exception as error:
                    raise BackendError(f"{self.name} cannot be loaded: {type(error).__name__}: {error}") from error
            return self._model


class FastembedEmbedder(TextEmbedder):
    """An embedder by its fastembed name."""

    def __init__(self, model: str) -> None:
        """Raises :class:`BackendError` where the package is not installed."""
        self._model = _FastembedModel("embedder", model, PACKAGE, "TextEmbedding")
        self.name = self._model.name

    @cached_property
    def dimension(self) -> int:
        """Return the dimension that fastembed states."""
        return int(self._model.facts["dim"])

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of unit length. Raises :class:`BackendError` where the model cannot be loaded."""
        import numpy as np

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return unit_vectors(np.array(list(self._model.loaded().embed(list(texts))), dtype=np.float32))


class FastembedReranker(TextReranker):
    """A cross-encoder by its fastembed name."""

    def __init__(self, model: str) -> None:
        """Raises :class:`BackendError` where the package is not installed."""
        self._model = _FastembedModel("reranker", model, f"{PACKAGE}.rerank.cross_encoder", "TextCrossEncoder")
        self.name = self._model.name

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the model's scores. Raises :class:`BackendError` where the model is unknown or cannot be
        loaded.
        """
        if not self._model.facts or not texts:
            return []
        return [float(score) for score in self._model.loaded().rerank(query, list(texts))]
