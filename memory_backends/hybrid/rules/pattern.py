"""The type of a rule, and pieces of patterns for both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from memory_backends.text import ENGLISH_MONTHS, SPANISH_MONTHS, any_of

CAP = r"(?!I\b)[A-ZÀ-ÖØ-Þ][\w'’&-]*"
"""A capitalised word; the pronoun *I* is none."""

PROPER = rf"{CAP}(?:\ (?:(?:of|the|de|del|la|las|los|el|and|y|&)\ ){{0,2}}{CAP}){{0,4}}"
"""A proper name of one to five capitalised words, with the small words between them."""

PERSON = rf"{CAP}(?:\ {CAP}){{0,2}}"
"""A person's name."""

QUOTED = r"[\"“«][^\"”»\n]{2,80}[\"”»]|`[^`\n]{2,80}`"

MONTH = any_of([*map(str.capitalize, ENGLISH_MONTHS), *(set(ENGLISH_MONTHS) - {"march", "may"}), *SPANISH_MONTHS])
WEEKDAY = (
    r"(?:(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|lunes|martes|miércoles|jueves|viernes|sábados?"
    r"|domingos?)"
)
SHORT_MONTH = (
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
    r"|(?<=\d\s|[dht]\s)(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec))"
)
SHORT_WEEKDAY = (
    r"(?:(?:Tues?|Weds?|Thu(?:rs?)?)\b|(?:Mon|Fri|Sat|Sun|mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun)"
    r"(?=\s\d|(?:\s(?:and|to|y)\s|[,/-]\s?|\s)(?:(?i:mon|tue|wed|thu|fri|sat|sun)|\d)))"
)
CLOCK = r"(?:[01]?\d|2[0-3])(?::[0-5]\d)(?:\s?[ap]\.?m\b)?|\b1?\d(?:\.[0-5]\d)?\s?[ap]m\b"
NUMBER_WORD = (
    r"(?:(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand"
    r"|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|trece|catorce|quince|dieci\w+|veint\w+"
    r"|(?:trei|cuare|cincue|sese|sete|oche|nove)nta|cien|\w{0,8}cient[oa]s|quinient[oa]s|mil)"
    r"(?:\s(?:and\s|y\s)?(?:hundred|thousand|cientos|mil|two|three|four|five|six|seven|eight|nine|twelve|\w{3,5}teen|\w{3,5}ty|un[oa]?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
    r"|(?:veint|dieci)\w+|(?:trei|cuare|cincue|sese|sete|oche|nove)nta|\w{0,8}cient[oa]s|quinient[oa]s)\b){0,4})"
)
DATE = (
    rf"(?:(?:(?:{WEEKDAY}|{SHORT_WEEKDAY}),?\s)?(?:the\s|el\s)?(?:\d{{1,2}}(?:st|nd|rd|th)?|{NUMBER_WORD})"
    rf"\s(?:of\s|de\s)?(?:{MONTH}|{SHORT_MONTH})\b"
    rf"(?:,?\s(?:de\s|del\s)?\d{{4}})?"
    rf"|{MONTH}\s(?:\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|(?:de\s|del\s)?\d{{4}})\b|\b\d{{4}}-\d{{2}}-\d{{2}}\b"
    rf"|(?:the|el)\s\d{{1,2}}(?:st|nd|rd|th)\b|\b\d{{1,2}}(?:st|nd|rd|th)(?=[.,;!?]|$|\s(?:not|and|or|now|instead)\b)|el\sdía\s(?:\d{{1,2}}|{NUMBER_WORD})"
    rf"|(?:next\s|this\s|last\s|este\s|el\s|los\s)?{WEEKDAY}(?:(?:,\s{WEEKDAY})?\s(?:and|y)\s{WEEKDAY})?\b"
    rf"|{SHORT_WEEKDAY})"
)
MONEY = (
    r"(?:[$€£¥]\s?\d[\d.,]{0,14}(?<![.,])(?:\s?(?:k|m|bn|million|thousand|p)\b)?"
    rf"|(?:(?<![\d.,])\d[\d.,]{{0,14}}|\b{NUMBER_WORD})"
    r"\s?(?:€|£|euros?\b|dollars?\b|pounds?\b|dólares\b|pesos\b|USD\b|EUR\b|GBP\b)|\b\d{1,3}p\b)"
)
_HEAD = (
    r"(?!(?:of|the|that|this|and|or|to|in|on|at|for|from|is|was|are|were|more|less|other|others|things?|times?|ways?"
    r"|by|as|if|so|but|than|with|after|before|when|now|not|which|who|it|per|a|an|ago|again|there|here|today|yesterday|o|y|a|de|del|la|el|los|las|en"
    r"|que|con|por|para|cosas?|veces|vez|más|menos|es|son|era|eran|sean|fueron|se|me|lo|no|si|como|sin|ni|te|le|and|said|will|would|has"
    r"|have|had)\b)"
)
AMOUNT = (
    rf"(?:{MONEY}|(?<![\w.,:/-])(?!\d{{3,4}}s\b|100\s?%)\d[\d.,]{{0,14}}(?<![.,])\s?(?:%|°[CF]\b|per\scent\b|por\sciento\b"
    rf"|\s{_HEAD}(?:[a-zà-ÿ-]{{3,}}\s(?=[a-zà-ÿ-]+(?:s|as|os)\b))?[a-zà-ÿ][a-zà-ÿ-]+|(?:[mkcn]?[mgs]|[KMGT]i?B?|px|h|mAh|km|lbs?)\b)"
    rf"|(?<![\w-]){NUMBER_WORD}\s(?:of\sus|de\snosotr[oa]s|{_HEAD}(?:[a-zà-ÿ-]{{3,}}\s(?=[a-zà-ÿ-]+s\b))?"
    rf"[a-zà-ÿ-]{{2,}}(?:s|en|ople)\b))"
)
"""A number with its unit or head noun. ``429s`` are several of a kind and no seconds; ``100 %`` means *wholly*."""

