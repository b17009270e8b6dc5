"""Python files outside the project, loaded by their path under a private package.

A folder becomes a package with a name of its own in ``sys.modules``, so that its modules can be pickled, import
each other (``from .other import x``, or plainly ``import other``) and never get in the way of an installed module.
Only files that are asked for are executed.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from threading import Lock
from types import CodeType, ModuleType
from typing import Any

_PREFIX = "_memreplay_datasets_"
_loading = Lock()
"""Runs of tests make their datasets in threads, and Python's caches cannot be invalidated by two at once."""


def load_file(path: Path) -> ModuleType:
    """The module of a Python file; loaded once. Raises whatever its code raises."""
    path = path.resolve()
    with _loading:
        package = _package_of(path.parent)
        name = f"{package}.{path.stem}"
        if name not in sys.modules:
            importlib.invalidate_caches()
        return importlib.import_module(name)


def _package_of(folder: Path) -> str:
    name = _PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
        if not any(isinstance(finder, _SiblingFinder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _SiblingFinder())
    return name


class _SiblingFinder:
    """Finds the modules of private packages, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        loader = _SiblingLoader(spec.loader.name, spec.loader.path)
        found = spec_from_loader(name, loader, is_package=spec.submodule_search_locations is not None)
        if found is not None and spec.submodule_search_locations is not None:
            found.submodule_search_locations = list(spec.submodule_search_locations)
        return found


class _SiblingLoader(SourceFileLoader):
    """Executes a module whose plain imports look among its siblings first, and writes no bytecode beside it."""

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.split(".", maxsplit=1)[0]
        folder = Path(sys.modules[package].__path__[0])

        def import_sibling_first(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            if level == 0 and _is_sibling(name, folder):
                return importlib.import_module(f"{package}.{name}")
            return builtins.__import__(name, globals, locals, fromlist or (), level)

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_sibling_first}
        super().exec_module(module)

    def _cache_bytecode(self, source_path: str, cache_path: str, data: CodeType) -> None:
        """A user's folder stays as it is."""


def _is_sibling(name: str, folder: Path) -> bool:
    is_plain = name.isidentifier() and name not in sys.stdlib_module_names
    return is_plain and (folder / f"{name}.py").is_file()
