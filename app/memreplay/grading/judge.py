"""Grades a reply to a recall question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from memory_backends.text import folded, sentences_of
from memreplay.conversations.models import Question
from memreplay.grading import DecidedBy, Outcome, Score
from memreplay.grading.match import contains, in_full
from memreplay.grading.read import (
    Token,
    content_of,
    json_values,
    same_token,
    shortened,
    tokens_of,
    with_asked_unit,
    without_reasoning,
)
from memreplay.grading.times import says_another_time, times_asked_for, times_in
from memreplay.grading.veto import Rejection, asserted, expected_polarity, is_form_of, polarity_of
from memreplay.text import normalised, occurs_in

_LONGEST = 40
"""Words. A longer reply answers something."""

_SOURCE = (
    r"(?:(?:the|this|that|any|our|your|my|la|el|esta|este|nuestr[oa]s?|mis) )?(?:\w+ )??"
    r"(?:conversations?|history|text|context|chats?|dialogue|log|transcript|passage|information|excerpt|messages?|notes?"
    r"|records?|memory|conversacion(?:es)?|historial|texto|contexto|dialogo|informacion|mensajes|notas"
    r"|(?:anything|what|things?) (?:that )?(?:you|we)(?: have|ve)? (?:told|said|shared|discussed|given)(?: me)?)"
)
_ADVERB = r"(?: explicitly| directly| actually| ever| yet| once| specifically)?"
_NOT_DOING = rf"(?:does not|doesnt|do not|dont|did not|didnt|never){_ADVERB}"
_NOT_BEING = rf"(?:is|was|are|were|has|have|had) ?(?:not|nt|never)(?: been)?{_ADVERB}"
_TELL = r"(?:say|says|said|mention|specify|specifie|state|disclose|come|came)(?:s|d|ed)?(?: up)?"
_HOLD = r"tell|reveal|indicate|contain|provide|include|give|answer|discuss|show|hold|clarify|cover|name"
_TOLD = (
    r"(?:said|mentioned|specified|stated|told|revealed|indicated|disclosed|provided|given|known|discussed|answerable"
    r"|available|clear|brought up|come up|covered|shared|recorded|noted|named|raised|talked about)"
)
_MATTER = r"(?:information|mention|indication|evidence|record|reference|details?|data|answer|way|trace|memory|note)"
_ASUNTO = r"(?:informacion|mencion|datos?|constancia|respuesta|referencia|registro)"
_DICE = (
    r"(?:dice|dicen|menciona|mencionan|especifica|indica|aclara|contiene|proporciona|incluye|aparece|sabe"
    r"|revela|habla)"
)
_DICHO = r"(?:dicho|mencionad[oa]|especificad[oa]|indicad[oa]|aclarad[oa]|revelado|hablado|contado|comentado)"

_DENIALS = (
    # a verdict: "not answerable"
    r"(?:not|non) ?(?:answerable|mentioned|said|stated|specified|known|available|provided|discussed)\b",
    r"un(?:answerable|known|stated|specified)\b(?=\Z| (?:in|from|by|to me)\b)",
    r"(?:it |that |this |the question )?(?:cannot|can not|cant) be (?:answered|determined|known)\b",
    # nothing found: "no information", "there is nothing in our chats"
    r"(?:there (?:is|was|are|were) |theres |i (?:have|see|find|found) |we have )?"
    rf"(?:no|not any|not enough|insufficient) (?:\w+ )?{_MATTER}\b",
    rf"there (?:is not|isnt|was not|wasnt) (?:any|enough) (?:\w+ )?{_MATTER}\b",
    rf"(?:there (?:is|was|are|were)|theres|i (?:have|see|find|found)) (?:no"
    rf"|nothing)(?: \w+){{0,6}} (?:in {_SOURCE}|anywhere)\b",
    r"(?:there (?:is|was)|theres|i (?:have|see|find|found)) nothing (?:on (?:record|file)|about|on)\b",
    rf"nothing (?:in {_SOURCE} )?(?:\w+ )?(?:{_TELL}|(?:{_HOLD})s?)\b",
    rf"(?:\w+ ){{1,5}}(?:is not|isnt|was not|wasnt) (?:\w+ )?(?:in {_SOURCE}|something (?:that )?(?:you|we|i))\b",
    rf"no (?:\w+ ){{1,4}}(?:is|was|were|are|has been|have been|had been){_ADVERB} {_TOLD}\b",
    # the speaker: "I don't know"
    r"i ?(?:do not|dont|did not|didnt|cannot|can not|cant|could not|couldnt|am not|m not|am un|was not|have not"
    r"|havent)(?: \w+)?? ?(?:know|have|see|seen|find|found|remember|recall|tell|say|determine|answer|sure|able"
    r"|been told)\b",
    r"i (?:was|have been|ve been) never told\b|i(?: have|ve) never been told\b|i was never told\b",
    # the conversation: "it was not mentioned"
    rf"(?:it|this|that|the answer) {_NOT_BEING} {_TOLD}\b",
    r"(?:it|this|that|the answer) (?:is|was|remains) (?:unknown|unanswerable|unclear|unspecified|unstated)\b",
    rf"(?:\w+ ){{1,10}}{_NOT_BEING} {_TOLD}(?: (?:in|by|anywhere|here)\b.*)?\Z",
    rf"{_SOURCE} {_NOT_DOING} (?:{_TELL}|{_HOLD})\b",
    rf"(?:\w+ ){{1,3}}{_NOT_DOING} {_TELL}\b(?!.* to \w+\Z)",
    r"(?:you|we|(?:the )?user)(?:ve|d)?(?: have| had| has)? ?(?:not|never|havent|hadnt|hasnt)(?: \w+ly| yet)?"
    r" (?:told|said|mentioned|specified|shared|given|discussed|talked|spoken)\b(?!.* to \w+\Z)",
    # Spanish
    rf"(?:en )?(?:{_SOURCE} |(?:(?:es[eao]|el|la) )?(?:dato|informacion|eso) )?(?:no|nunca) (?:lo |se "
    rf"|me )*{_DICE}\b",
    rf"(?:de (?:eso|esto|ello) )?(?:no|nunca) (?:lo |se |me |te |nos )*"
    rf"(?:ha|has|han|he|hemos|fue|esta|queda|habia)(?: sido)? {_DICHO}\b",
    r"(?:no|nunca) (?:lo |me |la )*(?:dijiste|mencionaste|contaste|comentaste|hablaste)\b",
    rf"(?:no (?:hay|tengo|existe|encuentro)(?: \w+)?|sin|ninguna?) {_ASUNTO}\b",
    r"no (?:lo )?se(?:\Z| (?:el|la|los|las|cual|que|donde|como|cuando|cuanto|quien|si)\b)",
    r"no (?:lo |se )?(?:puedo|puede|es posible) (?:saber|responder|determinar)(?:lo|se)?\b",
    r"(?:no consta|se desconoce|desconocid[oa])\b",
)
_LEAD_IN = (
    r"(?:(?:sorry|unfortunately|im sorry|apologies|my apologies|im afraid|i am afraid|hmm+|well|lo siento"
    r"|lamentablemente|me temo que|perdona?|as far as i (?:know|can (?:see|tell))"
    r"|looking (?:back )?(?:through|at|over) "
    rf"{_SOURCE}|(?:based on|according to|from|in|segun|en) {_SOURCE}"
    r"(?: (?:provided|given|above|available|shared|so far"
    r"|(?:that )?(?:you|i) (?:have|gave|provided|shared)(?: me)?))?) )*"
)
_SAYS_NOT = re.compile(_LEAD_IN + r"(?:" + "|".join(_DENIALS) + r")")
_CONTRADICTS = re.compile(r"\b(?:but|however|although|though|except|pero|aunque|sin embargo|sino)\b")
_GUESSES = re.compile(
    r"\b(?:probably|(?:most )?likely|my (?:best )?guess|id guess|perhaps|maybe|might be|could be|i think"
    r"|i believe|id say|presumably|probablemente|seguramente|quizas?|tal vez|creo que)\b"
)


_BEGINS_WITH_BUT = re.compile(
    r"\A(?:(?:im |i am )?sorry|unfortunately|i (?:have |ve )?(?:looked|searched|checked)) but "
)
_STRUCK_OUT = re.compile(r"~~[^~\n]+~~")


def is_abstention(reply: str) -> bool:
    """Return whether a reply says only that the conversation does not contain the answer.

    Its first sentence must say so. A long reply, or one that continues after a "but" or guesses, does not count.
    """
    text = _BEGINS_WITH_BUT.sub("", _plain(without_reasoning(reply)))
    if not text or len(text.split()) > _LONGEST or _CONTRADICTS.search(text):
        return False
    first = next((one for one in map(_plain, re.split(r"(?<=[.!?;])\s+|\n", without_reasoning(reply))) if one), "")
    found = _SAYS_NOT.match(text) or _SAYS_NOT.match(first)
    return found is not None and not _GUESSES.search(text, found.end())


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
    if (values := json_values(answer)) and len(values) == 1:
        answer = values[0]
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
            "uncertain": _is_uncertain(question, answer, decided_by),
        }
    )


_MOST_OTHER_WORDS: Final = 2
"""A reply with more words of its own can qualify or deny the answer in ways that the rules do not read."""


def _is_uncertain(question: Question, answer: str, decided_by: DecidedBy) -> bool:
    """Return whether a reply has more words that are neither of the question nor of the answer than a rule can
    weigh.

    A reply without a word of the answer is certain not to match: most such replies say something else altogether.
    """
    asked = tokens_of(question.text)
    wanted = tokens_of(" ; ".join((question.expected, *question.expected_entities, *question.supersedes)))
    said = [token for _, token in content_of(tokens_of(answer))]
    others = [token for token in said if not _is_among(token, [*asked, *wanted])]
    if len(others) <= _MOST_OTHER_WORDS:
        return False
    return decided_by != "no_match" or any(
        _is_among(token, wanted) and not _is_among(token, asked) for token in said
    )


_DATE_NOTE = re.compile(r" ?\([^()]*\b(?:19|20)\d\d\b[^()]*\)")


def is_quotation(reply: str, source: str) -> bool:
    """Return whether a reply consists of sentences of a source, but for dates in brackets: it qualifies nothing."""
    held = " ".join(_DATE_NOTE.sub("", source).split())
    sentences = sentences_of(_DATE_NOTE.sub("", reply))
    return bool(sentences) and all(" ".join(sentence.split()) in held for sentence in sentences)


def score_quotation(question: Question, reply: str, scored: Score) -> Score:
    """Return the score of a reply that quotes: one sentence does not deny another, unless it is a "no"."""
    sentences = sentences_of(reply)
    if scored.decided_by == "denied" and not any(
        sentence.endswith("?") or polarity_of(sentence, question.text) for sentence in sentences
    ):
        each = [score_recall(question, sentence) for sentence in sentences]
        right = next((one for one in each if one.outcome == "correct"), None)
        if right and all(one.outcome == "correct" or one.decided_by == "no_match" for one in each):
            scored = right.model_copy(update={"predicted": reply})
    return scored.model_copy(update={"uncertain": False})


def _is_among(token: Token, known: Iterable[Token]) -> bool:
    return any(same_token(one, token) or (one.kind == "word" and is_form_of(one, token)) for one in known)


def _decision(
    question: Question, answer: str, exact: bool, entities: Sequence[tuple[bool, Rejection | None]]
) -> tuple[bool, DecidedBy]:
    wanted, says_only = expected_polarity(question.expected)
    said = polarity_of(answer, question.text) if wanted else None
    if wanted and said and said != wanted:
        return False, "no_match"
    given, rejected = asserted(with_asked_unit(question.expected, question.text), answer, question.text)
    if not given and rejected is None and (rest := _without_what_is_asked(question)):
        given, rejected = asserted(rest, answer, question.text)
    if not given and rejected is None and (wanted_times := times_asked_for(question.text, question.expected)):
        said_when = times_in(answer)
        given = bool(said_when) and all(
            not time.is_of_any_year
            and all(time.answers(one) for one in wanted_times)
            and asserted(time.words, answer, question.text)[0]
            for time in said_when
        )
    # Entities leave out what the answer also says: "February" is no answer in another year.
    by_entities = (
        bool(entities) and all(ok for ok, _ in entities) and not says_another_time(question.expected, answer)
    )
    has_more = any(folded(entity) not in ("yes", "no", "si") for entity in question.expected_entities)
    if wanted and said == wanted and (says_only or not has_more):
        given = True
    if not given and not by_entities:
        return False, rejected or next((why for _, why in entities if why is not None), None) or "no_match"
    for old in question.supersedes:
        if not contains(old, question.expected) and asserted(old, answer, question.text)[0]:
            return False, "candidates"
    return True, ("exact" if exact else "equivalent") if given else "entities"


_WHICH_OF_TWO = re.compile(r"\b(?:or|both|who|whom|whose|o|quien|quién)\b", re.IGNORECASE)
_PART: Final = re.compile(r"(?:\bof |\bde )?[^\s,]+,?")


def _without_what_is_asked(question: Question) -> str | None:
    """Return the expected answer without the words that the question has: "Maple" of "Maple Street", asked for
    a" " street.
    """
    if _WHICH_OF_TWO.search(question.text):
        return None
    asked = [token for _, token in content_of(tokens_of(question.text))]
    parts = [
        (part[0], [token for _, token in content_of(tokens_of(part[0].strip(",")))])
        for part in _PART.finditer(question.expected)
    ]
    kept = [
        part
        for part, tokens in parts
        if not all(
            any(same_token(one, token) for one in asked)
            and (token.kind == "word" or re.fullmatch(r"(?:19|20)\d\d", token.text))
            for token in tokens
        )
    ]
    rest = " ".join(kept).strip(" ,")
    return rest if len(kept) < len(parts) and content_of(tokens_of(rest)) else None


def score_without_answer(question: Question, outcome: Outcome, text: str | None) -> Score:
    """Return the score of a reply that holds no answer."""
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
