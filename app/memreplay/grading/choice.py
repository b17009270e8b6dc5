"""Grades a reply to a multiple-choice question: reads the index of an option, or reports the reply as unparsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from memory_backends.text import ENGLISH_MONTHS, MONTHS, any_of
from memreplay.conversations.models import Frozen, Question
from memreplay.grading import Score

_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
# Some servers drop the opening tag, so everything before a closing tag is reasoning.
_CLOSED = re.compile(r"\A.*</" + _TAG + r"\s*>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<" + _TAG + r"\s*>.*\Z", re.IGNORECASE | re.DOTALL)


def without_reasoning(reply: str) -> str:
    """The reply after its last reasoning block; empty if a block is never closed."""
    return _OPEN.sub("", _CLOSED.sub("", reply)).strip()


_MOST_READ = 10_000


def shortened(reply: str) -> str:
    """The beginning and the end of a reply that is too long to be an answer; any other reply unchanged.

    A model that repeats itself without end must not hold up the grading of a run.
    """
    if len(reply) <= _MOST_READ:
        return reply
    half = _MOST_READ // 2
    return f"{reply[:half]}\n{reply[-half:]}"


class ParsedChoice(Frozen):
    """``index`` into the options, or None; ``reason`` says what it was read from, or why there is none."""

    index: int | None
    reason: str


_JSON_KEYS = (
    "answer",
    "answer_index",
    "answerindex",
    "index",
    "choice",
    "choice_index",
    "option",
    "respuesta",
    "opcion",
)
_DECORATION = "*_`~\"'“”‘’«»()[]{}<>$|\\ \t\r\n"
_MONTH = any_of([*MONTHS, *(name[:3] for name in ENGLISH_MONTHS)])
_MARKUP = r"[*_`~\"'“”‘’«»()\[\]{}$#\s]*"
_KEYWORD = r"(?:answer|option|choice|index|respuesta|opci[oó]n|[ií]ndice|elecci[oó]n)"
_LINK = (
    r"(?:\s*(?:index|number|n[uú]mero|option|opci[oó]n|choice|no\.|is|es|would be|should be|ser[ií]a|la|the|:|=|"
    r"-(?=\s))\s*)"
)
# A number counts unless what follows makes it something else: a date, an amount, a fraction.
_NUMBER_END = (
    r"(?![0-9])(?!\s*[.,:/\-–][0-9])(?!\s*%)(?!" + _MARKUP + r"[.,]?\s*(?:de\s+)?" + _MONTH + r"\b)"
    r"(?=[*_`~\"'“”‘’«»\])}$\s]*(?:$|[\n.,;:)!?]|[-–—]\s|\(|(?:because|since|as|which|based|is|porque|ya que)\b))"
)
_LABEL = re.compile(
    r"\b" + _KEYWORD + _MARKUP + _LINK + r"*" + _MARKUP + r"(?<![-−–+.,0-9])([0-9]+)" + _NUMBER_END,
    re.IGNORECASE | re.MULTILINE,
)
_LEADING = re.compile(r"^" + _MARKUP + r"(?<![-−–+.,0-9])([0-9]+)" + _NUMBER_END, re.IGNORECASE | re.MULTILINE)
_BOXED = re.compile(r"\\boxed\{\s*([0-9]+)\s*\}")
_IN_BRACKETS_AT_END = re.compile(
    r"^(.*\S)\s*[(\[]\s*(?:option\s*|index\s*)?([0-9]+)\s*[)\]][.*_`\s]*$", re.MULTILINE
)
_SEVERAL = re.compile(
    r"(?:^|\b"
    + _KEYWORD
    + r"e?s?\b"
    + _LINK
    + r"*|\bbetween\s)"
    + _MARKUP
    + r"([0-9]+)"
    + _MARKUP
    + r"(?:or|and|and/or|to|,|/|&|\bo\b|\by\b|\bu\b|-|–)"
    + _MARKUP
    + r"(?:option\s+)?([0-9]+)\b(?![.,:/][0-9])",
    re.IGNORECASE | re.MULTILINE,
)
_DENIED_BEFORE = re.compile(
    r"(?:\bnot|n't|\bno es|\bneither|\brather than|\bnor)(?:\s+(?:the|la))?[\s*_`\"']*$", re.IGNORECASE
)
_DENIED_AFTER = re.compile(
    r"^" + _MARKUP + r"\s*(?:is|es)\s+(?:not|n't|no\b|wrong|incorrect|false|impossible|incorrecta?)", re.IGNORECASE
)
_INTRODUCTION = re.compile(
    r"^(?:(?:the\s+|la\s+)?(?:best\s+|correct\s+|right\s+|final\s+)?(?:answer|option|choice|respuesta|opci[oó]n)"
    r"(?:\s+index)?\s*(?:correcta\s*)?(?::|\bis\b|\bes\b)\s*:?)\s*",
    re.IGNORECASE,
)


def parse_choice(reply: str, choices: Sequence[str]) -> ParsedChoice:
    """The option that a reply names. Never raises, and never returns an index out of range."""
    text = shortened(without_reasoning(reply))
    if not text.strip(_DECORATION):
        return ParsedChoice(index=None, reason="the reply is empty")
    from_json = _json_values(text)
    if from_json is not None:
        return _agree([name for value in from_json for name in _named(value, choices)], choices)
    whole = _options_with_text(text, choices)
    if whole and not re.fullmatch(r"[0-9]", text.strip(_DECORATION + ".")):
        return _agree([("text", index) for index in whole], choices)
    return _agree(list(_named(text, choices)), choices)


_Name = tuple[str, int]


def _agree(names: Sequence[_Name], choices: Sequence[str]) -> ParsedChoice:
    """One option, if all names agree."""
    indexes = {index for _, index in names}
    if not indexes:
        return ParsedChoice(index=None, reason="the reply names no option")
    if len(indexes) > 1:
        return ParsedChoice(index=None, reason="the reply names several options")
    kind, index = names[0]
    if not 0 <= index < len(choices):
        return ParsedChoice(index=None, reason=f"{index} is out of range")
    return ParsedChoice(
        index=index, reason="read from a label" if kind == "label" else "read from an option's text"
    )


def _named(text: str, choices: Sequence[str]) -> Iterator[_Name]:
    """Everything in a text that names an option; an undecided reply yields several."""
    for several in _SEVERAL.finditer(text):
        yield from (("label", _number(digits)) for digits in several.groups())
    for pattern in (_LABEL, _LEADING, _BOXED):
        for match in pattern.finditer(text):
            yield from _label(text, match.start(), match.end(), match.group(1), choices)
    for match in _IN_BRACKETS_AT_END.finditer(text):
        if before := _options_with_text(match.group(1), choices):
            yield "label", _number(match.group(2))
            yield from (("text", index) for index in before)
    for line in text.splitlines():
        yield from _line_text(line, choices)


def _label(text: str, start: int, end: int, digits: str, choices: Sequence[str]) -> Iterator[_Name]:
    """A label that is not denied, and any other option whose text follows it on the line."""
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if (len(digits) > 1 and digits[0] == "0") or _DENIED_BEFORE.search(text[:start]) or _DENIED_AFTER.match(rest):
        return
    index = _number(digits)
    yield "label", index
    named = _options_with_text(rest.lstrip(" .,;:)-–—" + _DECORATION), choices)
    if index not in named:
        yield from (("text", other) for other in named)


def _line_text(line: str, choices: Sequence[str]) -> Iterator[_Name]:
    """Options whose text is the whole line after an introduction. A bare number is a label, not a text."""
    named = _INTRODUCTION.sub("", line.strip(_DECORATION + "-•"))
    if not re.fullmatch(r"[0-9]*", named.strip(_DECORATION + ".")):
        yield from (("text", index) for index in _options_with_text(named, choices))


def _options_with_text(text: str, choices: Sequence[str]) -> list[int]:
    plain = _plain(text)
    return [index for index, choice in enumerate(choices) if plain and _plain(choice) == plain]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_DECORATION + ".,;:!")


def _number(digits: str) -> int:
    return int(digits[:9])


def _json_values(text: str) -> list[str] | None:
    """The values of the answer keys of a reply that is one JSON object; None for any other reply."""
    body = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", text.strip())
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    values = [value for key, value in parsed.items() if key.casefold().replace(" ", "_") in _JSON_KEYS]
    return [str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]


def score_choice(question: Question, text: str) -> Score:
    """Correct if the reply names the correct index; unparsed if it names none."""
    index = parse_choice(text, question.choices).index
    if index is None:
        return Score(outcome="unparsed", score=0.0, predicted=text)
    correct = index == question.correct_index
    return Score(
        outcome="correct" if correct else "wrong",
        score=1.0 if correct else 0.0,
        predicted=question.choices[index],
        predicted_index=index,
    )
