"""Grades a reply to a recall question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from math import log1p
from typing import Final

from memory_backends.text import folded, sentences_of
from memreplay.conversations.models import Question
from memreplay.grading import DecidedBy, Outcome, Score
from memreplay.grading.doubt import REJECTED_FOR_FORM, closeness, is_uncertain
from memreplay.grading.match import binds_otherwise, contains, enumeration
from memreplay.grading.read import (
    Token,
    are_paired,
    content_of,
    is_among,
    is_stop_word,
    json_values,
    same_token,
    shortened,
    tokens_of,
    with_rates,
    with_unit,
    without_reasoning,
)
from memreplay.grading.times import answers_when, says_another_time, times_asked_for
from memreplay.grading.veto import (
    DENIES_NOTHING,
    LIKELY,
    NAME,
    NEGATIONS,
    Rejection,
    asked_by,
    asserted,
    expected_polarity,
    polarity_of,
)
from memreplay.grading.vocabulary import FORMS_A_QUESTION, OPPOSITES
from memreplay.text import normalised, occurs_in

_LONGEST = 40  # Words. A longer reply answers something.

_SOURCE = (
    r"\b(?:conversations?|history|texts?|context|chats?|dialogues?|logs?|transcript|passage|information|excerpt"
    r"|messages?|notes?|records?|memory|conversacion(?:es)?|historial|contexto|dialogo|informacion|mensajes|notas|charlas?"
    r"|(?:(?:any|every|some)thing|what|things?|lo que)(?: that)?(?: me)? (?:youve|weve|you|we|has|hemos))"
)
_NOT = (
    r"\b(?:(?:(?:do|does|did|have|has|had|is|are|am|m|was|were|could|can|s|ve) )?(?:not|never)"
    r"|(?:do|does|did|have|has|had|is|are|was|were|ca|could)nt|cannot)"
)
_TELL = (
    r"(?:sa(?:y|id|ys)|t(?:ells?|old)|g[ia]ven?|gives?|gave|talk(?:s|ed|ing)?|sp[eo]ken?|known|clear"
    r"|(?:br(?:ings?|ought)|c[oa]mes?)(?: it)? up|(?:get|go|touch)(?:es|s)? (?:in|on)(?:to)?|(?:answer|avail)able"
    r"|(?:mention|discuss|record|reveal|cover|stat|shar|disclos|indicat|not|nam|rais|provid|includ|contain|show"
    r"|answer|determin|address|elaborat|hold|describ|appear)(?:s|e|es|ed)?|(?:specif|clarif)(?:y|ies|ied))\b"
)
_SOME = r"(?:\w+ ){0,3}?"
_OPEN = (
    rf"(?=(?: me| us)?\Z| (?:(?:by|in|from|of) )?(?:\w+ )?{_SOURCE}"
    r"| (?:wh\w+|how|if|as|one|at all|any\w*(?! (?:other|more|else)\b)|here|yet|so far|about|by|from|to me)\b)"
)
"""The end of a telling that leaves a question open."""
_MATTER = (
    r"(?:information|mention|indication|evidence|record|reference|details?|data|answer|way|trace|note|idea|clue)\b"
)
_ASUNTO = r"(?:informacion|mencion|datos?|constancia|respuesta|referencia|registro|ni idea)\b"
_DICHO = (
    r"(?:dicho|mencionad[oa]|especificad[oa]|indicad[oa]|aclarad[oa]|revelado|hablado|contado|comentado|dado|diste"
    r"|dij(?:o|iste|imos)|(?:mencion|habl|cont|coment|indic)(?:o|aste|amos)|consta|figura|aparecen?|encuentro"
    r"|recuerdo(?! mal))\b"
)
_DICE = (
    r"(?:(?:dic|aparec|contien|incluy)en?|(?:mencion|especific|indic|aclar|proporcion|revel|habl|cuent)an?|sabe)\b"
)
_NUNCA = r"(?:no|nunca|en ning\w+ \w+)"
_OF_THE_SOURCE = (
    rf"{_SOURCE}(?: \w+){{0,3}}? (?:{_NOT} {_SOME}(?:{_TELL}|have\b)|lacks?\b|omits?\b|says? nothing"
    r"|(?:is|are|stays?|remains?) silent|leaves? (?:\w+ )+(?:out|open)\b)"
)
_DENIES = re.compile(
    # Each way begins at a word, or at the beginning of a clause; said once, long words are passed over soon.
    r"(?:\b|\A)(?:"
    + "|".join(
        (
            _OF_THE_SOURCE,
            # a verdict: "unknown", "not answerable"
            r"\b(?:is|was|remains?) un(?:known|clear|stated)\Z|\An a\Z|\Ani idea\b|\bhave nothing (?:on|about)\b",
            rf"\A{_SOME}(?:un(?:answerable|known|clear|stated|specified|named|told)|(?:not|non) ?{_TELL}){_OPEN}",
            # nothing found: "no information", "there is nothing in our chats", "no price is given"
            r"\A(?:(?:there|theres|is|are|was|were|i|ive|we|weve|have|see|find|found|got) )*"
            rf"(?:no|{_NOT} (?:have |an?y? |enough )+|insufficient) (?:\w+ )?{_MATTER}",
            r"\bthere ?(?:(?:is|s|are|was|were) (?:no|nothing)|(?:is|was|are|were)(?:nt| not)) (?:\w+ ){0,7}?"
            rf"(?:anywhere|here|about|on (?:record|file)|{_MATTER}|in (?:\w+ )?{_SOURCE})",
            rf"(?:\A(?:no|neither|none)|\bnothing) {_SOME}{_SOME}{_TELL}(?! to)",
            # the speaker, or who asks: "I don't know", "you never said"
            rf"(?:\b(?:i|im|ive|we|weve)|\A(?:and|so)?) ?{_NOT} {_SOME}(?:know|have|see|seen|find|found|remember"
            r"|recall|tell|say|determine|answer|sure|aware|able|told|believe you)\b",
            r"\bunable to (?:find|tell|say)\b|\bwithout (?:giv|nam|say|mention|tell)ing\b"
            r"|\b(?:g[ia]ves?|given|mention(?:s|ed)?|says?|said|tells?|told) (?:no|nothing)\b",
            rf"\b(?:you|youve|youd|we|weve|user)(?: have| had| did)? ?{_NOT} {_SOME}{_TELL}"
            r"(?!.* to (?!me\b|us\b)\w+\Z)",
            # a telling: "it was not mentioned", "his age never came up"
            rf"{_NOT} (?:(?:be|been|ever|even|yet|once|got|get|(?:some|any)thing \w+|\w+ly) )*{_TELL}{_OPEN}",
            rf"{_NOT} {_SOME}(?:in|of|from|part of|some\w+) (?:\w+ )?(?:{_SOURCE}|(?:you|we)(?:ve)?\b)",
            # Spanish
            rf"\b{_NUNCA} (?:me |te |se |nos |l[oa]s? )*(?:(?:h[ae]|has|han|hemos|fue|esta|queda|habia) )?"
            rf"(?:sido )?{_DICHO}",
            rf"(?:\A|{_SOURCE} |\b(?:eso|dato|detalle) ){_NUNCA} (?:lo |me )*{_DICE}|\b{_NUNCA} se (?:me )?{_DICE}"
            rf"|\bno (?:sale|hay nada) (?:sobre|en (?:ningun|(?:\w+ )?{_SOURCE}))",
            rf"(?:\bno (?:hay|tengo|existe|encuentro)(?: \w+)?|\bsin|\bninguna?) {_ASUNTO}|\bno l[oa]s? tengo\b",
            r"(?:\bno lo|\Ano) se(?:\Z| (?:el|l[ao]s?|si|que|cu\w+|donde|como|quien)\b)|\bse desconoce"
            r"|\Adesconocid[oa]\b|\bno (?:lo |se )?(?:puedo|puede|es posible) (?:saber|responder|determinar)",
        )
    )
    + ")"
)
"""A clause that says that something was never said, or cannot be found."""
_FIRST_OF_ALL = re.compile(
    rf"\A{_SOME}(?:sorry|unfortunately|apologies|afraid|hmm+|well|answer|respuesta|lo siento|lamentable|perdon)"
    rf"|\b(?:i|im|ive|you|your|youve|we|weve|looking|{_SOURCE}|\w*aste|dijiste|only|{_TELL}|talks|en)\b"
)
"""A clause before such a one that answers nothing: it apologises, or tells what was said instead."""
_CONTRADICTS = re.compile(
    r"\b(?:but|however|although|though|except|pero|aunque|sin embargo|sino)\b"
    r"(?! (?:if you|i can|i could|let me|feel free|si (?:me|lo)|puedo)\b)"
)
_GUESSES = re.compile(
    r"\b(?:probably|(?:most )?likely|my (?:best )?guess|id guess|perhaps|maybe|might be|could be|i think|i believe"
    r"|id say|presumably|probablemente|seguramente|quizas?|tal vez|creo que)\b"
)
_OUT_OF_THE_SOURCE = re.compile(rf"\b(?:as far as|according to|in|from|en|segun) (?:\w+ ){{0,2}}?{_SOURCE}.*")
_ASKS_AGAIN: Final = re.compile(r"(?:wh\w+|how|cu\w+|que|quien|donde|como)\Z")  # It begins "what she earns".
_LINK: Final = re.compile(r"\A(?:and|so|but|yet|although|though|y|pero|aunque) ")
_NEGATIONS: Final = NEGATIONS | {"nobody", "nothing", "none", "nadie"}
_ANY: Final = FORMS_A_QUESTION | frozenset(
    "any anything anyone anybody anywhere ever all such at really ningun ninguna nada tiene".split()
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_CLAUSES = re.compile(rf"[;:()—–]|\s-\s|,?\s(?={_CONTRADICTS.pattern}|(?:and|so|y)\b)|,\s")
_STRUCK_OUT = re.compile(r"~~[^~\n]+~~")


def is_abstention(reply: str) -> bool:
    """Return whether a reply says only that the conversation does not contain the answer.

    Its first sentence says so, after clauses that answer nothing. If it names what is lacking, others may tell what
    there is instead; else a long reply, or one that goes on after a "but", does not count. A guess never does.
    """
    said = _statements(reply)
    if not said or len(_plain(said[0]).split()) > _LONGEST:
        return False
    clauses = _clauses_of(said[0])
    denials = [at for at, one in enumerate(clauses) if _denies(one)]
    if not denials or not all(_FIRST_OF_ALL.search(one) for one in clauses[: denials[0]]):
        return False
    rest = " ".join(clauses[denials[-1] + 1 :])
    further = _plain(" ".join(said[1:]))
    if not re.search(_OF_THE_SOURCE, clauses[denials[0]]):
        if len(_plain(" ".join(said)).split()) > _LONGEST:
            return False
        rest = f"{rest} {further}"
    return not _CONTRADICTS.search(rest) and not _GUESSES.search(f"{rest} {further}")


def _declines(reply: str, question: str) -> bool:
    """Return whether a reply to a question that nothing answers says so in one of its clauses.

    The clause says that something was not told, and of what is asked if of anything; or it denies what the question
    takes for granted, and no more. What the sentence goes on with is no "but", and nothing behind it is a guess.
    """
    said = _statements(reply)
    for at, sentence in enumerate(said):
        clauses = _clauses_of(sentence)
        for here, clause in enumerate(clauses):
            if _denies_what_is_asked(clause, question):
                rest, further = " ".join(clauses[here + 1 :]), _plain(" ".join(said[at + 1 :]))
                goes_on = _CONTRADICTS.search(rest) or _CONTRADICTS.match(further)
                return not goes_on and not _GUESSES.search(f"{' '.join(clauses)} {further}")
    return False


def _denies_what_is_asked(clause: str, question: str) -> bool:
    asked, clause = asked_by(question), _LINK.sub("", clause)
    if _denies(clause):
        about = [token for token in tokens_of(_DENIES.sub(" ", clause)) if not is_stop_word(token)]
        if about and _ASKS_AGAIN.match(about[0].text):
            return True
        return all(token.text.endswith("ly") for token in about) or any(is_among(one, asked.words) for one in about)
    words = [token for token in tokens_of(_OUT_OF_THE_SOURCE.sub("", clause)) if not is_stop_word(token)]
    negation = next((at for at, token in enumerate(words) if token.text in _NEGATIONS), len(words))
    denied = [
        token for token in words[negation + 1 :] if token.text not in _ANY and not re.match(_TELL, token.text)
    ]
    return all(is_among(token, asked.words) for token in denied) and any(
        token.text not in asked.names for token in denied
    )


def _denies(clause: str) -> bool:
    return _DENIES.search(DENIES_NOTHING.sub("", clause)) is not None


def _statements(reply: str) -> list[str]:
    """Return the sentences of a reply, but for questions."""
    return [one for one in _SENTENCES.split(without_reasoning(reply)) if _plain(one) and not one.endswith("?")]


def _clauses_of(sentence: str) -> list[str]:
    return [plain for one in _CLAUSES.split(folded(sentence)) if (plain := _plain(one))]


def _plain(text: str) -> str:
    """Folded words separated by one space."""
    return _NO_WORDS.sub(" ", folded(text).replace("'", "").replace("’", "")).strip()


_NO_WORDS: Final = re.compile(r"[\W_]+")


_ALSO: Final = re.compile(
    r"[.;]\s+(?P<other>[^.;(]+)[^.;]*? (?:is|are|would be) also (?:acceptable|accepted|correct)\b"
)
"""LongMemEval's way to accept a second answer: "18 days. 19 days (including the last day) is also acceptable."."""


