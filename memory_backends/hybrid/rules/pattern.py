"""What a rule is, and the pieces that the patterns of both languages are put together from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_backends.text import ENGLISH_MONTHS, SPANISH_MONTHS, any_of

CAP = r"(?!I\b)[A-ZÀ-ÖØ-Þ][\w'’&-]*"
"""A capitalised word; the pronoun *I* is none."""

PROPER = rf"{CAP}(?:\ (?:(?:of|the|de|del|la|las|los|el|and|y|&)\ ){{0,2}}{CAP}){{0,4}}"
"""A proper name of one to five capitalised words, with the small words between them."""

PERSON = rf"{CAP}(?:\ {CAP}){{0,2}}"
"""A person's name."""

QUOTED = r"[\"“«][^\"”»\n]{2,80}[\"”»]|`[^`\n]{2,80}`"

MONTH = any_of([*map(str.capitalize, ENGLISH_MONTHS), *SPANISH_MONTHS])
WEEKDAY = r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|lunes|martes|miércoles|jueves|viernes|sábado|domingo)"
CLOCK = r"(?:[01]?\d|2[0-3])(?::[0-5]\d)(?:\s?[ap]\.?m\b)?|\b1?\d\s?[ap]m\b"
DATE = (
    rf"(?:(?:{WEEKDAY},?\s)?(?:the\s|el\s)?\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s|de\s)?{MONTH}(?:,?\s"
    rf"(?:de\s|del\s)?\d{{4}})?"
    rf"|{MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|\b\d{{4}}-\d{{2}}-\d{{2}}\b|(?:the|el)"
    rf"\s\d{{1,2}}(?:st|nd|rd|th)\b"
    rf"|(?:next\s|this\s|este\s|el\s)?{WEEKDAY}\b)"
)
MONEY = (
    r"(?:[$€£¥]\s?\d[\d.,]{0,14}(?:\s?(?:k|m|bn|million|thousand)\b)?"
    r"|(?<![\d.,])\d[\d.,]{0,14}\s?(?:€|£|euros?\b|dollars?\b|dólares\b|pesos\b|USD\b|EUR\b|GBP\b))"
)
NUMBER_WORD = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce"
    r"|trece|catorce|quince|veinte|treinta|cuarenta|cincuenta)(?:-\w+)?"
)
UNIT = (
    r"(?:%|°[CF]\b|(?:ms|s|sec|seconds?|minutes?|min|hours?|h|days?|weeks?|months?|years?|km|kg|g|mg"
    r"|lbs?|cm|mm|m|px|rem"
    r"|[KMGT]i?B?|mCPU|vCPUs?|cores?|rows?|users?|people|guests?|requests?|replicas?|nodes?|pods?"
    r"|workers?|retries|records?"
    r"|lines?|pages?|segundos?|minutos?|horas?|días?|semanas?|meses|años?|personas|usuarios|invitados"
    r"|filas|réplicas)\b)"
)
AMOUNT = (
    rf"(?:{MONEY}|(?<![\d.,])(?!\d{{3,4}}s\b|100\s?%)\d[\d.,]{{0,14}}\s?{UNIT}"
    rf"|(?<![\w-]){NUMBER_WORD}\s(?:of\sus|de\snosotros|{UNIT}))"
)
"""How much of what. ``429s`` are several of a kind and no seconds, and ``100 %`` is said for *wholly*."""

_VERB = r"(?:GET|POST|PUT|PATCH|DELETE|HEAD)"
VALUE = (
    rf"(?:{QUOTED}|{DATE}(?:\s(?:at|a\slas)\s(?:{CLOCK}))?|{CLOCK}|{AMOUNT}|\d[\w.:/-]*"
    rf"|{_VERB}\s/[\w/{{}}.-]*\w|(?!{_VERB}\b){PROPER})"
)
"""What an attribute may be said to be: quoted, dated, counted, the address of a request, or a proper name."""


@dataclass(frozen=True)
class Rule:
    """One way in which people say a fact.

    ``pattern`` has the group ``value``; its other groups name parts of ``slot``. In ``slot``, ``<who>`` stands for
    the speaker and ``<group>`` for what that group matched; None is a fact without a slot. ``certainty`` is how
    surely the pattern means the fact, ``impact`` how much it matters to know it; both 0..1. A slot of ``several``
    keeps all its values, any other only the last. ``in_questions`` says whether a question may state the fact.
    """

    name: str
    pattern: re.Pattern[str]
    slot: str | None
    certainty: float
    impact: float
    several: bool = False
    in_questions: bool = False


def pattern(text: str) -> re.Pattern[str]:
    """Compile a rule's pattern: case matters except inside ``(?i:…)``."""
    return re.compile(text)
