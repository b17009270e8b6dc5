"""Design rules of a long history: dated sessions, and questions with named evidence and options.

They need the whole content, so a file with errors in its format is not checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from memreplay.conversations.design_rules import Errors, is_edge_case
from memreplay.conversations.draft import Draft
from memreplay.conversations.formats.test_conversation import conversation_of
from memreplay.conversations.formats.test_conversation_fields import ADVERSARIAL, QUESTION_TYPES, RecallQuestion
from memreplay.conversations.models import NOT_ANSWERABLE, Turn
from memreplay.conversations.option_style import option_style
from memreplay.conversations.validation_errors import Place, entries, shown
from memreplay.text import occurs_in

LEAST_SESSIONS = 12
LEAST_TURNS = 250
LEAST_QUESTIONS = 40
OPTIONS = 10
MOST_GUESSED = 0.15
"""The highest accuracy of a blind guesser, which sees only the options."""

_SAID_LITERALLY = frozenset({"single_fact", "update", "assistant_said"})
"""Question types whose entities occur in the evidence; the answers of others may be computed."""


def history_shape_errors(draft: Draft) -> Errors:
    """Errors in the number of sessions, turns and questions, and in the order of the roles."""
    if draft.written is None:
        return
    sessions = draft.written.sessions or []
    if not is_edge_case(draft):
        for name, least, number in (
            ("sessions", LEAST_SESSIONS, len(sessions)),
            ("recallQuestions", LEAST_QUESTIONS, len(draft.questions)),
        ):
            if number < least:
                yield draft.place.at(name).error(f"has {entries(number)}", f"at least {least}")
        if len(draft.turns) < LEAST_TURNS:
            yield draft.place.at("sessions").error(f"hold {len(draft.turns)} turns", f"at least {LEAST_TURNS}")
    for number, session in enumerate(sessions):
        for index, turn in enumerate(session.turns):
            expected = "assistant" if index % 2 else "user"
            if turn.role != expected:
                yield draft.place.at("sessions", number, "turns", index, "role").error(
                    f"is {shown(turn.role)}", f"{shown(expected)}: the user speaks first, then the roles alternate"
                )
                break


def history_question_errors(draft: Draft) -> Errors:
    """Errors in type, options and evidence, and options that give the answers away."""
    if draft.written is None:
        return
    conversation = conversation_of(draft.written, draft.path.stem)
    for index, question in draft.valid_questions():
        place = draft.question_place(index)
        yield from _missing_fields(question, place)
        evidence = [conversation.turns_by_id[turn_id] for turn_id in question.evidence or ()]
        yield from _evidence_errors(question, evidence, place)
    style = option_style(conversation.questions)
    if style is not None and style.blind_guesser > MOST_GUESSED:
        yield draft.place.at("recallQuestions").error(
            f"have options of which a guesser that sees nothing else picks {style.blind_guesser:.0%} correctly",
            f"at most {MOST_GUESSED:.0%}",
        )


def _missing_fields(question: RecallQuestion, place: Place) -> Errors:
    if question.type is None:
        yield place.at("type").error("is missing", ", ".join(QUESTION_TYPES))
    if question.evidence is None:
        yield place.at("evidence").error("is missing", "the ids of the evidence turns")
    if question.salience_level is None:
        yield place.at("salienceLevel").error("is missing", "high, medium or low")
    options = question.options or []
    if len(options) != OPTIONS:
        yield place.at("options").error(f"has {entries(len(options))}", f"{OPTIONS} options")
    elif NOT_ANSWERABLE not in options:
        yield place.at("options").error(f"lacks {shown(NOT_ANSWERABLE)}", "this option in every question")


def _evidence_errors(question: RecallQuestion, evidence: Sequence[Turn], place: Place) -> Errors:
    if question.type == ADVERSARIAL or not evidence:
        return
    if not question.expected_entities:
        yield place.at("expectedEntities").error("is empty", "strings that a correct answer must contain")
    if question.type in _SAID_LITERALLY:
        for index, entity in enumerate(question.expected_entities):
            if not any(occurs_in(entity, turn.text) for turn in evidence):
                yield place.at("expectedEntities", index).error(
                    f"is {shown(entity)}, which does not occur in the evidence",
                    f"words of turn {' or '.join(turn.id for turn in evidence)}",
                )
    if question.type == "update" and not question.supersedes:
        yield place.at("supersedes").error("is missing", "the values that were right before")
    if question.type == "multi_session" and len({turn.session for turn in evidence}) < 2:
        yield place.at("evidence").error("lies in one session", "turns of at least two sessions")
    if question.type == "assistant_said" and all(turn.role == "user" for turn in evidence):
        yield place.at("evidence").error("names only turns of the user", "a turn of the assistant")
