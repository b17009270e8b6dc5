"""Wording that conversations share: each is to be written for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.conversations.design_rules import Faults
from app.conversations.draft import Draft
from app.conversations.faults import Place, shown
from app.conversations.normalise import normalised

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


def wording_faults(drafts: Sequence[Draft]) -> Faults:
    """Runs of words, openings and ids that two conversations share; told at the later one, with the earlier."""
    yield from _shared_ids(drafts)
    yield from _shared_openings(drafts)
    yield from _shared_runs(drafts)


def _shared_ids(drafts: Sequence[Draft]) -> Faults:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id is not None and first.setdefault(draft.id, draft) is not draft:
            yield draft.place.at("id").fault(
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
                .fault(
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
                    yield text.place.fault(
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
