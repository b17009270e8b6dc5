"""Vetoes: an answer that a reply mentions but does not assert (denied, hedged, outdated, one of several).

:data:`VETOES` is the table of reasons. Each looks at one place where the answer stands: at what stands right before
or behind it, at what the question asks, or, where no pattern tells, at the clauses of the reply (``when``). One
place without a veto is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby, islice
from typing import Final, Literal

from memreplay.grading.match import Match, binds_otherwise, enumeration, matches, spelled_out
from memreplay.grading.read import AT, Token, are_paired, content_of, folded, is_among, same_token, tokens_of
from memreplay.grading.vocabulary import (
    CONVERSES,
    DAY_NAMES,
    FORMS_A_QUESTION,
    IRREGULAR_FORMS,
    OPPOSITES,
    STOP_WORDS,
    UNITS,
)

Rejection = Literal["denied", "hedged", "superseded", "candidates"]


@dataclass(frozen=True)
class Place:
    """A place of a reply where an answer stands; ``among`` is how many things the whole answer lists."""

    match: Match
    matched: Sequence[Token]
    given: tuple[Token, ...]
    start: int
    end: int
    reply: str
    plain: str
    answer: str
    question: str
    asked: str
    among: int

    @cached_property
    def clause(self) -> tuple[int, int]:
        """Begin and end of the clause in which the answer stands."""
        behind = _CLAUSE.search(self.plain, self.end)
        begin = max((found.end() for found in _CLAUSE.finditer(self.plain, 0, self.start)), default=0)
        return begin, behind.start() if behind else len(self.plain)

    @cached_property
    def words(self) -> Sequence[Token]:
        """The tokens of that clause."""
        return [token for token in self.given if self.clause[0] <= token.start < self.clause[1]]


_NEAR: Final = 80  # Characters. Only what stands so near the answer speaks of it.


@dataclass(frozen=True)
class Veto:
    """Why a place does not give the answer, although the words of the answer stand there.

    ``before`` is searched for in what stands before it, ``after`` is matched from its end, and both must be found.
    ``only`` must be found in the question, ``unless`` must not. ``when`` is what takes more than a pattern.
    """

    name: str
    because: Rejection
    before: str = ""
    after: str = ""
    only: str = ""
    unless: str = ""
    when: Callable[[Place], bool] | None = None

    def holds(self, place: Place) -> bool:
        near = max(0, place.start - _NEAR)
        return (
            (not self.before or _compiled(self.before).search(place.plain, near, place.start) is not None)
            and (not self.after or _compiled(self.after).match(place.plain, place.end) is not None)
            and (not self.only or _compiled(self.only).search(place.asked) is not None)
            and (not self.unless or _compiled(self.unless).search(place.asked) is None)
            and (self.when is None or self.when(place))
        )


_compiled = lru_cache(maxsize=None)(re.compile)


@lru_cache(maxsize=1024)
def asserted(answer: str, reply: str, question: str = "", among: int = 1) -> tuple[bool, Rejection | None]:
    """Return whether a reply gives an answer, and why it does not where it only mentions it; None elsewhere.

    ``among`` is how many things the whole answer lists, where this one is a part of it.
    """
    reply = spelled_out(answer, reply)
    found, items = list(matches(answer, reply)), enumeration(answer)
    if len(items) > 1 and _ASKS_IN_WHAT_ORDER.search(folded(question)):
        firsts = [place.first for item in items for place in islice(matches(item, reply), 1)]
        if firsts != sorted(firsts):
            return False, "denied"
    if len(items) > 1 and _ASKS_FOR_ALL.search(folded(question)) and _lists_more(items, reply):
        return False, "candidates"
    if not found:
        if len(items) < 2:
            return False, None
        verdicts = [asserted(item, reply, question, len(items)) for item in items]
        return all(ok for ok, _ in verdicts), next((why for ok, why in verdicts if not ok), None)
    given = tokens_of(reply)
    if len(found) > 2 * _MOST_MENTIONS:
        found = found[:_MOST_MENTIONS] + found[-_MOST_MENTIONS:]
    places = ((match, given[match.first : match.last + 1]) for match in found)
    said = (reply, folded(reply), answer, question, folded(question), among)
    reasons = [_rejected(Place(at, here, given, here[0].start, here[-1].end, *said)) for at, here in places]
    if None in reasons:
        # A value that is given once and taken back elsewhere ("14, no wait, 15") is not the answer.
        return ("hedged" not in reasons, None if "hedged" not in reasons else "hedged")
    return False, reasons[0]


_ASKS_IN_WHAT_ORDER: Final = re.compile(r"\b(?:what|which|the|que) (?:order|orden|sequence)\b")
_ASKS_FOR_ALL: Final = re.compile(r"\b(?:who|quien\w*|which|cuales|(?:what|que) (?!is |was |has |does |es )\w+s)\b")
_ENDS_A_LIST: Final = re.compile(r"[.!?:;()—–\n](?=\s|\Z)")
_LAST_ITEM: Final = re.compile(r",? (?:and|y) ")
_WHOSE: Final = frozenset("his her their your my our its su sus mi mis tu tus".split())
_NO_ITEM: Final = STOP_WORDS - _WHOSE - frozenset("a an the el la los las un una".split()) | {"both", "all", "then"}


def _lists_more(items: Sequence[str], reply: str) -> bool:
    """Return whether a list in the reply, "a, b and c", has all the items of an answer, and a further one."""
    for sentence in _ENDS_A_LIST.split(folded(reply)):
        *parts, last = [part.split(", ") for part in _LAST_ITEM.split(sentence)]
        if len(parts) != 1 or len(parts[0]) < len(items):
            continue
        listed = [part.strip() for part in (*parts[0], ", ".join(last))]
        held = [[next(matches(item, one), None) is not None for item in items] for one in listed]
        first = next((at for at, one in enumerate(held) if any(one)), len(listed))
        further = [one for one, has in zip(listed[first:], held[first:], strict=True) if one and not any(has)]
        if all(map(any, zip(*held, strict=True))) and any(
            one.split()[0] not in (_NO_ITEM if one is listed[-1] else _NO_ITEM | _WHOSE) for one in further
        ):
            return True
    return False


_MOST_MENTIONS: Final = 10
"""Mentions of an answer that are looked at, from the start and the end: a reply may repeat it without end."""


def _rejected(place: Place) -> Rejection | None:
    return next((veto.because for veto in VETOES if veto.holds(place)), None)


NEGATIONS: Final = frozenset(
    "not no never neither nor without cannot isnt wasnt arent werent doesnt dont didnt cant couldnt wont wouldnt"
    " shouldnt hasnt havent hadnt aint nunca jamas ni sin tampoco".split()
)
_CLAUSE_ENDS: Final = frozenset(
    "but however although though except rather instead yet now currently because since so then sino pero aunque -"
    " ahora actualmente porque ; . ! ? : \n ( ) — – ,".split(" ")
)
_ASKS_WHAT_FAILED: Final = (
    r"\b(?:(?:ca|do|does|did|is|was|are|were|wo|would|could|should|has|have|had)n['’]?t|cannot|not|never|no|avoid"
    r"|avoids|avoided|allergic|allergy|except|hate|hates|dislike|dislikes|refuse|refuses|without|forbid|forbidden"
    r"|forbade|ban|banned|quit|stop|stopped|skip|miss|missed|fail|failed|reject|rejected|decline|declined"
    r"|evita\w*|alergi\w+|nunca|jamas|sin|odia\w*|dej\w+ de|rechaz\w+|instruct\w*|told|tell|ask|asked|pid\w+"
    r"|dijo|cancel\w*|clos\w*|scrap\w*|sell\w*|sold|g[eo]t rid|g[ai]ve (?:away|up)|thr[eo]w\w* away|vend\w+"
    r"|abandon\w*|drop\w*|discard\w*|dismiss\w*|turn\w* down|descart\w+)\b"
)
DENIES_NOTHING: Final = re.compile(
    r"\bno \w+ (?:better|other|greater) than\b|\bnot (?:only|just|least|surprisingly)\b|\bno solo\b"
    r"|\bno (?:doubt|problems?|trouble|issues?|wonder|question|hesitation|hurry|duda|problemas?)\b"
    r"|\b(?:without|sin)(?: an?| any| una?)?(?: \w+){1,2} (?:at|in|on|to|by|for|from|with|en|por|para|con|al?)\b"
    r"|\b(?:ca(?:nt|nnot)|could(?:nt| not)) (?:wait|put|stop|help|resist|get enough|be (?:more|\w+er))\b"
    r"|\b(?:not|\w+nt|never|no)\b.*\b(?:until|till|hasta)\b"
    r"|\b(?:never|not|\w+nt) (?:seen?|f[io]u?nd|ha[vd]e?|heard?|met|known?) (?:such an?|so|an? \w+er \w+ than)\b"
)
"""Negations that affirm what stands behind them: "without a hiccup in", "not until"."""


def _is_negated(place: Place) -> bool:
    """Return whether a negation governs the answer: "not X", "did not move to X"."""
    if any(token.text in NEGATIONS for token in tokens_of(place.answer)):
        return False
    if not (NEGATIONS - {"no"}).isdisjoint(token.text for token in place.matched[1:-1]):
        return True  # "Friday, not Tuesday" has both words of "Tuesday and Friday".
    before = [token.text for token in place.given[: place.match.first]]
    words = before[max((at for at, word in enumerate(before, start=1) if word in _CLAUSE_ENDS), default=0) :]
    failing = set(re.findall(_ASKS_WHAT_FAILED, place.asked)) - NEGATIONS
    if re.search(_ASKS_WHAT_FAILED, place.asked) and failing.isdisjoint(words):
        return False
    denying = DENIES_NOTHING.sub("", " ".join(words)).split()
    return not NEGATIONS.isdisjoint([word for word in denying if word not in STOP_WORDS or word in NEGATIONS][-4:])


_PAST: Final = rf"(?:\w+ed|{'|'.join(IRREGULAR_FORMS)})"
_CONSIDERED: Final = re.compile(
    r"\b(?:(?:think|thinking|thought) (?:about|of)|consider\w*|look(?:ed|ing) (?:at|into)|tempted by|toy\w* with"
    r"|wanted|suggest\w*|propos\w*|offer\w*|counter\w*|quot\w*|asked|hop(?:ed|ing) for|dream(?:ed|t|ing) of"
    r"|plann\w+|intended|meant|(?:was|were) (?:about|going|due|set|supposed) to|almost|nearly|(?:would|d) (?:have"
    r" )?(?:expected|expect|thought|guessed|preferred|prefer|chosen|liked)|expected|pens(?:aba|aban|o|aron|ando"
    r"|ado)(?: en)?|dud\w+ (?:con|entre)|queri\w+|plane\w+|(?:iba|iban) a|casi|a punto de)\b[^.;\n]{0,40}\Z"
)
_THEN_ELSE: Final = re.compile(
    r"[^.\n]{0,60}?(?:[;:]|\.\s+(?:but|however|pero|yet|actually)\b|\b(?:but|however|instead|then|before \w+ing"
    r"|until|finally|ended up|settled (?:on|for)|agreed|decided|compromised"
    rf"|in the end|and might|pero|sino|al final|luego|finalmente|and (?:then |so )?{_PAST})\b"
    r"|, (?:they|he|she|it|we|i|you|[a-z]+ (?:went|chose|bought|took))\b)"
)
_BUT_BEFORE: Final = re.compile(r"\b(?:although|though|but|whereas|having|aunque|pero)\b")
_CONDITION: Final = r"\b(?:if|unless|si|a menos que|salvo que)\b"
_WOULD: Final = r"\b(?:would|could|podria\w*|[a-z]{3,}ria[ns]?)\b"
_ASKS_WHAT_WAS_CONSIDERED: Final = (
    rf"\b(?:idea|first|original\w*|before|alternativ\w*|almost|nearly|casi|antes)\b|{_WOULD}|{_CONDITION}"
)
_SENTENCE_END: Final = re.compile(r"[.!?\n]")


def _was_only_considered(place: Place) -> bool:
    plain, start = place.plain, place.start
    clause = plain[max(plain.rfind(mark, 0, start) for mark in (".", ";", "\n", " but ", " pero ")) + 1 : start]
    considered = _CONSIDERED.search(clause)
    if considered and considered[0].startswith(("considering", "thinking")) and re.search(r"\. ", plain):
        return True
    if considered is None or considered[0][:4] in place.asked:
        return False
    return bool(_THEN_ELSE.match(plain, place.end) or _BUT_BEFORE.search(clause, 0, considered.start()))


def _is_supposed(place: Place) -> bool:
    """Return whether the answer stands in a conditional sentence."""
    before = _SENTENCE_END.split(place.plain[: place.start])[-1]
    sentence = f"{before}|{_SENTENCE_END.split(place.plain[place.end :])[0]}"
    return bool(re.search(_WOULD, sentence) and re.search(_CONDITION, sentence))


_ASKS_ABOUT_THE_PAST: Final = (
    r"\b(?:before|previous\w*|former\w*|original\w*|initial\w*|first|used to|old|earlier|until|once|prior|antes"
    r"|(?:in|en) (?:19|20)\d\d|back then|at the time|anterior\w*|primer\w*|inicial\w*|antigu\w*)\b"
)
_CORRECTION: Final = (
    r"(?:\b(?:no,? wait|wait,? no|(?:oh|hmm+|ah|uh),? wait|(?:hmm+|oh|ah|uh|wait|well|sorry|perdon),? no"
    r"|(?<!and )i mean|(?<=[.,;—–-] )(?:sorry|perdon|correction|correccion)|scratch that|make that|or rather|digo"
    r"|mejor dicho|quiero decir|strike that|i got (?:that|it) wrong|(?:i )?(?:misspoke|mixed (?:that|it|them"
    r"|those|this) up|misread (?:that|it|this))|my (?:mistake|bad|apologies)|apologies|edit(?=:)"
    r"|on (?:re-?reading|closer inspection)|(?:looking|look|reading|checking) (?:again|closer|more closely|back)"
    r"|hold on|me (?:he )?equivo[cq]\w+|rectifico|corrijo|miento|on (?:second thoughts?|reflection)"
    r"|let me correct (?:that|myself))\b"
    r"|(?:\.\.|…|:) ?no\b[,:;]|(?:\.\.|…|[,;.?\n—–-])\s{0,9}(?:no,? )?actually(?:,|\s(?:it|no|that|make)\b))"
)
CORRECTS_ITSELF: Final = re.compile(_CORRECTION)
_NOW: Final = re.compile(
    r"\b(?:now|(?:has|have) since|(?:has|have) been [^.;\n]{0,40}since|currently|these days|nowadays|at present"
    r"|as of|since (?!(?:he|she|it|they|you|i|we|the|there|that)\b)\w+|ahora|actualmente|hoy en dia)\b"
)
_ONCE: Final = re.compile(
    r"\b(?:used to|previously|formerly|originally|initially|at first|no longer|earlier|until(?! \Z)|once|(?:started"
    r"|began) (?:out|off|with|as)|before (?:that|then)|antes|al principio|inicialmente|originalmente|ya no|solia)\b"
)
_UNTIL: Final = re.compile(r" (?:\w+ ){0,3}(?:before(?! \w+ing\b)|until|originally|at first|antes|hasta)\b")
_WAS: Final = re.compile(
    r"\b(?:was|were|had|lived|worked|played|owned|studied|rented|stayed|cost|era|eran|fue|vivia|tenia|estaba"
    r"|trabajaba|jugaba|tocaba|costaba|estudiaba)\b"
)
_WITHIN: Final = r"(?:[^.;\n]|\.(?=\d))"  # Any character of a clause; a decimal point ends none.
_CHANGED: Final = (
    r"(?:chang|mov|switch|updat|upgrad|downgrad|correct|rais|increas|reduc|lower|went|gone|goes|rose|ris|dropp|fell"
    r"|push|postpon|brought|bring|grow|grew|shr[iau]nk|climb|jump|cut|extend|shift|reschedul|swap|transferr|convert"
    r"|migrat|promot|adjust|revis|amend|cambi|paso|pasa|mud|traslad|aplaz|adelant|retras|subi|baj|corr[ei]g)\w*"
)
_CHANGES: Final = rf"\b{_CHANGED}{_WITHIN}{{0,60}}"


def _is_outdated(place: Place) -> bool:
    """Return whether the reply contrasts then and now, and the answer stands on the side of then."""
    plain, start = place.plain, place.start
    marks = (",", ".", ";", ": ", "(", "—", "\n", " but ", " pero ", " sino ")
    begin = max(plain.rfind(mark, 0, start) + 1 for mark in marks)
    clause = DENIES_NOTHING.sub("", plain[begin:start])
    if _ONCE.search(clause) or _UNTIL.match(plain, place.end):
        return True
    return bool(_WAS.search(clause) and _NOW.search(f"{plain[:begin]} | {plain[place.end :]}"))


CONCLUDES: Final = re.compile(
    r"(?:\b(?:so|thus|therefore|hence|(?:that|which) (?:leaves|makes|gives)|por (?:lo )?tanto|asi que)\b|=)"
    r"(?![^.\n]*\b(?:each|per|apiece|cada)\b)[^.\n]*"
)


_BECAUSE: Final = re.compile(r"\b(?:because|porque|ya que|since(?= (?:\w+ )?\Z))\b")
_WHICH_OF_TWO: Final = re.compile(r"(\w+),? (?:or|o) (?:the |el |la )?(\w+)\W*\Z")


def _is_overruled(place: Place) -> bool:
    """Return whether the reply concludes with another value, or gives one before a reason that has the answer."""
    said = [found.span() for found in CONCLUDES.finditer(place.plain, place.end)]
    reason = _BECAUSE.search(place.plain, place.clause[0], place.start)
    if reason and (reason[0] != "since" or re.match(r" (?:is|was|were|had)\b", place.plain[place.end :])):
        said.append((place.clause[0], reason.start()))
    return any(_has_rival(place, *span) for span in said)


def _has_rival(place: Place, start: int, end: int) -> bool:
    """Return whether a part of the reply has another value of the kind of the answer, and not the answer."""
    asked, one = asked_by(place.question), place.matched[0]
    offered = {word for found in _WHICH_OF_TWO.finditer(place.asked) for word in found.groups()}
    names = frozenset(map(folded, NAME.findall(place.reply))) - (asked.names - offered) - STOP_WORDS - _NO_SUBJECT
    part = [token for token in place.given if start <= token.start < end]
    texts, kinds = {token.text for token in part}, (DAY_NAMES.keys(), names - DAY_NAMES.keys())
    is_aside = _ASIDE.search(" ".join(token.text for token in part)) or is_among(one, part)
    is_another = any(one.text in kind and not texts.isdisjoint(kind) for kind in kinds)
    return not is_aside and (is_another or _has_other_value(one, part))


_DONT_KNOW: Final = re.compile(
    r"\b(?:i (?:really |honestly |just )?(?:do not|dont|cannot|cant|am not|m not|could not|couldnt) (?:really "
    r"|actually |quite |honestly )?(?:know|sure|certain|recall|remember|tell|say)|(?:im|i am) (?:not"
    r"|un)(?: )?(?:sure|certain)|not sure|no idea|unsure|hard to say|no lo se\b|no se(?=\Z| ?[,.;|]| (?:si|que"
    r"|cual|quien|donde|cuando|como|cuant\w+)\b)|(?:no|without any|without a) way (?:for me )?to (?:know|tell"
    r"|be sure)|could (?:just as well|equally|also) be|no (?:me acuerdo|(?:lo )?recuerdo(?! mal))"
    r"|no estoy segur[oa]|not (?:mentioned|specified|stated|clear)|rather not (?:say|commit)"
    r"|(?:just |only |wild )?guess(?:ing)?\b(?! what))"
)
_MAYBE: Final = re.compile(r"\b(?:maybe|perhaps|possibly|might be|could be|may be|quizas?|tal vez|puede que)\b")


def _gives_up(place: Place) -> bool:
    before = place.plain[max(0, place.start - _NEAR) : place.start]
    beside = f"{before} | {place.plain[place.end : place.end + _NEAR]}"
    return _DONT_KNOW.search(beside) is not None or len(_MAYBE.findall(beside)) > 1


_OTHERWISE: Final = r"[^.;\n]{0,30}\b(?:for short|to be \w+|in other words|in full|in (?:uk|us|eu)|es decir)\b"
_OFFERS: Final = re.compile(
    r"\b(?:options?|candidates?|possib\w+|choices?|alternatives?|opcion\w*|candidat\w+|posib\w+|alternativas?"
    r"|(?:one|either|any) of (?:these|those|the following|them)|(?:uno|una|alguno|alguna) de (?:estos|estas|ellos"
    r"|ellas))\b[^.;\n]{0,40}?(?:\bare|\binclude|\bson|:)"
)
_ONE_OF: Final = re.compile(
    r"\b(?:one|either|any|some) of(?: \w+){0,3}\W(?=[^.;\n]*+\Z)[^.;\n]*,|\b(?:one|either) of \Z"
)
_BOTH: Final = re.compile(r"\b(?:both|either|ambos|ambas)\b")
_AND_ANOTHER: Final = re.compile(rf",? (?:and|y) [^.;\n]{{0,40}}{_BOTH.pattern}")
_PARTS: Final = re.compile(r"(?:\s*[,;\n][\s*-]*(?:\d+[.)])?|\s+(?:and|y|or(?! so)|o)\b|\A\d+[.)])+\s*")
_AROUND: Final = " \n*_-.:\"'"


def _is_listed(place: Place) -> bool:
    """Return whether the reply is a bare list of things, or offers several, and the answer is one of them."""
    plain, start = place.plain, place.start
    if CORRECTS_ITSELF.search(plain):
        return False
    is_of_two = place.among == 1 and _AND_ANOTHER.match(plain, place.end) and not _BOTH.search(place.asked)
    if is_of_two or _ONE_OF.search(plain, 0, start):
        return True
    offers = _OFFERS.search(plain, 0, start)
    filled = [part for part in _PARTS.split(plain[offers.end() if offers else 0 :].strip(_AROUND)) if part]
    if len(filled) < (2 if offers else 3) or len(filled) <= 2 * (place.among - 1):
        return False
    mine = plain[start : place.end].strip()
    is_alike = all(len(part.split()) <= 3 and part[0].isdigit() == mine[0].isdigit() for part in filled)
    return is_alike and any(re.fullmatch(rf"(?:\w+-)?{re.escape(mine)}", part.strip(_AROUND)) for part in filled)


NAME: Final = re.compile(r"(?<![\w'’])[^\W\d_a-zà-ÿ][^\W\d_]+")
_RELATIVE: Final = (
    r"(?:wife|mother|mum|mom|daughter|sister|aunt|niece|grandmother|grandma|girlfriend|mujer|madre|hija|hermana|tia"
    r"|prima|abuela|amiga|jefa|vecina|suegra|husband|father|dad|son|brother|uncle|nephew|grandfather|grandpa"
    r"|boyfriend|marido|padre|hijo|hermano|tio|primo|abuelo|amigo|jefe|vecino|suegro|partner|parents|cousin|friend"
    r"|boss|manager|colleague|coworker|neighbou?r|roommate|flatmate|landlord|doctor|teacher|coach|kids?|children"
    r"|twin)"
)
_OF_YOU: Final = re.compile(r"\b(?:you|yours|your own|tu|tuyo|tuya|te)\b")
_ABOUT_ME: Final = re.compile(
    r"\b(?:my|mine|i|me|we|us|our|mi|mis|yo|tengo|soy|estoy|vivo|trabajo|estudio|llevo|uso|juego|compre|pague|pedi"
    r"|elegi|conduzco)\b"
)
_ASKS_WHO: Final = r"\b(?:who|whom|whose|quien|quienes)\b"
_AUXILIARY: Final = frozenset(
    "do does did is are was were has have had will would can could should shall may might am be been being got also"
    " then still once first just already recently usually always never ever later".split()
)
_ASKED_VERB: Final = (
    re.compile(r"\bwho (?:is|was|are|were) (?P<verb>\w+) than (?P<object>.+)"),
    re.compile(r"\bwho (?:is|was) (?P<object>my|our|\w+) (?P<verb>\w+[eo]r)\W*\Z"),
    re.compile(r"\bwho(?:m|se)? (?:\w+ )??(?:did|do|does|ha\w+) (?P<subject>(?!the |an? )\w+) (?P<verb>\w+)"),
    re.compile(r"(?<!who )\b(?:did|does|do)(?: the| their| his| her| my| your)? (?P<subject>\w+) (?P<verb>\w+)"),
    re.compile(r"\bwho (?:will |would |can |has |have |had |(?:is|was) (?=\w+ing\b))?(?P<verb>\w+)(?P<object>.*)"),
    re.compile(r"\bquien les? (?P<verb>\w+)(?P<object>.*)"),
    re.compile(r"\bquien (?P<object>me|nos|te) (?P<verb>\w+)"),
    re.compile(r"\A\W*(?:de |desde )?(?:donde|cuando|quien|que \w+) (?P<verb>\w+)"),
    re.compile(
        rf"\b(?:was|were|is|are) .*?(?<!the )(?<!my )(?<!\ba )"
        rf"(?P<verb>\w+(?:ed|en|ing)|born|{'|'.join(IRREGULAR_FORMS)})(?: (?:for|at|in|on|with|by|from|to))?\W*\Z"
    ),
)


@dataclass(frozen=True)
class Asked:
    """A question: its tokens that a reply can take up, the names in it, its verb, and who is known to act in it."""

    words: tuple[Token, ...]
    names: frozenset[str]
    verb: Token | None
    about_me: bool
    asks_who: bool
    known: frozenset[str]
    known_acts: bool


@lru_cache(maxsize=256)
def asked_by(question: str) -> Asked:
    plain = folded(question)
    inside = (name for name in NAME.finditer(question) if name.start() > 1)
    names = frozenset([*(folded(name.group()) for name in inside), *re.findall(rf"\bmy ({_RELATIVE})\b", plain)])
    words = tuple(
        token
        for _, token in content_of(tokens_of(question))
        if token.kind != "word" or token.text not in FORMS_A_QUESTION or token.text in names
    )
    verb, known, acts = None, "", False
    if found := next(filter(None, (form.search(plain) for form in _ASKED_VERB)), None):
        first = next((token for token in tokens_of(found["verb"]) if token.kind == "word"), None)
        if first is not None and first.text not in STOP_WORDS | _AUXILIARY:
            groups = found.groupdict()
            verb, acts = first, bool(groups.get("subject"))
            known = groups.get("subject") or groups.get("object") or ""
    who = {word for word in re.findall(r"\w+", known) if word in names or word == known.strip()}
    if re.search(r"\b(?:i|me|my|we|us|our|nos)\b", known):
        who.add("you")
    return Asked(
        words, names, verb, bool(_ABOUT_ME.search(plain)), bool(re.search(_ASKS_WHO, plain)), frozenset(who), acts
    )


_CONTRAST: Final = frozenset("but yet however whereas while ; . ! ? \n pero mientras aunque".split(" "))
_ANY_JOINT: Final = _CONTRAST | frozenset(", and then y luego ( )".split(" "))
_NO_SUBJECT: Final = frozenset(
    "still only so also then now currently actually just exactly total instead today later new yes no not too"
    " before after since from until there besides apart aside except during despite unlike along ahora".split()
)
_ADVERB: Final = re.compile(r"\w{3,}(?:te|al|ab|ib|ous|ent|ful)ly|\w{5,}mente")
_SAYS_LITTLE: Final = STOP_WORDS | _NO_SUBJECT | _AUXILIARY
_THIRD_PERSON: Final = frozenset("it he she they that this which who ella ellos eso esto".split())
_ASIDE: Final = re.compile(
    r"\b(?:before|earlier|previous\w*|used to|until|once|ago|then|antes|hasta|almost|nearly|wanted|considered"
    r"|thought|or|casi|original\w*|first|old|meant|planned|intended|not|wasnt|isnt)\b"
)
_SAID_OF_ONE_THING: Final = 3  # Words. A longer answer is hardly said of anything else than what is asked about.
_LONG_REPLY: Final = 40  # Tokens. A longer reply takes up the question in many clauses.
_ELLIPTICAL: Final = 4
"""Tokens. So short a clause leaves out what it shares with the one before: "…, the bakery at 7"."""


@lru_cache(maxsize=8)
def _clauses_and_topics(
    given: tuple[Token, ...], joints: frozenset[str], asked: Asked
) -> tuple[list[list[Token]], list[frozenset[Token]]]:
    """Return the clauses of a reply, and what each takes up of the question, be it by a pronoun or in silence."""
    clauses = [list(run) for is_joint, run in groupby(given, lambda token: token.text in joints) if not is_joint]
    found: list[frozenset[Token]] = []
    for clause in clauses:
        here = frozenset(
            one
            for one in asked.words
            if is_among(one, clause) or any(are_paired(CONVERSES, one.text, token.text) for token in clause)
        )
        texts = [token.text for token in clause]
        first = next((text for text in texts if text not in _NO_SUBJECT), "")
        goes_on = first in _THIRD_PERSON or not (here or _said_by(clause, asked))
        if found and (goes_on or (len(clause) <= _ELLIPTICAL and here)):
            here |= {one for one in found[-1] if here.isdisjoint(found[-1]) or one.text not in asked.names}
        found.append(here)
    return clauses, found


def _said_by(clause: Sequence[Token], asked: Asked) -> list[Token]:
    """Return the words of a clause that are not taken from the question."""
    words = (token for token in clause if token.kind == "word" and token.text not in _SAYS_LITTLE)
    return [token for token in words if not is_among(token, asked.words)]


def _another_clause_answers(place: Place) -> bool:
    """Return whether another clause has more of what is asked about, and a value of the same kind."""
    asked, matched = asked_by(place.question), place.matched
    names = frozenset(map(folded, NAME.findall(place.reply))) - asked.names - {token.text for token in matched}
    is_told_at_length = len(content_of(matched)) > _SAID_OF_ONE_THING or len(place.given) > _LONG_REPLY
    is_concluded = any(found.start() < place.start < found.end() for found in CONCLUDES.finditer(place.plain))
    is_moved = _compiled(rf"{_CHANGES}\b(?:to|al?) \Z").search(place.plain, 0, place.start)
    is_all = not re.search(r"\w", place.plain[: place.start]) and re.match(r"\W*[.\n]", place.plain[place.end :])
    is_clear = is_told_at_length or is_concluded or is_moved or is_all or CORRECTS_ITSELF.search(place.plain)
    if place.among > 1 or is_clear:
        return False
    for joints in (_CONTRAST, _ANY_JOINT):
        clauses, taken = _clauses_and_topics(place.given, joints, asked)
        mine = [at for at, clause in enumerate(clauses) if any(token in clause for token in matched)]
        if len(mine) != 1:
            continue
        clause, here = clauses[mine[0]], taken[mine[0]]
        own = [token for token in _said_by(clause, asked) if token not in matched]
        is_another_act = joints is _CONTRAST or re.fullmatch(_PAST, clause[0].text) is not None
        is_led = is_another_act or any(token.text in names and token.start < matched[0].start for token in own)
        for other, there in zip(clauses, taken, strict=True):
            if _ASIDE.search(" ".join(token.text for token in other)):
                continue
            if here < there and _has_other_value(matched[0], other):
                return True
            about = {token.text for token in there - here}
            does_it = asked.verb is not None and asked.verb.text in about
            is_asked_who = asked.asks_who and does_it and len(here - there) < len(about)
            is_answer = is_led and (bool(about & asked.names) or (is_another_act and does_it))
            if asked.asks_who and own:
                is_answer = is_answer or any(token.text in names for token in other)
            if (here < there or is_asked_who) and matched[0].kind == "word" and is_answer:
                return True
            if asked.about_me and _says_it_of_you(other, clause):
                return True
    return False


def _says_it_of_you(clause: Sequence[Token], other: Sequence[Token]) -> bool:
    """Return whether one clause states about the user what another states about someone else."""
    subject, verb, *_ = [*(token.text for token in clause if token.text not in ("and", "y")), "", ""]
    verb = {"have": "has", "are": "is", "tienes": "tiene"}.get(verb, verb)
    texts = [token.text for token in other]
    return subject in ("you", "tu") and verb in texts and not _OF_YOU.search(" ".join(texts))


def _has_other_value(one: Token, clause: Sequence[Token]) -> bool:
    """Return whether a clause has another figure of the same kind."""
    return any(
        not same_token(one, token)
        and (
            (token.kind == one.kind != "word" and (one.kind != "number" or one.extra in ("", token.extra)))
            or (token.extra == AT and one.kind == "time")
        )
        for token in clause
    )


_CLAUSE: Final = re.compile(
    r"[.!?](?=\s|\Z)|[;\n]|,? \b(?=(?:but|yet|however|w(?:hereas|hile)|pero|mientras|aunque)\b)"
)
_OF_A_RELATIVE: Final = re.compile(
    r"(?:\A|(?<=[.!?;\n:] )|(?<=, )|(?<=but )|(?<=pero ))\W*(?:it was |it is |its |era |es )?"
    rf"(?P<whose>your|tus?|his|her|their|su|[^\W\d_]+) (?:\w+ )?(?P<who>{_RELATIVE})\b"
)


def _is_said_of_a_relative(place: Place) -> bool:
    """Return whether the reply speaks of a relative or friend, of whom the question does not ask."""
    plain, asked, start = place.plain, place.asked, place.start
    subject = next(iter([*_OF_A_RELATIVE.finditer(plain, place.clause[0], start)][::-1]), None)
    if subject is None or any(is_among(who, tokens_of(asked)) for who in tokens_of(subject["who"])):
        return False
    whose = subject["whose"]
    is_near = whose in ("his", "her", "their", "su") or re.search(rf"\b{whose}\b", asked) is not None
    if whose in ("your", "tu", "tus"):
        is_near = asked_by(place.question).about_me
    beside = plain[subject.end("who") : start] + plain[place.end : place.clause[1]].split(",")[0]
    return is_near and not _OF_YOU.search(beside) and asked_by(place.question).names.isdisjoint(beside.split())


_OWNED: Final = re.compile(rf"\b(?P<owner>\w+) (?={_RELATIVE}\b)|\b{_RELATIVE} de (?P<de>\w+)")
_SPEAKS_OF_ANOTHER: Final = re.compile(rf"\b(?:s?he|they|who|ella|que|{_RELATIVE})\b")
_SAYS: Final = re.compile(r"\b(?:sa(?:ys?|id)|t(?:ell|old)\w*|mention\w*|dij\w+|dic\w+|coment\w+)\b")


def _is_said_of_the_owner(place: Place) -> bool:
    """Return whether the reply speaks of Ann, or of who asks, where a relative of theirs is asked about."""
    owners = {found["owner"] or found["de"] for found in _OWNED.finditer(place.asked)}
    you = {"you", "your", "tu", "te"} if owners & {"my", "mi"} else set()
    owners = owners & asked_by(place.question).names | you
    owners -= {one for one in owners if place.asked.count(one) > 1 or re.search(r"\b(?:i|me|we|us)\b", place.asked)}
    before = place.plain[place.clause[0] : place.start]
    *_, led = re.split(rf"\b(?:{'|'.join(map(re.escape, owners))})\b", before) if owners else [before]
    return led != before and not _SPEAKS_OF_ANOTHER.search(before) and not _SAYS.search(led)


_BY: Final = re.compile(r"(?: \w+){0,2} (?:is|was|are|were|fue|fueron|es|son) \w+ (?:by|por) (\w+)")


def _may_be_a_name(word: str) -> bool:
    return word not in STOP_WORDS | _NO_SUBJECT and not _ADVERB.fullmatch(word)


def _is_said_of_another(place: Place) -> bool:
    """Return whether another person than the question names does what is asked: "Jon lost his job"."""
    asked, acts = asked_by(place.question), rf"(?:{'|'.join(_AUXILIARY)})"
    is_acting = any(re.search(rf"\b{acts} {name}\b|\b{name} {acts}\b", place.asked) for name in asked.names)
    if not is_acting or not asked.names.isdisjoint(token.text for token in place.words):
        return False
    names = frozenset(filter(_may_be_a_name, map(folded, NAME.findall(place.reply))))
    for at, who in enumerate(place.words):
        verb = next((token for token in place.words[at + 1 :] if token.text not in _AUXILIARY), who)
        is_name = who.text in names and who not in place.matched
        deeds = asked.words if at == 0 else [asked.verb] if asked.verb else []
        if is_name and verb.text not in UNITS and is_among(verb, deeds):
            return True
    agent = _BY.match(place.plain, place.end)
    return agent is not None and agent[1] in names


def _says_the_opposite(place: Place) -> bool:
    """Return whether what leads to it has the opposite of a word of the question, and its clause not the word."""
    led, asked = [token for token in place.words if token.start < place.start], asked_by(place.question)
    absent = [one for one in asked.words if not is_among(one, place.words)]
    return NEGATIONS.isdisjoint(token.text for token in led) and any(
        are_paired(OPPOSITES, one.text, token.text) and not is_among(token, asked.words)
        for one in absent
        for token in led
        if not (asked.asks_who and are_paired(CONVERSES, one.text, token.text))
    )


_ASKS_WHO_WON: Final = r"\bw[io]n\w*|\bgan(?:o|a|aron|ador\w*)\b"
_BE: Final = frozenset("is are was were been being be got get gets am".split())
_NO_ACTOR: Final = _AUXILIARY | {"me", "te", "le", "les", "nos"}


def _is_other_way_round(place: Place) -> bool:
    """Asked who lent me the tent, the reply says that I did: who acts in it is who is acted on in the question."""
    asked, given, match = asked_by(place.question), place.given, place.match
    if asked.verb is None or not asked.asks_who:
        return False
    known, known_acts, answer = asked.known, asked.known_acts, tokens_of(place.answer)
    if at := next((at for at, token in enumerate(answer) if same_token(asked.verb, token)), 0):
        known, known_acts = frozenset({answer[at - 1].text}), True
    for at, token in enumerate(given):
        sign = (
            1 if same_token(asked.verb, token) else -1 if are_paired(CONVERSES, asked.verb.text, token.text) else 0
        )
        if not sign:
            continue
        is_compared = [one.text for one in given[at + 1 : at + 2]] == ["than"]
        if token.text == asked.verb.text and token.text.endswith(("er", "or")) and not is_compared:
            continue  # the noun: "your manager"
        before = next((place for place in range(at - 1, -1, -1) if given[place].text not in _NO_ACTOR), -1)
        is_passive = not token.text.endswith("ing") and any(one.text in _BE for one in given[before + 1 : at])
        if is_passive and not is_compared:
            sign = -sign
        acts_as_asked = (sign > 0) == known_acts
        has_known_subject = before >= 0 and given[before].text in known
        if re.fullmatch(r"\w+[ai]ste", token.text):
            has_known_subject = "you" in known
        if not acts_as_asked if has_known_subject else (acts_as_asked and match.first <= before <= match.last):
            return True
    return False


# fmt: off
VETOES: Final[Sequence[Veto]] = (
    Veto("X is fine, of what is not", "denied",
        after=r"\s*(?:is|are|es|son|esta|estan)? (?:fine|ok|okay|safe|allowed|no problem|bien|permitid\w+)\b",
        only=_ASKS_WHAT_FAILED),
    Veto("turned down X", "denied",
        before=r"\b(?:refus\w+|reject\w+|declin\w+|cancel\w*|discard\w*|dropped|dismiss\w*|abandon\w*"
        r"|gave up(?: on)?|ruled out|turned down|sold|swapped|traded|ditched|gave away|got rid of|closed|scrapped"
        r"|stopped (?:using|going to)|threw away|vendi\w+|rechaz\w+|descart\w+"
        r"|(?:advis|warn|decid|vot|recommend|argu|counsell?|spoke|speak)\w* against"
        r"|desaconsej\w+|desmint\w+|den(?:y|ies|ied)|(?<!no )(?<!without a )doubt\w*)(?: \w+){0,2}[ -]?\Z",
        unless=_ASKS_WHAT_FAILED),
    Veto("turned X down", "denied", unless=_ASKS_WHAT_FAILED, after=r"(?: \w+){0,2} (?:down|up|off)\b",
        before=r"\b(?:turn|g[ai]v|call|thr[eo]w)\w* (?:\w+ ){0,2}\Z"),
    Veto("rather than X", "denied",
        before=r"\b(?:(?:rather|other) than|in(?:stead| place) of|not because|en (?:vez|lugar) de|no longer|ya no)"
        r"\b(?:(?!\b(?:but|sino)\b)[^,.;\n])*\Z|\b(?:excepto?|salvo|(?:any|every|all)\w* but)(?: \S+){0,2} \Z"
        r"|\bpref\w+ (?!to\b|que\b)[^.;,\n]{1,40} (?:over|to|al?) (?:the |el |la )?\Z"),
    Veto("not X", "denied", when=_is_negated),
    Veto("X? No, X is wrong, X did not", "denied",
        after=r"[^.?!\n]{0,20}\?\W*no(?:t|pe)?\b"
        r"|[\s*_]+(?:(?:is|was|es|era)? ?(?:not|isnt|wasnt|wrong|incorrect|incorrecto)|no (?:es|era|fue)|(?:is|was"
        r"|were|has been|had been|fue|fueron) (?:ruled out|rejected|cancell?ed|discarded|dropped|refused|dismissed"
        r"|turned down|descartad\w+|rechazad\w+|cancelad\w+))\b|[\s*_|]+(?:(?:did|does|do|has|had|could|would|will"
        r"|can) not|didnt|doesnt|dont|hasnt|hadnt|couldnt|wouldnt|wont|cant|cannot|no|never|nunca)\b",
        unless=_ASKS_WHAT_FAILED),
    Veto("from X to Y", "superseded",
        before=rf"{_CHANGES}\b(?:from|de|del)\b{_WITHIN}{{0,60}}\Z",
        after=rf"{_WITHIN}{{0,20}}?\b(?:to|a|al)\b"),
    Veto("X, no wait, Y", "superseded", after=rf"[\s\S]{{0,{_NEAR}}}?{_CORRECTION}"),
    Veto("X, replaced by Y, or gone", "superseded",
        after=r"(?:, which)?[^.;,\n]{0,30}\b(?:replaced (?:by|with)|superseded by"
        r"|(?:changed|updated|corrected|amended) to|(?:reemplazad|sustituid|cambiad)[oa] por)\b"
        rf"|[^.\n]{{0,60}}\b(?:but|then|later|pero|luego|despues)\b[^.;\n]{{0,20}}\b(?:(?:was|were|been|la|lo|se)"
        rf"(?: ha| han)? {_CHANGED}|{_CHANGED} (?:it|that|this|them)) (?:to|for|al?|por)\b"
        r"|\W*(?:left|moved|retired|resigned|quit|stepped down|stopped|closed|shut|folded|broke|died|se jubilo)\b"
        r"[\s\S]*?\b(?:so|now|these days|since then|ahora)\b",
        unless=_ASKS_ABOUT_THE_PAST),
    Veto("Y (was X)", "superseded",
        before=r"\b(?:replac\w+|t(?:ook|akes|aking|aken) over (?:\w+ ){0,3}?from|succeed\w+|reemplazo a|sustituyo a"
        r"|stepp\w+ in for|(?:up|down) from)(?: \w+){0,2}\s*\Z|[(\[]\W*(?:it )?(?:was|were|previously|formerly"
        r"|originally|before|earlier|old|ex|instead of|not|up from|down from|from|antes|era)\b[^()\[\]]*\Z",
        unless=_ASKS_ABOUT_THE_PAST),
    Veto("was X, now Y", "superseded", unless=_ASKS_ABOUT_THE_PAST, when=_is_outdated),
    Veto("X, but now Y", "superseded",
        after=r"[^.;\n]{0,60}\b(?:but|pero)\b[^.;\n]{0,20}"
        r"\b(?:now|currently|ha(?:s|ve) (?:since|moved)|(?:then|later) moved|ahora|actualmente"
        r"|se (?:ha )?mud\w+)\b",
        unless=_ASKS_ABOUT_THE_PAST),
    Veto("X. The answer is Y", "superseded",
        after=r"[\s\S]*?\b(?:(?:(?:the|my)(?: \w+)?|final|correct|right) answer(?: is| would be|:)|answer:"
        r"|(?:la )?respuesta(?: final)?(?: es|:))(?! (?:given|found|stated|in|from|based|clear|correct|right)\b)"),
    Veto("X, so Y", "superseded", when=_is_overruled),
    Veto("X of another thing", "denied", when=lambda place: binds_otherwise(
        place.answer, place.given[max(0, place.match.first - 1) : place.match.last + 1])),
    Veto("thought of X, but", "denied", unless=_ASKS_WHAT_WAS_CONSIDERED, when=_was_only_considered),
    Veto("if X, it would", "denied", unless=_ASKS_WHAT_WAS_CONSIDERED, when=_is_supposed),
    Veto("X's sister", "denied", after=rf" {_RELATIVE}\b", when=lambda place: place.matched[-1].kind == "word"),
    Veto("of a relative", "denied", unless=_ASKS_WHO, when=_is_said_of_a_relative),
    Veto("of whose relative it is", "denied", unless=_ASKS_WHO, when=_is_said_of_the_owner),
    Veto("of another person", "denied", unless=_ASKS_WHO, when=_is_said_of_another),
    Veto("for X", "denied", only=_ASKS_WHO, before=r"\b(?:for|para) \Z", unless=r"\b(?:for|para|whom)\b"),
    Veto("beat X", "denied", only=_ASKS_WHO_WON,
        before=r"\b(?:beats?|defeat(?:s|ed)|(?:gano|vencio|derroto) al?) (?:\w+ ){0,2}\Z"),
    Veto("X lost", "denied", only=_ASKS_WHO_WON,
        after=r"(?: \w+){0,2} (?:lost|perdio|(?:came|was|were|finished|fue|quedo|quedaron)(?: in| an?| close)*"
        r" (?:second|third|last|beaten|defeated|runners?.up|segund\w|tercer\w|ultim\w|derrotad\w))\b"),
    Veto("the opposite", "denied", unless=_ASKS_WHO_WON, when=_says_the_opposite),
    Veto("the other way round", "denied", when=_is_other_way_round),
    Veto("another clause answers", "denied", when=_another_clause_answers),
    Veto("does not know", "hedged", when=_gives_up),
    Veto("nearly chose X, or asked whether X", "denied",
        before=rf"\b(?:almost|nearly|casi) {_PAST}\b[^.;\n]{{0,40}}\Z"
        r"|\b(?:ask|wonder|pregunt)\w*\b[^.,;\n]{0,30}\b(?:whether|if|si)\b[^.,;\n]{0,40}\Z",
        unless=r"\b(?:ask|wonder|question|pregunt|almost|nearly|casi)\w*"),
    Veto("X or Y, X to Y", "hedged",
        after=rf"(?:[\s,…)\"'*_]|\.\.\.)*\b(?:or|o|u)\W+(?!{_OTHERWISE})(?!(?:so|more|less|later|earlier|thereabouts|better"
        r"|higher|lower|fewer|nearby|menos|mas|i|you|he|she|it|we|they)\b)\w|\s?/\s?\w+(?![\w/])|(?:, (?!give"
        r" or)\w+(?: \w+){0,2})+,? (?:or|o|u)\b|[^\w,.;]{0,5}\?\W{0,5}(?:or|o|u)\b"
        r"|(?<=\d)\s*(?:[-–]|to\b|hasta\b|a\b)\s*[£$€]?\d"),
    Veto("between X and Y", "hedged",
        before=r"\b(?:between|entre|either)\b(?:\W+\w+){0,2}\W+\Z",
        when=lambda place: sum(token.kind != "word" for token in tokens_of(place.answer)) < 2),
    Veto("Y or X", "hedged",
        before=rf"(?:\b(?:or|o|u)\W+|(?<=\w)/\s?)(?:(?:{'|'.join(sorted(STOP_WORDS))})\W+)*\Z",
        after=rf"(?!{_OTHERWISE})"),
    Veto("one of a list", "candidates", when=_is_listed),
)
# fmt: on


Polarity = Literal["yes", "no"]

_LIKELY: Final = r"(?:(?:most |very )?(?:likely|probably|presumably|possibly)|probablemente|seguramente)"
LIKELY: Final = re.compile(_LIKELY, re.IGNORECASE)
_EXPECTED: Final = re.compile(
    rf"\W*(?:{_LIKELY}\W+)?(?P<says>yes|no|si)(?:\W+{_LIKELY})?(?P<rest>\W*\Z|\s*[,.;:(—–-]|\s(?=because|since|porque))"
)
_LEAD_IN: Final = re.compile(
    r"\W*(?:(?:(?:the |my )?answer(?: is)?|(?:la )?respuesta(?: es)?|well|so|pues|bueno"
    r"|unfortunately|sadly|(?:im |i am )?(?:sorry|afraid)|por desgracia|desgraciadamente|lamentablemente|lo siento"
    rf"|based on [^,.]*|according to [^,.]*)\W+|{_LIKELY}\W+)*"
)
_YES: Final = re.compile(
    r"(?:yes|yeah|yep|yup|correct|indeed|certainly|definitely|absolutely|of course|that is right|thats right"
    r"|affirmative|true|si|claro|exacto|efectivamente|por supuesto|cierto)\b"
)
_NO: Final = re.compile(
    r"(?:no|nope|nah|not (?:really|at all|anymore|any more|yet)|not|never|negative|incorrecto?|unlikely|fals[eo]"
    r"|i doubt|there (?:is|are) none|i (?:do not|dont) think so|para nada|tampoco|nunca|en absoluto|negativo)\b"
    r"|[^.;]{0,30}\b(?:used to\b.{0,20}\bbut|not any ?more|no longer|ya no)\b"
)
_SO: Final = re.compile(rf"\b(?:so|hence|therefore|asi que)\W+(?=(?:{_LIKELY}\W+)?(?:yes|no|not|si)\W*\Z)")
_SHORT_YES: Final = re.compile(
    r"(?:he|she|it|they|you|we|i|that|those|these|there|[a-z]+) (?:is|are|was|were|do|does|did|has|have|had|can"
    r"|could|will|would|should)\W*(?:\Z|,)|(?:there (?:is|are)|hay|tiene) (?:one|some|two|una?)\b"
)
_PRONOUNS: Final = frozenset("it that them there lo la los las alli".split())


def expected_polarity(expected: str) -> tuple[Polarity | None, str]:
    """Return what the expected answer of a yes-or-no question says, and what else it says."""
    if (found := _EXPECTED.match(folded(expected))) is None:
        return None, ""
    return ("no" if found["says"] == "no" else "yes"), folded(expected)[found.end() :].strip(" ._*!")


def polarity_of(reply: str, question: str) -> Polarity | None:
    """Return what a reply to a yes-or-no question says; None where its form does not show it."""
    plain = folded(reply)
    for correction in [*CORRECTS_ITSELF.finditer(plain)][-1:]:
        plain = plain[correction.end() :]
    plain = _SO.split(plain)[-1]
    first = next((part for part in re.split(r"(?<=[.!?;])\s|\n", plain) if re.search(r"\w", part)), "")
    said = DENIES_NOTHING.sub("", _LEAD_IN.sub("", first, count=1)).strip()
    if _NO.match(said):
        return "no"
    if _YES.match(said):
        return "yes"
    main = re.split(r"\b(?:but|although|because|since|so|pero|aunque|porque)\b|[,;]", said)[0]
    names = asked_by(question).names
    asked = [token for _, token in content_of(tokens_of(question)) if token.text not in names]
    given = tokens_of(main)
    is_opposite = any(are_paired(OPPOSITES, one.text, token.text) for one in asked for token in given)
    if is_opposite or any(token.text in NEGATIONS for token in given):
        return "no"
    if _SHORT_YES.match(said):
        return "yes"
    missing = [one for one in asked[1:] if not any(same_token(one, token) for token in tokens_of(said))]
    has_pronoun = bool(set(re.findall(r"\w+", said)) & _PRONOUNS - set(re.findall(r"\w+", folded(question))))
    return "yes" if asked[1:] and len(missing) <= min(int(has_pronoun), len(asked) - 2) else None