def score_recall(question: Question, text: str) -> Score:
    """Correct where the reply asserts the expected answer, or all expected entities, in any equivalent spelling.

    Where the right answer is that it was never said, saying so is correct; elsewhere it is wrong. A reply without
    an answer is unparsed. ``exact_match`` is the strict figure: the expected words occur in the reply.
    """
    if also := _ALSO.search(question.expected):
        answers = question.expected[: also.start()], also["other"]
        each = [score_recall(question.model_copy(update={"expected": one}), text) for one in answers]
        return max(each, key=lambda scored: scored.score or 0.0)
    answer = _STRUCK_OUT.sub(" ", shortened(without_reasoning(text)))
    if not answer.strip():
        return score_without_answer(question, "unparsed", text)
    scored = _scored(question, text, answer)
    return scored.model_copy(update={"uncertain": is_uncertain(question, answer, scored)})


def _scored(question: Question, text: str, answer: str) -> Score:
    """Return the score of a reply, of which ``answer`` is what it does not think or strike out."""
    if question.abstain:
        gives_it = question.suggested is not None and asserted(question.suggested, answer, question.text)[0]
        return _judged((is_abstention(text) or _declines(text, question.text)) and not gives_it, text, "abstention")
    if is_abstention(text):
        further = "".join(_SENTENCES.split(answer.strip(), maxsplit=1)[1:])
        if _CONTRADICTS.match(folded(further)) and not says_another_time(question.text, further):
            scored = _scored(question, further, further)
            if scored.outcome == "correct" and scored.decided_by != "overlap":
                return scored.model_copy(update={"predicted": text, "decided_by": "overlap"})
        return score_without_answer(question, "wrong", text).model_copy(update={"decided_by": "abstention"})
    if (values := json_values(answer)) and len(values) == 1:
        answer = values[0]
    exact = occurs_in(question.expected, answer)
    wanted = [with_unit(entity, question.text, question.expected) for entity in question.expected_entities]
    entities = [asserted(entity, answer, question.text, len(wanted)) for entity in wanted]
    correct, decided_by = _decision(question, answer, exact, entities)
    return _judged(correct, text, decided_by).model_copy(
        update={
            "exact_match": exact,
            "entity_recall": sum(ok for ok, _ in entities) / len(entities) if entities else None,
            "f1": token_f1(question.expected, answer),
        }
    )


