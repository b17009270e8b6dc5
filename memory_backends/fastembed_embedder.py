"""Vectors by a model that the optional package fastembed loads, inside this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import BackendError, TextEmbedder
from memory_backends.ranking import unit_vectors

PACKAGE = "fastembed"


class FastembedEmbedder(TextEmbedder):
    """A model by its fastembed name. It is loaded, and where need be fetched, at the first text."""

    def __init__(self, model: str) -> None:
        """Raises :class:`BackendError` where the package is not installed or knows no such model."""
        if find_spec(PACKAGE) is None:
            raise BackendError(
                f"the embedder fastembed:{model} needs a package: pip install 'memreplay[fastembed]'"
            )
        self.name = f"fastembed:{model}"
        self._model_name = model
        self._loading = threading.Lock()
        self._model: Any = None
        self._class: Any = import_module(PACKAGE).TextEmbedding

    @cached_property
    def dimension(self) -> int:
        """As fastembed states it."""
        for known in self._class.list_supported_models():
            if known["model"].casefold() == self._model_name.casefold():
                return int(known["dim"])
        raise BackendError(f"fastembed knows no model {self._model_name!r}")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length. Raises :class:`BackendError` where the model cannot be loaded."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return unit_vectors(np.array(list(self._loaded().embed(list(texts))), dtype=np.float32))

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                try:
                    self._model = self._class(model_name=self._model_name)
                except Exception as error:
                    raise BackendError(f"{self.name} cannot be loaded: {type(error).__name__}: {error}") from error
            return self._model
