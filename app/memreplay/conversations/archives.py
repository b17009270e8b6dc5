"""Open ZIP archives, which is what ChatGPT, Claude and others send, and gzip files: what they hold is unpacked.

Nothing that an archive says decides where a file is written, or how much: names are reduced to their last part, and
sizes are counted while files are unpacked.
"""

from __future__ import annotations

import atexit
import gzip
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO

from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of an archive, and of an empty one."""
_GZIP = b"\x1f\x8b"
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
    return _begins(path) in _MAGIC


def is_packed(path: Path) -> bool:
    """Return whether a file is a ZIP archive or a gzip file, by its first bytes."""
    return is_archive(path) or _begins(path).startswith(_GZIP)


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""


def unpacked(path: Path) -> list[Path]:
    """Return the data files of an archive, or the one of a gzip file, unpacked into a temporary folder that is
    removed at the end.

    Raises:
        DatasetError: the file is damaged, encrypted or too large, or holds no data file.
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
        if not is_archive(path):
            return (_decompressed(path, target / Path(target.name).stem, place),)
        with zipfile.ZipFile(path) as archive:
            return tuple(_extract(archive, target, place))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        reason = "it is encrypted" if "password" in str(error) or "encrypted" in str(error) else str(error)
        expected = "a whole gzip file, or a whole ZIP archive without a password"
        raise place.error(f"cannot be unpacked ({reason})", expected) from None


def _decompressed(path: Path, target: Path, place: Place) -> Path:
    """Return what a gzip file holds, as a file."""
    with gzip.open(path) as packed, target.open("wb") as file:
        _copy(packed, file, path.stat().st_size, _room(target), place)
    if tarfile.is_tarfile(target):
        raise place.error("is a tar archive", "a packed file of chats: unpack it and name the file with the chats")
    return target


def _room(target: Path) -> int:
    return min(_MOST_BYTES, shutil.disk_usage(target.parent).free // 2)


def _extract(archive: zipfile.ZipFile, target: Path, place: Place) -> list[Path]:
    members = [each for each in archive.infolist() if _holds_data(each)]
    if not members:
        names = ", ".join(sorted(archive.namelist())[:5]) or "nothing"
        raise place.error(
            f"holds no data file (it has {names})", f"a file that ends in {', '.join(_DATA_SUFFIXES)}"
        )
    if len(members) > _MOST_FILES:
        raise place.error(f"holds {len(members):,} data files", f"at most {_MOST_FILES:,}: unpack what is needed")
    room = _room(target)
    found: list[Path] = []
    for member in members:
        path = _free_name(target, PurePosixPath(member.filename).name)
        with archive.open(member) as packed, path.open("wb") as file:
            room -= _copy(packed, file, member.compress_size, room, place)
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


def _copy(packed: IO[bytes] | gzip.GzipFile, file: IO[bytes], packed_bytes: int, room: int, place: Place) -> int:
    """Unpack a file and return its size, which is counted while it is unpacked: a header can say anything."""
    count = 0
    while chunk := packed.read(_CHUNK_BYTES):
        count += len(chunk)
        if count > room:
            raise _too_large(place, "is too large to be unpacked here")
        if count > _UNSUSPICIOUS_BYTES and count > _LARGEST_RATIO * max(1, packed_bytes):
            raise _too_large(place, f"holds a file that grows more than {_LARGEST_RATIO} times")
        file.write(chunk)
    return count


def _too_large(place: Place, problem: str) -> DatasetError:
    return place.error(problem, "an export of chats: unpack it and name the file with the chats")
