"""Grades a reply to a recall question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from memory_backends.text import folded
from memreplay.conversations.models import Question
from memreplay.grading import DecidedBy, Outcome, Score
from memreplay.grading.assertion import Rejection, asserted
from memreplay.grading.composition import has_another_item, is_put_together_otherwise
from memreplay.grading.equivalence import contains, enumeration, in_full
from memreplay.grading.polarity import expected_polarity, polarity_of
from memreplay.grading.quantities import with_asked_unit
from memreplay.grading.replies import shortened, without_reasoning
from memreplay.grading.tokens import tokens_of
from memreplay.text import normalised, occurs_in

_LONGEST = 40
"""Words. A longer reply answers something."""

_SOURCE = (
    r"(?:(?:the|this|that|our|your|la|el|esta|este) )?(?:(?:given|provided|above|conversation|chat) )?"
    r"(?:conversations?|history|text|context|chat|dialogue|log|transcript|passage|information|excerpt|"
    r"conversacion|historial|texto|contexto|dialogo|informacion)"
)
_NOT_DOING = r"(?:does not|doesnt|do not|dont|did not|didnt|never)(?: explicitly| directly| actually| ever)?"
_TELL = r"(?:say|mention|specify|state|disclose|says|mentions|specifies|states|mentioned|said|specified|stated)"
_TELL_OR_HOLD = _TELL + r"|tell|reveal|indicate|contain|provide|include|give|answer|discuss|show|hold|clarify"
_TOLD = (
    r"(?:said|mentioned|specified|stated|told|revealed|indicated|disclosed|provided|given|known|discussed|"
    r"answerable|available|clear)"
)
_NOT_BEING = (
    r"(?:is|was|are|were|has|have|had) ?(?:not|nt|never)(?: been)?(?: explicitly| directly| actually| ever)?"
)
_MATTER = r"(?:information|mention|indication|evidence|record|reference|details?|data|answer|way)"
_ASUNTO = r"(?:informacion|mencion|datos|constancia|respuesta|referencia)"
_DICE = (
    r"(?:dice|dicen|menciona|mencionan|especifica|indica|aclara|contiene|proporciona|incluye|aparece|sabe|revela)"
)
_DICHO = r"(?:dicho|mencionado|mencionada|especificado|especificada|indicado|indicada|aclarado|revelado)"

_DENIALS = (
    # a verdict: "not answerable"
    r"(?:not|non) ?(?:answerable|mentioned|said|stated|specified|known|available|provided|discussed)\b",
    r"un(?:answerable|known|stated|specified)\b(?=\Z| (?:in|from|by|to me)\b)",
    r"(?:it |that |this |the question )?(?:cannot|can not|cant) be (?:answered|determined|known)\b",
    # nothing found: "no information"
    r"(?:there (?:is|was|are|were) |theres |i (?:have|see|find|found) |we have )?"
    r"(?:no|not any|not enough|insufficient) (?:\w+ )?" + _MATTER + r"\b",
    r"there (?:is not|isnt|was not|wasnt) (?:any|enough) (?:\w+ )?" + _MATTER + r"\b",
    # the speaker: "I don't know"
    r"i (?:do not|dont|did not|didnt|cannot|can not|cant|could not|couldnt|am not|am un|was not)(?: \w+)?? ?"
    r"(?:know|have|see|find|remember|recall|tell|say|determine|answer|sure|able)\b",
    # the conversation: "it was not mentioned"
    r"(?:it|this|that|the answer) " + _NOT_BEING + r" " + _TOLD + r"\b",
    r"(?:it|this|that|the answer) (?:is|was|remains) (?:unknown|unanswerable|unclear|unspecified|unstated)\b",
    r"(?:\w+ ){1,10}" + _NOT_BEING + r" " + _TOLD + r"(?: (?:in|by|anywhere|here)\b.*)?\Z",
    _SOURCE + r" " + _NOT_DOING + r" (?:" + _TELL_OR_HOLD + r")\b",
    r"(?:\w+ ){1,3}" + _NOT_DOING + r" " + _TELL + r"\b(?!.* to \w+\Z)",
    r"(?:you|we|(?:the )?user) (?:(?:have |had )?(?:not|never)|havent|hadnt)(?: \w+ly)?"
    r" (?:told me|said|mentioned|specified|shared)\b(?!.* to \w+\Z)",
    # Spanish
    r"(?:en )?(?:" + _SOURCE + r" )?no (?:lo |se |me )*" + _DICE + r"\b",
    r"no (?:lo |se )*(?:ha|han|fue|esta|queda|habia)(?: sido)? " + _DICHO + r"\b",
    r"(?:no (?:hay|tengo|existe)(?: \w+)?|sin|ninguna) " + _ASUNTO + r"\b",
    r"no (?:lo )?se(?:\Z| (?:el|la|los|las|cual|que|donde|como|cuando|cuanto|quien|si)\b)",
    r"no (?:lo |se )?(?:puedo|puede|es posible) (?:saber|responder|determinar)(?:lo|se)?\b",
    r"(?:no consta|se desconoce|desconocid[oa])\b",
)
_LEAD_IN = (
    r"(?:(?:sorry|unfortunately|im sorry|lo siento|lamentablemente|(?:based on|according to|from|in|segun|en) "
    + _SOURCE
    + r"(?: (?:provided|given|above|available|shared"
    r"|(?:that )?(?:you|i) (?:have|gave|provided|shared)(?: me)?))?) )*"
)
_SAYS_NOT = re.compile(_LEAD_IN + r"(?:" + "|".join(_DENIALS) + r")")
_CONTRADICTS = re.compile(r"\b(?:but|however|although|though|except|pero|aunque|sin embargo|sino)\b")


_STRUCK_OUT = re.compile(r"~~[^~\n]+~~")


def is_abstention(reply: str) -> bool:
    """Whether a reply says only that the conversation does not contain the answer.

    It must begin by saying so. A long reply, or one that continues after a "but", does not count.
    """
    text = _plain(without_reasoning(reply))
    if not text or len(text.split()) > _LONGEST or _CONTRADICTS.search(text):
        return False
    return _SAYS_NOT.match(text) is not None


def _plain(text: str) -> str:
    """Folded words separated by one space, without a leading ``answer:``."""
    words = re.sub(r"[\W_]+", " ", re.sub("['’]", "", folded(text))).strip()
    return re.sub(r"\A(?:(?:the )?answer|(?:la )?respuesta)(?: is| es)? (?=not |un|non)", "", words)


def score_recall(question: Question, text: str) -> Score:
    """Correct where the reply asserts the expected answer, or all expected entities, in any equivalent spelling.

    Where the right answer is that it was never said, saying so is correct; elsewhere it is wrong. A reply without
    an answer is unparsed. ``exact_match`` is the strict figure (the expected words occur in the reply);
    ``decided_by`` names the rule that decided.
    """
    answer = _STRUCK_OUT.sub(" ", shortened(without_reasoning(text)))
    if not answer.strip():
        return score_without_answer(question, "unparsed", text)
    if question.abstain:
        return _judged(is_abstention(text), text, "abstention")
    if is_abstention(text):
        return score_without_answer(question, "wrong", text).model_copy(update={"decided_by": "abstention"})
    exact = occurs_in(question.expected, answer)
    among = len(question.expected_entities)
    entities = [
        asserted(with_asked_unit(in_full(entity, question.expected), question.text), answer, question.text, among)
        for entity in question.expected_entities
    ]
    correct, decided_by = _decision(question, answer, exact, entities)
    return _judged(correct, text, decided_by).model_copy(
        update={
            "exact_match": exact,
            "entity_recall": sum(ok for ok, _ in entities) / len(entities) if entities else None,
            "f1": token_f1(question.expected, answer),
        }
    )


def _decision(
    question: Question, answer: str, exact: bool, entities: Sequence[tuple[bool, Rejection | None]]
) -> tuple[bool, DecidedBy]:
    wanted, says_only = expected_polarity(question.expected, question.text)
    said = polarity_of(answer, question.text) if wanted else None
    if wanted and said and said != wanted:
        return False, "no_match"
    given, rejected = asserted(with_asked_unit(question.expected, question.text), answer, question.text)
    for known in (_without_its_subject, _without_its_year):
        if not given and rejected is None and (rest := known(question)):
            given, rejected = asserted(rest, answer, question.text)
    by_entities = bool(entities) and all(ok for ok, _ in entities)
    if wanted and said == wanted and (says_only or not entities):
        given = True
    if not given and not by_entities:
        return False, rejected or next((why for _, why in entities if why is not None), None) or "no_match"
    if is_put_together_otherwise(question.expected, answer):
        return False, "denied"
    items = enumeration(question.expected)
    if has_another_item(items if len(items) > 1 else question.expected_entities, answer):
        return False, "candidates"
    for old in question.supersedes:
        if not contains(old, question.expected) and asserted(old, answer, question.text)[0]:
            return False, "candidates"
    return True, ("exact" if exact else "equivalent") if given else "entities"


_SUBJECT = re.compile(r"(?:The\s)?(?P<subject>[A-Z][\w'’-]+)\s(?=\S+\s\S+)")
_WHICH_OF_TWO = re.compile(r"\b(?:or|both|who|whom|whose|o|quien|quién)\b", re.IGNORECASE)


def _without_its_subject(question: Question) -> str | None:
    """The expected sentence without the name that it begins with, where the question names who is meant."""
    begins = _SUBJECT.match(question.expected)
    if begins is None or _WHICH_OF_TWO.search(question.text):
        return None
    name = folded(begins["subject"])
    return (
        question.expected[begins.end() :] if re.search(rf"\b{re.escape(name)}\b", folded(question.text)) else None
    )


_YEAR: Final = re.compile(r",?\s*(?:\b(?:of|de|del)\s+)?\b((?:19|20)\d\d)\b")


def _without_its_year(question: Question) -> str | None:
    """The expected date without its year, where the question says the year."""
    year = _YEAR.search(question.expected)
    if year is None or year[1] not in question.text:
        return None
    rest = _YEAR.sub("", question.expected)
    return rest if any(token.kind == "date" for token in tokens_of(rest)) else None


def score_without_answer(question: Question, outcome: Outcome, text: str | None) -> Score:
    """The score of a reply that holds no answer."""
    if question.abstain:
        return Score(outcome=outcome, score=0.0, predicted=text)
    entities = 0.0 if question.expected_entities else None
    return Score(outcome=outcome, score=0.0, predicted=text, exact_match=False, entity_recall=entities, f1=0.0)


def token_f1(expected: str, answer: str) -> float:
    """Harmonic mean of precision and recall over the normalised words of both, as multisets; 0..1."""
    wanted, given = normalised(expected).split(), normalised(answer).split()
    shared = (Counter(wanted) & Counter(given)).total()
    return 2 * shared / (len(wanted) + len(given)) if shared else 0.0


def _judged(correct: bool, text: str, decided_by: DecidedBy) -> Score:
    return Score(
        outcome="correct" if correct else "wrong",
        score=1.0 if correct else 0.0,
        predicted=text,
        decided_by=decided_by,
    )
