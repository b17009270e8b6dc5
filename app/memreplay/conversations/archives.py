"""Open ZIP archives, which is what ChatGPT, Claude and others send: their data files are unpacked for reading.

Nothing that an archive says decides where a file is written, or how much: names are reduced to their last part, and
sizes are counted while files are unpacked.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO

from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of an archive, and of an empty one."""
_DATA_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".txt", ".md")
_MOST_FILES = 2_000
_MOST_BYTES = 8 << 30
_LARGEST_RATIO = 200
"""Times that a file may be larger than its compressed form: chats shrink to a tenth, seldom to a fiftieth."""
_UNSUSPICIOUS_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20
_UNSAFE = re.compile(r"[^\w.\- ]+")


def is_archive(path: Path) -> bool:
    """Return whether a file is a ZIP archive, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(4) in _MAGIC
    except OSError:
        return False


def unpacked(path: Path) -> list[Path]:
    """Return the data files of an archive, unpacked into a temporary folder that is removed at the end.

    Raises:
        DatasetError: the archive is damaged, encrypted or too large, or holds no data file.
    """
    return list(_unpacked(path.resolve(), path.stat().st_mtime_ns, path.name))


@cache
def _unpacked(path: Path, _modified: int, name: str) -> tuple[Path, ...]:
    folder = Path(tempfile.mkdtemp(prefix="memreplay-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / (_UNSAFE.sub("_", name) or "archive")
    target.mkdir()
    place = Place(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(_extract(archive, target, place))
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        reason = "it is encrypted" if "password" in str(error) or "encrypted" in str(error) else str(error)
        raise place.error(f"cannot be unpacked ({reason})", "a ZIP archive without a password") from None


def _extract(archive: zipfile.ZipFile, target: Path, place: Place) -> list[Path]:
    members = [each for each in archive.infolist() if _holds_data(each)]
    if not members:
        names = ", ".join(sorted(archive.namelist())[:5]) or "nothing"
        raise place.error(
            f"holds no data file (it has {names})", f"a file that ends in {', '.join(_DATA_SUFFIXES)}"
        )
    if len(members) > _MOST_FILES:
        raise place.error(f"holds {len(members):,} data files", f"at most {_MOST_FILES:,}: unpack what is needed")
    room = min(_MOST_BYTES, shutil.disk_usage(target).free // 2)
    found: list[Path] = []
    for member in members:
        path = _free_name(target, PurePosixPath(member.filename).name)
        with archive.open(member) as packed, path.open("wb") as file:
            room -= _copy(packed, file, member, room, place)
        found.append(path)
    return found


def _holds_data(member: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(member.filename)
    is_hidden = any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)
    return not member.is_dir() and not is_hidden and path.suffix.lower() in _DATA_SUFFIXES


def _free_name(folder: Path, name: str) -> Path:
    safe = _UNSAFE.sub("_", name)
    path, count = folder / safe, 1
    while path.exists():
        count += 1
        path = folder / f"{Path(safe).stem}-{count}{Path(safe).suffix}"
    return path


def _copy(packed: IO[bytes], file: IO[bytes], member: zipfile.ZipInfo, room: int, place: Place) -> int:
    """Copy a member and return its size, which is counted while it is copied: a header can say anything."""
    count = 0
    while chunk := packed.read(_CHUNK_BYTES):
        count += len(chunk)
        if count > room:
            raise _too_large(place, "is too large to be unpacked here")
        if count > _UNSUSPICIOUS_BYTES and count > _LARGEST_RATIO * max(1, member.compress_size):
            raise _too_large(place, f"holds a file that grows more than {_LARGEST_RATIO} times")
        file.write(chunk)
    return count


def _too_large(place: Place, problem: str) -> DatasetError:
    return place.error(problem, "an export of chats: unpack it and name the file with the chats")
