"""The settings of a project: ``memreplay.toml``, or ``[tool.memreplay]`` in ``pyproject.toml``.

The nearest file above the working directory counts, so it may come with a repository that somebody else wrote. It
may choose among what memreplay ships. What sends prompts and keys to another machine, or runs code, needs the
user's trust in the project.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memreplay.errors import UsageError

_PROJECT_FILE, _PYPROJECT, _TABLE = "memreplay.toml", "pyproject.toml", "memreplay"
_SENT_TO = {
    "api_base": "prompts and the provider's key",
    "redis_url": "conversations",
    "qdrant_url": "conversations and Qdrant's key",
    "cluster": "conversations",
}
"""Settings that are addresses, and what goes there."""

_AGENTS = ("http://", "https://", "openai:")
_URL = re.compile(r"https?://.*", re.IGNORECASE | re.DOTALL)


def project_file() -> Path | None:
    """The settings of the project that the working directory is in: the nearest file above it that has any."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (own := folder / _PROJECT_FILE).is_file():
            return own
        shared = folder / _PYPROJECT
        # A broken pyproject.toml that does not concern memreplay must not stop it.
        with suppress(OSError, UnicodeError):
            if shared.is_file() and f"tool.{_TABLE}" in shared.read_text(encoding="utf-8"):
                return shared
    return None


def settings_in(path: Path) -> dict[str, Any]:
    """The settings of a project file, as they are written.

    Raises:
        UsageError: the file cannot be read.
    """
    values = read_toml(path)
    if path.name == _PYPROJECT:
        tools = values.get("tool", {})
        values = tools.get(_TABLE, {}) if isinstance(tools, dict) else tools
        if not isinstance(values, dict):
            raise UsageError(f"{path}: tool.{_TABLE} is not a table; expected [tool.{_TABLE}] with settings")
    return values


def read_toml(path: Path) -> dict[str, Any]:
    """Raises UsageError for what is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not a usable config file: {error}") from None


def refuse_distrusted(path: Path, values: Mapping[str, Any], trusted: Sequence[str], user_file: Path) -> None:
    """Raise UsageError if the settings that count from a project file need a trust that the user has not given.

    ``trusted`` are folders, which stand for all projects in them.
    """
    folder = path.parent.resolve()
    if any(folder.is_relative_to(Path(each).expanduser().resolve()) for each in trusted):
        return
    for reach in _reaches(values):
        raise UsageError(
            f"{path}: {reach}; if you trust this project, add trusted_projects = ['{folder}'] to {user_file} or set"
            f" MEMREPLAY_TRUSTED_PROJECTS={folder}"
        )


def _reaches(values: Mapping[str, Any]) -> Iterator[str]:
    """What these settings would do beyond choosing among what is shipped."""
    for name, what in _SENT_TO.items():
        value = values.get(name)
        if value and not _stays_here(str(value)):
            yield f"{name} sends {what} to {_host(str(value))}"
    backends = values.get("backend") or ()
    for backend in [backends] if isinstance(backends, str) else backends:
        reach = _reach_of_backend(str(backend))
        if reach:
            yield f"backend {backend} {reach}"


def _reach_of_backend(name: str) -> str | None:
    from memory_backends.registry import known_backends

    if name in known_backends():
        return None
    if not name.lower().startswith(_AGENTS):
        return "runs a command" if name.startswith("mcp") else "runs its code"
    url = _URL.search(name)
    address = url[0] if url else name
    return None if _stays_here(address) else f"sends conversations and the agent's token to {_host(address)}"


def _stays_here(address: str) -> bool:
    """Whether an address is of this machine."""
    from memreplay.llm.catalogue import is_loopback

    return address.partition(":")[0] == "local" or (urlsplit(address).hostname is not None and is_loopback(address))


def _host(address: str) -> str:
    return urlsplit(address).hostname or "another machine"
