"""Check dataset files: every error in every file, and wording shared between conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memreplay.conversations.design_rules import (
    Faults,
    Rule,
    answer_errors,
    metadata_errors,
    name_errors,
    question_errors,
    shape_errors,
)
from memreplay.conversations.draft import Draft, read_draft
from memreplay.conversations.formats import Format, detect_format
from memreplay.conversations.registry import load_file
from memreplay.conversations.validation_errors import SILENT, Gathering, Listener, Place, shown
from memreplay.errors import DatasetError
from memreplay.text import normalised

LONGEST_SHARED_RUN = 7
"""Words in a row that two conversations may have in common."""

OPENING_WORDS = 4

_Shingle = tuple[str, ...]


@dataclass(frozen=True)
class _Text:
    """A text of a conversation, as its normalised words."""

    conversation: int
    place: Place
    words: tuple[str, ...]

    def shingles(self) -> Iterator[tuple[int, _Shingle]]:
        """Runs of one word more than may be shared, each with the index of its first word."""
        length = LONGEST_SHARED_RUN + 1
        return ((start, self.words[start : start + length]) for start in range(len(self.words) - length + 1))


def wording_errors(drafts: Sequence[Draft]) -> Faults:
    """Runs of words, openings and ids that two conversations share; told at the later one, with the earlier."""
    yield from _shared_ids(drafts)
    yield from _shared_openings(drafts)
    yield from _shared_runs(drafts)


def _shared_ids(drafts: Sequence[Draft]) -> Faults:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id is not None and first.setdefault(draft.id, draft) is not draft:
            yield draft.place.at("id").error(
                f"is {shown(draft.id)}, as in {first[draft.id].path}", "an id that no other conversation has"
            )


def _shared_openings(drafts: Sequence[Draft]) -> Faults:
    first: dict[_Shingle, Draft] = {}
    for draft in drafts:
        turn = draft.turns[0] if draft.turns else None
        opening = tuple(normalised(turn.content).split()[:OPENING_WORDS]) if turn else ()
        if len(opening) == OPENING_WORDS and first.setdefault(opening, draft) is not draft:
            yield (
                draft.turn_place(0)
                .at("content")
                .error(
                    f"begins with {shown(' '.join(opening))}, as {first[opening].path} does",
                    "an opening of its own",
                )
            )


def _shared_runs(drafts: Sequence[Draft]) -> Faults:
    """One fault a pair of texts, for the first run that both hold, as long as it goes on."""
    index: dict[_Shingle, tuple[_Text, int]] = {}
    for number, draft in enumerate(drafts):
        for text in _texts(draft, number):
            told: set[Place] = set()
            for start, shingle in text.shingles():
                earlier, at = index.setdefault(shingle, (text, start))
                if earlier.conversation != number and earlier.place not in told:
                    told.add(earlier.place)
                    run = _common_run(text.words[start:], earlier.words[at:])
                    yield text.place.error(
                        f"shares {len(run)} words in a row with {earlier.place.path}: {earlier.place.pointer}:"
                        f" {shown(' '.join(run))}",
                        f"at most {LONGEST_SHARED_RUN}",
                    )


def _texts(draft: Draft, number: int) -> Iterator[_Text]:
    for index, turn in draft.sound_turns():
        place = draft.turn_place(index).at("content")
        yield _Text(number, place, tuple(normalised(turn.content).split()))
    for index, question in draft.sound_questions():
        place = draft.question_place(index).at("question")
        yield _Text(number, place, tuple(normalised(question.question).split()))


def _common_run(words: Sequence[str], others: Sequence[str]) -> list[str]:
    run: list[str] = []
    for word, other in zip(words, others, strict=False):
        if word != other:
            break
        run.append(word)
    return run


_RULES: tuple[Rule, ...] = (name_errors, shape_errors, metadata_errors, question_errors, answer_errors)


@dataclass
class Tally:
    """What was checked."""

    files: int = 0
    conversations: int = 0
    questions: int = 0
    tests: int = 0


def errors_in_files(paths: Sequence[Path], tally: Tally, listener: Listener = SILENT) -> Iterator[DatasetError]:
    """Every fault of the files, file by file, and last the wording that conversations share.

    What is checked is counted in ``tally``. The listener hears warnings, repairs and how far the reading has come;
    faults come from the iterator.
    """
    drafts: list[Draft] = []
    for path in paths:
        tally.files += 1
        try:
            format_name = detect_format(path)
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
    yield from wording_errors(drafts)


def _faults_of_published(
    path: Path, format_name: Format, tally: Tally, listener: Listener
) -> Iterator[DatasetError]:
    """What the loader of the format finds, reading on after a fault."""
    gathering = Gathering()
    for conversation in load_file(path, format_name, None, replace(listener, error=gathering.add)):
        tally.conversations += 1
        tally.questions += len(conversation.questions)
    yield from gathering.faults
