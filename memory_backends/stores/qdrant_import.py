"""Imports of qdrant_client what an embedded store uses, and leaves the rest to whoever asks for it.

``import qdrant_client`` takes as long as the whole run of a short conversation: it loads the clients of servers
over HTTP and gRPC, and builds a validator for each of 500 models. An embedded store uses a dozen of them.
:func:`embedded_client` postpones all that. What is postponed happens at its first use, in the same process:
``from qdrant_client import QdrantClient`` gives the complete client, before and after.
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

_MESSAGES = (
    "points_pb2",
    "collections_pb2",
    "qdrant_common_pb2",
    "snapshots_service_pb2",
    "json_with_int_pb2",
    "qdrant_pb2",
)

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
    grpc = _postpone("qdrant_client.grpc")
    for messages in _MESSAGES:
        # Type aliases name these classes; only the stubs of services beside them load gRPC.
        module = vars(import_module(f"qdrant_client.grpc.{messages}"))
        vars(grpc).update({name: value for name, value in module.items() if not name.startswith("_")})
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

    def first_use(attribute: str) -> Any:
        with _importing:
            defined = vars(package)
            # A module of the package is found by the import that asks for it.
            if "__getattr__" in defined and find_spec(f"{name}.{attribute}") is None:
                del defined["__getattr__"]
                run(package)
            if attribute in defined:
                return defined[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    vars(package)["__getattr__"] = first_use
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        vars(sys.modules[parent])[child] = package
    return package


@contextmanager
def _validators_at_first_use() -> Iterator[None]:
    """Let Pydantic build the validator of a model that is declared here when the model is first used."""
    from pydantic import BaseModel

    usual = BaseModel.model_config
    BaseModel.model_config = {**usual, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = usual
