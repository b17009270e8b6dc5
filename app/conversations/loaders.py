"""The loader of each format, and the evidence that is joined to LoCoMo-MC10 rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from app.conversations.formats import Format, recognise
from app.conversations.json_files import read_array, read_lines
from app.conversations.listener import Listener
from app.conversations.locomo import load_locomo
from app.conversations.locomo_evidence import EvidenceIndex, evidence_index
from app.conversations.locomo_mc10 import load_locomo_mc10
from app.conversations.longmemeval import load_longmemeval
from app.conversations.models import Conversation
from app.conversations.test_conversation import load_test_conversation
from app.errors import DatasetError, UsageError

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
    if recognise(path) != "LoCoMo":
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
        return recognise(path) == "LoCoMo"
    except DatasetError:
        return False
