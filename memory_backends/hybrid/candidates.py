"""Candidate facts of an exchange: found by rules, or by a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from memory_backends.base import Exchange, ExtractedFact, Message
from memory_backends.hybrid.rules.corrections import (
    REACH,
    Revision,
    is_correction,
    revision_in,
    value_put_right,
    value_taken_back,
)
from memory_backends.hybrid.rules.matching import (
    ADVICE,
    NAMING,
    RULES,
    Match,
    is_heading,
    is_of_a_kind,
    matches_in,
    same_value,
    says_no_more,
    slot_part,
    specific_values,
)
from memory_backends.hybrid.rules.pattern import Rule, clean_value
from memory_backends.hybrid.rules.statements import RETRACTION
from memory_backends.retrieval.keyword import terms_of
from memory_backends.stores.trace import Frozen
from memory_backends.text import numbers_in, sentences_of

MOST_A_MESSAGE = 8
LONGEST_CONTENT = 280
LONGEST_SENTENCE = 1000
"""Characters of a sentence that are searched; anything longer is a log or a file, not a sentence."""

SHORTEST_SENTENCE = 3
"""Minimum number of words of a sentence for a fact without a slot to make sense by itself.

A shorter one (``£268.``) is kept together with the sentence before it.
"""

HEDGED = 0.7
"""What certainty is multiplied by when the speaker is not sure."""

ABOUT_SPEAKER = 0.1
"""What a sentence in the first person adds to the impact of a lone value."""

CORRECTS = 0.1
"""What taking something back adds to the impact of a lone value."""

SEVERAL_VALUES = 0.05
"""What each further precise value of the sentence, up to two, adds to the impact of a lone value."""

REPEATED = 0.8
"""What the impact of a remark is multiplied by that tells nothing new: no precise value, no word unheard before.

It was chosen on LoCoMo conv-26, 30 and 41 and long-02: 55 of 58 remarks that hold an answer pass, and 138 of 183
that no question needs. On conv-44 and 47 and long-04, 45 of 52 and 163 of 200 do.
"""

REMARKS = frozenset({"event", "habit", "plan", "decision", "like", "taste of somebody", "name mentioned"})
"""Rules whose facts are worth little when they are said again in other words."""

MOST_ADVICE = 3
"""Most candidates of one message of an assistant."""

_FIRST_PERSON = re.compile(
    r"\b(?:I|[Ww]e|[Mm]y|[Oo]urs?|mine|me|us|yo|nosotr[oa]s|[Mm]is?|[Nn]uestr[oa]s?|me|nos|tengo|tenemos|estoy|soy|voy|vamos)\b"
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|I\sguess|not\ssure|hypothetically|suppose|quizás?|tal\svez|a\slo\smejor"
    r"|igual)\b",
    re.I,
)


class Candidate(Frozen):
    """Something that may be worth keeping.

    ``content`` is ``speaker: sentence``. ``slot`` is where its ``value`` belongs (``user.name``, ``deadline``), if
    anywhere; a slot of ``several`` values keeps them all. ``taken_back`` is the value that it corrects, where it
    names one; ``revises`` is what it says of earlier statements. ``context`` are the sentences just before it.
    ``certainty`` and ``impact`` are the first two factors of its significance. ``rule`` is what found it:
    a rule's name, or the model's, which then gives its ``justification``. ``is_new`` is False for a remark
    whose words were all heard before.
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
    revises: Revision = "none"
    context: str = ""
    sources: tuple[str, ...]
    turn_number: int
    said_at: datetime | None
    rule: str
    justification: str | None = None
    is_new: bool = True

    @property
    def is_instruction(self) -> bool:
        """Whether it says how to act from now on."""
        return (self.slot or "").rpartition(".")[2] == "instructions"

    @property
    def retracts(self) -> bool:
        """Whether it only says that something no longer holds, and nothing in its place."""
        return self.taken_back is not None and same_value(self.value, self.taken_back)

    @property
    def reading(self) -> str:
        """One sentence's beginning: what was read in it, and by what."""
        if self.justification is None:
            return f"Rule “{self.rule}” read {self.value!r}{'' if self.is_new else ', which tells nothing new'}"
        return f"{self.rule} read {self.value!r} ({self.justification})"


class Heard:
    """The words and figures that a conversation has had so far."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def mark(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The candidates; remarks of words that were all heard before are not new."""
        return tuple(
            candidate.model_copy(update={"is_new": False}) if self._is_repeated(candidate) else candidate
            for candidate in candidates
        )

    def hear(self, exchange: Exchange) -> None:
        """Remember what an exchange told."""
        for message in exchange.messages:
            self._told |= _told_in(message.text)

    def _is_repeated(self, candidate: Candidate) -> bool:
        is_remark = candidate.rule in REMARKS and candidate.revises == "none" and not candidate.is_correction
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        return is_remark and not specific_values(said) and _told_in(said) <= self._told


def _told_in(text: str) -> frozenset[str]:
    return numbers_in(text) | frozenset(terms_of(text))


@lru_cache(maxsize=2048)
def candidates_of(exchange: Exchange) -> tuple[Candidate, ...]:
    """The candidates of an exchange, in the order in which they were said. Ids are ``turn-number.place``.

    Their texts are embedded ahead, so that they are asked for twice.
    """
    present = frozenset(message.label for message in exchange.messages)
    return tuple(candidate for message in exchange.messages for candidate in _of_message(message, present))


