"""Check dataset files: find every error in every file, and wording that conversations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memreplay.conversations.formats import Format, detect_format, test_conversation
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.registry import is_shipped
from memreplay.conversations.rules.design_rules import (
    Draft,
    Errors,
    Rule,
    answer_errors,
    evidence_errors,
    history_question_errors,
    history_shape_errors,
    metadata_errors,
    name_errors,
    question_errors,
    read_draft,
    shape_errors,
)
from memreplay.conversations.validation_errors import SILENT, ErrorCollector, LoadCallbacks, Place, shown
from memreplay.errors import DatasetError
from memreplay.text import normalised

LONGEST_SHARED_RUN = 7
"""The longest run of words that two conversations may share."""

OPENING_WORDS = 4

_Shingle = tuple[str, ...]


@dataclass(frozen=True)
class _Text:
    """The normalised words of a turn or question."""

    conversation: int
    place: Place
    words: tuple[str, ...]

    def shingles(self) -> Iterator[tuple[int, _Shingle]]:
        """Return all runs that are one word too long to be shared, each with the index of its first word."""
        length = LONGEST_SHARED_RUN + 1
        return ((start, self.words[start : start + length]) for start in range(len(self.words) - length + 1))


def wording_errors(drafts: Sequence[Draft]) -> Errors:
    """Return ids, openings and runs of words that two conversations share; reported at the later conversation."""
    yield from _shared_ids(drafts)
    yield from _shared_openings(drafts)
    yield from _shared_runs(drafts)


def _shared_ids(drafts: Sequence[Draft]) -> Errors:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id is not None and first.setdefault(draft.id, draft) is not draft:
            yield draft.place.at("id").error(f"is {shown(draft.id)}, as in {first[draft.id].path}", "a unique id")


def _shared_openings(drafts: Sequence[Draft]) -> Errors:
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
                    "a unique opening",
                )
            )


def _shared_runs(drafts: Sequence[Draft]) -> Errors:
    """Return one error per pair of texts, for the whole length of the first run that both contain."""
    index: dict[_Shingle, tuple[_Text, int]] = {}
    for number, draft in enumerate(drafts):
        for text in _texts(draft, number):
            reported: set[Place] = set()
            for start, shingle in text.shingles():
                earlier, at = index.setdefault(shingle, (text, start))
                if earlier.conversation != number and earlier.place not in reported:
                    reported.add(earlier.place)
                    run = _common_run(text.words[start:], earlier.words[at:])
                    yield text.place.error(
                        f"shares {len(run)} words in a row with {earlier.place.path}: {earlier.place.pointer}:"
                        f" {shown(' '.join(run))}",
                        f"at most {LONGEST_SHARED_RUN}",
                    )


def _texts(draft: Draft, number: int) -> Iterator[_Text]:
    for index, turn in draft.valid_turns():
        place = draft.turn_place(index).at("content")
        yield _Text(number, place, tuple(normalised(turn.content).split()))
    for index, question in draft.valid_questions():
        place = draft.question_place(index).at("question")
        yield _Text(number, place, tuple(normalised(question.question).split()))


def _common_run(words: Sequence[str], others: Sequence[str]) -> list[str]:
    run: list[str] = []
    for word, other in zip(words, others, strict=False):
        if word != other:
            break
        run.append(word)
    return run


_RULES: tuple[Rule, ...] = (
    name_errors,
    shape_errors,
    metadata_errors,
    question_errors,
    answer_errors,
    evidence_errors,
)
_RULES_OF_LONG_HISTORIES: tuple[Rule, ...] = (
    name_errors,
    history_shape_errors,
    metadata_errors,
    question_errors,
    answer_errors,
    history_question_errors,
)


@dataclass
class Tally:
    """Counts what was checked."""

    files: int = 0
    conversations: int = 0
    questions: int = 0
    tests: int = 0


def errors_in_files(
    paths: Sequence[Path],
    tally: Tally,
    callbacks: LoadCallbacks = SILENT,
    by_design: Callable[[Path], bool] = is_shipped,
) -> Iterator[DatasetError]:
    """Yield every error, file by file; then the wording that conversations share.

    Counts what was checked in ``tally``. ``callbacks`` receive warnings, repairs and reading progress, but no
    errors. Files ``by_design`` must also keep the rules for the shipped conversations; of others, only errors that
    prevent them from being loaded are reported.
    """
    drafts: list[Draft] = []
    for path in paths:
        tally.files += 1
        try:
            known_format, file = detect_format(path)
            if known_format is test_conversation and test_conversation.holds_one(file):
                draft, errors = read_draft(path)
                design = by_design(path)
                drafts += [draft] if design else []
                tally.conversations += 1
                tally.questions += len(draft.questions)
                yield from errors
                if design:
                    for rule in _RULES_OF_LONG_HISTORIES if draft.in_sessions else _RULES:
                        yield from rule(draft)
            else:
                yield from _errors_of_published(known_format, file, tally, callbacks)
        except DatasetError as error:
            yield error
    yield from wording_errors(drafts)


def _errors_of_published(
    known_format: Format, file: DatasetFile, tally: Tally, callbacks: LoadCallbacks
) -> Iterator[DatasetError]:
    """Yield the errors that the loader finds; it continues after each of them."""
    errors = ErrorCollector()
    for conversation in known_format.load(file, replace(callbacks, on_error=errors.add), None):
        tally.conversations += 1
        tally.questions += len(conversation.questions)
    yield from errors
