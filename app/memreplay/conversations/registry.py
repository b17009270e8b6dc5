"""Find and load the conversations that a user names."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from memreplay.conversations.archives import is_archive, is_packed, unpacked
from memreplay.conversations.formats import detect_format, test_conversation
from memreplay.conversations.formats.locomo import EvidenceIndex, read_evidence
from memreplay.conversations.json_files import JSON_SUFFIXES, DatasetFile, read_json
from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import SILENT, LoadCallbacks, OnOpened, OnWarning
from memreplay.errors import DatasetError, UsageError
from memreplay.numbers import counted
from memreplay.paths import datasets_folder
from memreplay.printable import printable

_SUFFIXES = JSON_SUFFIXES
_PERHAPS = (".txt", ".md", ".csv", ".log", ".gz")
"""Files of a folder that are read if their beginning is that of a chat."""
_SCHEMA_SUFFIX = ".schema.json"
_PYTHON_DATA = "data"
_LONG_HISTORIES = "long"
_PYTHON_DATASET = re.compile(r"\.py:[^/\\]+$")
_LONG_FILE_BYTES = 1 << 20
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset in the datasets folder. ``id`` is the file's stem; ``format`` is None if the file is unreadable."""

    id: str
    path: Path
    format: str | None
    description: str


def shipped_datasets() -> list[DatasetEntry]:
    """Return the datasets in the datasets folder, sorted by id. Reads only the beginning of large files."""
    return sorted(map(_entry, _dataset_files(datasets_folder())), key=lambda entry: entry.id)


def default_datasets() -> list[DatasetEntry]:
    """Return the datasets that are run if none is named: the shipped ones, without the long histories.

    These take many times as long as all the others together; they are run as ``long-*``.
    """
    long_histories = datasets_folder() / _LONG_HISTORIES
    return [entry for entry in shipped_datasets() if not entry.path.is_relative_to(long_histories)]


def is_shipped(path: Path) -> bool:
    """Return whether a file stands in the datasets folder."""
    return path.resolve().is_relative_to(datasets_folder().resolve())


def load(
    specs: Sequence[str],
    evidence: Path | None = None,
    on_warning: OnWarning = SILENT.on_warning,
    on_opened: OnOpened = SILENT.on_opened,
    options: LogOptions = DEFAULT_LOG_OPTIONS,
) -> Iterator[Conversation]:
    """Load the conversations that the specs name, in their order; without a spec, the default ones.

    A spec is the id of a shipped dataset, a glob over those ids, the path of a file or folder, or ``-``. One that
    matches nothing is rejected at once; files are read as the iterator advances. ``evidence`` is a locomo10 file
    for LoCoMo-MC10 rows; the default is one in the same folder. ``on_opened`` can monitor the progress of reading.
    ``options`` are for chat logs.

    Published datasets share conversations (LoCoMo and LoCoMo-MC10 do). If another file of the run already has the
    id with different content, the id is prefixed with its dataset: ``locomo_mc10.conv-26``. A TestConversation,
    however, must have a unique id.
    """
    callbacks = LoadCallbacks(on_warning=on_warning, on_opened=on_opened, options=options)
    paths = named_files(specs, on_warning)
    index = None if evidence is None else read_evidence(evidence, callbacks)
    return _unique(paths, index, callbacks)


def size_of(specs: Sequence[str]) -> int:
    """Return the bytes of the files that the specs name, archives as they are.

    Raises:
        UsageError: a spec matches nothing.
    """
    return sum(path.stat().st_size for spec in specs for path in _paths_of(spec, SILENT.on_warning))


def named_files(specs: Sequence[str], on_warning: OnWarning = SILENT.on_warning) -> list[Path]:
    """Return the files that the specs name, without duplicates; without a spec, :func:`default_datasets`.

    Archives are unpacked. Files of a folder or an archive that are passed over are a warning.

    Raises:
        UsageError: a spec matches nothing.
    """
    names = specs or [entry.id for entry in default_datasets()]
    named = (path for spec in names for path in _paths_of(spec, on_warning))
    return list(dict.fromkeys(file for path in named for file in _unpacked(path, on_warning)))


def _unpacked(path: Path, on_warning: OnWarning) -> list[Path]:
    """Return the file, or the files of an archive that have a known format.

    An error of an archive is that of the file that is returned then: it is raised where files are read.
    """
    if not is_packed(path):
        return [path]
    known: list[Path] = []
    errors: list[DatasetError] = []
    try:
        files = unpacked(path)
    except DatasetError:
        return [path]
    for file in files:
        try:
            detect_format(file)
            known.append(file)
        except DatasetError as error:
            errors.append(error)
    if not known:
        telling = next((error for error in errors if "no known format" not in error.problem), errors[0])
        return [Path(telling.path)]
    _say_passed_over(path, [Path(error.path) for error in errors], on_warning)
    return known


_SHOWN_FILES = 5


def _say_passed_over(container: Path, files: Sequence[Path], on_warning: OnWarning) -> None:
    if files:
        names = ", ".join(path.name for path in files[:_SHOWN_FILES]) + (", …" if len(files) > _SHOWN_FILES else "")
        number = "1 file" if len(files) == 1 else f"{len(files):,} files"
        on_warning(
            f"{container}: {number} passed over: {names} (name {'it' if len(files) == 1 else 'one'} to read it)"
        )


