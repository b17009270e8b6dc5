"""Imports of qdrant_client what an embedded store uses, and postpones the rest to its first use.

``import qdrant_client`` takes 0.58 s of CPU: it loads the clients of servers, and builds validators for 340
models, of which an embedded store uses a dozen. :func:`embedded_client` takes 0.21 s. What it postpones
happens at its first use, in the same process: ``from qdrant_client import QdrantClient`` gives the complete
client, before and after.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal

_KNOWN = "1.20."
"""The releases whose packages were looked at; any other is imported as it is."""

_importing = RLock()


def embedded_client() -> QdrantLocal:
    """A new and empty store in memory. Slow at first."""
    with _importing:
        if "qdrant_client" not in sys.modules and version("qdrant-client").startswith(_KNOWN):
            _import_in_part()
    from qdrant_client.local.qdrant_local import QdrantLocal

    return QdrantLocal(":memory:")


def _import_in_part() -> None:
    _postpone("qdrant_client")
    http = _postpone("qdrant_client.http")
    with _validators_at_first_use():
        # The package itself gives this module the name of the package above it.
        vars(http)["models"] = import_module("qdrant_client.http.models.models")


def _postpone(name: str) -> ModuleType:
    """A package whose ``__init__`` runs when something that it defines is first asked for.

    Its modules can be imported before, which ``importlib.util.LazyLoader`` does not allow: it runs a package as
    soon as the import of one of its modules looks up ``__path__``.
    """
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None
    package, run = module_from_spec(spec), spec.loader.exec_module
    defined, has_begun = vars(package), False

    def first_use(attribute: str) -> Any:
        nonlocal has_begun
        # Other threads wait until the package is complete, as they would for the lock of its import.
        with _importing:
            # A module of the package is found by the import that asks for it.
            if not has_begun and find_spec(f"{name}.{attribute}") is None:
                has_begun = True
                try:
                    run(package)
                except BaseException:
                    has_begun = False
                    raise
            if attribute in defined:
                return defined[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    defined["__getattr__"] = first_use
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        vars(sys.modules[parent])[child] = package
    return package


@contextmanager
def _validators_at_first_use() -> Iterator[None]:
    """Let Pydantic build the validator of a model declared here when the model is first used. Saves 0.03 s."""
    from pydantic import BaseModel

    usual = BaseModel.model_config
    BaseModel.model_config = {**usual, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = usual
