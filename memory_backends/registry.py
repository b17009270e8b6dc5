"""The memory architectures by name. A class is imported only when it is needed: naming one is cheap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memory_backends.base import BackendError
from memory_backends.plugins import adapted, announced, create_plugin, is_plugin, load_plugin

if TYPE_CHECKING:
    from memory_backends.base import Exchange, MemoryBackend
    from memory_backends.resources import Resources

Evidence = Mapping[str, tuple[str, ...]]
"""Text of a question to the ids of its evidence turns: for the oracle alone."""

_CLASSES: Mapping[str, str] = {
    "hybrid": "memory_backends.hybrid.backend:HybridBackend",
    "rag": "memory_backends.rag:RagBackend",
    "rag:keyword": "memory_backends.rag:KeywordRagBackend",
    "rag:fused": "memory_backends.rag:RagBackend",
    "full_context": "memory_backends.full_context:FullContextBackend",
    "closed_book": "memory_backends.controls:ClosedBookBackend",
    "oracle": "memory_backends.controls:OracleBackend",
    "mem0": "memory_backends.adapters.mem0:Mem0Memory",
    "langgraph": "memory_backends.adapters.langgraph:LangGraphMemory",
    "chroma": "memory_backends.adapters.chroma:ChromaMemory",
    "graphiti": "memory_backends.adapters.graphiti:GraphitiMemory",
    "letta": "memory_backends.adapters.letta:LettaMemory",
}
"""Module and class of each name.

Its ``create(name, resources, evidence)`` makes a memory for a conversation. A class without it is adapted like a
plug-in: what it writes is derived from its snapshots.
"""

_ABOUT: Mapping[str, str] = {
    "hybrid": "facts in slots, and excerpts found by meaning and words",
    "rag": "turns found by meaning",
    "rag:keyword": "turns found by words",
    "rag:fused": "turns found by meaning and words together",
    "full_context": "the newest turns that fit; no retrieval",
    "closed_book": "a control: no memory at all",
    "oracle": "a control: the evidence alone",
    "mem0": "facts that a model extracts",
    "langgraph": "LangGraph's store",
    "chroma": "turns in a Chroma collection",
    "graphiti": "a graph of facts with their times",
    "letta": "an agent of a Letta server",
}
"""One line on what each memory keeps or finds."""

_PACKAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mem0": ("mem0", ("mem0",)),
    "langgraph": ("langgraph", ("langgraph",)),
    "chroma": ("chroma", ("chromadb",)),
    "graphiti": ("graphiti", ("graphiti_core", "kuzu")),
}
"""The extra that installs what a memory needs, and the modules of it that must be there."""

_FAMILIES: Mapping[str, str] = {
    "mcp": "memory_backends.adapters.mcp:McpMemory",
    "http-memory": "memory_backends.http_memory:HttpMemory",
}
"""Classes of memories whose names say more than which class it is, by the first word of the name.

They are made from the resources and the whole name, which ``check_name(name)`` reads without connecting.
"""

BACKEND_NAMES = tuple(_CLASSES)


class UnknownBackendError(BackendError):
    """No memory has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no backend named {name!r}; choose from {', '.join(known_backends())}, "
            "your own class as package.module:Class, an MCP server as mcp:COMMAND or mcp:URL,"
            " a service as http-memory:URL, or an agent as http://host/run_turn or openai:URL"
        )


def known_backends() -> tuple[str, ...]:
    """Return names of all memories: ours, then those that installed packages announce."""
    return tuple(dict.fromkeys([*BACKEND_NAMES, *sorted(announced())]))


def about_backend(name: str) -> str:
    """Return one line on a memory; empty for those of other packages."""
    return _ABOUT.get(name, "")


def missing_package(name: str) -> str | None:
    """Return the command that installs what a memory needs; None if nothing is missing. Imports nothing."""
    extra, modules = _PACKAGES.get(name, ("", ()))
    if all(find_spec(module) is not None for module in modules):
        return None
    return f"pip install 'memreplay[{extra}]'"


def check_backend_name(name: str) -> None:
    """Make sure that a memory of this name exists; a plug-in is imported.

    Raises:
        UnknownBackendError: no memory has this name.
        PluginError: the plug-in cannot be loaded.
        BackendError: the name is one of a family, and cannot be read.
    """
    if name in _CLASSES:
        return
    if _family(name):
        backend_class(name).check_name(name)
        return
    if name.partition(":")[0] in _CLASSES or not is_plugin(name):
        raise UnknownBackendError(name)
    load_plugin(name)


def create_backend(name: str, resources: Resources, evidence: Evidence) -> MemoryBackend:
    """Return a new memory for one conversation. Raises what :func:`check_backend_name` does."""
    check_backend_name(name)
    if _family(name):
        return adapted(name, partial(backend_class(name), spelled=name), resources)
    if name not in _CLASSES:
        return create_plugin(name, resources)
    found = backend_class(name)
    if hasattr(found, "create"):
        made: MemoryBackend = found.create(name, resources, evidence)
        return made
    return adapted(name, found, resources)


def settings_taken(name: str) -> frozenset[str]:
    """Settings that a memory follows, among those that not every memory does. Raises :class:`PluginError`."""
    return frozenset(getattr(backend_class(name), "takes", ()))


def texts_to_embed(names: Sequence[str], exchanges: Sequence[Exchange]) -> list[str]:
    """Return what memories of these names say that they will embed of a conversation, each text once.

    A memory whose ``texts_to_embed`` fails or returns anything but texts has none: then its texts are embedded when
    it asks for them, and its error shows there.
    """
    classes = [backend_class(name) for name in names if name in _CLASSES or _family(name) or is_plugin(name)]
    return list(dict.fromkeys(text for each in dict.fromkeys(classes) for text in _texts_of(each, exchanges)))


def _texts_of(backend: Any, exchanges: Sequence[Exchange]) -> list[str]:
    method: Callable[[Sequence[Exchange]], Iterable[object]] | None = getattr(backend, "texts_to_embed", None)
    try:
        return [text for text in method(exchanges) if isinstance(text, str)] if method else []
    except Exception:
        return []


def backend_class(name: str) -> Any:
    """Return the class behind a name; a plug-in is imported. Raises :class:`PluginError`."""
    place = _family(name) or _CLASSES.get(name)
    if place is None:
        return load_plugin(name)
    module, _, class_name = place.partition(":")
    return getattr(import_module(module), class_name)


def works_elsewhere(name: str) -> bool:
    """Return whether a memory works in a server or a process of its own, which it starts or calls when it is
    opened.
    """
    return bool(getattr(backend_class(name), "works_elsewhere", False))


def contacts_a_server(name: str) -> bool:
    """Return whether a memory's name is the address of a server."""
    contacts: Callable[[str], bool] | None = getattr(backend_class(name), "contacts_a_server", None)
    return contacts is not None and contacts(name)


def _family(name: str) -> str | None:
    """Return where the class of a family's member is; None if the name has no family."""
    first = re.match(r"[\w-]+(?=[\[:])", name)
    return _FAMILIES.get(first[0]) if first else None
