"""The settings of a project: ``memreplay.toml``, or ``[tool.memreplay]`` in ``pyproject.toml``.

The nearest file above the working directory counts, so it may come with a repository that somebody else wrote.
:mod:`memreplay.trust` says what it may choose by itself; the rest needs the user's trust in the project.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_backends.private_files import make_private_folder
from memreplay.errors import UsageError
from memreplay.files import write_whole
from memreplay.paths import trusted_projects_file
from memreplay.terminal import confirm, has_terminal
from memreplay.trust import Reach, in_words, reaches

_PROJECT_FILE, _PYPROJECT, _TABLE = "memreplay.toml", "pyproject.toml", "memreplay"


def project_file() -> Path | None:
    """Return the settings of the project that the working directory is in: the nearest file above it that has
    any.
    """
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
    """Return the settings of a project file, as they are written.

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
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a usable config file: {error}") from None


def refuse_distrusted(
    path: Path, values: Mapping[str, Any], own: Mapping[str, Any], trusted: Sequence[str], user_file: Path
) -> None:
    """Raise UsageError if the settings that count from a project file need a trust that the user has not given.

    ``own`` are the values without the project. ``trusted`` are folders, which stand for all projects in them. On a
    terminal the user is asked, and a yes is remembered for just these settings of this project.
    """
    folder = path.parent.resolve()
    if any(folder.is_relative_to(Path(each).expanduser().resolve()) for each in trusted):
        return
    found = reaches(values, own)
    if not found or set(map(str, found)) <= set(_remembered().get(str(folder), ())):
        return
    if has_terminal():
        facts = [f"{path} is a file of the project that you are in. It asks for:", *(f"  {each}" for each in found)]
        if confirm(facts, "Trust this project with these settings, now and later?"):
            _remember(folder, found)
            return
    raise UsageError(
        f"{path}: {in_words(found)}; if you trust this project, add trusted_projects = ['{folder}'] to {user_file}"
        f" or set MEMREPLAY_TRUSTED_PROJECTS={folder}"
    )


def _remember(folder: Path, found: Sequence[Reach]) -> None:
    """Save what a project was trusted with. If that fails, the user is asked again next time."""
    file = trusted_projects_file()
    known = {**_remembered(), str(folder): [str(each) for each in found]}
    with suppress(OSError, UsageError):
        make_private_folder(file.parent)
        write_whole(str(file), json.dumps(known, indent=1))


def _remembered() -> dict[str, list[str]]:
    """Return the settings that each project was trusted with; a file that is missing or damaged trusts none."""
    try:
        known = json.loads(trusted_projects_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
