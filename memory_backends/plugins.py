"""Finding somebody's own memory: ``package.module:Class``, or a name that an installed package has announced.

A package announces its memories in the entry-point group ``memreplay.backends``.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_backends.errors import BackendError

if TYPE_CHECKING:
    from memory_backends.base import Exchange
    from memory_backends.plugged import PluggedBackend

GROUP = "memreplay.backends"

_SPELLING = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")


class PluginError(BackendError):
    """A memory that cannot be plugged in: not found, of the wrong shape, or failing as it is loaded."""


def announced() -> dict[str, EntryPoint]:
    """The memories that installed packages have announced, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def is_plugin(name: str) -> bool:
    """Whether a name is spelled ``package.module:Class``, or was announced."""
    return _SPELLING.fullmatch(name) is not None or name in announced()


def load_plugin(name: str) -> type:
    """The class of that name.

    The current folder is looked in too, after all that is installed. Raises :class:`PluginError`.
    """
    entry = announced().get(name)
    spelled = _SPELLING.fullmatch(entry.value.partition("[")[0].strip() if entry else name)
    if spelled is None:
        raise PluginError(f"{name!r} is no memory: expected package.module:Class")
    found = _attribute(name, _module(name, spelled["module"]), spelled["name"])
    if not inspect.isclass(found):
        raise PluginError(f"{name}: {spelled['name']} is not a class")
    from memory_backends.plugged import missing_methods  # slow to import, and most runs plug nothing in

    faults = missing_methods(found)
    if faults:
        raise PluginError(f"{name} is not a memory backend: {', '.join(faults)}")
    _arguments_wanted(name, found)
    return found


def create_plugin(name: str, resources: object) -> PluggedBackend:
    """A new memory of that class, given the resources where its constructor has one argument without a default.

    Raises :class:`PluginError`.
    """
    from memory_backends.plugged import PluggedBackend

    found = load_plugin(name)
    given = (resources,) if _arguments_wanted(name, found) else ()
    try:
        made = found(*given)
    except Exception as error:
        raise PluginError(f"{name} cannot be made: {_told(error)}") from error
    return PluggedBackend(name, made)


def plugin_texts(name: str, exchanges: Sequence[Exchange]) -> list[str]:
    """The texts that a memory says it will embed of a conversation.

    None where it says nothing, and where its ``texts_to_embed`` fails or gives something else than texts: then each
    is embedded when the memory asks for it, and what is wrong with the memory shows there.
    """
    told: Callable[[Sequence[Exchange]], Iterable[object]] | None = getattr(
        load_plugin(name), "texts_to_embed", None
    )
    try:
        texts = list(told(exchanges)) if told else []
    except Exception:
        return []
    return [text for text in texts if isinstance(text, str)]


def _module(name: str, path: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(error.name + ".")):
            raise PluginError(
                f"{name}: there is no module {error.name!r} here or among what is installed"
            ) from None
        raise PluginError(f"{name} cannot be imported: {_told(error)}") from error
    except (Exception, SystemExit) as error:
        raise PluginError(f"{name} cannot be imported: {_told(error)}") from error


def _attribute(name: str, module: Any, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise PluginError(f"{name}: there is no {path} in {module.__name__}")
        found = getattr(found, part)
    return found


def _arguments_wanted(name: str, found: type) -> int:
    """How many arguments its constructor must be given: none, or one."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return 0
    named = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    wanted = [parameter for parameter in named if parameter.default is parameter.empty]
    if len(wanted) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in wanted):
        raise PluginError(
            f"{name} cannot be made: its __init__ wants {', '.join(parameter.name for parameter in wanted)}; "
            "expected nothing, or one argument for the resources"
        )
    return len(wanted)


def _told(error: BaseException) -> str:
    """The error with the place in the author's own file where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}{place}" if said else f"{type(error).__name__}{place}"
