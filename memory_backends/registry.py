"""The memory architectures by name. What one is made of is imported when one is made: naming it is cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from memory_backends.base import BackendError
from memory_backends.plugins import announced, create_plugin, is_plugin, load_plugin, plugin_texts

if TYPE_CHECKING:
    from memory_backends.base import Exchange, MemoryBackend
    from memory_backends.resources import Resources

Evidence = Mapping[str, tuple[str, ...]]
"""Text of a question to the ids of its evidence turns: for the oracle alone."""


Maker = Callable[["Resources", Evidence], "MemoryBackend"]


class UnknownBackendError(BackendError):
    """A name that no memory has."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no backend named {name!r}; there are {', '.join(known_backends())}, "
            "your own class as package.module:Class, and an agent as http://host/run_turn"
        )


def known_backends() -> tuple[str, ...]:
    """Names of all memories: ours, then those that installed packages have announced."""
    return tuple(dict.fromkeys([*BACKEND_NAMES, *sorted(announced())]))


def check_backend_name(name: str) -> None:
    """Make sure that there is such a memory; a plugged-in one is imported.

    Raises:
        UnknownBackendError: no memory has this name.
        PluginError: it cannot be plugged in.
    """
    if name in _MAKERS:
        return
    if name.partition(":")[0] in _MAKERS or not is_plugin(name):
        raise UnknownBackendError(name)
    load_plugin(name)


def create_backend(name: str, resources: Resources, evidence: Evidence) -> MemoryBackend:
    """A new memory for one conversation. Raises what :func:`check_backend_name` does."""
    check_backend_name(name)
    make = _MAKERS.get(name)
    return make(resources, evidence) if make else create_plugin(name, resources)


def texts_to_embed(names: Sequence[str], exchanges: Sequence[Exchange]) -> list[str]:
    """What memories of these names will embed of a conversation: to be embedded in one go, ahead of its replay.

    A plugged-in memory that embeds with ``resources.embedder`` may say so with a static method of this name, from
    exchanges to texts. It is asked before the replay and outside of any run, and never has to be complete.
    """
    texts = [exchange.text for exchange in exchanges] if _EMBEDS_EXCHANGES & set(names) else []
    if "hybrid" in names:
        from memory_backends.hybrid.candidates import candidates_of
        from memory_backends.hybrid.verbatim import sentences_in

        texts += [sentence for exchange in exchanges for sentence in sentences_in(exchange)]
        texts += [candidate.content for exchange in exchanges for candidate in candidates_of(exchange)]
    for name in names:
        if name not in _MAKERS and is_plugin(name):
            texts += plugin_texts(name, exchanges)
    return list(dict.fromkeys(texts))


def _hybrid(resources: Resources, evidence: Evidence) -> MemoryBackend:
    from memory_backends.hybrid.backend import HybridBackend

    return HybridBackend(resources)


def _rag(name: str) -> Maker:
    def make(resources: Resources, evidence: Evidence) -> MemoryBackend:
        from memory_backends import rag
        from memory_backends import rag as rag_retrieval

        retrievers: Mapping[str, Callable[[], rag_retrieval.ExchangeRetriever]] = {
            "rag": lambda: rag_retrieval.DenseRetriever(resources.embedder),
            "rag:keyword": rag_retrieval.KeywordRetriever,
            "rag:fused": lambda: rag_retrieval.FusedRetriever(resources.embedder),
        }
        return rag.RagBackend(
            name, resources.qdrant, resources.embedder, resources.count_tokens, resources.clock, retrievers[name]
        )

    return make


def _full_context(resources: Resources, evidence: Evidence) -> MemoryBackend:
    from memory_backends.full_context import FullContextBackend

    return FullContextBackend(resources.redis, resources.count_tokens, resources.ttl_seconds)


def _closed_book(resources: Resources, evidence: Evidence) -> MemoryBackend:
    from memory_backends.controls import ClosedBookBackend

    return ClosedBookBackend()


def _oracle(resources: Resources, evidence: Evidence) -> MemoryBackend:
    from memory_backends.controls import OracleBackend

    return OracleBackend(evidence, resources.count_tokens)


_MAKERS: dict[str, Maker] = {
    "hybrid": _hybrid,
    "rag": _rag("rag"),
    "rag:keyword": _rag("rag:keyword"),
    "rag:fused": _rag("rag:fused"),
    "full_context": _full_context,
    "closed_book": _closed_book,
    "oracle": _oracle,
}

_EMBEDS_EXCHANGES = frozenset({"hybrid", "rag", "rag:fused"})

BACKEND_NAMES = tuple(_MAKERS)
