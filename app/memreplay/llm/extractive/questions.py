"""What kind of thing a question asks for, and whether a sentence contains such a thing (English, Spanish)."""

from __future__ import annotations

import re
from typing import Literal

from memory_backends.text import MONTHS, NUMBERS, WEEKDAYS, any_of, folded
from memreplay.llm.extractive.words import STOP_WORDS

Wanted = Literal["time", "date", "duration", "money", "number", "name", "place", "code", "yes_no", "anything"]


def _words(*alternatives: str) -> re.Pattern[str]:
    """A pattern of whole words: each alternative is a pattern, or several separated by two spaces."""
    return re.compile(r"\b(?:" + "|".join(one for text in alternatives for one in text.split("  ")) + r")\b")


_NAMED_THINGS = (
    r"company|school|university|band|book|song|brand|breed|language|street|shop|team|neighbou?r|friend|colleague|"
    r"relative|teacher|practice|novel|town|project|framework|broker|library|tool"
)
# In this order: the first kind whose words occur in the question is what it asks for.
_ASKS_FOR: tuple[tuple[Wanted, re.Pattern[str]], ...] = (
    ("time", _words("what time  a que hora  que hora")),
    (
        "duration",
        _words(
            "how (?:long|often)  for how many (?:days|weeks|months|years)",
            r"cuanto (?:tiempo|tard\w+|dur\w+)  que tiempo  cada cuanto",
        ),
    ),
    (
        "money",
        _words(
            "how much  rate  price  cost  budget  rent  salary  fee  deposit  presupuesto  precio",
            "cuanto (?:cuesta|costo|vale|gana|cobra|dinero|paga)",
        ),
    ),
    (
        "date",
        _words(
            "when  (?:what|which) (?:date|day)  what (?:month|year)  deadline  date  cuando  fecha  que dia",
        ),
    ),
    (
        "number",
        _words(
            "how (?:many|old|big|fast|far|tall|high|large|heavy)  what (?:number|percentage)",
            "port  version  threshold  limit  cuant[oa]s?  numero  puerto  limite",
        ),
    ),
    (
        "code",
        _words(
            "error  message  command  setting  option  flag  file  path  endpoint  url  package  branch  table",
            "index  column  header  parameter  variable  namespace  code  tag  claim  pin  password  realm  slot",
            "environment  level  value  pressure  codigo  nivel  valor",
            "comando  fichero  archivo  ruta  tabla  rama  paquete",
        ),
    ),
    (
        "place",
        _words(
            "where  (?:which|what) (?:city|town|country|place|street)  address",
            "donde  ciudad  localidad  pueblo  pais  direccion  barrio",
        ),
    ),
    (
        "name",
        _words(
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
