"""The predicate "holds the answer of a question", one for every stage, memory and outcome.

Texts hold an answer when they hold the evidence turns word for word, all of them; or when one of them contains the
expected answer, or all expected entities, in any spelling that the grader accepts; or when the texts that come from
the evidence turns contain all entities together.

Some answers say nothing by themselves ("yes", "2"): they occur in texts that have nothing to do with the question.
For these only texts that come from the evidence turns count. Others are short ("Luna", "£450", "Hotel Miramar")
and are also said of other things: a text that comes from another turn counts where it says them of what the
question is about.

An answer that is a time is held by a text about the question that says that time, in any form that is precise
enough (:mod:`memreplay.grading.times`). A text that says another date, number or name than the turn that it was
made from holds nothing of that turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache
from itertools import chain, pairwise, product
from typing import NamedTuple

from memory_backends.text import WEEKDAYS, sentences_of
from memreplay.conversations.models import Question, Turn
from memreplay.grading.doubt import closeness, words_wanted
from memreplay.grading.match import contains, enumeration, has_the_letters_of, may_say_a_part_of
from memreplay.grading.read import (
    HOW_MANY,
    Token,
    content_of,
    folded,
    is_among,
    same_token,
    stem_keys,
    tokens_of,
    with_unit,
)
from memreplay.grading.times import Time, says_another_time, times_asked_for, times_in
from memreplay.grading.veto import NEGATIONS, asserted, expected_polarity
from memreplay.grading.vocabulary import FORMS_A_QUESTION, UNITS
from memreplay.text import normalised

_TOO_SHORT = 4
"""Words; a turn as short as "Yes, please." occurs in other turns too, so that a link to the turn is needed."""

_UNSPECIFIC = frozenset(
    "yes no true false none nothing both neither si ninguno nada ambos"
    " not but or nor so since because than also no pero ni o porque".split()
)
_SMALL_NUMBER = 1000
_SHORT_ANSWER = 2
"""Words and figures. A longer answer is hardly said of anything else."""
_OF_ONE_WORD = 1 / 2
"""The share of a question's words that a text has to say beside an answer of one word or figure, or a time."""
_EXACT = 3
"""Digits, without zeros at the end."""


_SAID_OF_AN_ANSWER = 1 / 4
"""Smallest share of an answer's words that the evidence says; of an inferred answer it says fewer."""
_MOST_WORDS, _LONG_ANSWER = 2 / 3, 4
"""The share of the words of a long answer that a text made from its turn says, and the words of a long one."""
_RETOLD = 1 / 2
"""The share of the words of a sentence that a text says which retells it."""
_FEWEST_DENIED = 3
"""Words; a denial of fewer may be of something else: "no buyer yet" is no denial of "looking for a buyer"."""
_DENIALS = NEGATIONS | {"without", "sin"}
_OF_DENIALS = frozenset("longer any more anymore yet still ever ya mas aun todavia".split())
_ENOUGH = 1 / 2
"""The share of the evidence turns from which yes or no follows."""
_FEW_AMOUNTS = 3
"""A turn with more amounts is about several things."""
_LENGTHS = {"day": 1, "week": 7, "fortnight": 14, "month": 30.4, "year": 365, "decade": 3652}
"""Days."""
_IN_COMMON = re.compile(
    r"\b(?:both|in common|alike|a shared|and .+ share|ambos|en comun|comparten|los dos|las dos)\b"
)
_OFFERS = re.compile(r"\b(?:or|o)\b")
_SAID_ON = re.compile(
    r"[\[(][^\[\]()]*@|\b(?:said|says|told|mention\w*|shared|report\w*|wrote|dijo|conto|menciono)\b", re.IGNORECASE
)
"""A date, @, that stands in brackets, or beside a word for saying: the day on which something was said."""
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]{2,}\b")
"""A word with a capital letter that begins no sentence."""

_Word = tuple[int, str]
"""A stem of a word, with its language."""


@dataclass(frozen=True)
class Piece:
    """A text, and the turns it comes from: whose words it holds (``verbatim``), or that it was made from.

    ``is_dated``: where it is returned, it stands under the date on which these were said. ``days`` are those that
    stand beside it in other ways: in a field of what is stored, or in the prompt before it.
    """

    text: str
    turns: frozenset[str] = frozenset()
    verbatim: frozenset[str] = frozenset()
    is_dated: bool = False
    days: frozenset[date] = frozenset()

    @property
    def names_sources(self) -> bool:
        return bool(self.turns or self.verbatim)


