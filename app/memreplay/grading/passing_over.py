"""Whether a reply names something only to pass over it: "after thinking about Osaka, they went to Kyoto".

What it names may have been considered, nearly chosen, supposed under a condition, or it may answer another question
than the one that was asked ("he grew up in Madrid, but he was born in Valencia"). Everything works on the form of
the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import content_of, same_token, tokens_of
from memreplay.grading.vocabulary import IRREGULAR_PASTS, STOP_WORDS

_CONSIDERED: Final = re.compile(
    r"\b(?:(?:think|thinking|thought) (?:about|of)|consider\w*|look(?:ed|ing) (?:at|into)|tempted by|toy\w* with"
    r"|wanted|hop(?:ed|ing) for|dream(?:ed|t|ing) of|plann\w+|intended|meant|(?:was|were) about to|almost|nearly"
    r"|(?:would|d) (?:have )?(?:expected|expect|thought|guessed|preferred|prefer|chosen|liked)|expected"
    r"|pens(?:aba|aban|o|aron|ando|ado)(?: en)?"
    r"|dud\w+ (?:con|entre)|queri\w+|plane\w+|(?:iba|iban) a|casi|a punto de)\b[^.;\n]{0,40}\Z"
)
_PAST: Final = rf"(?:\w+ed|{'|'.join(IRREGULAR_PASTS)})"
_THEN_ELSE: Final = re.compile(
    r"[^.\n]{0,60}?(?:[;:]|\b(?:but|however|instead|then|before \w+ing|until|finally|ended up|settled (?:on|for)"
    rf"|in the end|pero|sino|al final|luego|finalmente|and (?:then |so )?{_PAST})\b"
    r"|, (?:they|he|she|it|we|i|you|[a-z]+ (?:went|chose|bought|took))\b)"
)
_BUT_BEFORE: Final = re.compile(r"\b(?:although|though|but|whereas|having|aunque|pero)\b")
_ASKS_WHAT_WAS_CONSIDERED: Final = re.compile(
    r"\b(?:th(?:ink|ought)\w*|consider\w*|look\w* (?:at|into|for)|want\w*|wish\w*|hop(?:e|ed|ing)|dream\w*|plan\w*"
    r"|intend\w*|idea|goal|aim|ambition|prefer\w*|expect\w*|like|first|original\w*|before|alternativ\w*|almost|nearly"
    r"|interest\w*|pursu\w*|future|next|hope\w*|think\w*|career|pens\w*|quier\w*|queri\w*|sue[n]\w*|plane\w*|prefier\w*|casi|antes)\b"
)
_NOT_QUITE: Final = re.compile(r"\b(?:almost|nearly|close to|not quite|just under|casi|cerca de)\s+[£$€]?\Z")
_CONDITION: Final = re.compile(r"\b(?:if|unless|si|a menos que|salvo que)\b")
_WOULD: Final = re.compile(r"\b(?:would|could|podria\w*|[a-z]{3,}ria[ns]?)\b")
_SENTENCE_END: Final = re.compile(r"[.!?\n]")
_CONTRAST: Final = re.compile(r"\b(?:but|however|whereas|while|pero|mientras|aunque)\b|;")
_ANY_JOINT: Final = re.compile(_CONTRAST.pattern + r"|,|\b(?:and|then|y|luego)\b")
_POINTS_BACK: Final = re.compile(r"\W*(?:where|which|who|there|that|donde|que|alli)\b")
_EARLIER: Final = re.compile(r"\b(?:before|earlier|previous\w*|used to|until|once|ago|then|antes|hasta)\b")

_ASIDE: Final = re.compile(r"\b(?:almost|nearly|wanted|considered|thought|casi)\b")
_NOW: Final = re.compile(r"\b(?:now|currently|today|ahora|actualmente)\b")

_ASKED_VERB: Final = (
    re.compile(r"\Awho (\w+)"),
    re.compile(r"\b(?:did|does|do)(?: the| their| his| her| my| your)? \w+ (\w+)"),
    re.compile(
        rf"\b(?:was|were|is|are) .*?(?<!the )(?<!my )(?<!\ba )"
        rf"(\w+(?:ed|en|ing)|born|{'|'.join(IRREGULAR_PASTS)})\W*\Z"
    ),
    re.compile(r"\A\W*(?:en |a |de |desde )?(?:donde|cuando|que|cual|quien)(?: \w+)? (\w+)\W*\Z"),
)


def is_passed_over(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """Whether the reply names the matched words without giving them as its answer."""
    plain, asked = folded(reply), folded(question)
    start, end = given[match.first].start, given[match.last].end
    return (
        (_was_only_considered(plain, start, end) and not _ASKS_WHAT_WAS_CONSIDERED.search(asked))
        or _is_missed_number(match, given, plain, start, end)
        or (_is_supposed(plain, start, end) and not (_WOULD.search(asked) or _CONDITION.search(asked)))
        or (_ASKED_WHETHER.search(plain[:start]) and not _ASKS_WHAT_WAS_ASKED.search(asked))
        or _belongs_to_another(match, given, plain, question)
        or _is_said_of_another(match, given, plain, question)
        or _answers_something_else(match, given, plain, question)
    )


def _was_only_considered(plain: str, start: int, end: int) -> bool:
    clause = plain[max(plain.rfind(mark, 0, start) for mark in (".", ";", "\n", " but ", " pero ")) + 1 : start]
    if not (considered := _CONSIDERED.search(clause)):
        return False
    return bool(_THEN_ELSE.match(plain, end) or _BUT_BEFORE.search(clause, 0, considered.start()))


def _is_missed_number(match: Match, given: Sequence[Token], plain: str, start: int, end: int) -> bool:
    """ "Nearly 40: 39": another number follows at once."""
    is_number = given[match.first].kind == "number"
    return is_number and bool(_NOT_QUITE.search(plain[:start]) and re.match(r"[^\w]{1,3}[£$€]?\d", plain[end:]))


def _is_supposed(plain: str, start: int, end: int) -> bool:
    """The answer stands in a conditional sentence, and another sentence answers."""
    breaks = [found.end() for found in _SENTENCE_END.finditer(plain, 0, start)]
    begin = breaks[-1] if breaks else 0
    close = _SENTENCE_END.search(plain, end)
    sentence = plain[begin : close.start() if close else len(plain)]
    has_more = bool(re.search(r"\w", plain[:begin]) or (close and re.search(r"\w", plain[close.end() :])))
    return has_more and bool(_WOULD.search(sentence) and _CONDITION.search(sentence))


_ASKED_WHETHER: Final = re.compile(
    r"\b(?:ask(?:ed|s)?|wonder(?:ed|s)?|pregunt\w+)\b[^.,;\n]{0,30}\b(?:whether|if|si)\b[^.,;\n]{0,40}\Z"
)
_ASKS_WHAT_WAS_ASKED: Final = re.compile(r"\b(?:ask|wonder|question|pregunt)\w*")
_ABOUT_ME: Final = re.compile(
    r"\b(?:my|mine|i|me|mi|mis|yo|tengo|soy|estoy|vivo|trabajo|estudio|llevo|uso|juego|compre|pague|pedi|elegi|conduzco)\b"
)
_ABOUT_YOU: Final = re.compile(
    r"\W*(?:(?:and|but|whereas|while|however|y|pero|mientras(?: que)?),? )*"
    r"(?:(?P<yours>yours|your own|el tuyo|la tuya)|(?:you|tu) (?P<verb>\w+))\b"
)
_CLAUSE: Final = re.compile(r"[.!?](?=\s|\Z)|[;\n]|,? \b(?=(?:but|however|whereas|while|pero|mientras|aunque)\b)")
_SAME_VERB: Final = {"have": "has", "are": "is", "were": "was", "do": "does", "tienes": "tiene"}


def _belongs_to_another(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The user asks about themselves; the reply says this of someone else, and says of the user something else."""
    if not _ABOUT_ME.search(folded(question)):
        return False
    start, end = given[match.first].start, given[match.last].end
    bounds = [0, *(found.end() for found in _CLAUSE.finditer(plain)), len(plain)]
    clauses = list(pairwise(bounds))
    begin = max((first for first, _ in clauses if first <= start), default=0)
    if _ABOUT_YOU.match(plain, begin):
        return False
    asked = tokens_of(question)
    before = [token for token in given if begin <= token.start < start]
    if not any(not any(same_token(token, one) for one in asked) for token in _words(before)):
        return False
    verbs = {token.text for token in before}
    for first, last in clauses:
        if first < end and last > start:
            continue
        about_you = _ABOUT_YOU.match(plain[:last], first)
        if about_you and (about_you["yours"] or _SAME_VERB.get(about_you["verb"], about_you["verb"]) in verbs):
            return True
    return False


