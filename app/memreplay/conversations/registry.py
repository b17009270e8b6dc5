"""Which conversations exist, and how the ones a user names are found and loaded."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from memreplay.conversations.formats import Format, detect_format
from memreplay.conversations.formats.locomo import load_locomo
from memreplay.conversations.formats.locomo_mc10 import EvidenceIndex, evidence_index, load_locomo_mc10
from memreplay.conversations.formats.longmemeval import load_longmemeval
from memreplay.conversations.formats.test_conversation import load_test_conversation
from memreplay.conversations.json_files import read_array, read_json, read_lines
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import SILENT, Listener, OnOpened, Warn, printable
from memreplay.errors import DatasetError, UsageError
from memreplay.paths import datasets_folder

_EVIDENCE_NAMES = "locomo10*.json"


def load_file(
    path: Path, format_name: Format, given: EvidenceIndex | None, listener: Listener
) -> Iterator[Conversation]:
    """The conversations of a file of that format, as its loader reads them.

    Raises:
        DatasetError: the file is faulty, and the listener does not keep faults.
    """
    return _LOADERS[format_name](path, given, listener)


def given_evidence(path: Path, listener: Listener) -> EvidenceIndex:
    """The evidence in a file that the user names.

    Raises:
        MemreplayError: it is not there, or no locomo10 file.
    """
    if not path.is_file():
        raise UsageError(f"There is no evidence file {path}.")
    if detect_format(path) != "LoCoMo":
        raise DatasetError(path, "", "is not a locomo10 file", "the evidence in LoCoMo's format")
    return evidence_index([path], listener)


def _test_conversation(path: Path, _: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    yield load_test_conversation(path, path.stem, listener)


def _locomo(path: Path, _: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    return load_locomo(path, path.stem, listener)


def _mc10_lines(path: Path, given: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    evidence = _evidence_for(path, given, listener)
    return load_locomo_mc10(read_lines(path, listener), path.stem, evidence, listener)


def _mc10_array(path: Path, given: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    evidence = _evidence_for(path, given, listener)
    return load_locomo_mc10(read_array(path, listener), path.stem, evidence, listener)


def _longmemeval_lines(path: Path, _: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    return load_longmemeval(lambda reader: read_lines(path, reader), path.stem, listener)


def _longmemeval_array(path: Path, _: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    return load_longmemeval(lambda reader: read_array(path, reader), path.stem, listener)


_LOADERS: dict[Format, Callable[[Path, EvidenceIndex | None, Listener], Iterator[Conversation]]] = {
    "TestConversation": _test_conversation,
    "LoCoMo": _locomo,
    "LoCoMo-MC10 lines": _mc10_lines,
    "LoCoMo-MC10 array": _mc10_array,
    "LongMemEval lines": _longmemeval_lines,
    "LongMemEval array": _longmemeval_array,
}


def _evidence_for(path: Path, given: EvidenceIndex | None, listener: Listener) -> EvidenceIndex:
    """The given evidence, else that of the locomo10 files beside the rows, if any.

    What is wrong with the evidence file is no fault of the rows: a faulty one ends the reading.
    """
    if given is not None:
        return given
    beside = (other for other in sorted(path.parent.glob(_EVIDENCE_NAMES)) if other != path)
    return evidence_index((other for other in beside if _is_locomo(other)), Listener(warn=listener.warn))


def _is_locomo(path: Path) -> bool:
    try:
        return detect_format(path) == "LoCoMo"
    except DatasetError:
        return False


_SUFFIXES = (".json", ".jsonl")
_SCHEMA_SUFFIX = ".schema.json"
_PYTHON_DATA = "data"
_PYTHON_DATASET = re.compile(r"\.py:[^/\\]+$")
_LONG_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset that lies in the datasets folder; ``id`` is its file's stem. ``format`` is None if unreadable."""

    id: str
    path: Path
    format: Format | None
    description: str


def shipped_datasets() -> list[DatasetEntry]:
    """What the datasets folder holds, by id. Long files are recognised and not read through."""
    return sorted(map(_entry, _dataset_files(datasets_folder())), key=lambda entry: entry.id)


