"""The dataset formats. Each module recognises its files by their content, and loads them.

To add a format, write a module with the names of :class:`Format` and add it to :data:`FORMATS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from memreplay.conversations.formats import (
    chatgpt_export,
    langfuse,
    langsmith,
    locomo,
    locomo_mc10,
    longmemeval,
    openai_messages,
    opentelemetry,
    plain_text,
    sharegpt,
    test_conversation,
)
from memreplay.conversations.formats.locomo import EvidenceIndex
from memreplay.conversations.json_files import DatasetFile, first_bytes, open_dataset_file
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place


class Format(Protocol):
    """The functions and names that a format module offers.

    ``NAME`` is shown in listings. ``SIGNATURE`` describes the fields that identify the format, for error messages.
    """

    NAME: str
    SIGNATURE: str

    def detect(self, file: DatasetFile) -> bool:
        """Return whether the file has this format, judged by its container and first fields."""
        ...

    def load(
        self, file: DatasetFile, callbacks: LoadCallbacks, evidence: EvidenceIndex | None
    ) -> Iterator[Conversation]:
        """Yield the conversations of the file; ``evidence`` is the file that the user named, if any."""
        ...


FORMATS: tuple[Format, ...] = (
    test_conversation,
    locomo,
    locomo_mc10,
    longmemeval,
    openai_messages,
    sharegpt,
    chatgpt_export,
    langsmith,
    langfuse,
    opentelemetry,
    plain_text,
)

_LABEL_BYTES = 64

_GOODAI_DEFINITION = frozenset({"script", "is_question"})


def detect_format(path: Path) -> tuple[Format, DatasetFile]:
    """Return the format of a file.

    Raises:
        DatasetError: no format recognises it.
    """
    file, place = _opened(path), Place(path)
    expected = ", ".join(known.SIGNATURE for known in FORMATS[:-1]) + f" or {FORMATS[-1].SIGNATURE}"
    if file.is_empty:
        raise place.error("is empty", expected)
    for known in FORMATS:
        if known.detect(file):
            return known, file
    if file.fields >= _GOODAI_DEFINITION:
        raise place.error(
            "is a definition of a GoodAI test", "its folder to be named: the one that holds {dataset}/{id}.def.json"
        )
    raise place.error("is of no known format", expected)


def _opened(path: Path) -> DatasetFile:
    if plain_text.begins_with_label(first_bytes(path, _LABEL_BYTES).decode("utf-8", "replace")):
        return DatasetFile(path, "text", frozenset())
    return open_dataset_file(path)
