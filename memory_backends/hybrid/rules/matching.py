"""Apply the rules to one sentence: slots and values, without those that only look like a fact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from memory_backends.hybrid.rules import personal, statements, values
from memory_backends.hybrid.rules.pattern import (
    Rule,
    clean_value,
)
from memory_backends.text import folded_words

LONGEST_SLOT = 48

_DIGIT = re.compile(r"\d")


def slot_part(text: str) -> str:
    """Return a piece of text as a part of a slot's name: ``Favourite colour`` → ``favourite_colour``."""
    return folded_words(text).replace(" ", "_")[:LONGEST_SLOT].strip("_")


def same_value(one: str, other: str) -> bool:
    """Return whether two values are the same but for case, accents and punctuation."""
    return folded_words(one) == folded_words(other)


def is_of_a_kind(new: str, old: str) -> bool:
    """Return whether ``new`` may stand where ``old`` stood: a number for a number, a name for a name, no phrase."""
    return _kind(new) == _kind(old) and len(new.split()) <= len(old.split()) + 1


def _kind(value: str) -> str:
    if _DIGIT.search(value):
        return "number"
    return "name" if value[:1].isupper() else "word"


def says_no_more(new: str, old: str) -> bool:
    """Return whether ``new`` adds nothing to ``old``: the same value, or a part of it in whole words."""
    return f" {folded_words(new)} " in f" {folded_words(old)} "


RULES: tuple[Rule, ...] = (*personal.RULES, *statements.RULES, *values.RULES, *statements.REST)
"""Rules for people's sentences, in the order of trial. A fact without a slot gives way to one with a slot before
it.
"""

ADVICE: tuple[Rule, ...] = values.ADVICE
"""Rules for an assistant's sentences: only what it works out or recommends is kept."""

NAMING = frozenset({"name", "employer", "relation", "home", "origin", "name mentioned"})
"""Rules whose value must be a name."""

_MINE = re.compile(r"(?:my|mis?)\s", re.I)
_SLOT_GROUP = re.compile(r"<(\w+)>")
_FILLER = frozenset(
    word
    for line in (
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july",
        "august september october november december lunes martes miércoles jueves viernes sábado domingo",
        "mon tue tues wed thu thur thurs fri sat sun mum mom dad mummy mommy daddy mamá papá",
        "i the this that it he she they we you and but so if when what which where who how there then not",
        "asked yeah yes no oh wow hey hi hello thanks thankfully luckily same sure well also just",
        "maybe sorry okay ok",
        "el la los las un una y pero si que oye mira bueno pues uy ay hija hola gracias perdona ya luego",
    )
    for word in line.split()
)
"""Capitalised words that are no name, or none that says much."""

_DENIAL = re.compile(r"\b(?:not|no\slonger|never|ya\sno|nunca)\b|n['’]t\b", re.I)
_DENIED_BEFORE = re.compile(r"(?:\b(?:no|nunca|no\slonger|never|not)|n['’]t)\s(?:me\s|se\s|nos\s|\w+ly\s)?$", re.I)
_MAY_DENY = frozenset({"dislike", "error message", "preference"})
"""Rules, besides instructions, whose facts may hold a denial; of any other it says that the fact is none."""

_POINTING = frozenset(
    word
    for line in (
        "one ones them it this that these those what which who he she they re problem thing way rest same reason",
        "someone somebody anyone person people man woman guy girl boy lady stuff place",
        "default value answer number result point question",
        "two three four five six seven eight nine ten other others",
        "que lo eso esto uno una cosa problema alguien persona hombre mujer chico chica señor señora",
        "valor respuesta número resultado pregunta",
        "dos tres otro otra y no unos unas",
    )
    for word in line.split()
)
"""Words that name nothing by themselves: no attribute is called so."""

_POSSESSIVE = re.compile(r"['’]s$")
_ARTICLE_FIRST = re.compile(r"(?:the|our|my|el|la|los|las|mis?|nuestr[oa])\s", re.I)
_PREPOSITION_LAST = re.compile(
    r"\b(?:of|in|on|at|to|by|for|from|with|into|onto|under|behind|about|inside|de|en|con|para|por|a|sobre)\s$", re.I
)
_LONGEST_PREPOSITION = 8