_RELATIVE: Final = (
    r"(?:wife|husband|partner|mother|mum|mom|father|dad|parents|son|daughter|brother|sister|aunt|uncle|cousin|niece|nephew|grandmother|grandma"
    r"|grandfather|grandpa|friend|boyfriend|girlfriend|boss|manager|colleague|coworker|neighbou?r|roommate|flatmate|landlord|doctor|teacher|coach|kids?"
    r"|children|twin|mujer|marido|madre|padre|hijo|hija|hermano|hermana|tia|tio|prima|primo|abuela|abuelo|amiga|amigo|jefe|jefa|vecina|vecino|suegra|suegro)"
)
_OF_A_RELATIVE: Final = re.compile(
    r"(?:\A|(?<=[.!?;\n:] )|(?<=, )|(?<=but )|(?<=pero ))\W*(?:it was |it is |its |era |es )?"
    rf"(?P<whose>your|tus?|his|her|their|su|[^\W\d_]+) (?:\w+ )?(?P<who>{_RELATIVE})\b"
)
_OF_YOU: Final = re.compile(r"\b(?:you|yours|your own|tu|tuyo|tuya|te)\b")


def _is_said_of_another(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The reply speaks of a relative or friend of whom is asked about, and the question names no such person."""
    asked = folded(question)
    start, end = given[match.first].start, given[match.last].end
    begin = max((found.end() for found in _CLAUSE.finditer(plain, 0, start)), default=0)
    close = _CLAUSE.search(plain, end) or re.compile(r",|\Z").search(plain, end)
    subject = next(iter([*_OF_A_RELATIVE.finditer(plain, begin, start)][::-1]), None)
    if subject is None or close is None or re.search(rf"\b{subject['who']}", asked):
        return False
    whose = subject["whose"]
    if whose in ("your", "tu", "tus"):
        is_near = bool(_ABOUT_ME.search(asked))
    else:
        is_near = whose in ("his", "her", "their", "su") or re.search(rf"\b{whose}\b", asked) is not None
        is_near = is_near and not _ABOUT_ME.search(asked)
    beside = (
        plain[subject.end("who") : start]
        + plain[end : min(close.start(), (plain.find(",", end) + 1 or len(plain)))]
    )
    return is_near and not _OF_YOU.search(beside) and not _ASKS_WHO.search(asked)


_ASKS_WHO: Final = re.compile(r"\b(?:who|whom|whose|quien|quienes)\b")


def _answers_something_else(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """Another clause has the verb of the question and an answer of its own; the clause of the match has neither."""
    verb = _verb_of(question)
    if verb is None:
        return False
    is_word = given[match.first].kind == "word"
    mine: list[Token] = []
    others: list[list[Token]] = []
    start, end = given[match.first].start, given[match.last].end
    begin = 0
    joints = [(found.start(), found.end()) for found in (_CONTRAST if is_word else _ANY_JOINT).finditer(plain)]
    for first, after in [*joints, (len(plain), len(plain))]:
        if first <= start or begin >= end:
            points_back = begin > 0 and _POINTS_BACK.match(plain, begin)
            is_aside = _EARLIER.search(plain, begin, first) or _ASIDE.search(plain, begin, first)
            if not points_back and not is_aside:
                others.append([token for token in given if begin <= token.start < first])
        else:
            mine += [token for token in given if begin <= token.start < first]
        begin = after
    asked = tokens_of(question)
    beside = [token for token in mine if not start <= token.start < end]
    own = [token for token in _words(beside) if not any(same_token(token, one) for one in asked)]
    if (
        not own
        or _NOW.search(" ".join(token.text for token in mine))
        or any(_is_form_of(verb, token) for token in mine)
    ):
        return False
    return any(_answers_itself(verb, other, given[match.first], asked) for other in others)


def _answers_itself(verb: Token, clause: Sequence[Token], matched: Token, asked: Sequence[Token]) -> bool:
    if not any(_is_form_of(verb, token) for token in clause):
        return False
    if matched.kind != "word":
        return any(token.kind == matched.kind and token.value != matched.value for token in clause)
    return any(not any(same_token(token, one) for one in asked) for token in _words(clause))


def _is_form_of(verb: Token, token: Token) -> bool:
    return same_token(verb, token) or IRREGULAR_PASTS.get(token.text) == verb.text


def _words(found: Sequence[Token]) -> list[Token]:
    return [token for token in found if token.kind == "word" and token.text not in STOP_WORDS]


def _verb_of(question: str) -> Token | None:
    """The verb that the question asks with: "born" of "Where was he born?"; None if its form does not show it."""
    plain = folded(question)
    for form in _ASKED_VERB:
        if found := form.search(plain):
            tokens = [token for _, token in content_of(tokens_of(found[1]))]
            return tokens[0] if tokens and tokens[0].kind == "word" and tokens[0].text not in STOP_WORDS else None
    return None
