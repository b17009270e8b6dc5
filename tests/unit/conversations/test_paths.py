"""Where things are."""

from __future__ import annotations

from pathlib import Path

import pytest

from memreplay import paths


def test_in_a_clone_datasets_and_recordings_are_those_of_the_clone() -> None:
    root = Path(paths.__file__).parents[2]
    assert paths.datasets_folder() == root / "datasets"
    assert paths.recordings_folder() == root / "recordings"
    assert paths.demo_recording() == root / "recordings" / "demo.sqlite3"


def test_in_an_installed_package_they_lie_inside_it_and_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "clone_folder", lambda: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    inside = Path(paths.__file__).parent / "_data"
    assert paths.datasets_folder() == inside / "datasets"
    assert paths.demo_recording() == inside / "recordings" / "demo.sqlite3"
    assert paths.recordings_folder() == tmp_path / "memreplay" / "recordings"


def test_the_cache_follows_its_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert paths.cache_folder() == tmp_path / "elsewhere" / "memreplay"
    assert not paths.cache_folder().exists()


def test_the_config_file_lies_in_the_users_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert paths.config_file() == tmp_path / "memreplay" / "config.toml"