def _unique(
    paths: Sequence[Path], evidence: EvidenceIndex | None, callbacks: LoadCallbacks
) -> Iterator[Conversation]:
    seen: dict[str, tuple[bytes, Path]] = {}
    for path in paths:
        known_format, file = detect_format(path)
        for conversation in known_format.load(file, callbacks, evidence):
            digest = _digest(conversation)
            chosen = conversation
            if conversation.id in seen:
                earlier_digest, earlier_path = seen[conversation.id]
                if earlier_digest == digest:
                    continue
                chosen = conversation.model_copy(update={"id": f"{conversation.dataset}.{conversation.id}"})
                if known_format is test_conversation or chosen.id in seen:
                    raise _duplicate_id(conversation, path, earlier_path)
            seen[chosen.id] = (digest, path)
            yield chosen


def _digest(conversation: Conversation) -> bytes:
    content = conversation.model_dump_json(exclude={"dataset"}).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


def _duplicate_id(conversation: Conversation, path: Path, other: Path) -> DatasetError:
    return DatasetError(
        path,
        "",
        f'contains conversation "{printable(conversation.id)}", as does {other} with different content',
        "a unique id for every conversation of a run",
    )


def _paths_of(spec: str, on_warning: OnWarning) -> list[Path]:
    if _PYTHON_DATASET.search(spec):
        raise UsageError(f'"{spec}" names a Python dataset, which has tests and no conversations.')
    if spec == STANDARD_INPUT:
        return [standard_input()]
    files_by_id = _files_by_id()
    if spec in files_by_id:
        return files_by_id[spec]
    path = Path(spec)
    try:
        if path.is_file():
            return [path]
        if spec and path.is_dir():
            return _files_in(path, on_warning)
    except OSError as error:
        raise UsageError(f'"{spec}" cannot be looked up: {error.strerror}.') from None
    if any(char in spec for char in "*?["):
        return _matching(spec, files_by_id)
    raise UsageError(_not_found(spec, sorted(files_by_id)))


@cache
def standard_input() -> Path:
    """Return what stands on standard input, as a file: formats are recognised by a first reading, and loaded by a
    second.

    Raises:
        UsageError: standard input is a terminal.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            f"--dataset {STANDARD_INPUT} reads standard input, which is a terminal: redirect a file into it"
        )
    folder = Path(tempfile.mkdtemp(prefix="memreplay-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _files_by_id() -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in _dataset_files(datasets_folder()):
        files.setdefault(path.stem, []).append(path)
    return files


def _matching(glob: str, files_by_id: dict[str, list[Path]]) -> list[Path]:
    found = [path for name in sorted(files_by_id) if fnmatchcase(name, glob) for path in files_by_id[name]]
    if not found:
        raise UsageError(f'No shipped dataset has an id that matches "{glob}"; there are {_listed(files_by_id)}.')
    return found


def _files_in(folder: Path, on_warning: OnWarning) -> list[Path]:
    """Return the dataset files of a folder that a user names, archives and texts of chats among them."""
    found = set(_dataset_files(folder))
    others = [path for path in _visible_files(folder) if path not in found]
    chats = {path for path in others if is_archive(path) or (path.suffix.lower() in _PERHAPS and _is_chat(path))}
    if not found | chats:
        raise UsageError(f"The folder {folder} holds no dataset file ({' or '.join(_SUFFIXES)}).")
    _say_passed_over(folder, [path for path in others if path not in chats], on_warning)
    return sorted(found | chats)


def _is_chat(path: Path) -> bool:
    try:
        for file in unpacked(path) if is_packed(path) else [path]:
            detect_format(file)
    except DatasetError:
        return False
    return True


def _visible_files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.name.endswith(_SCHEMA_SUFFIX)
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
    )


def _dataset_files(folder: Path) -> list[Path]:
    """Candidate files below the folder, sorted by path.

    Excludes hidden files, JSON Schemas and the data files of the shipped Python datasets.
    """
    read_by_python_datasets = datasets_folder() / _PYTHON_DATA
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES
        and not path.name.endswith(_SCHEMA_SUFFIX)
        and not path.is_relative_to(read_by_python_datasets)
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _not_found(spec: str, ids: Sequence[str]) -> str:
    if "/" in spec or "\\" in spec or spec.endswith(_SUFFIXES):
        if os.path.lexists(spec):
            return f"{spec} is neither a file nor a folder."
        return f"There is no file or folder {spec}."
    close = get_close_matches(spec, ids, n=1)
    hint = f'did you mean "{close[0]}"?' if close else f"there are {_listed(ids)}."
    return f'"{spec}" is neither the id of a shipped dataset nor a file or folder; {hint}'


def _listed(ids: Sequence[str] | dict[str, list[Path]]) -> str:
    return ", ".join(sorted(ids)) or "none"


def _entry(path: Path) -> DatasetEntry:
    try:
        known_format, file = detect_format(path)
        is_short_test_conversation = known_format is test_conversation and path.stat().st_size <= _LONG_FILE_BYTES
        describe = _contents if is_short_test_conversation else _size
        return DatasetEntry(path.stem, path, known_format.NAME, describe(known_format.NAME, file))
    except DatasetError as error:
        return DatasetEntry(path.stem, path, None, f"cannot be read: {error.problem}")


def _size(format_name: str, file: DatasetFile) -> str:
    return f"{format_name}, {file.path.stat().st_size / 1e6:.1f} MB"


def _contents(format_name: str, file: DatasetFile) -> str:
    written = read_json(file.path)
    turns, questions = written.get("turns"), written.get("recallQuestions")
    sessions = written.get("sessions")
    if isinstance(sessions, list) and all(isinstance(session, dict) for session in sessions):
        turns = [turn for session in sessions for turn in session.get("turns") or ()]
    if not isinstance(turns, list) or not isinstance(questions, list):
        return f"an incomplete {format_name}"
    shape = counted(len(sessions), "session") if isinstance(sessions, list) else ""
    language = str(written.get("language") or "")
    facts = (shape, counted(len(turns), "turn"), counted(len(questions), "question"), language)
    return " · ".join(fact for fact in facts if fact)