_DATE_NOTE = re.compile(r" ?\([^()]*\b(?:19|20)\d\d\b[^()]*\)")


def is_quotation(reply: str, source: str) -> bool:
    """Return whether a reply consists of sentences of a source, but for dates in brackets: it qualifies nothing."""
    held = " ".join(_DATE_NOTE.sub("", source).split())
    sentences = sentences_of(_DATE_NOTE.sub("", reply))
    return bool(sentences) and all(" ".join(sentence.split()) in held for sentence in sentences)


_IS_A_NO: Final = re.compile(r"\W*(?:no|nope|nah)\s*(?:[,.;:!]|\Z)")


def may_be_a_quotation(scored: Score) -> bool:
    """Return whether the score would change if the reply only quoted what it was given."""
    return scored.uncertain or scored.decided_by in REJECTED_FOR_FORM


def score_quotation(question: Question, reply: str, scored: Score) -> Score:
    """Return the score of a reply that quotes: one sentence does not qualify another, unless it is a "no"."""
    sentences = sentences_of(reply)
    if scored.decided_by in REJECTED_FOR_FORM and not any(
        sentence.endswith("?") or _IS_A_NO.match(folded(sentence)) for sentence in sentences
    ):
        each = [score_recall(question, sentence) for sentence in sentences]
        right = next((one for one in each if one.outcome == "correct"), None)
        if right and all(one.outcome == "correct" or one.decided_by == "no_match" for one in each):
            scored = right.model_copy(update={"predicted": reply})
    if scored.decided_by == "overlap" and not _overlaps(question, reply, is_quoted=True):
        return scored.model_copy(update={"outcome": "wrong", "score": 0.0, "decided_by": "no_match"})
    return scored.model_copy(update={"uncertain": scored.decided_by == "overlap"})