def load(
    specs: Sequence[str],
    evidence: Path | None = None,
    on_warning: Warn = SILENT.warn,
    on_opened: OnOpened = SILENT.opened,
) -> Iterator[Conversation]:
    """The conversations that the specs name, in their order; the shipped ones where there is no spec.

    A spec is the id of a shipped dataset, a glob over those ids, or the path of a file or folder. Specs that
    name nothing are refused at once; files are read as the iterator advances. ``evidence`` is a locomo10 file for
    LoCoMo-MC10 rows; without it one that lies beside them is used. ``on_opened`` may watch how far the reading of a
    file has come.

    Published datasets share conversations (LoCoMo and LoCoMo-MC10 do). An id that another file of the run holds
    already, with other content, is put behind the name of its dataset: ``locomo_mc10.conv-26``. A conversation that
    was written for this program, by contrast, must have an id of its own.
    """
    listener = Listener(warn=on_warning, opened=on_opened)
    paths = named_files(specs)
    given = None if evidence is None else given_evidence(evidence, listener)
    return _unique(paths, given, listener)


def named_files(specs: Sequence[str]) -> list[Path]:
    """The files that the specs name, each once; all that are shipped where there is no spec.

    Raises:
        UsageError: a spec names nothing.
    """
    return list(dict.fromkeys(path for spec in specs or ("*",) for path in _paths_of(spec)))


def _unique(paths: Sequence[Path], given: EvidenceIndex | None, listener: Listener) -> Iterator[Conversation]:
    seen: dict[str, tuple[bytes, Path]] = {}
    for path in paths:
        format_name = detect_format(path)
        for conversation in load_file(path, format_name, given, listener):
            digest = _digest(conversation)
            chosen = conversation
            if conversation.id in seen:
                earlier, its_path = seen[conversation.id]
                if earlier == digest:
                    continue
                chosen = conversation.model_copy(update={"id": f"{conversation.dataset}.{conversation.id}"})
                if format_name == "TestConversation" or chosen.id in seen:
                    raise _held_twice(conversation, path, its_path)
            seen[chosen.id] = (digest, path)
            yield chosen


def _digest(conversation: Conversation) -> bytes:
    content = conversation.model_dump_json(exclude={"dataset"}).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


def _held_twice(conversation: Conversation, path: Path, other: Path) -> DatasetError:
    return DatasetError(
        path,
        "",
        f'holds conversation "{printable(conversation.id)}", and so does {other}, with other content',
        "every conversation of a run to have an id of its own",
    )


def _paths_of(spec: str) -> list[Path]:
    """The files that a spec names."""
    if _PYTHON_DATASET.search(spec):
        raise UsageError(f'"{spec}" names a Python dataset: it holds tests, and no conversation.')
    files_by_id = _files_by_id()
    if spec in files_by_id:
        return files_by_id[spec]
    path = Path(spec)
    try:
        if path.is_file():
            return [path]
        if spec and path.is_dir():
            return _files_in(path)
    except OSError as error:
        raise UsageError(f'"{spec}" cannot be looked up: {error.strerror}.') from None
    if any(char in spec for char in "*?["):
        return _matching(spec, files_by_id)
    raise UsageError(_not_found(spec, sorted(files_by_id)))


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


def _files_in(folder: Path) -> list[Path]:
    found = _dataset_files(folder)
    if not found:
        raise UsageError(f"The folder {folder} holds no dataset file ({' or '.join(_SUFFIXES)}).")
    return found


def _dataset_files(folder: Path) -> list[Path]:
    """Files below the folder that may be datasets, by path.

    Hidden ones, JSON Schemas and what the shipped Python datasets read are passed over.
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
        format_name = detect_format(path)
        return DatasetEntry(path.stem, path, format_name, _description(path, format_name))
    except DatasetError as error:
        return DatasetEntry(path.stem, path, None, f"cannot be read: {error.problem}")


def _description(path: Path, format_name: Format) -> str:
    size = path.stat().st_size
    if format_name != "TestConversation" or size > _LONG_FILE_BYTES:
        return f"{format_name.partition(' ')[0]}, {size / 1e6:.1f} MB"
    written = read_json(path)
    turns, questions = written.get("turns"), written.get("recallQuestions")
    if not isinstance(turns, list) or not isinstance(questions, list):
        return "a TestConversation that is not complete"
    tags = ", ".join(map(str, written.get("tags") or ()))
    facts = (f"{len(turns)} turns", f"{len(questions)} questions", str(written.get("language") or ""), tags)
    return " · ".join(fact for fact in facts if fact)
