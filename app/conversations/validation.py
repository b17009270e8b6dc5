"""Checking of dataset files: every fault of every file, and what conversations have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.conversations.answer_rules import answer_faults
from app.conversations.design_rules import Rule, metadata_faults, name_faults, question_faults, shape_faults
from app.conversations.draft import Draft, read_draft
from app.conversations.faults import Gathering
from app.conversations.formats import Format, recognise
from app.conversations.listener import SILENT, Listener
from app.conversations.loaders import load_file
from app.conversations.wording import wording_faults
from app.errors import DatasetError

_RULES: tuple[Rule, ...] = (name_faults, shape_faults, metadata_faults, question_faults, answer_faults)


@dataclass
class Tally:
    """What was checked."""

    files: int = 0
    conversations: int = 0
    questions: int = 0
    tests: int = 0


def faults_of_files(paths: Sequence[Path], tally: Tally, listener: Listener = SILENT) -> Iterator[DatasetError]:
    """Every fault of the files, file by file, and last the wording that conversations share.

    What is checked is counted in ``tally``. The listener hears warnings, repairs and how far the reading has come;
    faults come from the iterator.
    """
    drafts: list[Draft] = []
    for path in paths:
        tally.files += 1
        try:
            format_name = recognise(path)
            if format_name == "TestConversation":
                draft, faults = read_draft(path)
                drafts.append(draft)
                tally.conversations += 1
                tally.questions += len(draft.questions)
                yield from faults
                for rule in _RULES:
                    yield from rule(draft)
            else:
                yield from _faults_of_published(path, format_name, tally, listener)
        except DatasetError as error:
            yield error
    yield from wording_faults(drafts)


def _faults_of_published(
    path: Path, format_name: Format, tally: Tally, listener: Listener
) -> Iterator[DatasetError]:
    """What the loader of the format finds, reading on after a fault."""
    gathering = Gathering()
    for conversation in load_file(path, format_name, None, replace(listener, fault=gathering.add)):
        tally.conversations += 1
        tally.questions += len(conversation.questions)
    yield from gathering.faults