def _decision(
    question: Question, answer: str, exact: bool, entities: Sequence[tuple[bool, Rejection | None]]
) -> tuple[bool, DecidedBy]:
    """Return whether a reply is right, and by what."""
    wanted, why = expected_polarity(question.expected)
    said = polarity_of(answer, question.text) if wanted else None
    if wanted and said and said != wanted:
        return False, "no_match"
    given, rejected = asserted(with_unit(question.expected, question.text), answer, question.text)
    parts = (
        _without_what_is_asked(question),
        _figure_alone(question, answer),
        *_alternatives(question.expected),
        why,
    )
    in_rates = with_rates(question.expected), with_rates(answer)
    for part, said_so in [*((part, answer) for part in parts if part), in_rates]:
        if not given and rejected is None and (said_so is answer or part != folded(question.expected)):
            given, rejected = asserted(part, said_so, question.text)
    if not given and rejected is None and (wanted_times := times_asked_for(question.text, question.expected)):
        said_when = answers_when(wanted_times, answer, question.expected)
        given = bool(said_when) and all(asserted(time.words, answer, question.text)[0] for time in said_when)
    # Entities leave out what the answer also says: "February" is no answer in another year.
    is_another_time = says_another_time(question.expected, answer)
    by_entities = bool(entities) and all(ok for ok, _ in entities) and not is_another_time
    has_more = any(folded(entity) not in ("yes", "no", "si") for entity in question.expected_entities)
    if wanted and said == wanted and (not why or not has_more):
        given = True
    if not given and not by_entities:
        rejected = rejected or next((why for _, why in entities if why is not None), None)
        if rejected or is_another_time or not _overlaps(question, answer):
            return False, rejected or "no_match"
    for old in question.supersedes:
        if not contains(old, question.expected) and asserted(old, answer, question.text)[0]:
            return False, "candidates"
    if given:
        return True, "exact" if exact else "equivalent"
    return True, "entities" if by_entities else "overlap"


