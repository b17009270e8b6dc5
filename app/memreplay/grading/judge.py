"""Grades a reply to a recall question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from memory_backends.text import folded, sentences_of
from memreplay.conversations.models import Question
from memreplay.grading import DecidedBy, Outcome, Score
from memreplay.grading.match import contains, enumeration, in_full
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
from memreplay.grading.times import answers_when, says_another_time, times_asked_for
from memreplay.grading.veto import (
    NAME,
    NEGATIONS,
    Rejection,
    asserted,
    expected_polarity,
    is_form_of,
    polarity_of,
)
from memreplay.grading.vocabulary import FORMS_A_QUESTION
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
_NOT_BEING = rf"(?:is|was|are|were|has|have|had|ve) ?(?:(?:not|nt|never)(?: been)?|been never){_ADVERB}"
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

_THERE = r"(?:there ?(?:is|s|was|are|were)|i (?:have|see|find|found)|we have) ?"
_DENIALS = (
    # a verdict: "not answerable"
    r"(?:not|non) ?(?:answerable|mentioned|said|stated|specified|known|available|provided|discussed)\b",
    r"(?:(?:it|this|that|the answer) (?:is|was|remains) )?un(?:answerable|known|clear|stated|specified)\b"
    r"(?=\Z| (?:in|from|by|to me)\b)",
    r"(?:it |that |this |the question )?(?:cannot|can not|cant) be (?:answered|determined|known)\b",
    # nothing found: "no information", "there is nothing in our chats"
    rf"(?:{_THERE})?(?:no|(?:not|nt) (?:any|enough)|insufficient) (?:\w+ )?{_MATTER}\b",
    rf"{_THERE}(?:no|nothing)(?: \w+){{0,6}} (?:in {_SOURCE}|anywhere|on (?:record|file))\b",
    rf"{_THERE}nothing (?:about|on)\b",
    rf"nothing (?:in {_SOURCE} )?(?:\w+ )?(?:{_TELL}|(?:{_HOLD})s?)\b",
    rf"(?:\w+ ){{1,5}}(?:is not|isnt|was not|wasnt) (?:\w+ )?(?:in {_SOURCE}|something (?:that )?(?:you|we|i))\b",
    rf"no (?:\w+ ){{1,4}}(?:is|was|were|are|has been|have been|had been){_ADVERB} {_TOLD}\b",
    # the speaker: "I don't know"
    r"i ?(?:do not|dont|did not|didnt|cannot|can not|cant|could not|couldnt|am not|m not|am un|was not|have not"
    r"|havent)(?: \w+)?? ?(?:know|have|see|seen|find|found|remember|recall|tell|say|determine|answer|sure|able"
    r"|been told)\b",
    # the conversation: "it was not mentioned", "I was never told"
    rf"(?:it|this|that|the answer|i) ?{_NOT_BEING} {_TOLD}\b",
    rf"(?:\w+ ){{1,10}}{_NOT_BEING} {_TOLD}(?: (?:in|by|anywhere|here)\b.*)?\Z",
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
_LACKS = re.compile(
    rf"{_LEAD_IN}{_SOURCE}(?: \w+){{0,3}}? (?:lacks?|omits?|(?:is|are|stays?|remains?) silent|says? nothing"
    rf"|(?:{_NOT_DOING}) (?:{_TELL}|{_HOLD}|touch|go into|address|have|elaborate)(?:es)?"
    r"|leaves? (?:\w+ )+(?:out|open))\b"
    rf"(?!.*{_CONTRADICTS.pattern})"
)
"""A sentence of what the conversation lacks."""
_GUESSES = re.compile(
    r"\b(?:probably|(?:most )?likely|my (?:best )?guess|id guess|perhaps|maybe|might be|could be|i think"
    r"|i believe|id say|presumably|probablemente|seguramente|quizas?|tal vez|creo que)\b"
)


_BEGINS_WITH_BUT = re.compile(
    r"\A(?:(?:im |i am )?sorry|unfortunately|i (?:have |ve )?(?:looked|searched|checked)) but "
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_STRUCK_OUT = re.compile(r"~~[^~\n]+~~")


def is_abstention(reply: str) -> bool:
    """Return whether a reply says only that the conversation does not contain the answer.

    Its first sentence must say so. Where that sentence says what the conversation lacks, others may tell what it
    has instead; else a long reply, or one that goes on after a "but", does not count. One that guesses never does.
    """
    said = without_reasoning(reply)
    text = _BEGINS_WITH_BUT.sub("", _plain(said))
    first = next((one for one in map(_plain, _SENTENCES.split(said)) if one), "")
    if not first or len(first.split()) > _LONGEST:
        return False
    found = _LACKS.match(first)
    if found is None:
        if len(text.split()) > _LONGEST or _CONTRADICTS.search(text):
            return False
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
        gives_it = question.suggested is not None and asserted(question.suggested, answer, question.text)[0]
        return _judged(is_abstention(text) and not gives_it, text, "abstention")
    if is_abstention(text):
        further = "".join(_SENTENCES.split(answer.strip(), maxsplit=1)[1:])
        if _CONTRADICTS.match(folded(further)) and not says_another_time(question.text, further):
            scored = score_recall(question, further)
            if scored.outcome == "correct":
                return scored.model_copy(update={"predicted": text, "decided_by": "overlap", "uncertain": True})
        return score_without_answer(question, "wrong", text).model_copy(update={"decided_by": "abstention"})
    if (values := json_values(answer)) and len(values) == 1:
        answer = values[0]
    exact = occurs_in(question.expected, answer)
    among = len(question.expected_entities)
    entities = [
        asserted(with_asked_unit(in_full(entity, question.expected), question.text), answer, question.text, among)
        for entity in question.expected_entities
    ]
    correct, decided_by, by_overlap = _decision(question, answer, exact, entities)
    return _judged(correct, text, decided_by).model_copy(
        update={
            "exact_match": exact,
            "entity_recall": sum(ok for ok, _ in entities) / len(entities) if entities else None,
            "f1": token_f1(question.expected, answer),
            "uncertain": by_overlap,
        }
    )


_DATE_NOTE = re.compile(r" ?\([^()]*\b(?:19|20)\d\d\b[^()]*\)")


def is_quotation(reply: str, source: str) -> bool:
    """Return whether a reply consists of sentences of a source, but for dates in brackets: it qualifies nothing."""
    held = " ".join(_DATE_NOTE.sub("", source).split())
    sentences = sentences_of(_DATE_NOTE.sub("", reply))
    return bool(sentences) and all(" ".join(sentence.split()) in held for sentence in sentences)


_BY_ANOTHER_SENTENCE: Final = frozenset({"denied", "hedged", "superseded"})
"""Ways in which one sentence of a reply can qualify another."""
_IS_A_NO: Final = re.compile(r"\W*(?:no|nope|nah)\s*(?:[,.;:!]|\Z)")


def may_be_a_quotation(scored: Score) -> bool:
    """Return whether the score would change if the reply only quoted what it was given."""
    return scored.uncertain or scored.decided_by in _BY_ANOTHER_SENTENCE


def score_quotation(question: Question, reply: str, scored: Score) -> Score:
    """Return the score of a reply that quotes: one sentence does not qualify another, unless it is a "no"."""
    sentences = sentences_of(reply)
    if scored.decided_by in _BY_ANOTHER_SENTENCE and not any(
        sentence.endswith("?") or _IS_A_NO.match(folded(sentence)) for sentence in sentences
    ):
        each = [score_recall(question, sentence) for sentence in sentences]
        right = next((one for one in each if one.outcome == "correct"), None)
        if right and all(one.outcome == "correct" or one.decided_by == "no_match" for one in each):
            scored = right.model_copy(update={"predicted": reply})
    return scored.model_copy(update={"uncertain": scored.decided_by == "overlap"})


def _decision(
    question: Question, answer: str, exact: bool, entities: Sequence[tuple[bool, Rejection | None]]
) -> tuple[bool, DecidedBy, bool]:
    """Return whether a reply is right, by what, and whether only by how much it shares with the answer."""
    wanted, says_only = expected_polarity(question.expected)
    said = polarity_of(answer, question.text) if wanted else None
    if wanted and said and said != wanted:
        return False, "no_match", False
    given, rejected = asserted(with_asked_unit(question.expected, question.text), answer, question.text)
    for part in (_without_what_is_asked(question), *_alternatives(question.expected)):
        if not given and rejected is None and part:
            given, rejected = asserted(part, answer, question.text)
    if not given and rejected is None and (wanted_times := times_asked_for(question.text, question.expected)):
        said_when = answers_when(wanted_times, answer)
        given = bool(said_when) and all(asserted(time.words, answer, question.text)[0] for time in said_when)
    # Entities leave out what the answer also says: "February" is no answer in another year.
    is_another_time = says_another_time(question.expected, answer)
    by_entities = bool(entities) and all(ok for ok, _ in entities) and not is_another_time
    has_more = any(folded(entity) not in ("yes", "no", "si") for entity in question.expected_entities)
    if wanted and said == wanted and (says_only or not has_more):
        given = True
    uncertain = False
    if not given and not by_entities:
        rejected = rejected or next((why for _, why in entities if why is not None), None)
        if rejected or is_another_time:
            return False, rejected or "no_match", False
        is_enough, uncertain = _overlap(question, answer)
        if not is_enough:
            return False, "no_match", uncertain
    for old in question.supersedes:
        if not contains(old, question.expected) and asserted(old, answer, question.text)[0]:
            return False, "candidates", False
    if uncertain:
        return True, "overlap", True
    return True, ("exact" if exact else "equivalent") if given else "entities", False


_ENOUGH: Final = 0.6
"""The share of the words of an answer that a reply in other words has to assert."""
_ENOUGH_OF_A_LIST: Final = 0.8
_FEW: Final = 3
"""Words. Of a shorter answer a reply has to assert all, beside each other."""


def _overlap(question: Question, answer: str) -> tuple[bool, bool]:
    """Return whether a reply in other words asserts enough of the expected answer, and whether that is uncertain.

    Its figures, dates and names have to be there, and other ones in their place make it certain that a reply is
    wrong. A reply that has nothing but words of the answer leaves out the rest.
    """
    asked = [token for _, token in content_of(tokens_of(question.text))]
    said = [token for _, token in content_of(tokens_of(answer)) if not _is_among(token, asked)]
    wanted = [token for _, token in content_of(tokens_of(question.expected))]
    wanted = [token for token in wanted if not _is_among(token, asked) and token.text not in FORMS_A_QUESTION]
    names, other_names = ({folded(name) for name in NAME.findall(text)} for text in (question.expected, answer))
    if not names.issuperset(token.text for token in wanted) and (first := NAME.match(question.expected)):
        names.discard(folded(first[0]))
    given = [
        token
        for token in wanted
        if any(same_token(token, one) for one in said)
        and (token.kind != "word" or asserted(token.text, answer, question.text, len(wanted))[0])
    ]
    missing = [token for token in wanted if token not in given]
    others = [token for token in said if not _is_among(token, wanted)]
    if any(token.text in NEGATIONS for token in missing) and NEGATIONS.isdisjoint(token.text for token in said):
        return False, True
    if fixed := [token for token in missing if token.kind != "word" or token.text in names]:
        kinds = {token.kind for token in others if token.kind != "word" or token.text in other_names}
        return False, not any(token.kind in kinds for token in fixed)
    if not others or _has_another_attribute(missing, others, tokens_of(question.expected), tokens_of(answer)):
        return False, True
    items = enumeration(question.expected)
    is_list = len(items) >= _FEW and all(len(content_of(tokens_of(item))) <= 2 for item in items)
    enough = _ENOUGH_OF_A_LIST if is_list else _ENOUGH
    return len(wanted) >= _FEW and len(given) >= enough * len(wanted), True


def _has_another_attribute(
    missing: Sequence[Token], others: Sequence[Token], wanted: Sequence[Token], given: Sequence[Token]
) -> bool:
    """Return whether a word of an answer is replaced before the same word: "the green pot" for "the blue pot"."""
    nouns = [token for _, token in content_of(wanted) if token.kind == "word"]
    behind = [noun for one, noun in pairwise(wanted) if one in missing and noun in nouns]
    return any(one in others and any(same_token(noun, after) for noun in behind) for one, after in pairwise(given))


def _is_among(token: Token, known: Iterable[Token]) -> bool:
    return any(same_token(one, token) or (one.kind == "word" and is_form_of(one, token)) for one in known)


_WHICH_OF_TWO = re.compile(r"\b(?:or|both|who|whom|whose|o|quien|quién)\b", re.IGNORECASE)
_PART: Final = re.compile(r"(?:\bof |\bde )?[^\s,]+,?")


_REASON: Final = re.compile(r"; (?:because|since|as|though|s?he|they|it|her|his|their|porque|aunque)\b[^;]*\Z")
_OR: Final = re.compile(r"\b(?:either|or|o)\b(?! (?:so|more|less|fewer|later|not|mas|menos)\b)", re.IGNORECASE)


def _alternatives(expected: str) -> list[str]:
    """Return each of the answers that "the sea or a lake; she likes to swim" accepts, without the reason."""
    parts = [part.strip() for part in _OR.split(_REASON.sub("", expected)) if content_of(tokens_of(part))]
    figures = {any(token.kind != "word" for _, token in content_of(tokens_of(part))) for part in parts}
    return [] if parts == [expected.strip()] or len(figures) > 1 else parts


def _without_what_is_asked(question: Question) -> str | None:
    """Return the expected answer without the words that the question has: "Maple" of "Maple Street", asked for a
    street.
    """
    asked = [token for _, token in content_of(tokens_of(question.text))]
    parts = [part[0] for part in _PART.finditer(question.expected)]
    kept = [part for part in parts if not all(_is_asked(one, asked) for _, one in content_of(tokens_of(part)))]
    rest = " ".join(kept).strip(" ,")
    return (
        rest if kept != parts and content_of(tokens_of(rest)) and not _WHICH_OF_TWO.search(question.text) else None
    )


def _is_asked(token: Token, asked: Sequence[Token]) -> bool:
    is_open = token.kind in ("word", "mark") or re.fullmatch(r"(?:19|20)\d\d", token.text) is not None
    return is_open and any(same_token(one, token) for one in asked)


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
