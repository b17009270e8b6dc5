"""Candidate facts: what a message says that may be worth remembering, found by rules without a model.

A candidate keeps the sentence as it was said rather than a paraphrase; the slot and the value beside it are what
the rule read in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from memory_backends.base import Exchange, Message
from memory_backends.hybrid.facts import clean_value, is_of_a_kind, same_value, slot_part
from memory_backends.hybrid.rules import (
    english,
    english_people,
    english_relations,
    spanish,
    spanish_people,
    technical,
)
from memory_backends.hybrid.rules.corrections import is_correction, value_put_right, value_taken_back
from memory_backends.hybrid.rules.pattern import Rule
from memory_backends.operations import Frozen
from memory_backends.sentences import sentences_of

RULES: tuple[Rule, ...] = (
    *english_people.RULES,
    *english_relations.RULES,
    *english.RULES,
    *spanish_people.RULES,
    *spanish.RULES,
    *technical.RULES,
)
"""In the order in which they are tried. A fact without a slot gives way to one with a slot before it."""

MOST_A_MESSAGE = 8
LONGEST_CONTENT = 280
LONGEST_SENTENCE = 1000
"""Characters of a sentence that are read; what is longer is a log or a file, not a sentence."""

SHORTEST_SENTENCE = 3
"""Words that a sentence has at least for a fact without a slot to be understood by itself."""

HEDGED = 0.7
"""What certainty is multiplied by when the speaker is not sure."""

SUGGESTED = 0.6
"""What certainty is multiplied by when an assistant says it: advice is not a fact about the user.

What of it has no slot, or is about the assistant, is no candidate at all.
"""

_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|I\sguess|not\ssure|hypothetically|suppose|quizás?|tal\svez|a\slo\smejor"
    r"|igual)\b",
    re.I,
)
_SLOT_GROUP = re.compile(r"<(\w+)>")
_FILLER = frozenset(
    word
    for line in (
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july",
        "august september october november december lunes martes miércoles jueves viernes sábado domingo",
        "i the this that it he she they we you and but so if when what which where who how there then not",
        "asked yeah yes no oh wow hey hi hello thanks thankfully luckily same sure well also just",
        "maybe sorry okay ok",
        "el la los las un una y pero si que",
    )
    for word in line.split()
)
"""Capitalised words that are no name, or none that says much."""

_DENIAL = re.compile(r"\b(?:not|no\slonger|never|ya\sno|nunca)\b|n['’]t\b", re.I)
_MAY_DENY = frozenset({"instruction", "dislike", "error message", "preference"})
"""Rules whose facts may hold a denial; of any other it says that the fact is none."""

_POINTING = frozenset(
    word
    for line in (
        "one ones them it this that these those what which who he she they re problem thing way rest same reason",
        "someone somebody anyone person people man woman guy girl boy lady stuff place",
        "two three four five six seven eight nine ten other others",
        "que lo eso esto uno una cosa problema alguien persona hombre mujer chico chica señor señora",
        "dos tres otro otra",
    )
    for word in line.split()
)
"""Words that name nothing: no attribute is called so."""

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
}
"""Where an attribute that has a slot of its own under another name belongs."""

_NAMING = frozenset({"name", "employer", "relation", "city", "origin", "company", "name mentioned"})
"""Rules whose value must be a name."""


Match = tuple[Rule, str | None, str]
"""A rule that matched, the slot and the value."""


class Candidate(Frozen):
    """Something that may be worth keeping.

    ``content`` is ``speaker: sentence``. ``slot`` is where its ``value`` belongs (``user.name``, ``deadline``), if
    anywhere; a slot of ``several`` values keeps them all. ``taken_back`` is the value that it corrects, where it
    names one. ``certainty`` and ``impact`` are the first two factors of its significance. ``rule`` is what
    found it: a rule's name, or the model's, which then gives its ``justification``.
    """

    id: str
    content: str
    said_by: str
    slot: str | None
    value: str
    several: bool
    certainty: float
    impact: float
    is_correction: bool
    taken_back: str | None
    sources: tuple[str, ...]
    turn_number: int
    said_at: datetime | None
    rule: str
    justification: str | None = None

    @property
    def reading(self) -> str:
        """One sentence's beginning: what was read in it, and by what."""
        if self.justification is None:
            return f"Rule “{self.rule}” read {self.value!r}"
        return f"{self.rule} read {self.value!r} ({self.justification})"


def candidates_of(exchange: Exchange) -> tuple[Candidate, ...]:
    """The candidates of an exchange, in the order in which they were said. Ids are ``turn-number.place``."""
    present = frozenset(message.label for message in exchange.messages)
    return tuple(candidate for message in exchange.messages for candidate in _of_message(message, present))


