"""Candidate facts of an exchange: found by rules, or by a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from memory_backends.base import Exchange, Message
from memory_backends.hybrid.rules.corrections import (
    REACH,
    Revision,
    is_correction,
    revision_in,
    value_taken_back,
)
from memory_backends.hybrid.rules.figures import figures_in
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
)
from memory_backends.hybrid.rules.pattern import clean_value
from memory_backends.hybrid.rules.statements import CHANGE, CLAIMS, RETRACTION
from memory_backends.hybrid.verbatim import sentences_read
from memory_backends.metering import ExtractedFact
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

LONGEST_QUESTION = 160
"""Characters of a question that is kept with its answer."""

HEDGED = 0.7
"""Factor of the certainty when the speaker is not sure."""

LEAST_TOLD = 1.5
"""New words that a statement without a precise value has to tell."""

_OF_FACTS = tuple(rule for rule in RULES if rule.kind != "instruction")
"""The rules for what somebody says who does not speak to an assistant."""

MOST_ADVICE = 3
"""Most candidates of one message of an assistant."""

_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|I\sguess|not\ssure|hypothetically|suppose|quizás?|tal\svez|a\slo\smejor"
    r"|igual)\b",
    re.I,
)


class Candidate(Frozen):
    """Something that may be worth keeping.

    ``content`` is ``speaker: sentence``. ``slot`` is where its ``value`` belongs (``user.name``, ``deadline``), if
    anywhere; a slot of ``several`` values keeps them all. ``taken_back`` is the value that it corrects, where it
    names one; ``revises`` is what it says of earlier statements.
    ``certainty`` and ``impact`` are the first two factors of its significance. ``rule`` is what found it:
    a rule's name, or the model's, which then gives its ``justification``. ``news`` is how much it tells, in words
    that were not heard before, at most 1.
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
    sources: tuple[str, ...]
    turn_number: int
    said_at: datetime | None
    rule: str
    justification: str | None = None
    news: float = 1.0

    @property
    def is_instruction(self) -> bool:
        """Return whether it says how to act from now on."""
        return is_instruction(self.slot)

    @property
    def retracts(self) -> bool:
        """Return whether it only says that something no longer holds, and nothing in its place."""
        return self.taken_back is not None and same_value(self.value, self.taken_back)

    @property
    def reading(self) -> str:
        """Return one sentence's beginning: what was read in it, and by what."""
        if self.justification is None:
            return f"Rule “{self.rule}” read {self.value!r}{'' if self.news == 1 else ', which tells little new'}"
        return f"{self.rule} read {self.value!r} ({self.justification})"


def is_instruction(slot: str | None) -> bool:
    """Return whether what stands in a slot says how to act."""
    return (slot or "").rpartition(".")[2] == "instructions"


class Heard:
    """Counts of the words and figures heard so far, and the last question."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self.asked = ""

    def mark(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates, each with how much it tells.

        A word tells the less the oftener it was heard: 1, 1/2, 1/3 … of a new word. A statement without a precise
        value has to tell as much as several new words, and nothing if it only says that something was wrong. What
        has a slot, corrects or changes something tells enough in itself.
        """
        return tuple(candidate.model_copy(update={"news": self._news_of(candidate)}) for candidate in candidates)

    def hear(self, exchange: Exchange) -> None:
        """Remember what an exchange told."""
        for message in exchange.messages:
            self._times.update(_told_in(message.text))
        self.asked = question_at_the_end_of(exchange)

    def _news_of(self, candidate: Candidate) -> float:
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        is_vague = candidate.rule in CLAIMS and not figures_in(said)
        if is_vague and revision_in(said) == "corrected":
            return 0.0
        revises = candidate.is_correction or candidate.revises != "none"
        if candidate.slot is not None or (revises and not is_vague):
            return 1.0
        told = sum(1 / (1 + self._times[told]) for told in _told_in(said))
        return round(min(told / (LEAST_TOLD if is_vague else 1), 1.0), 4)


def _told_in(text: str) -> frozenset[str]:
    return numbers_in(text) | frozenset(terms_of(text))


