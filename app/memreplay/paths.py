"""Locations of datasets, recordings, caches and the config file; nothing here creates a folder.

In a clone (the folder above ``app/`` has a ``pyproject.toml``) datasets and recordings are those of the clone.
An installed package contains datasets and the demo; its recordings go to the user's data folder.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from platformdirs import user_cache_path, user_config_path, user_data_path

APPLICATION = "memreplay"

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED_DATA = _PACKAGE / "_data"


def clone_folder() -> Path | None:
    """Return the root of the clone that this code runs from; None for an installed package."""
    root = _PACKAGE.parents[1]
    return root if _PACKAGE.parent.name == "app" and (root / "pyproject.toml").is_file() else None


def datasets_folder() -> Path:
    return (clone_folder() or _PACKAGED_DATA) / "datasets"


def recordings_folder() -> Path:
    return (clone_folder() or user_data_path(APPLICATION, appauthor=False)) / "recordings"


def notes_folder() -> Path:
    """Return the folder for bookmarks of recordings that cannot be written."""
    return user_data_path(APPLICATION, appauthor=False) / "notes"


def demo_recording() -> Path:
    """Return the demo that is opened first."""
    return _shipped_recordings() / "demo.sqlite3"


def demo_recordings() -> list[Path]:
    """Return the shipped recordings: the demo, and the stories."""
    stories = sorted((_shipped_recordings() / "demos").glob("*.sqlite3"))
    return [path for path in (demo_recording(), *stories) if path.is_file()]


def _shipped_recordings() -> Path:
    return (clone_folder() or _PACKAGED_DATA) / "recordings"


def cache_folder() -> Path:
    """Caches of replies, vectors and token counts; follows ``XDG_CACHE_HOME``."""
    return user_cache_path(APPLICATION, appauthor=False)


def vectors_file() -> Path:
    """The cache of vectors, by embedder and text."""
    return cache_folder() / "vectors.sqlite3"


def config_file() -> Path:
    """Return the user's config file, which need not exist."""
    return user_config_path(APPLICATION, appauthor=False) / "config.toml"


def theme_file() -> Path:
    """Return the theme that was picked on the screen last."""
    return user_data_path(APPLICATION, appauthor=False) / "theme.json"


def trusted_projects_file() -> Path:
    """Return the settings of projects that the user has allowed when asked."""
    return user_data_path(APPLICATION, appauthor=False) / "trusted_projects.json"


def recording_files() -> list[Path]:
    """Return the shipped demos, then the user's recordings, newest first."""
    folder = recordings_folder()
    demos = demo_recordings()
    shipped = {path.resolve() for path in demos}
    own = [path for path in folder.glob("*.sqlite3") if path.resolve() not in shipped] if folder.is_dir() else []
    newest_first = sorted(own, key=lambda path: path.stat().st_mtime, reverse=True)
    return [path for path in (*demos, *newest_first) if path.is_file()]


def new_recording_path() -> Path:
    """Named by the time of its start, to the millisecond."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return recordings_folder() / f"{stamp}.sqlite3"