_VERB = r"(?:GET|POST|PUT|PATCH|DELETE|HEAD)"
VALUE = (
    rf"(?:{QUOTED}|{DATE}(?:\s(?:at|a\slas)\s(?:{CLOCK}))?|{CLOCK}|{AMOUNT}|\d[\w.:/-]*"
    rf"|{_VERB}\s/[\w/{{}}.-]*\w|(?!{_VERB}\b){PROPER})"
)
"""Values of an attribute: quoted, dated, counted, the address of a request, or a proper name."""

SPECIFIC = rf"(?:{QUOTED}|{DATE}|{CLOCK}|{AMOUNT}|[$€£]?\d[\w.,:/-]*\w|\d|{NUMBER_WORD}\b|{PROPER})"
"""A precise value: :data:`VALUE` and bare numbers, in digits or words."""

LONGEST_VALUE = 120
_TRIM = " \t\"'“”‘’«»`.,;:!?¡¿()[]*"


def clean_value(text: str) -> str:
    """Return a value as it is kept: one line, no quotes or punctuation around it, at most ``LONGEST_VALUE``
    characters.
    """
    return " ".join(text.split()).strip(_TRIM)[:LONGEST_VALUE].rstrip()


Kind = Literal[
    "instruction", "self", "relation", "correction", "preference", "technical", "statement", "value", "advice"
]

IMPACTS: Mapping[Kind, float] = {
    "instruction": 1.0,
    "self": 0.95,
    "relation": 0.9,
    "correction": 0.85,
    "preference": 0.85,
    "technical": 0.8,
    "statement": 0.75,
    "value": 0.72,
    "advice": 0.76,
}
"""Impact of each kind of fact, 0..1.

Each form of sentence is enough by itself for its facts to be promoted. What is dropped is said in doubt, or tells
less than one new word. The order is set by hand.
"""


_LONG_FORMS = (DATE, AMOUNT, NUMBER_WORD)
"""Forms of values that take most of the time of compiling a pattern."""

_FIGURE = re.compile(rf"\d|{WEEKDAY}|{SHORT_WEEKDAY}|{NUMBER_WORD}", re.IGNORECASE)
"""Pattern that every value of a long form contains."""

_NOTHING = re.compile(r"(?!)")


@lru_cache(maxsize=256)
def _holds_figure(text: str) -> bool:
    return bool(_FIGURE.search(text))


class LazyPattern:
    """A regular expression of which no more is compiled than the texts searched so far need.

    Compiling all patterns of the rules takes half a second, most of it for long forms of values that are part of
    many patterns. The opening, which is what stands before the group ``value``, is a few words that most texts do
    not hold. A text without figures is searched without the long forms, which match nothing in it.

    ``value`` stands in no other group and no alternative, so that what precedes it is a pattern by itself.

    ``needs`` is a part of every match: a text without it is not searched. Where a pattern begins with a stretch of
    anything, trying it at each place takes longer than all other patterns together.
    """

    def __init__(self, text: str, flags: int = 0, needs: str = "") -> None:
        self._text, self._flags = text, flags
        self._needs = re.compile(needs, flags) if needs else None
        self._is_long = any(form in text for form in _LONG_FORMS)
        self._whole: re.Pattern[str] | None = None

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        opening, value, _ = self._text.partition("(?P<value>")
        return re.compile(opening if value else "", self._flags)

    @cached_property
    def _without_figures(self) -> re.Pattern[str]:
        text = self._text
        for form in _LONG_FORMS:
            text = text.replace(form, "(?!)")
        return re.compile(text, self._flags)

    def _for(self, text: str) -> re.Pattern[str]:
        """Return a pattern that finds in ``text`` what the whole one finds."""
        if self._needs is not None and not self._needs.search(text):
            return _NOTHING
        if self._whole is None:
            if not self._opening.search(text):
                return _NOTHING
            if self._is_long and not _holds_figure(text):
                return self._without_figures
            self._whole = re.compile(self._text, self._flags)
        return self._whole

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._for(text).finditer(text)

    def search(self, text: str) -> re.Match[str] | None:
        return self._for(text).search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._for(text).match(text)


@dataclass(frozen=True, eq=False)
class Rule:
    """One form in which people say a fact, in English and Spanish.

    Each of ``patterns`` has the group ``value``; its other groups name parts of ``slot``. In ``slot``, ``<who>``
    stands for the speaker and ``<group>`` for what that group matched; None is a fact without a slot. ``form`` says
    in words what is matched. ``certainty`` (0..1) is how surely the form states a fact. A slot of ``several`` keeps
    all its values, any other only the last. ``in_questions`` says whether a question may state the fact.
    """

    name: str
    form: str
    kind: Kind
    patterns: tuple[LazyPattern, ...]
    slot: str | None
    certainty: float
    several: bool = False
    in_questions: bool = False

    @property
    def impact(self) -> float:
        """Return how much facts of its kind matter."""
        return IMPACTS[self.kind]


def patterns(*texts: str | LazyPattern) -> tuple[LazyPattern, ...]:
    """Return a rule's patterns: case matters except inside ``(?i:…)``."""
    return tuple(text if isinstance(text, LazyPattern) else LazyPattern(text) for text in texts)