def _of_message(message: Message, present: frozenset[str]) -> Iterator[Candidate]:
    seen: set[tuple[str | None, str]] = set()
    said_before: list[str] = []
    is_advice, who = _is_advice(message), speaker_slot(message)
    for whole in sentences_of(message.text):
        sentence = whole[:LONGEST_SENTENCE]
        taken_back = value_taken_back(sentence) or value_put_right(said_before)
        said_before.append(sentence)
        has_slot = False
        for rule, slot, value in _in_order(_matches(sentence, who), taken_back):
            if rule.slot is None and (has_slot or is_advice or len(sentence.split()) < SHORTEST_SENTENCE):
                continue
            if slot is None and taken_back is not None and same_value(value, taken_back):
                continue
            if is_advice and slot is not None and slot.startswith(f"{who}."):
                continue
            if rule.name in _NAMING and _is_address(value, present):
                continue
            key = (slot, value if slot else sentence)
            if key in seen or (slot is not None and _is_owned_already(slot, value, seen)):
                continue
            seen.add(key)
            has_slot = True
            if len(seen) > MOST_A_MESSAGE:
                return
            yield Candidate(
                id=f"{message.turn_number}.{len(seen)}",
                content=f"{message.label}: {_shortened(sentence, value)}",
                said_by=message.label,
                slot=slot,
                value=value,
                several=rule.several,
                certainty=round(rule.certainty * _doubt(sentence, message), 4),
                impact=rule.impact,
                is_correction=is_correction(sentence) or taken_back is not None,
                taken_back=taken_back,
                sources=(message.turn_id,),
                turn_number=message.turn_number,
                said_at=message.said_at,
                rule=rule.name,
            )


def speaker_slot(message: Message) -> str:
    """How the speaker stands in a slot's name: ``user``, ``ai``, or the name."""
    return slot_part(message.label) or message.role


def _matches(sentence: str, who: str) -> Iterator[Match]:
    asks = sentence.rstrip("\"'”»)").endswith("?")
    for rule in RULES:
        if asks and not rule.in_questions:
            continue
        for match in rule.pattern.finditer(sentence):
            value = clean_value(match["value"])
            if rule.name in _NAMING:
                value = _without_filler(value)
            if value and not (_is_denied(rule, match) or _points_nowhere(match) or _is_no_subject(match)):
                yield rule, _slot_of(rule.slot, match, who), value


def _in_order(found: Iterator[Match], taken_back: str | None) -> Iterable[Match]:
    """What a sentence says, that without a slot last which is no value for the one that the sentence takes back."""
    if taken_back is None:
        return found
    return sorted(found, key=lambda match: match[1] is None and not is_of_a_kind(match[2], taken_back))


def _without_filler(name: str) -> str:
    """A name without the capitalised small words around it, and owning nothing: ``But Quique's`` → ``Quique``."""
    words = _POSSESSIVE.sub("", name).split()
    while words and words[0].casefold() in _FILLER:
        words.pop(0)
    while words and words[-1].casefold() in _FILLER:
        words.pop()
    return " ".join(words)


def _is_owned_already(slot: str, value: str, seen: Iterable[tuple[str | None, str]]) -> bool:
    """Whether somebody's slot holds it: ``project = X`` says no more than ``user.side_project = X``."""
    return any(
        value == other and (held or "").rpartition(".")[2].split("_")[-1] == slot and "." in (held or "")
        for held, other in seen
    )


def _is_address(name: str, present: frozenset[str]) -> bool:
    """Whether a name only says who is spoken to: a speaker's label, or the short form of it."""
    return any(label.casefold().startswith(name.casefold()) for label in present)


def _is_denied(rule: Rule, match: re.Match[str]) -> bool:
    if rule.slot is None or rule.name in _MAY_DENY:
        return False
    return bool(_DENIAL.search(match[0]) or _DENIAL.search(match["value"]))


def _points_nowhere(match: re.Match[str]) -> bool:
    attribute = match.groupdict().get("attribute")
    return attribute is not None and attribute.casefold().split()[-1] in _POINTING


def _is_no_subject(match: re.Match[str]) -> bool:
    """Whether what seems to be described only says where or whose: ``in the book is “X”``."""
    if "attribute" not in match.groupdict() or not _ARTICLE_FIRST.match(match[0]):
        return False
    before = match.string[max(0, match.start() - _LONGEST_PREPOSITION) : match.start()]
    return bool(_PREPOSITION_LAST.search(before))


def _slot_of(template: str | None, match: re.Match[str], who: str) -> str | None:
    if template is None:
        return None
    attribute = match.groupdict().get("attribute")
    if attribute is not None:
        template = _SLOT_OF_ATTRIBUTE.get(slot_part(attribute), template)
    return _SLOT_GROUP.sub(lambda part: who if part[1] == "who" else slot_part(match[part[1]]), template)


def _doubt(sentence: str, message: Message) -> float:
    doubt = HEDGED if _HEDGE.search(sentence) else 1.0
    return doubt * SUGGESTED if _is_advice(message) else doubt


def _is_advice(message: Message) -> bool:
    """Whether an assistant says it, and not the second of two people."""
    return message.role == "assistant" and message.label == "AI"


def _shortened(sentence: str, value: str) -> str:
    """The sentence; of a very long one the stretch around the value."""
    if len(sentence) <= LONGEST_CONTENT:
        return sentence
    middle = max(0, sentence.find(value[:20]))
    start = max(0, min(middle - LONGEST_CONTENT // 3, len(sentence) - LONGEST_CONTENT))
    return f"{'…' if start else ''}{sentence[start : start + LONGEST_CONTENT].strip()}…"