def _of_message(message: Message, present: frozenset[str]) -> Iterator[Candidate]:
    seen: set[tuple[str | None, str]] = set()
    said_before: list[str] = []
    heading: str | None = None
    is_advice, who = _is_advice(message), speaker_slot(message)
    to_assistant = message.role == "user" and message.label == "User"
    rules, most = (ADVICE, MOST_ADVICE) if is_advice else (RULES, MOST_A_MESSAGE)
    for whole in sentences_of(message.text):
        sentence = whole[:LONGEST_SENTENCE]
        taken_back = value_taken_back(sentence) or value_put_right(said_before)
        is_short = len(sentence.split()) < SHORTEST_SENTENCE
        content = f"{said_before[-1]} {sentence}" if is_short and said_before else sentence
        if heading is not None and not content.startswith(heading):
            content = f"{heading} {content}"
        heading = sentence if is_heading(sentence) else heading
        said_before.append(sentence)
        corrects = is_correction(sentence) or taken_back is not None
        just_before = said_before[-1 - REACH : -1]
        has_slot = instructs = False
        for rule, slot, value in _in_order(matches_in(sentence, who, rules), taken_back):
            if rule.slot is None and (has_slot or (is_short and len(said_before) == 1)):
                continue
            if rule.name == RETRACTION:
                if taken_back is None or not same_value(value, taken_back):
                    continue
            elif slot is None and taken_back is not None and same_value(value, taken_back):
                continue
            if rule.name == "correction" and not corrects:
                continue
            if rule.kind == "instruction" and (not to_assistant or instructs):
                continue
            instructs = instructs or rule.kind == "instruction"
            if rule.name in NAMING and _is_address(value, present):
                continue
            key = (slot, value if slot else sentence)
            if key in seen or (slot is not None and _is_owned_already(slot, value, seen)):
                continue
            seen.add(key)
            has_slot = True
            if len(seen) > most:
                return
            yield Candidate(
                id=f"{message.turn_number}.{len(seen)}",
                content=f"{message.label}: {_shortened(content, value)}",
                said_by=message.label,
                slot=slot,
                value=value,
                several=rule.several,
                certainty=round(rule.certainty * (HEDGED if _HEDGE.search(sentence) else 1.0), 4),
                impact=_impact(rule, sentence, corrects),
                is_correction=corrects,
                taken_back=taken_back,
                revises=revision_in(sentence, just_before),
                context=" ".join(just_before),
                sources=(message.turn_id,),
                turn_number=message.turn_number,
                said_at=message.said_at,
                rule=rule.name,
            )


def _impact(rule: Rule, sentence: str, corrects: bool) -> float:
    """How much a fact matters: by its rule's kind; of a lone value, also by what else its sentence tells."""
    if rule.kind != "value":
        return rule.impact
    values = min(len(specific_values(sentence)), 3)
    more = ABOUT_SPEAKER * bool(_FIRST_PERSON.search(sentence)) + SEVERAL_VALUES * max(values - 1, 0)
    return round(rule.impact + more + CORRECTS * corrects, 4)


def speaker_slot(message: Message) -> str:
    """The speaker as a part of slot names: ``user``, ``ai``, or the name."""
    return slot_part(message.label) or message.role


def _in_order(found: Iterator[Match], taken_back: str | None) -> Iterable[Match]:
    """What a sentence says.

    Where it takes a value back, first come slots and what may stand in the place of that value, then the value
    itself, and last what the sentence tells besides.
    """
    if taken_back is None:
        return found

    def place(match: Match) -> int:
        rule, slot, value = match
        if rule.name == RETRACTION:
            return 1
        takes_its_place = is_of_a_kind(value, taken_back) and not says_no_more(value, taken_back)
        return 0 if slot is not None or takes_its_place else 2

    return sorted(found, key=place)


def _is_owned_already(slot: str, value: str, seen: Iterable[tuple[str | None, str]]) -> bool:
    """Whether somebody's slot holds it: ``project = X`` says no more than ``user.side_project = X``."""
    return any(
        value == other and (held or "").rpartition(".")[2].split("_")[-1] == slot and "." in (held or "")
        for held, other in seen
    )


def _is_address(name: str, present: frozenset[str]) -> bool:
    """Whether a name only says who is spoken to: a speaker's label, or the short form of it."""
    return any(label.casefold().startswith(name.casefold()) for label in present)


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


def candidates_from(exchange: Exchange, facts: Sequence[ExtractedFact], model: str) -> tuple[Candidate, ...]:
    """The candidates, at most ``MOST_A_MESSAGE`` a message, in the order of the messages.

    Facts of turns outside of the exchange, or without a value, are dropped.
    """
    return tuple(_candidates(exchange, facts, model))


def _candidates(exchange: Exchange, facts: Sequence[ExtractedFact], model: str) -> Iterator[Candidate]:
    for message in exchange.messages:
        own = [fact for fact in facts if fact.turn_id == message.turn_id and clean_value(fact.value)]
        for number, fact in enumerate(own[:MOST_A_MESSAGE], start=1):
            yield Candidate(
                id=f"{message.turn_number}.{number}",
                content=f"{message.label}: {' '.join(fact.text.split())[:LONGEST_CONTENT]}",
                said_by=message.label,
                slot=_slot(fact.slot),
                value=clean_value(fact.value),
                several=False,
                certainty=min(max(fact.certainty, 0.0), 1.0),
                impact=min(max(fact.impact, 0.0), 1.0),
                is_correction=is_correction(message.text),
                taken_back=value_taken_back(message.text),
                revises=revision_in(message.text),
                sources=(message.turn_id,),
                turn_number=message.turn_number,
                said_at=message.said_at,
                rule=model,
                justification=" ".join(fact.justification.split())[:LONGEST_CONTENT] or None,
            )


def _slot(name: str | None) -> str | None:
    parts = [slot_part(part) for part in (name or "").split(".")]
    return ".".join(part for part in parts if part) or None