_ENOUGH: Final = 0.7
"""The closeness of a reply to the answer, times the logarithm of the number of its other words, that is enough.

A logistic regression over 218 labelled replies that no other rule decides gives the product: of those from here to
1.0 two in three are right, of those beyond four in five.
"""
_MOST: Final = 0.6  # The closeness that is enough of a quotation, whose other words answer nothing.
_ENOUGH_OF_A_LIST: Final = 0.8  # The share of the items of a list of which it has to assert a word.
_FEW: Final = 3  # Words. Of a shorter answer a reply has to assert all, beside each other.


def _overlaps(question: Question, answer: str, *, is_quoted: bool = False) -> bool:
    """Return whether a reply in other words asserts enough of the answer: all figures, dates and names, most words.

    A reply that has nothing but words of the answer leaves out the rest.
    """
    asked = [token for _, token in content_of(tokens_of(question.text))]
    said = [token for _, token in content_of(tokens_of(answer)) if not is_among(token, asked)]
    wanted = [token for _, token in content_of(tokens_of(LIKELY.sub(" ", question.expected)))]
    wanted = [token for token in wanted if not is_among(token, asked) and token.text not in FORMS_A_QUESTION]
    names = {folded(name) for name in NAME.findall(question.expected)}
    if not names.issuperset(token.text for token in wanted) and (first := NAME.match(question.expected)):
        names.discard(folded(first[0]))
    given = [
        token
        for token in wanted
        if any(same_token(token, one) for one in said)
        and (token.kind != "word" or asserted(token.text, answer, question.text, len(wanted))[0])
    ]
    missing = [token for token in wanted if token not in given]
    others = [token for token in said if not is_among(token, wanted)]
    if any(token.text in NEGATIONS for token in missing) and NEGATIONS.isdisjoint(token.text for token in said):
        return False
    if any(token.kind != "word" or token.text in names for token in missing):
        return False
    if any(are_paired(OPPOSITES, token.text, other.text) for token in missing for other in others):
        return False
    if not others or binds_otherwise(question.expected, tokens_of(answer), asked):
        return False
    if any(map(_denies, chain.from_iterable(map(_clauses_of, _statements(answer)[:1])))):
        return False
    items = [[token for _, token in content_of(tokens_of(item))] for item in enumeration(question.expected)]
    is_list = len(items) >= _FEW and all(len(item) <= 2 for item in items)
    if is_list:
        own = [[token for token in item if not is_among(token, asked)] for item in items]
        held = [item for item in own if not item or any(is_among(token, given) for token in item)]
        return len(held) >= _ENOUGH_OF_A_LIST * len(items)
    near = closeness(wanted, said)
    if is_quoted:
        return len(wanted) >= _FEW and near >= _MOST
    return near * log1p(len(others)) > _ENOUGH


