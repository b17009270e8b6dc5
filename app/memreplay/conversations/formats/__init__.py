"""Which format a dataset file has, told by its content and not by its name."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memreplay.conversations.json_files import Entries, first_bytes, read_array, read_json, read_lines
from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

Format = Literal[
    "TestConversation",
    "LoCoMo",
    "LoCoMo-MC10 lines",
    "LoCoMo-MC10 array",
    "LongMemEval lines",
    "LongMemEval array",
]
Container = Literal["object", "lines", "array"]

KNOWN_FORMATS = (
    'a TestConversation (an object with "turns" and "recallQuestions"),'
    ' a locomo10 file (a list of objects with "conversation" and "qa"),'
    ' LoCoMo-MC10 rows (with "choices" and "correct_choice_index")'
    ' or LongMemEval entries (with "haystack_sessions" and "answer_session_ids")'
)


@dataclass(frozen=True)
class _Signature:
    """Fields that tell a format: all of ``needed`` are there, or any one of ``telling``."""

    name: Format
    container: Container
    needed: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()

    def fits(self, container: Container, fields: frozenset[str]) -> bool:
        if container != self.container:
            return False
        return bool(self.telling & fields) or (bool(self.needed) and self.needed <= fields)


_ROW_FIELDS = frozenset({"choices", "correct_choice_index", "num_choices"})
_ENTRY_FIELDS = frozenset({"haystack_dates", "answer_session_ids"})
_SIGNATURES = (
    _Signature("TestConversation", "object", telling=frozenset({"turns", "recallQuestions"})),
    _Signature("TestConversation", "lines", telling=frozenset({"turns", "recallQuestions"})),
    _Signature("LoCoMo", "array", needed=frozenset({"conversation", "qa"})),
    _Signature("LoCoMo-MC10 lines", "lines", telling=_ROW_FIELDS),
    _Signature("LoCoMo-MC10 array", "array", telling=_ROW_FIELDS),
    _Signature("LongMemEval lines", "lines", telling=_ENTRY_FIELDS),
    _Signature("LongMemEval array", "array", telling=_ENTRY_FIELDS),
)

_FOLDER_OF_TESTS = "its folder to be named: the one that holds {dataset}/{id}.def.json"
_PARTS_OF_FOLDERS = {
    "GoodAI": frozenset({"script", "is_question"}),
}


def detect_format(path: Path) -> Format:
    """The format of a file. Of a long one only the beginning is read."""
    container, first = _first_value(path)
    if first is None:
        raise Place(path).error("is empty", KNOWN_FORMATS)
    if isinstance(first, dict):
        fields = frozenset(first)
        for signature in _SIGNATURES:
            if signature.fits(container, fields):
                return signature.name
        for name, needed in _PARTS_OF_FOLDERS.items():
            if needed <= fields:
                raise Place(path).error(f"is a definition of a {name} test", _FOLDER_OF_TESTS)
    raise Place(path).error("is of no known format", KNOWN_FORMATS)


def _first_value(path: Path) -> tuple[Container, Any]:
    """How the file holds its values, and the first of them; None where there is none."""
    if first_bytes(path, 64).startswith(b"["):
        return "array", _first_of(read_array(path))
    try:
        return "lines", _first_of(read_lines(path))
    except DatasetError:
        return "object", read_json(path)


def _first_of(values: Entries) -> Any:
    with closing(values):
        first = next(values, None)
    return first[1] if first else None
