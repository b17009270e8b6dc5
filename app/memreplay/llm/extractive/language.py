"""What the reader knows of English and Spanish: the terms that it compares, and what a question asks for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import Stemmer

from memory_backends.text import MONTHS, NUMBERS, WEEKDAYS, any_of, folded

_WORD = re.compile(r"[^\W_]+(?:[.:'’/@_-][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?\Z")


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\S+", text))


STOP_WORDS = frozenset(
    _words("""
    a an the this that these those and or but if then so than as of at by for with about into onto to from in on
    off out over under up down again once here there all any both each few more most other some such no nor not
    only own same too very can will just don should now i me my myself we our ours us you your yours he him his
    she her hers it its they them their theirs what which who whom whose when where why how is am are was were
    be been being have has had having do does did doing would could may might must shall s t re ve ll d m isn
    aren wasn weren doesn didn hasn haven hadn won wouldn couldn shouldn im ive id hey hi oh yeah yep wow thanks
    thank really also got get gets getting one ones thing things lot much many like well ok okay let s user
    users say said says tell told mention mentioned conversation according does kind type sort specific
    currently
    """)
    + _words("""
    el la los las un una unos unas lo al del de a ante bajo con contra desde en entre hacia hasta para por segun
    sin sobre tras y e o u ni que quien quienes cual cuales cuando cuanto cuanta cuantos cuantas donde como
    porque si no es son era eran fue fueron ser estar esta estan este esto estos estas ese eso esos esas aquel
    aquella ha han he has hay haber habia tiene tienen tener me te se nos os le les mi mis tu tus su sus yo ella
    ellos ellas usted ustedes mas menos muy ya tambien pero usuario usuaria persona dice dijo cosa cosas
    """)
)
"""Folded words without meaning of their own, and words by which a question refers to the conversation itself."""

# "One", "uno" and "once" often count nothing.
_DIGITS = {word: str(value) for word, value in NUMBERS.items() if word not in ("one", "once", "uno")}
_DIGITS["dozen"] = "12"

_ENGLISH = Stemmer.Stemmer("english")
_SPANISH = Stemmer.Stemmer("spanish")
_SPANISH_SIGNS = re.compile(
    r"[¿¡ñ]|\b(?:el|los|las|una|que|qué|cuál|dónde|cómo|quién|está|del|por|con|en|la|de|desde|y|mi|se)\b",
    re.IGNORECASE,
)


def is_spanish(text: str) -> bool:
    """Whether a text is Spanish rather than English: at least a seventh of its words are typical."""
    return len(_SPANISH_SIGNS.findall(text)) * 7 >= max(len(text.split()), 7)


@lru_cache(maxsize=65536)
def _terms_of(word: str, spanish: bool) -> tuple[str, ...]:
    """The terms of a word: itself, and the parts of a compound such as ``node-18`` or ``api/v2``."""
    plain = _POSSESSIVE.sub("", folded(word))
    parts = [plain, *_PART.findall(plain)] if _PART.fullmatch(plain) is None else [plain]
    return tuple(dict.fromkeys(_term(part, spanish) for part in parts if part and part not in STOP_WORDS))


def _term(part: str, spanish: bool) -> str:
    if part in _DIGITS:
        return _DIGITS[part]
    stem: str = (_SPANISH if spanish else _ENGLISH).stemWord(part)
    return stem


def terms(text: str, spanish: bool = False) -> list[str]:
    """The terms of a text in order, without stop words."""
    return [term for word in _WORD.findall(text) for term in _terms_of(word, spanish)]


Wanted = Literal["time", "date", "duration", "money", "number", "name", "place", "code", "yes_no", "anything"]


def _one_of(*alternatives: str) -> re.Pattern[str]:
    """A pattern of whole words: each alternative is a pattern, or several separated by two spaces."""
    return re.compile(r"\b(?:" + "|".join(one for text in alternatives for one in text.split("  ")) + r")\b")


_NAMED_THINGS = (
    r"company|school|university|band|book|song|brand|breed|language|street|shop|team|neighbou?r|friend|colleague|"
    r"relative|teacher|practice|novel|town|project|framework|broker|library|tool"
)
# In this order: the first kind whose words occur in the question is what it asks for.
_ASKS_FOR: tuple[tuple[Wanted, re.Pattern[str]], ...] = (
    ("time", _one_of("what time  a que hora  que hora")),
    (
        "duration",
        _one_of(
            "how (?:long|often)  for how many (?:days|weeks|months|years)",
            r"cuanto (?:tiempo|tard\w+|dur\w+)  que tiempo  cada cuanto",
        ),
    ),
    (
        "money",
        _one_of(
            "how much  rate  price  cost  budget  rent  salary  fee  deposit  presupuesto  precio",
            "cuanto (?:cuesta|costo|vale|gana|cobra|dinero|paga)",
        ),
    ),
    (
        "date",
        _one_of(
            "when  (?:what|which) (?:date|day)  what (?:month|year)  deadline  date  cuando  fecha  que dia",
        ),
    ),
    (
        "number",
        _one_of(
            "how (?:many|old|big|fast|far|tall|high|large|heavy)  what (?:number|percentage)",
            "port  version  threshold  limit  cuant[oa]s?  numero  puerto  limite",
        ),
    ),
    (
        "code",
        _one_of(
            "error  message  command  setting  option  flag  file  path  endpoint  url  package  branch  table",
            "index  column  header  parameter  variable  namespace  code  tag  claim  pin  password  realm  slot",
            "environment  level  value  pressure  codigo  nivel  valor",
            "comando  fichero  archivo  ruta  tabla  rama  paquete",
        ),
    ),
    (
        "place",
        _one_of(
            "where  (?:which|what) (?:city|town|country|place|street)  address",
            "donde  ciudad  localidad  pueblo  pais  direccion  barrio",
        ),
    ),
    (
        "name",
        _one_of(
            "who  whose  whom  names?  surname  called  title  breed",
            "quien(?:es)?  nombre  llaman?  apellidos?  titulo  raza",
            r"(?:which|what) (?:\w+ )?(?:" + _NAMED_THINGS + ")",
        ),
    ),
)
_AUXILIARY = re.compile(
    r"\A(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|might|es|esta|ha|tiene|puede|hay)\b"
)
_MONTHS, _WEEKDAYS = any_of(MONTHS), any_of(WEEKDAYS)
# "One", "a" and "once" count nothing by themselves.
_COUNT = rf"(?:\d[\d.,]*|hundred|thousand|{any_of(NUMBERS.keys() - {'zero', 'cero', 'one', 'uno', 'once'})})"
_TIME_UNIT = (
    r"(?:seconds?|minutes?|hours?|days?|weeks?|weekends?|months?|years?|nights?|ms|s|min|h|"
    r"segundos?|minutos?|horas?|dias?|semanas?|mes(?:es)?|anos?)"
)
_HOLDS: dict[Wanted, re.Pattern[str]] = {
    "time": re.compile(
        r"\b\d{1,2}[:.h]\d\d\b|\b\d{1,2}\s?(?:am|pm|a\.m\.|p\.m\.)|\b(?:noon|midnight|o'clock|mediodia)\b"
    ),
    "date": re.compile(
        r"\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+|de\s+)?" + _MONTHS + r"\b|\b" + _MONTHS + r"\s+\d{1,2}|"
        r"\b(?:19|20)\d\d\b|\b" + _WEEKDAYS + r"\b|\b\d{1,2}[/-]\d{1,2}\b|"
        r"\b(?:yesterday|tomorrow|ayer|manana|last|next|ago|pasad[oa])\b|"
        r"\b(?:in|en|by|since)\s+" + _MONTHS + r"\b"
    ),
    "duration": re.compile(
        r"\b(?:" + _COUNT + r"|one|an?|every|each|once|twice|una?|cada)[\s-]+(?:more\s+)?" + _TIME_UNIT + r"\b|"
        r"\b\d+(?:ms|s|m|h|d)\b"
    ),
    "money": re.compile(
        r"[$£€]\s?\d|\b" + _COUNT + r"\s?(?:euros?|dollars?|pounds?|eur|usd|gbp|k\b|pesos)|\d[\d.,]{3,}"
    ),
    "number": re.compile(r"\b" + _COUNT + r"\b|\d"),
    "code": re.compile(r"[`/\\{}<>=]|\w_\w|\w[.:-]\w|[a-z][A-Z]|\b[A-Z]{2,}\b|--?\w|\d"),
}  # fmt: skip
_CAPITALISED = re.compile(r"(?<![.!?…\"“(¿¡]\s)(?<!\A)(?<!\n)(?<=[\s\"“'(«])[A-ZÀ-Þ][\w'’-]+")
_FIRST_WORD = re.compile(r"\A[\"“'(¿¡]*([A-ZÀ-Þ][\w'’-]+)")
_QUOTED = re.compile(r"[\"“«][^\"”»]{2,60}[\"”»]")
_CALLED = re.compile(
    r"\b(?:called|named|name is|call it|se llama|llamad[oa]|le llaman)\s+\S|(?<=\s)[a-z]+[-_][a-z]+[-_\w]*"
)
_SHORT_REPLY = 4
"""Words. The capitalised first word of a sentence no longer than this may be a name."""

_WHO_SPEAKS = re.compile(
    r"\b(?:name|surname|called|who is)\b.*\b(?:user|own|speaker|writer|author)\b|"
    r"\b(?:user|own|real|full)\b[^,]{0,25}\bname|"
    r"\b(?:nombre|apellidos?|llama|quien es)\b.*\busuari[oa]\b|\busuari[oa]\b.*\b(?:nombre|apellidos?)\b"
)
_OF_SOMETHING_ELSE = re.compile(
    r"\buser's\s+(?!(?:own|real|first|last|full)?\s*(?:name|surname|first|last|full))|"
    r"\b(?:el|la|los|las|tu|su)\s+(?!nombre|apellido)\w+\s+(?:del|de la)\s+(?:persona\s+)?usuari[oa]\b"
)
_INTRODUCTION = re.compile(
    r"\b(?:I['’]m|I am|[Mm]y name(?:['’]s| is)|[Cc]all me|[Nn]ame['’]s|[Ss]igned,?|[Tt]his is|"
    r"[Ss]oy|[Mm]e llamo|[Mm]i nombre es)\s+(?:called\s+)?(?:Dr\.?\s+)?[A-ZÀ-Þ][\w'’-]+"
)


def wanted_by(question: str) -> Wanted:
    plain = folded(question).strip("¿ ")
    if _AUXILIARY.match(plain):
        return "yes_no"
    return next((wanted for wanted, pattern in _ASKS_FOR if pattern.search(plain)), "anything")


def holds(sentence: str, wanted: Wanted, question_words: frozenset[str]) -> bool:
    """Whether a sentence contains something of that kind; a name counts unless the question contains it already."""
    if wanted in ("name", "place"):
        return bool(_new_names(sentence, question_words) or _CALLED.search(sentence))
    pattern = _HOLDS.get(wanted)
    return pattern is not None and bool(pattern.search(sentence if wanted == "code" else folded(sentence)))


def asks_who_speaks(question: str) -> bool:
    """Whether a question asks for the speaker's own name."""
    plain = folded(question).replace("’", "'")
    return bool(_WHO_SPEAKS.search(plain)) and not _OF_SOMETHING_ELSE.search(plain)


def introduces_itself(sentence: str) -> bool:
    """Whether the speaker gives their own name in a sentence: "I'm Ada", "me llamo Ada"."""
    return bool(_INTRODUCTION.search(sentence))


def _new_names(sentence: str, question_words: frozenset[str]) -> list[str]:
    names = [match.group() for match in _CAPITALISED.finditer(sentence)] + _QUOTED.findall(sentence)
    if (first := _FIRST_WORD.match(sentence)) and len(sentence.split()) <= _SHORT_REPLY:
        names.append(first.group(1))
    plain = ((name, folded(name).strip("\"“”'’«»")) for name in names)
    return [name for name, word in plain if word not in question_words and word.partition("'")[0] not in STOP_WORDS]