class _Contribution(NamedTuple):
    """The part of an answer in an evidence turn: the answer, items and entities in full, else words of it, else the
    figures that it is computed from, in alternatives, else what the turn shares with the question.
    """

    answers: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    figures: tuple[frozenset[str], ...] = ()
    topic: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Answerable:
    """A question with its evidence turns, ready to be looked for in texts.

    It remembers what each text says of the answer: what is in a prompt was also retrieved and stored, often by
    several memories.
    """

    question: Question
    turns: Mapping[str, Turn]
    days: Mapping[int, date] = field(default_factory=dict)
    """The date of each session that has one, by number."""
    evidence: tuple[str, ...] = field(init=False)
    _contributions: dict[str, _Contribution] = field(init=False, default_factory=dict, repr=False, compare=False)
    _lines: dict[Piece, Sequence[Piece]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _contained: dict[tuple[str, str], bool] = field(init=False, default_factory=dict, repr=False, compare=False)
    _relevant: dict[tuple[tuple[str, ...], str], str] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        named = self.question.evidence if self.question.evidence_role == "supports" else ()
        object.__setattr__(self, "evidence", tuple(dict.fromkeys(named)))

    def held_by(self, pieces: Sequence[Piece]) -> bool:
        """Return whether these texts hold the answer."""
        if not self.evidence:
            return self._contain(self._answers(), pieces)
        # Words are found sooner than an answer, and most texts that hold it have them.
        if all(self.is_told(turn, pieces) for turn in self.evidence):
            return True
        pieces = self._apart(pieces)
        return (
            self._say_when(pieces, self.times)
            or (not self._is_of_both and self._contain(self._answers(), pieces))
            or self._enough_held_by(pieces)
        )

    @cached_property
    def edited(self) -> Sequence[str]:
        """Return the evidence turns whose words were changed by hand, and no longer say the expected answer."""
        known = [self.turns[turn] for turn in self.evidence if turn in self.turns]
        return [turn.id for turn in known if turn.is_edited and not self.is_said(turn.id, turn.text)]

    def _apart(self, pieces: Iterable[Piece]) -> Sequence[Piece]:
        """Return texts made from several turns as their lines, each under the date of the whole and with the turns
        that say half of its words; with all of them where none does.
        """
        found: list[Piece] = []
        for piece in pieces:
            is_joined = len(piece.turns) > 1 and "\n" in piece.text and not piece.verbatim
            found += self._lines_of(piece) if is_joined else [piece]
        return found

    def _lines_of(self, piece: Piece) -> Sequence[Piece]:
        if piece not in self._lines:
            heading = _HEADING.match(piece.text)
            said = {turn: _words_of(self.turns[turn].text) for turn in piece.turns if turn in self.turns}
            found = []
            for line in piece.text.splitlines():
                words = _words_of(line)
                turns = frozenset(
                    turn for turn in said if words and len(words & said[turn]) >= len(words) * _RETOLD
                )
                text = line if heading is None or _HEADING.match(line) else f"{heading[0]}{line}"
                found.append(replace(piece, text=text, turns=turns or piece.turns))
            self._lines[piece] = found
        return self._lines[piece]

    def _enough_held_by(self, pieces: Sequence[Piece]) -> bool:
        """Return whether the part of every needed turn is held; of half of them where the answer is yes or no."""
        held = sum(self.part_held_by(turn, pieces) for turn in self.needed)
        polarity, _ = expected_polarity(self.question.expected)
        is_one_enough = polarity is not None and len(self._speakers[0]) < 2
        if self._is_of_both and polarity == "yes":
            # A text may say it of both, whichever turn it was made from.
            is_one_enough = any(_IN_COMMON.search(folded(piece.text)) for piece in pieces if self._is_linked(piece))
        return held >= len(self.needed) * (_ENOUGH if is_one_enough else 1)

    @cached_property
    def needed(self) -> Sequence[str]:
        """Return the evidence turns that say a part of the answer, or what it is inferred from; all where none
        does, where it is computed from them, and where they say nothing of one of its items, so that another turn
        says it in other words. A question whose reply is evidence too tells nothing of its own.
        """
        is_joint = self._is_computed or self._is_polar
        said = [] if is_joint else [turn for turn in self.evidence if any(self._contribution_of(turn))]
        text = " ".join(self.turns[turn].text for turn in said)
        items = [content_of(tokens_of(item)) for item in self._items]
        is_whole = len(items) == 1 or all(_shared([token for _, token in item], text) for item in items)
        if said and (self._is_inferred or is_whole):
            return said
        return [turn for turn in self.evidence if not self._only_asks(turn)] or self.evidence

    def _only_asks(self, turn: str) -> bool:
        """Return whether a turn is a question to which the next turn, evidence too, replies in a sentence."""
        asks = self.turns.get(turn)
        if asks is None or not asks.text.rstrip().endswith("?") or any(map(_is_figure, tokens_of(asks.text))):
            return False
        replies = (self.turns[one] for one in self.evidence if one in self.turns)
        return any(
            one.number == asks.number + 1
            and (one.role, one.speaker) != (asks.role, asks.speaker)
            and len(one.text.split()) >= _TOO_SHORT
            for one in replies
        )

    def part_held_by(self, turn: str, pieces: Sequence[Piece]) -> bool:
        """Return whether these texts hold what one evidence turn contributes.

        That is its words, or the answer, items and entities that it says. A turn may say none of them in full: then
        texts made from the evidence have to say most words of the answer that it does say; where the answer is
        computed (a date, a count), what its sentence about the question says; and where it is inferred, what the
        turn says of the topic, or half of what it says.
        """
        if self.is_told(turn, pieces):
            return True
        if turn in self.edited:
            return self._contain(self._answers(), pieces)
        says, pieces = self._contribution_of(turn), self._apart(pieces)
        if self._is_of_both:
            pieces = [piece for piece in pieces if self._is_as_said_by(turn, piece)]
        if says.answers and self._contain([says.answers], pieces):
            return True
        linked = [piece.text for piece in pieces if self._is_linked(piece)]
        if says.words:
            return sum(_say_all([word], linked) for word in says.words) >= len(says.words) * _MOST_WORDS
        if says.answers:
            return False
        dated = [piece for piece in pieces if self._is_under_the_day_of(turn, piece)]
        if self.times and turn in self.turns and self.turns[turn].session in self.days:
            is_read = bool(self._sentences_that_say_when)
            wanted = self._times_of(turn)
            return self._say_when(pieces, wanted) or (not is_read and self._gives_figures_of(turn, dated))
        if self._spans_sessions:
            shared = _shared(self._words_asked, self.turns[turn].text) if turn in self.turns else ()
            if any(self.is_about(piece.text) and _say_all(shared, [piece.text]) for piece in dated):
                return True
        if says.topic and _say_all(says.topic, [piece.text for piece in pieces if turn in piece.turns]):
            return True
        made = dated if self._counts_from_the_day_of(turn) else pieces
        texts = [
            piece.text for piece in made if turn in piece.turns and not self._says_another_time(turn, piece.text)
        ]
        if any(_say_all(figures, texts) for figures in says.figures):
            return True
        may_be_retold = not says.figures or self._is_polar
        return may_be_retold and any(
            _retells(words, text)
            and not self._is_denied(words, text)
            and (not self._is_polar or self._says_what_is_asked(words, text))
            for words in self._grounds_in(turn)
            for text in texts
        )

    def _says_what_is_asked(self, sentence: Sequence[Token], text: str) -> bool:
        """Return whether a text has half of the words that a sentence shares with the question."""
        asked, told = [token for token in self._words_asked if is_among(token, sentence)], tokens_of(text)
        return 2 * sum(is_among(token, told) for token in asked) >= len(asked)

    def is_denied_by(self, turn: str, pieces: Iterable[Piece]) -> bool:
        """Return whether a text denies what a turn says of a yes or no, or says what it denies."""
        texts = [piece.text for piece in pieces]
        return any(self._is_denied(words, text) for words in self._grounds_in(turn) for text in texts)

    def _is_denied(self, sentence: Sequence[Token], text: str) -> bool:
        return self._is_polar and _contradicts(sentence, text)

    def _counts_from_the_day_of(self, turn: str) -> bool:
        """Return whether a length of time can only be counted from the day of a turn, which says no figure."""
        said = tokens_of(self.turns[turn].text) if turn in self.turns else ()
        return self._is_a_length_of_time and self._day_of(turn) is not None and not any(map(_is_figure, said))

    def _grounds_in(self, turn: str) -> Sequence[Sequence[Token]]:
        """Return the words of the sentences of a turn that share most with the question."""
        said = self.turns[turn].text if turn in self.turns else ""
        sentences = [[token for _, token in content_of(tokens_of(one))] for one in sentences_of(said)]
        asked = self._words_asked
        shared = [sum(any(same_token(one, token) for one in asked) for token in one) for one in sentences]
        most = max(shared, default=0)
        return [one for one, count in zip(sentences, shared, strict=True) if count == most and len(one) >= 2]

    def _gives_figures_of(self, turn: str, pieces: Iterable[Piece]) -> bool:
        """Return whether texts made from a turn say what a time is counted by: "Wednesday", "for three years"."""
        linked = [piece.text for piece in pieces if turn in piece.turns]
        figures = self._contribution_of(turn).figures
        return any(
            any(_is_figure(token) for word in one for token in tokens_of(word)) and _say_all(one, linked)
            for one in figures
        )

    def _is_under_the_day_of(self, turn: str, piece: Piece) -> bool:
        """Return whether a text of the session of a turn stands under its date, or says it."""
        day, session = self._day_of(turn), self._session_of(turn)
        if day is None or session not in map(self._session_of, piece.turns | piece.verbatim):
            return False
        is_dated = piece.is_dated or day in piece.days
        return is_dated or any(time.first == time.last == day for time in times_in(piece.text))

    @cached_property
    def _spans_sessions(self) -> bool:
        """Return whether the answer is the time between the days on which the turns were said."""
        days = list(filter(None, map(self._day_of, self.evidence)))
        lengths = [token for token in tokens_of(self.question.expected) if token.extra in _LENGTHS]
        return len(days) > 1 and any(
            abs((max(days) - min(days)).days / _LENGTHS[one.extra] - one.number) < 1 for one in lengths
        )

    @cached_property
    def _is_of_both(self) -> bool:
        """Return whether each of several turns has to say its part: the question asks for what they have in common,
        or compares the answer with others of which other turns tell.
        """
        in_common = _IN_COMMON.search(folded(self.question.text)) is not None
        return len(self.evidence) > 1 and (in_common or self._is_compared)

    @property
    def _is_compared(self) -> bool:
        """Return whether the question offers the answer beside another ("who is older, Ana or Eva?") of which only
        a turn without the answer tells, so that its name alone tells nothing.
        """
        asked = [token for _, token in content_of(tokens_of(self.question.text))]
        wanted = [token for _, token in content_of(tokens_of(self.question.expected))]
        offers = _OFFERS.search(folded(self.question.text)) is not None and not self._is_polar
        if not (offers and wanted and all(is_among(token, asked) for token in wanted)):
            return False
        said = [tokens_of(self.turns[turn].text) for turn in self.evidence if turn in self.turns]
        own = [tokens for tokens in said if all(is_among(token, tokens) for token in wanted)]
        return bool(own) and any(
            is_among(token, tokens) and not any(is_among(token, one) for one in own)
            for tokens in said
            if tokens not in own
            for token in asked
        )

    def _is_as_said_by(self, turn: str, piece: Piece) -> bool:
        """Return whether a text comes from a turn, or, where others said the rest, from its speaker."""
        linked = piece.turns | piece.verbatim
        others = [self._speaker_of(one) for one in self.evidence if one != turn]
        speaker = self._speaker_of(turn)
        return turn in linked or (speaker not in others and speaker in map(self._speaker_of, linked))

    def _speaker_of(self, turn: str) -> str | None:
        return self.turns[turn].speaker if turn in self.turns else None

    def part_begun_by(self, turn: str, pieces: Iterable[Piece]) -> bool:
        """Return whether texts made from a turn hold some of what it contributes."""
        says = self._contribution_of(turn)
        parts = {*chain(*map(enumeration, says.answers)), *says.words, *chain(*says.figures)}
        return any(contains(part, piece.text) for piece in pieces if turn in piece.turns for part in parts)

    @cached_property
    def times(self) -> Sequence[Time]:
        """Return the times that the answer is; none where it is, or may be, something else."""
        return times_asked_for(self.question.text, self.question.expected)

    def other_times(self, turn: str, pieces: Iterable[Piece]) -> Sequence[Time]:
        """Return what texts say about the question in place of the times that are its answer: not that they were
        said on the day of a turn, nor what the turn says too.
        """
        about = [piece.text for piece in pieces if self.is_about(piece.text)] if self.times else []
        said = [(text, time) for text in about for time in times_in(text)]
        if any(time.agrees_with(one) for _, time in said for one in self.times):
            return []
        own = {time[:2] for time in times_in(self.turns[turn].text)} if turn in self.turns else {}
        days = (self._day_of(turn),) * 2
        return [
            time
            for text, time in said
            if time[:2] not in own and not (time[:2] == days and _SAID_ON.search(text.replace(time.words, "@")))
        ]

    def says_some_time(self, turn: str, pieces: Iterable[Piece]) -> bool:
        """Return whether texts of a turn say a time in place of the one asked for, but that of its session."""
        days = (self._day_of(turn),) * 2
        said = (time for piece in pieces for time in times_in(piece.text, _ANY_DAY))
        return bool(self.times) and any(time[:2] != days for time in said)

    def moved_times(self, said: str, corrects: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        """Yield the words of a reply for a time that an evidence turn says, where a later one of the same speaker
        moves it, and that turn: "the 16th", "the interview is in twelve days", "it was pushed back by a day".
        """
        given = times_in(said)
        turns = sorted((self.turns[one] for one in self.evidence if one in self.turns), key=lambda one: one.number)
        for before, after in pairwise(turns):
            is_moved = before.speaker == after.speaker and corrects.search(folded(after.text)) is not None
            for old in times_in(before.text, self._day_of(before.id)) if is_moved and self.times else ():
                if not any(old.agrees_with(one) for one in self.times):
                    yield from ((one.words, f"turn {after.id}") for one in given if one.answers(old))

    def _times_of(self, turn: str) -> Sequence[Time]:
        """Return which of several times a turn says; all where it says none."""
        said = times_in(self.turns[turn].text, self._day_of(turn))
        return [one for one in self.times if any(self._is_precise(time, one) for time in said)] or self.times

    def _say_when(self, pieces: Sequence[Piece], times: Sequence[Time]) -> bool:
        """Return whether one of the texts says the times of what is asked.

        A text under a date says the time of each of its lines: what the line says, counted from that date, or the
        date itself. Of a text that comes from other turns of the session, only what its lines say counts.
        """
        return bool(times) and any(
            all(any(self._is_precise(time, one) for time in said) for one in times)
            for piece in pieces
            for text, said in self._times_by_text(piece)
            if self.is_about(text, _OF_ONE_WORD)
            or (self._is_linked(piece) and any(_retells(one, text) for one in self._sentences_that_say_when))
        )

    @cached_property
    def _sentences_that_say_when(self) -> Sequence[Sequence[Token]]:
        """Return the words of the sentences of the evidence that say the time."""
        turns = [self.turns[turn] for turn in self.evidence if turn in self.turns]
        said = ((one, self.days.get(turn.session)) for turn in turns for one in sentences_of(turn.text))
        return [
            [token for _, token in content_of(tokens_of(sentence))]
            for sentence, day in said
            if any(time.agrees_with(one) for time in times_in(sentence, day) for one in self.times)
        ]

    def _is_precise(self, time: Time, wanted: Time) -> bool:
        """Return whether a time says a wanted one, as precisely as that or as the turn of the evidence that says
        it: "in three weeks" beside the date is as good as the day.
        """
        return time.answers(wanted) or (time.days <= self._precision.get(wanted, 0) and time.agrees_with(wanted))

    @cached_property
    def _precision(self) -> Mapping[Time, int]:
        """Return the days of what the evidence says for each time of the answer."""
        turns = [self.turns[turn] for turn in self.evidence if turn in self.turns]
        said = [time for turn in turns for time in times_in(turn.text, self.days.get(turn.session))]
        return {one: min((time.days for time in said if time.agrees_with(one)), default=0) for one in self.times}

    def _times_by_text(self, piece: Piece) -> Iterator[tuple[str, Sequence[Time]]]:
        heading = heading_day(piece.text)
        if heading is None:
            days = filter(None, map(self._day_of, piece.turns | piece.verbatim))
            said_on = max((day for day in days if piece.is_dated or day in piece.days), default=None)
        else:
            said_on = heading
        is_linked = self._is_linked(piece)
        sessions = set(map(self._session_of, piece.turns | piece.verbatim))
        if piece.names_sources and not is_linked and sessions.isdisjoint(self._sessions):
            return
        is_whole = heading is None and is_linked
        for line in [piece.text] if is_whole else piece.text.splitlines():
            text = _HEADING.sub("", line)
            said = times_in(text, said_on)
            if said_on is not None and not said and (is_linked or not piece.names_sources):
                said = (Time(said_on, said_on, ""),)
            yield text, said

    def _session_of(self, turn: str) -> int | None:
        return self.turns[turn].session if turn in self.turns else None

    @cached_property
    def _sessions(self) -> frozenset[int | None]:
        return frozenset(map(self._session_of, self.evidence)) - {None}

    def _day_of(self, turn: str) -> date | None:
        said = self.turns.get(turn)
        return None if said is None else self.days.get(said.session)

    def _says_another_time(self, turn: str, text: str) -> bool:
        """Return whether a text says dates, and none of a turn, its session, the question or the answer."""
        day, given = self._day_of(turn), times_in(text)
        if turn not in self.turns or not given:
            return False
        known = f"{self.turns[turn].text} {self.question.text} {self.question.expected}"
        times = [*times_in(known, day), *([] if day is None else [Time(day, day, "")])]
        return bool(times) and not any(time.agrees_with(one) for time in given for one in times)

    @cached_property
    def _is_a_length_of_time(self) -> bool:
        return any(token.extra in _LENGTHS for token in tokens_of(self.question.expected))

    def _contribution_of(self, turn: str) -> _Contribution:
        if turn not in self._contributions:
            self._contributions[turn] = self._contributed_by(self.turns[turn].text if turn in self.turns else "")
        return self._contributions[turn]

    def _contributed_by(self, said: str) -> _Contribution:
        whole = () if self.question.expected_entities else (self.question.expected,)
        for items in () if self._is_polar else (whole, self._items):
            if answers := tuple(item for item in items if self._contains(item, said)):
                retold = () if len(self._items) > 1 or len(self._own_words) < _LONG_ANSWER else self._own_words
                return _Contribution(answers, frozenset(word.text for word in retold))
        if not self._is_inferred and (words := _shared(self._own_words, said)):
            return _Contribution(words=words)
        if operands := self._operands.get(said):
            return _Contribution(figures=operands)
        if not self._own_words and (figures := self._figures_in(said)):
            return _Contribution(figures=figures)
        return _Contribution(topic=frozenset() if self._is_polar else _shared(self._words_asked, said))

    @cached_property
    def _is_polar(self) -> bool:
        """Return whether the answer is yes or no, which its turn says in other words."""
        polarity, rest = expected_polarity(self.question.expected)
        return polarity is not None and not rest

    @cached_property
    def _is_inferred(self) -> bool:
        """Return whether the evidence says few of the words of an answer, or none: it is a conclusion."""
        said = [token for turn in self.evidence if turn in self.turns for token in tokens_of(self.turns[turn].text)]
        known = sum(any(same_token(word, token) for token in said) for word in self._own_words)
        said_little = not self._own_words or known < len(self._own_words) * _SAID_OF_AN_ANSWER
        return said_little and not self._is_computed

    @property
    def is_conclusion(self) -> bool:
        """Return whether the evidence says less than half of the words of an answer that is no time, or few of
        them.
        """
        said = [token for turn in self.evidence if turn in self.turns for token in tokens_of(self.turns[turn].text)]
        is_said = closeness(words_wanted(self.question), said) >= 1 / 2
        return self._is_inferred or not (is_said or self.asks_for_time)

    @property
    def asks_for_time(self) -> bool:
        """Return whether the answer is a time, or a length of time."""
        return bool(self.times) or self._is_a_length_of_time

    def is_approached_by(self, pieces: Sequence[Piece], least: float) -> bool:
        """Return whether a line of another turn of the session says this share of what the question is about."""
        return any(
            len(self.topic_in(line)) >= least * len(self._topic) > 0
            for piece in self._apart(pieces)
            if not self._is_linked(piece)
            and not self._sessions.isdisjoint(map(self._session_of, piece.turns | piece.verbatim))
            for line in piece.text.splitlines()
        )

    @cached_property
    def _operands(self) -> Mapping[str, tuple[frozenset[str], ...]]:
        """Return what the answer is counted from, by the text of the turn that says it: as many names, or two
        amounts of which it is the sum or the difference.
        """
        wanted = [token for _, token in content_of(tokens_of(self.question.expected)) if token.kind == "number"]
        said = [self.turns[turn].text for turn in self.evidence if turn in self.turns]
        if len(wanted) != 1 or not 0 < len(said) <= 2:
            return {}
        names = frozenset(map(folded, _NAME.findall(said[0])))
        if len(said) == 1 and len(names) == wanted[0].number:
            return {said[0]: (names,)}
        texts = (said[0], said[-1])
        for pair in product(*map(self._amounts_in, texts)):
            one, other = (amount.number for amount in pair)
            units = {amount.extra for amount in (*pair, *wanted)} - {""}
            if pair[0] != pair[1] and wanted[0].number in (one + other, abs(one - other)) and len(units) <= 1:
                return {
                    said: (
                        frozenset(amount.text for text, amount in zip(texts, pair, strict=True) if text == said),
                    )
                    for said in texts
                }
        return {}

    def _amounts_in(self, said: str) -> Sequence[Token]:
        """Return the amounts of a turn; of one that has many, those in sentences about the question."""
        amounts = [token for token in tokens_of(said) if token.kind == "number"]
        if len({token.number for token in amounts}) <= _FEW_AMOUNTS:
            return amounts
        asked = [token for _, token in content_of(tokens_of(self.question.text))]
        about = " ".join(sentence for sentence in sentences_of(said) if _shared(asked, sentence))
        return [token for token in tokens_of(about) if token.kind == "number"]

    def _figures_in(self, said: str) -> tuple[frozenset[str], ...]:
        """Return the figures and dates of a sentence that the question does not name, and the words that both
        share.

        Of a long turn, most is about other things: of the sentences that have both, the one that shares most words
        counts, or each of several; a date is computed from one with a date or weekday. Without such a sentence it
        is all that the turn has of both.
        """
        asked = [token for _, token in content_of(tokens_of(self.question.text))]
        found: list[tuple[tuple[bool, int], frozenset[str]]] = []
        everything: set[str] = set()
        for sentence in sentences_of(said):
            tokens = [token for _, token in content_of(tokens_of(sentence))]
            shared = {token.text for token in tokens if any(same_token(word, token) for word in asked)}
            figures = {token.text for token in tokens if _is_figure(token)}
            everything |= figures | shared
            if shared and figures - shared:
                is_dated = self._asks_for_a_date and any(map(_is_dated, tokens))
                found.append(((is_dated, len(shared)), frozenset(figures | shared)))
        if not found:
            has_parts = self._is_computed or any(map(_is_figure, tokens_of(said)))
            return (frozenset(everything),) if everything and has_parts else ()
        best = max(rank for rank, _ in found)
        return tuple(dict.fromkeys(about for rank, about in found if rank == best))

    @cached_property
    def _own_words(self) -> Sequence[Token]:
        """Return the words of an answer without figures, but those of the question and the names of those who
        speak.
        """
        wanted = [token for answer in self._wanted() for _, token in content_of(tokens_of(answer))]
        if self._is_computed:
            return ()
        asked, others = self._speakers
        known = [
            token for text in (self.question.text, *asked, *others) for _, token in content_of(tokens_of(text))
        ]
        return [
            token
            for token in wanted
            if token.kind == "word"
            and token.text not in _UNSPECIFIC | FORMS_A_QUESTION
            and not any(same_token(one, token) for one in known)
        ]

    @cached_property
    def _is_computed(self) -> bool:
        """Return whether the answer has figures, which several turns may give together."""
        return any(_is_figure(token) for answer in self._wanted() for _, token in content_of(tokens_of(answer)))

    @cached_property
    def _asks_for_a_date(self) -> bool:
        wanted = (token for answer in self._wanted() for _, token in content_of(tokens_of(answer)))
        return any(map(_is_dated, wanted))

    def is_told(self, turn: str, pieces: Sequence[Piece]) -> bool:
        """Return whether one of the texts holds the words of a turn, with the date that a time in them counts
        from. Words that were changed by hand tell no more what was expected of the turn.
        """
        if turn in self.edited:
            return False
        if turn not in self._undated:
            return self.is_verbatim(turn, pieces)
        return any(self._is_under_the_day_of(turn, piece) and self.is_verbatim(turn, [piece]) for piece in pieces)

    @cached_property
    def _undated(self) -> frozenset[str]:
        """Return the turns that say the time which is asked for only to those who know their day; all that have a
        day where none is seen to say it, or where the answer is the time between their days.
        """
        if self._spans_sessions:
            return frozenset(turn for turn in self.evidence if self._day_of(turn) is not None)
        found = [
            turn
            for turn in self.evidence
            if (day := self._day_of(turn)) is not None and self._says_all_times(self.turns[turn].text, day)
        ]
        dated = found or [turn for turn in self.evidence if self._day_of(turn) is not None]
        return frozenset(turn for turn in dated if self.times and not self._says_all_times(self.turns[turn].text))

    def _says_all_times(self, text: str, day: date | None = None) -> bool:
        said = times_in(text, day)
        return all(any(time.agrees_with(one) for time in said) for one in self.times)

    def is_said(self, turn: str, text: str) -> bool:
        """Return whether words of a turn say the expected answer, or its times."""
        says_when = bool(self.times) and self._says_all_times(text, self._day_of(turn))
        return says_when or contains(self.question.expected, text)

    def is_verbatim(self, turn: str, pieces: Iterable[Piece]) -> bool:
        """Return whether one of the texts holds the words of a turn."""
        said = _normalised(self.turns[turn].text) if turn in self.turns else ""
        short = len(said.split()) < _TOO_SHORT
        return any(
            turn in piece.verbatim
            or (said and (not short or turn in piece.turns) and said in _normalised(piece.text))
            for piece in pieces
        )

    def _wanted(self) -> tuple[str, ...]:
        return self._entities or (self.question.expected,)

    @cached_property
    def _entities(self) -> tuple[str, ...]:
        """Return the expected entities, a bare number with its unit: 300 grams are no 300 euros."""
        question = self.question
        return tuple(with_unit(entity, question.text, question.expected) for entity in question.expected_entities)

    @cached_property
    def _items(self) -> tuple[str, ...]:
        return self._entities or enumeration(self.question.expected)

    def _answers(self) -> list[tuple[str, ...]]:
        """Return what has to be contained, in alternatives: the expected answer, or all entities."""
        return [(self.question.expected,), *([self._entities] if self._entities else [])]

    def _contain(self, alternatives: Sequence[tuple[str, ...]], pieces: Sequence[Piece]) -> bool:
        if self.times:  # The date under which a text stands is no time of all that it says.
            pieces = [replace(piece, text=_HEADING.sub("", piece.text)) for piece in pieces]
        linked = [
            piece.text for piece in pieces if self._is_linked(piece) and not self._counts_otherwise(piece.text)
        ]
        others = [piece for piece in pieces if not self._is_linked(piece)]
        for wanted in alternatives:
            if wanted != (self.question.expected,):
                linked = [text for text in linked if not says_another_time(self.question.expected, text)]
                others = [piece for piece in others if not says_another_time(self.question.expected, piece.text)]
            linked = [text for text in linked if not any(self._turns_around(answer, text) for answer in wanted)]
            texts = chain(linked, self._relevant_texts(others, wanted))
            if any(all(self._contains(answer, text) for answer in wanted) for text in texts):
                return True
            items = wanted if len(wanted) > 1 else enumeration(wanted[0])
            if len(items) > 1 and all(
                any(self._contains(item, text) for text in chain(linked, self._relevant_texts(others, (item,))))
                for item in items
            ):
                return True
        return False

    def _counts_otherwise(self, text: str) -> bool:
        """Return whether a text gives another number than the answer of what is to be counted: "14 ducks" for 3."""
        asked = HOW_MANY.search(folded(self.question.text))
        wanted = [token for token in tokens_of(self.question.expected) if token.kind == "number"]
        if asked is None or not wanted:
            return False
        (thing, *_) = tokens_of(asked[1])
        counts = [one for one, own in pairwise(tokens_of(text)) if one.kind == "number" and same_token(thing, own)]
        return bool(counts) and not any(same_token(one, count) for one in wanted for count in counts)

    def _turns_around(self, answer: str, text: str) -> bool:
        """Return whether all that a text says of an answer is the reverse of the evidence, in its words."""
        if not self._contains(answer, text):
            return False
        known = [self.turns[turn].text for turn in self.evidence if turn in self.turns]
        said = [sentence for one in known for sentence in sentences_of(one) if self._contains(answer, sentence)]
        told = [sentence for sentence in sentences_of(text) if self._contains(answer, sentence)]
        return bool(told) and all(any(self._is_reverse(answer, one, other) for one in said) for other in told)

    def _is_reverse(self, answer: str, said: str, told: str) -> bool:
        """Return whether a sentence has no words but those of another, names aside, and affirms an answer that the
        other denies, or the reverse: "will swim" of "will not swim", "from Rome to Oslo" of "from Oslo to Rome".
        """
        denied = [_is_denied_in(answer, sentence) for sentence in (said, told)]
        if None in denied or denied[0] == denied[1]:
            return False
        asked, others = self._speakers
        capitalised = (word for word in self.question.text.split() if word[:1].isupper())
        names = tokens_of(" ".join((*asked, *others, *capitalised, "user", "usuario")))
        ours, theirs = (
            [token for _, token in content_of(tokens_of(one)) if token.text not in _DENIALS | _OF_DENIALS]
            for one in (said, told)
        )
        theirs = [token for token in theirs if is_among(token, ours) or not is_among(token, names)]
        if not all(is_among(token, ours) for token in theirs):
            return False
        has_no = [any(token.text in _DENIALS for token in tokens_of(one)) for one in (said, told)]
        places = [next(at for at, one in enumerate(ours) if same_token(one, token)) for token in theirs]
        return has_no[0] != has_no[1] or places != sorted(places)

    def _is_linked(self, piece: Piece) -> bool:
        """Return whether a text comes from a turn of the evidence."""
        return not (piece.turns.isdisjoint(self.evidence) and piece.verbatim.isdisjoint(self.evidence))

    def _contains(self, answer: str, text: str) -> bool:
        known = self._contained.get((answer, text))
        if known is None:
            said = _without_relative_times(text) if self._is_an_interval else text
            known = self._contained[answer, text] = contains(answer, said)
        return known

    @cached_property
    def _is_an_interval(self) -> bool:
        """Return whether the answer is the time between what turns of several sessions say: "two weeks ago" in one
        of them says another.
        """
        return self._is_a_length_of_time and len(self._sessions) > 1

    def _relevant_texts(self, pieces: Sequence[Piece], wanted: tuple[str, ...]) -> Iterator[str]:
        """Return what can hold the answer of texts that do not come from the evidence turns."""
        if any(map(_is_specific, wanted)):
            return filter(None, (self._relevant_part(piece, wanted) for piece in pieces))
        # A text of unknown origin counts where it says the answer of what is asked about.
        unlinked = (piece.text for piece in pieces if not piece.names_sources)
        return (said for text in unlinked for said in text.splitlines() if self.is_about(said))

    def _relevant_part(self, piece: Piece, wanted: tuple[str, ...]) -> str:
        """Return what can hold the answer of one text; empty where nothing can.

        A short answer also occurs in turns that have nothing to do with the question: of a text from such turns,
        the lines count that are about what is asked and do not deny the answer ("Mondays and Wednesdays instead of
        Tuesdays and Thursdays" does not hold "Mondays and Thursdays"). A text of unknown origin counts as a whole,
        and so does every text where the dataset names no evidence.
        """
        if not all(
            has_the_letters_of(answer, piece.text) and not _says_otherwise(answer, piece.text) for answer in wanted
        ):
            return ""
        if not (_is_short(wanted) and self.evidence and piece.names_sources):
            return piece.text
        known = self._relevant.get((wanted, piece.text))
        if known is None:
            lines = (
                said
                for said in piece.text.splitlines()
                if any(may_say_a_part_of(answer, said) for answer in wanted)
                and self.is_about(said, _OF_ONE_WORD if len(_content_of_all(wanted)) == 1 else 0)
            )
            known = "\n".join(said for said in lines if not any(_denies(answer, said) for answer in wanted))
            self._relevant[wanted, piece.text] = known
        return known

    def is_about(self, said: str, least: float = 0) -> bool:
        """Return whether a text shares a word with the question that tells what it is about, and at least this
        share of these words.

        The words of the answer do not, nor those that form any question, nor the names of those who speak, which
        stand in most texts. If the question has no topic words, every text counts as on topic. What names one
        speaker is not about another whom alone the question names, and the text does not.
        """
        asked, others = self._speakers
        if len(asked) == 1 and not _names(asked[0], said) and any(_names(name, said) for name in others):
            return False
        shared = self.topic_in(said)
        return not self._topic or (bool(shared) and len(shared) >= least * len(self._topic))

    def topic_in(self, said: str) -> frozenset[_Word]:
        """Return the words that a text shares with the question, and that tell what it is about."""
        return self._topic & _words_of(said)

    def asked_in(self, said: str) -> frozenset[str]:
        """Return the words and figures of the question that a text says, but the names of those who speak."""
        asked, others = self._speakers
        names = [token for name in (*asked, *others) for token in tokens_of(name)]
        wanted = [
            token for _, token in content_of(tokens_of(self.question.text)) if token.text not in FORMS_A_QUESTION
        ]
        known = [token for token in wanted if not any(same_token(name, token) for name in names)]
        said_tokens = tokens_of(said)
        return frozenset(token.text for token in known if any(same_token(token, one) for one in said_tokens))

    @cached_property
    def _speakers(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the speakers whom the question names, and the others."""
        names = {turn.speaker for turn in self.turns.values() if turn.speaker}
        asked = [name for name in names if contains(name, self.question.text)]
        return asked, [name for name in names if name not in asked]

    @cached_property
    def _words_asked(self) -> Sequence[Token]:
        """Return the words of the question that tell what it is about."""
        asked, others = self._speakers
        names = [token for name in (*asked, *others) for _, token in content_of(tokens_of(name))]
        return [
            token
            for _, token in content_of(tokens_of(self.question.text))
            if token.kind == "word"
            and token.text not in FORMS_A_QUESTION
            and token.text not in UNITS
            and not any(same_token(name, token) for name in names)
        ]

    @cached_property
    def _topic(self) -> frozenset[_Word]:
        answers = (self.question.expected, *self.question.expected_entities)
        known = [token for answer in answers for _, token in content_of(tokens_of(answer))]
        return frozenset(
            key
            for token in self._words_asked
            if not any(same_token(one, token) for one in known)
            for key in stem_keys(token)
        )


def _names(name: str, said: str) -> bool:
    return name in said and re.search(rf"\b{re.escape(name)}\b", said) is not None


_HEADING = re.compile(r"^(?:\w+: )?\[([^\]\n]{0,40}\d{4}[^\]\n]{0,20})\] ?", re.MULTILINE)


def heading_of(text: str) -> str:
    """Return the date under which a text stands, in brackets; empty without one."""
    found = _HEADING.match(text)
    return f"[{found[1]}]" if found is not None else ""


def heading_day(text: str) -> date | None:
    """Return the day of the date under which a text stands: "[19 June 2023, 10:04]"."""
    found = _HEADING.match(text)
    days = [time.first for time in times_in(found[1]) if time.days == 1] if found is not None else []
    return days[0] if days else None


def _shared(words: Sequence[Token], said: str | Sequence[Token]) -> frozenset[str]:
    """Return the words of a text that are among these, in any form."""
    content = [token for _, token in content_of(tokens_of(said))] if isinstance(said, str) else said
    return frozenset(token.text for token in content if any(same_token(word, token) for word in words))


def _retells(sentence: Sequence[Token], text: str) -> bool:
    """Return whether a text says at least half of the words of a sentence, and all of its figures and weekdays."""
    said = _shared(tokens_of(text), sentence)
    return len(said) >= len(sentence) * _RETOLD and all(
        token.text in said for token in sentence if _is_figure(token)
    )


def _contradicts(sentence: Sequence[Token], text: str) -> bool:
    """Return whether a text says what a sentence denies, or denies what it says, in nearly all of its words."""
    told = tokens_of(text)
    said = [token for token in sentence if token.text not in NEGATIONS | _OF_DENIALS]
    denies = [any(token.text in NEGATIONS for token in tokens) for tokens in (sentence, told)]
    is_same = len(said) >= _FEWEST_DENIED and len(_shared(told, said)) >= len(said) * _MOST_WORDS
    return is_same and denies[0] != denies[1]


def _say_all(words: Iterable[str], texts: Sequence[str]) -> bool:
    return all(any(contains(word, text) for text in texts) for word in words)


def _is_figure(token: Token) -> bool:
    return token.kind in ("number", "time") or _is_dated(token)


def _is_dated(token: Token) -> bool:
    return token.kind == "date" or token.text in WEEKDAYS


@lru_cache(maxsize=16384)
def _words_of(said: str) -> frozenset[_Word]:
    """Return what the words of a text can be recognised by."""
    words = (token for _, token in content_of(tokens_of(said)) if token.kind == "word")
    return frozenset(key for token in words for key in stem_keys(token))


_DERIVED = ("ly", "ful", "less")


@lru_cache(maxsize=16384)
def _says_otherwise(answer: str, said: str) -> bool:
    """Return whether a text has a word of an answer only in another part of speech: "friends" for "friendly"."""
    tokens = tokens_of(said)
    for _, word in content_of(tokens_of(answer)):
        ends = {_ending_of(token) for token in tokens if word.kind == "word" and same_token(word, token)}
        if ends and _ending_of(word) not in ends:
            return True
    return False


def _ending_of(token: Token) -> str:
    return next((end for end in _DERIVED if token.text.endswith(end)), "")


_ANY_DAY = date(2000, 1, 1)


def _without_relative_times(text: str) -> str:
    """Return a text without words such as "two weeks ago"."""
    plain = folded(text)
    for time in {*times_in(text, _ANY_DAY)} - {*times_in(text)}:
        plain = plain.replace(time.words, "")
    return plain


@lru_cache(maxsize=16384)
def _is_denied_in(answer: str, sentence: str) -> bool | None:
    """Return whether a sentence denies an answer, or says that it was so; None where it does not say plainly."""
    is_given, why = asserted(answer, sentence)
    has_no = any(token.text in _DENIALS for token in tokens_of(sentence))
    if why == "superseded" or (why == "denied" and has_no):
        return True
    return False if is_given and not has_no else None


@lru_cache(maxsize=16384)
def _denies(answer: str, said: str) -> bool:
    return has_the_letters_of(answer, said) and asserted(answer, said)[1] in ("denied", "superseded")


@lru_cache(maxsize=1024)
def _is_short(wanted: tuple[str, ...]) -> bool:
    content = _content_of_all(wanted)
    return len(content) <= _SHORT_ANSWER and not any(map(_is_exact, content))


@lru_cache(maxsize=1024)
def _content_of_all(wanted: tuple[str, ...]) -> Sequence[Token]:
    return [token for answer in wanted for _, token in content_of(tokens_of(answer))]


def _is_exact(token: Token) -> bool:
    """Return whether an amount with its unit has so many digits that it is hardly of anything else: "£4,480"."""
    if token.kind != "number" or not token.extra:
        return False
    is_round = abs(token.number) < _SMALL_NUMBER and token.number.is_integer()
    return not is_round and len(re.sub(r"\D", "", token.text).rstrip("0")) >= _EXACT


@lru_cache(maxsize=1024)
def _is_specific(answer: str) -> bool:
    """Return whether an answer says something by itself, so that a text containing it is about it."""
    content = [token for _, token in content_of(tokens_of(answer))]
    return any(
        token.text not in _UNSPECIFIC
        if token.kind == "word"
        else bool(token.extra) or not isinstance(token.value, float) or abs(token.value) >= _SMALL_NUMBER
        for token in content
    )


@lru_cache(maxsize=16384)
def _normalised(text: str) -> str:
    """Return a text with spaces around each of its words; empty where it has none."""
    words = normalised(text)
    return f" {words} " if words else ""
