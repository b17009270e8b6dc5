"""The dataset formats. Each module recognises its files by their content, and loads them.

To add a format, write a module with the names of :class:`Format` and add it to :data:`FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from memreplay.conversations.archives import is_packed, unpacked
from memreplay.conversations.formats import (
    beam,
    chatgpt_export,
    convomem,
    gemini_cli,
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
from memreplay.conversations.formats.messengers import refuse_messengers
from memreplay.conversations.json_files import DatasetFile, first_bytes, open_dataset_file
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.printable import printable


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
    beam,
    convomem,
    gemini_cli,
    openai_messages,
    sharegpt,
    chatgpt_export,
    langsmith,
    langfuse,
    opentelemetry,
    plain_text,
)

_GOODAI_DEFINITION = frozenset({"script", "is_question"})


def detect_format(path: Path) -> tuple[Format, DatasetFile]:
    """Return the format of a file.

    Raises:
        DatasetError: no format recognises it.
    """
    if is_packed(path):
        unpacked(path)  # tells what is wrong with one that could not be unpacked before
        raise Place(path).error("is packed inside another packed file", "a file of chats")
    file, place = _opened(path), Place(path)
    if file.is_empty or (file.container == "text" and not first_bytes(path, 64)):
        raise place.error("is empty", ", ".join(known.SIGNATURE for known in FORMATS))
    refuse_messengers(file)
    for known in FORMATS:
        if known.detect(file):
            return known, file
    if file.container == "text":
        raise place.error(
            "is text in which no message begins with its speaker",
            f"{plain_text.SIGNATURE}, or with a name (then --user NAME says who the user is); or JSON",
        )
    if file.fields >= _GOODAI_DEFINITION:
        raise place.error(
            "is a definition of a GoodAI test", "its folder to be named: the one that holds {dataset}/{id}.def.json"
        )
    raise place.error(f"is of no known format: {_found(file)}", _nearest(file))


def _opened(path: Path) -> DatasetFile:
    if plain_text.begins_with_label(first_bytes(path, 64).decode("utf-8", "replace")):
        return DatasetFile(path, "text", frozenset())
    return open_dataset_file(path)


def _found(file: DatasetFile) -> str:
    what = {"table": "its rows have", "rows": "its rows have", "object": "it has", "text": "it has"}.get(
        file.container, "its first value has"
    )
    if not isinstance(file.first, dict):
        return f"{what.removesuffix(' has')} is {shown(file.first)}"
    names = [printable(str(name)[:_LONGEST_NAME]) for name in file.first]
    more = f" and {len(names) - _SHOWN_NAMES} more fields" if len(names) > _SHOWN_NAMES else ""
    return f"{what} {', '.join(names[:_SHOWN_NAMES]) or 'no fields'}{more}"


_SHOWN_NAMES = 8
_LONGEST_NAME = 40
_QUOTED = re.compile(r'"(\w+)"')


def _nearest(file: DatasetFile) -> str:
    """Return the format whose fields are most like those of the file; else what a chat has to look like."""
    mine = [str(name).casefold() for name in file.fields]
    best: tuple[int, Format | None] = (0, None)
    for known in FORMATS:
        named = [name.casefold() for name in _QUOTED.findall(known.SIGNATURE)]
        near = sum(bool(get_close_matches(name, mine, n=1, cutoff=0.8)) for name in named)
        if near > best[0]:
            best = (near, known)
    plain = '{"messages": [{"role": "user", "content": "…"}]}'
    if best[1] is None:
        names = ", ".join(known.NAME for known in FORMATS)
        return f"{names}; or convert it to {plain}"
    return f"{best[1].SIGNATURE}, which is the nearest format; or convert it to {plain}"