_SLOT_OF_ATTRIBUTE = {
    "full_name": "<who>.name",
    "nombre_completo": "<who>.name",
    "due_date": "deadline",
    "fecha_limite": "deadline",
    "plazo": "deadline",
    "presupuesto": "budget",
}
"""Slots of attributes that are known under another name."""

_LOWER_I = re.compile(r"\bi(?=\s|['’](?:m|d|ve|ll)\b)")
_UNREAL = re.compile(
    r"\b(?:(?:if|wish)\s(?:I|we|you|he|she|it|they)\s(?:had|were|was|could|won)|what\sif|as\sif|imagine|why\sdon['’]?t\s(?:I|we)"
    r"|I['’]d\slove\sto|(?:si|ojalá)\s(?:\w+\s)?(?:fuer|fues|tuvier|tuvies|pudier|pudies)\w+)\b",
    re.I,
)
"""Patterns of what is imagined or wished."""

_TOO = re.compile(r"\s(?:too|as\swell|so\smuch|a\slot|also|también|mucho)$", re.I)

_CODE = re.compile(
    r"^(?:COPY|RUN|FROM|ENV|CMD|SELECT|JOIN|(?:LEFT|INNER)\sJOIN|WHERE|AND|ORDER|GROUP|INSERT|UPDATE|CREATE|ALTER"
    r"|SET|EXPLAIN)\s|[{};]$|\s\{\s|^\w+\s(?:--?\w|.*\s--\w)"
)
_FOR_NOW = re.compile(r"\b(?:yet|for\snow|right\snow|todavía|aún|por\sahora|de\smomento)\b", re.I)
_TITLES = frozenset({"Mr", "Ms", "Mrs", "Dr", "Sr", "Sra", "Dra", "Don", "Doña"})
_DETERMINERS = frozenset(
    word
    for line in (
        "in on at from for with of to by as if besides near the our my your his her their this",
        "en de con para mi su",
    )
    for word in line.split()
)
"""Words that begin a sentence with a capital and are no part of the name that follows."""

_BEFORE_NO_NAME = frozenset({"a", "an", "un", "una", "you", "tú", "type", "class", "tipo", "clase"})
"""Words after which what is capitalised is one of a kind, or somebody who is spoken to."""

_MARKS = "\"'“”‘’«»()[],"
_SUBJECT_OF = re.compile(r",?\s(?:is|was|are|were|has|had|took|from|es|era|son|tiene)\b")
"""Pattern of what follows a name that begins a sentence."""

_ANNOUNCES = re.compile(r"^(?:\S+\s){0,6}\S+:$")
"""A few words that say no more than that something follows."""


_HEADING = re.compile(r"(?:[Mm]y\s|[Tt]he\s|[Ll][ao]s?\s|[Ee]l\s|[Mm]is?\s)?[^\W\d_][\w-]+(?:\s[\w-]+)?[.:]")
_ACKNOWLEDGES = frozenset(
    word
    for line in (
        "me ok okay good great nice fine right yes no sure sent done passed thanks cheers next last sorry well",
        "home again agreed",
        "exactly true perfect lovely ready understood noted both neither maybe enough anyway end wait",
        "vale bueno bien sí si no claro gracias hecho perfecto genial exacto listo eso ya adiós hola espera venga",
    )
    for word in line.split()
)


def is_heading(sentence: str) -> bool:
    """Return whether a sentence of a word or two only names what the next ones are about: ``My pay.``,
    ``Boiler:``.
    """
    words = folded_words(sentence).split()
    return bool(_HEADING.fullmatch(sentence)) and not any(word in _ACKNOWLEDGES for word in words)


Match = tuple[Rule, str | None, str]
"""A rule that matched, the slot and the value."""


def matches_in(sentence: str, who: str, rules: Sequence[Rule] = RULES) -> Iterator[Match]:
    """Yield what the rules read in a sentence of ``who``, in the order of the rules."""
    sentence = _LOWER_I.sub("I", sentence)
    asks = sentence.rstrip("\"'”»)").endswith("?")
    tells_by_itself = not (_CODE.search(sentence) or _ANNOUNCES.search(sentence))
    for rule in rules:
        if (asks and not rule.in_questions) or (rule.slot is None and not tells_by_itself):
            continue
        for match in (match for pattern in rule.patterns for match in pattern.finditer(sentence)):
            value = clean_value(match["value"])
            if rule.name in NAMING:
                value = _without_filler(value)
            value = _TOO.sub("", value)
            if value and not any(refuses(rule, match) for refuses in _REFUSALS):
                yield rule, _slot_of(rule.slot, match, who), value


