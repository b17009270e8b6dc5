"""Parses the history in a prompt into lines: who said what, and when.

Memories lay it out as ``[date] Speaker: text``, as headings with a date above ``Speaker: text`` lines, or as
bullets of distilled facts. A line without a speaker continues the line above it.

Weighs how relevant each sentence of a history is to a question: weighted word overlap, in and around it.

A word's weight is its rarity in the history at hand: it is computed and not chosen. The constants here and in
:mod:`memreplay.llm.extractive.answers` are round numbers set by hand, shares and bonuses on a scale of 0..1. On
which data each was chosen is not recorded, so that no data set can be taken as held out from them: the reader's
accuracy compares memories with one another and says nothing about a language model."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from memory_backends.text import folded, sentences_of
from memreplay.llm.extractive.dates import absolute_spans
from memreplay.llm.extractive.language import terms

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_STAMP = re.compile(r"^\s*[\[(](?P<stamp>[^\])]{4,60})[\])]\s*")
_LABEL = re.compile(r"^\s*\[?(?P<label>[^\W\d_][\w.'’ -]{0,39}?)\]?\s*(?:\((?P<stamp>[^)]{4,60})\))?:\s+(?=\S)")
ROLES = frozenset({"user", "ai", "assistant", "human", "agent"})
"""Labels that are not names, folded."""

_LONGEST_HEADING = 90


class Line(NamedTuple):
    """What one speaker said. ``block`` is the number of its section: lines under one heading share it."""

    speaker: str | None
    text: str
    said: date | None
    block: int


@lru_cache(maxsize=8)
def read_lines(context: str) -> tuple[Line, ...]:
    """The lines of a history, in order. Cached, since many questions share a history."""
    only_roles = sum(1 for row in context.split("\n") if _role_label(row)) > 0
    lines: list[Line] = []
    said: date | None = None
    block = 0
    for row in context.split("\n"):
        if not row.strip():
            continue
        body = _BULLET.sub("", row)
        bullet = body is not row and body != row
        own = said
        stamp = _STAMP.match(body)
        if stamp and (found := _date_in(stamp.group("stamp"))):
            own, body = found, body[stamp.end() :]
        label = _LABEL.match(body)
        if label and only_roles and label.group("label").casefold() not in ROLES:
            label = None
        if label and label.group("stamp") and (found := _date_in(label.group("stamp"))):
            own = found
        if label:
            lines.append(Line(label.group("label"), body[label.end() :].strip(), own, block))
        elif _is_heading(row):
            block += 1
            said = _date_in(row) or said
        elif bullet or stamp or not lines or lines[-1].block != block:
            if body.strip():
                lines.append(Line(None, body.strip(), own, block))
        else:
            last = lines[-1]
            lines[-1] = last._replace(text=last.text + "\n" + body.strip())
    return tuple(lines)


def _role_label(row: str) -> bool:
    label = _LABEL.match(_STAMP.sub("", _BULLET.sub("", row)))
    return bool(label) and label is not None and label.group("label").casefold() in ROLES


def _date_in(text: str) -> date | None:
    spans = absolute_spans(text)
    return spans[0].start if spans and spans[0].days == 1 else None


def _is_heading(row: str) -> bool:
    """A short line, marked as a heading, or with a date and without the end of a sentence."""
    text = row.strip()
    if len(text) > _LONGEST_HEADING:
        return False
    marked = text.startswith(("#", "==", "--", "[")) and text.rstrip("]")[-1:] not in ".!?"
    return marked or text.endswith(":") or (_date_in(text) is not None and text[-1] not in ".!?")


_SAME_LINE = 0.5
_LINE_BEFORE = 0.35
_LINE_AFTER = 0.15
_BY_THE_SPEAKER = 0.25
_PLAIN_WORD = re.compile(r"[^\W_]+")
_ASKED_ABOUT = re.compile(
    r"\b(?:do|does|did|is|was|are|were|has|had|have|will|would|can|could|should|might)\s+([A-Z][^\W\d_]+)\b|\b([A-Z][^\W\d_]+)['’]"
)
_CALLED = r"(?:,|\b(?:hey|hi|hello|thanks|thank you|wow|yeah|yep|yes|no|oh|congrats|sorry|sure|ok|okay))\s*,?\s*"
_USER_WORDS = frozenset({"user", "usuario", "usuaria", "persona"})


class Sentence(NamedTuple):
    """A sentence of the history. ``line`` is the index of its line, ``place`` its own index among all sentences."""

    place: int
    line: int
    text: str
    terms: tuple[str, ...]


class History(NamedTuple):
    """A history, split into sentences and indexed by term; immutable. ``speakers`` are those of lines, folded."""

    lines: tuple[Line, ...]
    speakers: tuple[str | None, ...]
    sentences: tuple[Sentence, ...]
    postings: Mapping[str, tuple[int, ...]]
    first_of_line: tuple[int, ...]
    spanish: bool

    def weight(self, term: str) -> float:
        """The inverse document frequency of a term over the sentences."""
        frequency = len(self.postings.get(term, ()))
        return math.log(1 + (len(self.sentences) + 5) / (frequency + 0.5))

    def sentences_of(self, line: int) -> Sequence[Sentence]:
        end = self.first_of_line[line + 1] if line + 1 < len(self.lines) else len(self.sentences)
        return self.sentences[self.first_of_line[line] : end]


@lru_cache(maxsize=8)
def read_history(context: str, spanish: bool) -> History:
    """Split and index a history; ``spanish`` selects the stemmer. Cached, since many questions share a history."""
    lines = read_lines(context)
    sentences: list[Sentence] = []
    first: list[int] = []
    postings: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        first.append(len(sentences))
        for text, found in _read_line(line.text, spanish):
            for term in set(found):
                postings[term].append(len(sentences))
            sentences.append(Sentence(len(sentences), number, text, found))
    frozen = {term: tuple(places) for term, places in postings.items()}
    names = {line.speaker: folded(line.speaker) for line in lines if line.speaker}
    speakers = tuple(names.get(line.speaker or "") for line in lines)
    return History(lines, speakers, tuple(sentences), frozen, tuple(first), spanish)


@lru_cache(maxsize=4096)
def _read_line(text: str, spanish: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The sentences of a line with their terms. Cached, since memories give the same lines to many questions."""
    return tuple((sentence, tuple(terms(sentence, spanish))) for sentence in sentences_of(text) or [text])


