"""fastembed, by a stand-in for the package: its models cannot be fetched in a test."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

from memory_backends.base import BackendError
from memory_backends.retrieval.fastembed_models import FastembedEmbedder


class TextEmbedding:
    """What fastembed's class of this name does, as far as it is used."""

    def __init__(self, model_name: str) -> None:
        if model_name == "unfetchable":
            raise ValueError("could not be fetched")

    @staticmethod
    def list_supported_models():
        return [{"model": "BAAI/bge-small-en-v1.5", "dim": 3}, {"model": "unfetchable", "dim": 3}]

    def embed(self, texts):
        return (np.array([len(text), 0.0, 2.0]) for text in texts)


@pytest.fixture
def package(monkeypatch):
    module = ModuleType("fastembed")
    module.__spec__ = ModuleSpec("fastembed", None)
    module.TextEmbedding = TextEmbedding
    monkeypatch.setitem(sys.modules, "fastembed", module)


def test_vectors_are_of_unit_length_and_of_the_stated_dimension(package):
    embedder = FastembedEmbedder("baai/bge-small-en-v1.5")
    vectors = embedder.embed(["a cat", "a longer text"])
    assert vectors.shape == (2, embedder.dimension) == (2, 3)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert embedder.embed([]).shape == (0, 3)
    assert embedder.name == "fastembed:baai/bge-small-en-v1.5"


def test_an_unknown_model_is_reported(package):
    with pytest.raises(BackendError, match="knows no model 'nobody/nothing'"):
        FastembedEmbedder("nobody/nothing").dimension  # noqa: B018


def test_a_model_that_cannot_be_loaded_is_reported(package):
    with pytest.raises(BackendError, match="fastembed:unfetchable cannot be loaded: ValueError"):
        FastembedEmbedder("unfetchable").embed(["a cat"])


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("memory_backends.retrieval.fastembed_models.PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(BackendError, match=r"pip install 'memreplay\[fastembed\]'"):
        FastembedEmbedder("BAAI/bge-small-en-v1.5")
