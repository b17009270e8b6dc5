"""The rules that tie the questions of a TestConversation to its turns.

An answer must stand, word for word, in the key turns of the location that its question names, and the question must
not give it away. Why it does not stand there is found out, so that the fault is told where it is to be mended.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.conversations.design_rules import Faults
from app.conversations.draft import Draft
from app.conversations.evidence import BANDS, derived_evidence
from app.conversations.faults import Place, shown
from app.conversations.models import InfoLocation, Turn
from app.conversations.normalise import normalised, stands_in
from app.conversations.test_conversation import RecallQuestion, turns_of

MOST_ANSWER_WORDS = 8


def answer_faults(draft: Draft) -> Faults:
    """Faults of expected answers and entities: given away, too long, or not in the evidence."""
    turns = draft.all_turns()
    for index, question in draft.sound_questions():
        place = draft.question_place(index)
        yield from _wording(question, place)
        if turns:
            yield from _evidence(question, turns_of(turns), draft, place)


def _wording(question: RecallQuestion, place: Place) -> Faults:
    answer = question.expected_answer
    words = len(normalised(answer).split())
    if not answer.strip():
        yield place.at("expectedAnswer").fault("is blank", "the answer")
    elif words > MOST_ANSWER_WORDS:
        yield place.at("expectedAnswer").fault(
            f"is {words} words long", f"at most {MOST_ANSWER_WORDS}, so that it can be matched as it is"
        )
    if stands_in(answer, question.question):
        yield place.at("question").fault(
            f"holds its answer {shown(answer)}", "a question that does not give it away"
        )
    for index, entity in enumerate(question.expected_entities):
        inside = place.at("expectedEntities", index)
        if not entity.strip():
            yield inside.fault("is blank", "what a right answer must hold")
        elif entity in question.expected_entities[:index]:
            yield inside.fault(f"is {shown(entity)} again", "every entity once")
        elif stands_in(entity, question.question) and not stands_in(answer, question.question):
            yield inside.fault(
                f"is {shown(entity)}, which stands in the question", "what the question does not say"
            )


def _evidence(question: RecallQuestion, turns: Sequence[Turn], draft: Draft, place: Place) -> Faults:
    entities = question.expected_entities
    ids = derived_evidence(turns, question.info_location, entities or [question.expected_answer])
    evidence = [turn for turn in turns if turn.id in ids]
    wanted = [(place.at("expectedAnswer"), question.expected_answer)]
    wanted += [(place.at("expectedEntities", index), entity) for index, entity in enumerate(entities)]
    missing = [(at, text) for at, text in wanted if text.strip() and not _stands_in_any(text, evidence)]
    if missing:
        yield from _why_missing(missing, question.info_location, turns, evidence, draft, place)
        return
    saliences = {turn.key_info.salience for turn in evidence if turn.key_info and turn.key_info.salience}
    if saliences and question.salience_level not in saliences:
        levels = " or ".join(shown(level) for level in sorted(saliences))
        yield place.at("salienceLevel").fault(
            f"is {shown(question.salience_level)}", f"{levels}, that of {_turns(evidence)}, its evidence"
        )


def _why_missing(
    missing: Sequence[tuple[Place, str]],
    location: InfoLocation,
    turns: Sequence[Turn],
    evidence: Sequence[Turn],
    draft: Draft,
    place: Place,
) -> Faults:
    """One fault where one mark or one location explains all that is missing, else one for each text."""
    texts = [text for _, text in missing]
    holding = [turn for turn in turns if all(stands_in(text, turn.text) for text in texts)]
    here = [turn for turn in holding if turn.number in BANDS[location]]
    elsewhere = [turn for turn in holding if turn.number not in BANDS[location] and _is_key(turn)]
    if here and not any(_is_key(turn) for turn in here):
        yield (
            draft.turn_place(here[-1].number - 1)
            .at("metadata")
            .fault(
                f"is missing, though the turn holds {shown(texts[0])}, asked for at {place.pointer}",
                "containsKeyInfo, keyInfoType and salienceLevel",
            )
        )
    elif elsewhere and not here:
        said = elsewhere[-1]
        right = next(band for band, numbers in BANDS.items() if said.number in numbers)
        yield place.at("infoLocation").fault(
            f"is {shown(location)}", f"{shown(right)}: {shown(texts[0])} stands in turn {said.number}"
        )
    else:
        where = (
            f"{_turns(evidence)}, where its entities stand" if evidence else f"a key turn among {_band(location)}"
        )
        for at, text in missing:
            yield at.fault(f"is {shown(text)}, which does not stand in the evidence", f"words of {where}")


def _turns(turns: Sequence[Turn]) -> str:
    return "turn " + " and ".join(turn.id for turn in turns)


def _band(location: InfoLocation) -> str:
    band = BANDS[location]
    return f"turns {band.start} to {band.stop - 1}" if location != "recent" else f"turns {band.start} and later"


def _stands_in_any(text: str, turns: Sequence[Turn]) -> bool:
    return any(stands_in(text, turn.text) for turn in turns)


def _is_key(turn: Turn) -> bool:
    return turn.key_info is not None and turn.key_info.contains_key_info
