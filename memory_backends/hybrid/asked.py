"""What a question asks for, beside its words: whom it names, and which months.

The name of who said something is in the question far more often than in what was said, so it is taken out of the
topic, and says instead whose turns are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from memory_backends.hybrid.facts import folded

_MONTHS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "january enero",
            "february febrero",
            "march marzo",
            "april abril",
            "may mayo",
            "june junio",
            "july julio",
            "august agosto",
            "september septiembre",
            "october octubre",
            "november noviembre",
            "december diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
_ALSO_A_WORD = frozenset({"may", "march"})
"""Months that count as such only beside a number, or after ``in`` or ``of``."""

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_POSSESSIVE = re.compile(r"['’]s$")


@dataclass(frozen=True)
class Asked:
    """A question, read.

    ``topic`` is the question without the names of those who speak in the conversation, or the question itself
    where nothing would be left; ``speakers`` are the folded labels that it names.
    """

    text: str
    topic: str
    speakers: frozenset[str]
    months: frozenset[int]
    years: frozenset[int]

    def means_date(self, said_at: datetime | None) -> bool:
        """Whether something said then lies in a month that the question names."""
        if said_at is None or said_at.month not in self.months:
            return False
        return not self.years or said_at.year in self.years


def read_question(text: str, labels: Iterable[str]) -> Asked:
    """Read a question; ``labels`` are the folded labels of those who speak."""
    words = folded(text).split()
    named = frozenset(label for label in labels if label and f" {label} " in f" {' '.join(words)} ")
    parts = {part for label in named for part in label.split()}
    topic = _WORD.sub(lambda word: "" if folded(_POSSESSIVE.sub("", word[0])) in parts else word[0], text)
    return Asked(
        text=text,
        topic=" ".join(topic.split()) if _WORD.search(topic) else text,
        speakers=named,
        months=frozenset(_months(words)),
        years=frozenset(int(word) for word in words if _YEAR.fullmatch(word)),
    )


def _months(words: list[str]) -> Iterable[int]:
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_dated = before in ("in", "of") or before.isdigit() or after.isdigit()
        if word in _MONTHS and (is_dated or word not in _ALSO_A_WORD):
            yield _MONTHS[word]