def _without_filler(name: str) -> str:
    """Return a name without the capitalised small words around it, and owning nothing: ``But Quique's`` →
    ``Quique``.
    """
    words = _POSSESSIVE.sub("", name).split()
    while words and words[0].casefold() in _FILLER:
        words.pop(0)
    while words and words[-1].casefold() in _FILLER:
        words.pop()
    return " ".join(words)


def _is_denied(rule: Rule, match: re.Match[str]) -> bool:
    if rule.slot is None or rule.kind == "instruction" or rule.name in _MAY_DENY:
        return False
    return bool(
        _DENIAL.search(match[0])
        or _DENIAL.search(match["value"])
        or _DENIED_BEFORE.search(match.string, 0, match.start())
    )


def _points_nowhere(rule: Rule, match: re.Match[str]) -> bool:
    groups: Mapping[str, str | None] = match.groupdict()
    attribute = groups.get("attribute") or groups.get("thing")
    return attribute is not None and attribute.casefold().split()[-1] in _POINTING


def _is_no_subject(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether what seems to be described only says where or whose: ``in the book is “X”``."""
    if "attribute" not in match.groupdict() or not _ARTICLE_FIRST.match(match[0]):
        return False
    before = match.string[max(0, match.start() - _LONGEST_PREPOSITION) : match.start()]
    return bool(_PREPOSITION_LAST.search(before))


def _holds_only_now(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether an instruction is for the present step alone: ``Don't write any code yet``."""
    return rule.kind == "instruction" and bool(_FOR_NOW.search(match.string))


def _is_one_of_several(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether a setting is given several values at once, as in a message that compares them."""
    if rule.name != "setting":
        return False
    attribute = re.escape(match["attribute"])
    return len(re.findall(rf"(?<![\w.-]){attribute}\s?[=:]", match.string)) > 1


def _is_no_name(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether a capitalised word is the rest of a longer name, or is one for another reason."""
    if rule.name != "name mentioned":
        return False
    before = match.string[: match.start()].split()
    if not before:
        first = match["value"].split()[0]
        begins_it = first.casefold() in _FILLER | _DETERMINERS or not _SUBJECT_OF.match(match.string, match.end())
        return begins_it and first not in _TITLES
    last = before[-1].strip(_MARKS)
    goes_on = last[:1].isupper() and last not in _TITLES and last.casefold() not in _DETERMINERS
    return goes_on or last.casefold() in _BEFORE_NO_NAME


_CLAUSE = 40
"""Characters before a value within which its clause says whether it is so."""


def _is_unreal(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether a statement is of what would be."""
    clause = match.string[max(0, match.start() - _CLAUSE) : match.end()]
    return rule.kind in ("value", "statement", "self") and bool(_UNREAL.search(clause))


_NO_CORRECTION = frozenset({"now", "back", "one", "not", "it", "that", "this", "sure", "well", "also", "just"})


def _is_no_correction(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether what stands where a corrected value would is a filler."""
    return rule.name == "correction" and clean_value(match["value"]).casefold() in _NO_CORRECTION


_REFUSALS: tuple[Callable[[Rule, re.Match[str]], bool], ...] = (
    _is_denied,
    _points_nowhere,
    _is_no_subject,
    _holds_only_now,
    _is_one_of_several,
    _is_no_name,
    _is_no_correction,
    _is_unreal,
)


def _slot_of(template: str | None, match: re.Match[str], who: str) -> str | None:
    if template is None:
        return None
    attribute = match.groupdict().get("attribute")
    if attribute is not None:
        template = _SLOT_OF_ATTRIBUTE.get(slot_part(attribute), template)
        if template == "<attribute>" and _MINE.match(match[0]):
            template = "<who>.<attribute>"
    return _SLOT_GROUP.sub(lambda part: who if part[1] == "who" else slot_part(match[part[1]]), template)
