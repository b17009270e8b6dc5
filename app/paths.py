"""Where things are on this machine.

In a clone (the folder above ``app/`` has a ``pyproject.toml``) datasets and recordings are those of the clone.
In an installed package the datasets and the demo lie inside it, and recordings go to the user's data folder.
Nothing here creates a folder.
"""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_path, user_config_path, user_data_path

APPLICATION = "memreplay"

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED_DATA = _PACKAGE / "_data"


def clone_folder() -> Path | None:
    """The root of the clone that this code runs from, None where it is an installed package."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() else None


def datasets_folder() -> Path:
    """The shipped datasets."""
    return (clone_folder() or _PACKAGED_DATA) / "datasets"


def recordings_folder() -> Path:
    """Where new recordings are saved."""
    return (clone_folder() or user_data_path(APPLICATION, appauthor=False)) / "recordings"


def demo_recording() -> Path:
    """The recording that is shipped with the program."""
    return (clone_folder() or _PACKAGED_DATA) / "recordings" / "demo.sqlite3"


def cache_folder() -> Path:
    """Replies and vectors worth keeping between runs; follows ``XDG_CACHE_HOME``."""
    return user_cache_path(APPLICATION, appauthor=False)


def config_file() -> Path:
    """The user's settings; it may be absent."""
    return user_config_path(APPLICATION, appauthor=False) / "config.toml"
