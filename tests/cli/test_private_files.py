"""What was said stays its owner's: recordings and caches can be read by nobody else, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_backends.retrieval.disk_cache import DiskCache
from memreplay.llm.model import Reply
from memreplay.llm.tokens import KeptCounts
from memreplay.paths import demo_recording
from memreplay.recording.annotations import annotations_of
from memreplay.recording.branches import opened_for_branches
from memreplay.recording.connection import connect, open_exclusively
from memreplay.recording.reader import Recording
from memreplay.recording.reply_store import SqliteReplyCache
from memreplay.timeline.annotations import Bookmark
from tests.cli.conftest import RunCli
from tests.stubs import noting_memory
from tests.stubs.openai_server import OpenAIServer, answer


@pytest.fixture(params=[0o022, 0o000], ids=["umask 022", "umask 000"])
def open_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_umask: None) -> Path:
    """A home in which nothing is yet."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    recordings = home / "xdg_data_home" / "memreplay" / "recordings"
    # Those of a clone are in the clone.
    monkeypatch.setattr("memreplay.recording.branches.recordings_folder", lambda: recordings)
    return home


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _open_to_others(folder: Path) -> list[str]:
    """What is in a folder with another mode than its owner's alone."""
    found = [(path, _mode(path)) for path in sorted(folder.rglob("*")) if not path.is_symlink()]
    return [f"{path} {mode:o}" for path, mode in found if mode != (0o700 if path.is_dir() else 0o600)]


@pytest.mark.usefixtures("embedded_by_words")
def test_all_that_a_run_leaves_in_caches_and_recordings_is_its_owners(
    run_cli: RunCli, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv(noting_memory.FILE, str(machine / "notes"))
    recording = machine / "runs" / "mine" / "r.sqlite3"
    with OpenAIServer([answer("Nimbus Labs", prompt_tokens=3, completion_tokens=1)]) as server:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "hybrid",
            "--backend", "rag", "--backend", "tests.stubs.noting_memory:Noting",
            "--model", "openai/stub", "--api-base", server.url, "--recording", recording,
            "--output", machine / "r.json",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    KeptCounts(machine / "xdg_cache_home" / "memreplay" / "words.counts").of("a line", lambda: 2)
    caches = {path.name for path in (machine / "xdg_cache_home" / "memreplay").iterdir()}
    assert {"replies.sqlite3", "vectors.sqlite3", "memories"} <= caches
    assert list((machine / "xdg_cache_home" / "memreplay" / "memories").glob("*/memory/*"))
    for folder in (machine / "xdg_cache_home", machine / "runs"):
        assert _mode(folder) == 0o700 and _open_to_others(folder) == []
    umask = os.umask(0)
    os.umask(umask)
    assert _mode(machine / "r.json") == 0o666 & ~umask, "results are at a place that the user named"


def test_recordings_in_the_folder_of_the_data_and_copies_of_demos_are_their_owners(machine: Path) -> None:
    with closing(Recording.open(demo_recording())) as recording:
        run = recording.run().id
    opened_for_branches(demo_recording(), run)
    assert list((machine / "xdg_data_home" / "memreplay" / "recordings").glob("*.sqlite3"))
    assert _mode(machine / "xdg_data_home") == 0o700 and _open_to_others(machine / "xdg_data_home") == []


def test_journals_and_locks_are_their_owners_while_they_are_there(machine: Path) -> None:
    path = machine / "runs" / "r.sqlite3"
    with open_exclusively(path) as (db, lock):
        db.execute("create temp table t (x)")
        names = {each.name for each in path.parent.iterdir()}
        assert {"r.sqlite3", "r.sqlite3-wal", "r.sqlite3-shm", ".r.sqlite3.lock"} <= names
        assert _open_to_others(path.parent) == []
    db.close()
    lock.release()


def test_caches_are_their_owners_before_anything_is_in_them(machine: Path) -> None:
    folder = machine / "caches"
    vectors, replies = DiskCache(folder / "v.sqlite3", "vector"), SqliteReplyCache(folder / "r.sqlite3")
    counts = KeptCounts(folder / "c.counts")
    vectors.write("m", {b"key": b"value"})
    replies.put("key", Reply(text="hello"))
    counts.of("a line", lambda: 2)
    counts.write()
    assert len(list(folder.iterdir())) >= 7, "files and journals"
    assert _mode(folder) == 0o700 and _open_to_others(folder) == []
    vectors.close()
    replies.close()


def test_bookmarks_kept_elsewhere_are_their_owners(machine: Path) -> None:
    with closing(Recording.open(demo_recording())) as recording:
        run = recording.run().id
        conversation = recording.conversation_ids(run)[0]
    kept = annotations_of(demo_recording(), run, conversation, shipped=[demo_recording()])
    kept.set_bookmark(Bookmark(mark="a", turn=1))
    assert list((machine / "xdg_data_home" / "memreplay" / "notes").glob("*.notes.json"))
    assert _open_to_others(machine / "xdg_data_home") == []


def test_a_file_and_a_folder_that_are_there_keep_their_modes(machine: Path) -> None:
    path = machine / "shared" / "r.sqlite3"
    path.parent.mkdir()
    path.parent.chmod(0o750)
    path.touch()
    path.chmod(0o640)
    connect(path).close()
    assert path.stat().st_size and (_mode(path), _mode(path.parent)) == (0o640, 0o750)