@lru_cache(maxsize=2048)
def candidates_of(exchange: Exchange, asked: str = "") -> tuple[Candidate, ...]:
    """Return the candidates of an exchange, in the order in which they were said. Ids are ``turn-number.place``.

    ``asked`` is the question just before it: a reply of a word or two says little without it. The texts of
    candidates are embedded ahead, so that they are asked for twice.
    """
    present = frozenset(message.label for message in exchange.messages)
    before = (asked, *("" for _ in exchange.messages[1:]))
    return tuple(
        candidate
        for message, question in zip(exchange.messages, before, strict=True)
        for candidate in _of_message(message, present, question)
    )


def question_at_the_end_of(exchange: Exchange) -> str:
    """Return the question with which an exchange ends, if it is short enough to stand beside its answer."""
    sentences = sentences_of(exchange.messages[-1].text)
    last = sentences[-1] if sentences else ""
    return last if last.endswith("?") and len(last) <= LONGEST_QUESTION else ""


def _of_message(message: Message, present: frozenset[str], asked: str) -> Iterator[Candidate]:
    seen: set[tuple[str | None, str]] = set()
    said_before: list[str] = []
    heading: str | None = None
    is_advice, who = _is_advice(message), speaker_slot(message)
    to_assistant = message.role == "user" and message.label == "User"
    rules, most = (ADVICE, MOST_ADVICE) if is_advice else (RULES if to_assistant else _OF_FACTS, MOST_A_MESSAGE)
    sentences = [whole[:LONGEST_SENTENCE] for whole in sentences_read(message)]
    for place, sentence in enumerate(sentences):
        taken_back = value_taken_back(sentence)
        is_short = len(sentence.split()) < SHORTEST_SENTENCE
        led_to_it = said_before[-1] if said_before else f"({asked})" if asked else ""
        content = f"{led_to_it} {sentence}" if is_short and led_to_it else sentence
        if heading is not None and not content.startswith(heading):
            content = f"{heading} {content}"
        heading = sentence if is_heading(sentence) else heading
        said_before.append(sentence)
        corrects = is_correction(sentence)
        before = sentences[max(0, place - REACH) : place]
        has_slot = instructs = False
        for rule, slot, value in _in_order(matches_in(sentence, who, rules), taken_back):
            if rule.slot is None and (has_slot or (is_short and content == sentence)):
                continue
            if rule.name == RETRACTION:
                if taken_back is None or not same_value(value, taken_back):
                    continue
            elif slot is None and taken_back is not None and same_value(value, taken_back):
                continue
            if rule.name == "correction" and not corrects:
                continue
            if rule.name == CHANGE and revision_in(sentence) == "none":
                continue
            if rule.kind == "instruction" and instructs:
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
                impact=rule.impact,
                is_correction=corrects,
                taken_back=taken_back,
                revises=revision_in(sentence, before),
                sources=(message.turn_id,),
                turn_number=message.turn_number,
                said_at=message.said_at,
                rule=rule.name,
            )


def speaker_slot(message: Message) -> str:
    """Return the speaker as a part of slot names: ``user``, ``ai``, or the name."""
    return slot_part(message.label) or message.role


def _in_order(found: Iterator[Match], taken_back: str | None) -> Iterable[Match]:
    """Return what a sentence says.

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
    """Return whether somebody's slot holds it: ``project = X`` says no more than ``user.side_project = X``."""
    return any(
        value == other and (held or "").rpartition(".")[2].split("_")[-1] == slot and "." in (held or "")
        for held, other in seen
    )


def _is_address(name: str, present: frozenset[str]) -> bool:
    """Return whether a name only says who is spoken to: a speaker's label, or the short form of it."""
    return any(label.casefold().startswith(name.casefold()) for label in present)


def _is_advice(message: Message) -> bool:
    """Return whether an assistant says it, and not the second of two people."""
    return message.role == "assistant" and message.label == "AI"


def _shortened(sentence: str, value: str) -> str:
    """Return the sentence; of a very long one the stretch around the value."""
    if len(sentence) <= LONGEST_CONTENT:
        return sentence
    middle = max(0, sentence.find(value[:20]))
    start = max(0, min(middle - LONGEST_CONTENT // 3, len(sentence) - LONGEST_CONTENT))
    return f"{'…' if start else ''}{sentence[start : start + LONGEST_CONTENT].strip()}…"


def candidates_from(exchange: Exchange, facts: Sequence[ExtractedFact], model: str) -> tuple[Candidate, ...]:
    """Return the candidates, at most ``MOST_A_MESSAGE`` a message, in the order of the messages.

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