class Bearing(NamedTuple):
    """How relevant each sentence and each line is to a question: shares of the question's weight, about 0..1.

    ``named`` are the speakers that the question names; ``question_terms`` are its terms without their names.
    """

    by_sentence: tuple[float, ...]
    by_line: tuple[float, ...]
    question_terms: tuple[str, ...]
    named: frozenset[str]


def bearing(history: History, question: str) -> Bearing:
    named = _named_speakers(history, question)
    name_terms = {term for name in named for term in terms(name, history.spanish)}
    asked = tuple(dict.fromkeys(term for term in terms(question, history.spanish) if term not in name_terms))
    weights = {term: history.weight(term) for term in asked}
    total = sum(weights.values()) or 1.0
    direct = [0.0] * len(history.sentences)
    in_line: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for term in asked:
        for place in history.postings.get(term, ()):
            direct[place] += weights[term]
            in_line[history.sentences[place].line][term] = None
    scores = [0.0] * len(history.lines)
    for number, found in in_line.items():
        scores[number] += sum(weights[term] for term in found)
        for other, share in ((number + 1, _LINE_BEFORE), (number - 1, _LINE_AFTER)):
            if 0 <= other < len(history.lines) and history.lines[other].block == history.lines[number].block:
                there = in_line.get(other, ())
                scores[other] += share * sum(weights[term] for term in found if term not in there)
    by_line = tuple(
        score / total + (_BY_THE_SPEAKER if speaker in named else 0.0)
        for score, speaker in zip(scores, history.speakers, strict=True)
    )
    by_sentence = tuple(
        own / total * (1 - _SAME_LINE) + by_line[sentence.line] * _SAME_LINE
        for own, sentence in zip(direct, history.sentences, strict=True)
    )
    return Bearing(by_sentence, by_line, asked, named)


def _named_speakers(history: History, question: str) -> frozenset[str]:
    """The folded names in the question: speakers of the history, else people whom they address by name.

    ``the user`` names the speaker labelled User.
    """
    words = set(_PLAIN_WORD.findall(folded(question)))
    speakers = set(filter(None, history.speakers))
    named = {speaker for speaker in speakers if speaker.split()[0] in words or _short(speaker, words)}
    if words & _USER_WORDS:
        named |= {"user", "human"} & speakers
    return frozenset(named or _called_by_name(history, question))


def _called_by_name(history: History, question: str) -> set[str]:
    """People in the question who are addressed in the history, though nothing in it is by them."""
    asked_about = {match.group(1) or match.group(2) for match in _ASKED_ABOUT.finditer(question)}
    return {
        folded(name)
        for name in asked_about
        if any(
            re.search(_CALLED + re.escape(name) + r"\b\s*[,.!?-]", line.text, re.IGNORECASE)
            for line in history.lines
        )
    }


def _short(speaker: str, words: set[str]) -> bool:
    """Whether the words contain a short form of the name: ``Mel`` for Melanie."""
    return any(len(word) >= 3 and speaker.startswith(word) and word not in ("the", "her", "his") for word in words)