_PART: Final = re.compile(r"(?:\b(?:of|de|per|al|every|each|cada) )?[^\s,]+,?")
_REASON: Final = re.compile(r"; (?:because|since|as|though|s?he|they|it|her|his|their|porque|aunque)\b[^;]*\Z")
_OR: Final = re.compile(r"\b(?:either|or|o)\b(?! (?:so|more|less|fewer|later|not|mas|menos)\b)", re.IGNORECASE)
_THAT_IS: Final = re.compile(r"[,(](?= ?(?:about|around|nearly|almost|roughly|since|i\.e|unos|casi|desde)\b)")


def _alternatives(expected: str) -> list[str]:
    """Return each answer of "the sea or a lake; she likes to swim", or of "since 2019, about four years"."""
    for joint in (_OR, _THAT_IS):
        parts = [part.strip() for part in joint.split(_REASON.sub("", expected)) if content_of(tokens_of(part))]
        figures = {any(token.kind != "word" for _, token in content_of(tokens_of(part))) for part in parts}
        if parts != [expected.strip()] and len(figures) == 1 and (joint is _OR or True in figures):
            return parts
    return []


def _without_what_is_asked(question: Question) -> str | None:
    """Return the expected answer without words of the question: "Maple" of "Maple Street", asked for a street."""
    asked = [token for _, token in content_of(tokens_of(question.text))]
    parts = [part[0] for part in _PART.finditer(question.expected)]
    kept = [part for part in parts if not all(_is_asked(one, asked) for _, one in content_of(tokens_of(part)))]
    rest = " ".join(kept).strip(" ,")
    return rest if kept != parts and not all(map(is_stop_word, tokens_of(rest))) else None


_ASKS_FOR_A_FIGURE: Final = re.compile(r"\bhow (?!often)\w+\b|\b(?:what|which) (?:size|number)\b|\bcuant[oa]s?\b")


def _figure_alone(question: Question, answer: str) -> str | None:
    """Return the figure of "117 pages" if the reply to how long it is has that, and nothing that it counts."""
    content = [token for _, token in content_of(tokens_of(question.expected))]
    figure = next((token for token in content if token.kind == "number"), None)
    if len(content) != 2 or figure is None or not _ASKS_FOR_A_FIGURE.search(folded(question.text)):
        return None
    given = tokens_of(answer)
    followers = (after for one, after in pairwise(given) if same_token(figure, one))
    return figure.text if any(after.kind == "mark" or is_stop_word(after) for after in followers) else None


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
    outcome: Outcome = "correct" if correct else "wrong"
    return Score(outcome=outcome, score=float(correct), predicted=text, decided_by=decided_by)
