"""Grades a reply to a multiple-choice question: reads the index of an option, or reports the reply as unparsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from memory_backends.text import ENGLISH_MONTHS, MONTHS, NUMBERS, any_of, folded
from memreplay.conversations.models import Frozen, Question
from memreplay.grading import Score
from memreplay.grading.option_texts import options_said, with_ordinals_as_labels
from memreplay.grading.replies import shortened, without_reasoning
from memreplay.grading.superseding import CORRECTS_ITSELF


class ParsedChoice(Frozen):
    """``index`` into the options, or None; ``reason`` says what it was read from, or why there is none.

    ``decided_by`` is whether a label ("3", "C", "three") or the text of an option named it.
    """

    index: int | None
    reason: str
    decided_by: Literal["label", "text"] | None = None


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
_ANSWERS = (
    r"(?:answer|ans|respuesta(?: final)?|choice|elecci[oó]n|pick(?:ing)?|choos(?:e|ing)|select(?:ing)?|selection"
    r"|go(?:ing)? with|opt for|(?:the )?best(?: one)? is"
    r"|chang(?:e|ing) (?:that|it|my answer) to"
    r"|going for|i(?:['’]d| would) say|elijo|escojo|elegir[ií]a|escoger[ií]a|selecciono|me quedo con|dir[ií]a"
    r"|(?:also )?correct(?: one)?|therefore"
    r"|thus|hence|por (?:lo )?tanto)"
)
"""What introduces the answer itself, not an option under discussion."""

_KEYWORD = (
    r"(?:"
    + _ANSWERS[3:-1]
    + r"|option|index|opci[oó]n|[ií]ndice|number|n[uú]mero|letter|letra"
    + r"|it['’]?s|it is|that['’]?s|definitely|clearly|certainly|leaves|but|sino)"
)
_LINK = (
    r"(?:\s*(?:index|number|n[uú]mero|option|opci[oó]n|choice|no\.|is|es|would be|should be|must be|has to be"
    r"|ser[ií]a"
    r"|debe ser|la|the|el|,|:|=|-(?=\s))){0,5}"
)
# A number counts unless what follows makes it something else: a date, an amount, a fraction.
_NUMBER_END = (
    r"(?![0-9])(?!\s*[.,:/\-–][0-9])(?!\s*%)(?!" + _MARKUP + r"[.,]?\s*(?:de\s+)?" + _MONTH + r"\b)"
    r"(?=[*_`~\"'“”‘’«»\])}$\s]*(?:$|[\n.,;:)!?]|[-–—]\s|\(|(?:because|since|as|which|based|is|porque|ya que)\b))"
)
_LETTERS = "ABCDEFGHIJ"
_SPELLED = {word: value for word, value in NUMBERS.items() if value <= 9}
_SPELLED_LABEL = re.compile(
    r"(?P<before>(?:\A|\b"
    + _KEYWORD
    + _MARKUP
    + _LINK
    + r")"
    + _MARKUP
    + r")(?P<name>"
    + any_of(_SPELLED)
    + r"|[A-Ja-j])"
    r"(?="
    + _MARKUP
    + r"(?:\Z|[\n.,;:)!?]|[-–—]\s|\(|(?:because|since|as|which|based|is|or|and|porque|ya que|o|y)\b))",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"\b" + _ANSWERS + _MARKUP + _LINK + _MARKUP + r"(?<![-−–+.,0-9])([0-9]+)" + _NUMBER_END,
    re.IGNORECASE | re.MULTILINE,
)
_FINAL = re.compile(r"\b(?:final(?:ly)?|respuesta final)\W*(?:the |my )?\Z", re.IGNORECASE)
_LABEL = re.compile(
    r"\b" + _KEYWORD + _MARKUP + _LINK + _MARKUP + r"(?<![-−–+.,0-9])([0-9]+)" + _NUMBER_END,
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
    + r"|\bbetween\s)"
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
    r"^" + _MARKUP + r"\s*[:\-–]?\s*(?:no|wrong|incorrect|false)\b|^" + _MARKUP + r"\s*(?:is|es)\s+"
    r"(?:not|n't|no\b|wrong|incorrect|false|impossible|incorrecta?)",
    re.IGNORECASE,
)
_IS = r"(?:\s+index)?\s*(?:correcta\s*)?(?::|\bis\b|\bes\b)\s*:?"
_INTRODUCTION = re.compile(
    r"^(?:(?:the\s+|la\s+)?(?:best\s+|correct\s+|right\s+|final\s+)?(?:answer|option|choice|respuesta|opci[oó]n)"
    + _IS
    + r")\s*",
    re.IGNORECASE,
)
_ANSWER_TEXT = re.compile(
    r"\b(?:(?:answer|choice|respuesta|elecci[oó]n)"
    + _IS
    + r"|pick|choose|select|go with|opt for|elijo|escojo|me quedo con)"
    r"\s+(?P<text>[^\n]{1,400}?)(?=[.!](?:\s|[*_`\"']|\Z)|\n|\Z)",
    re.IGNORECASE,
)
_DECORATED = re.compile(r"[*_`~\"'“”‘’«»()\[\]{}$#\s]{9,}")


def parse_choice(reply: str, choices: Sequence[str], question: str = "") -> ParsedChoice:
    """The option that a reply to a question names. Never raises, and never returns an index out of range."""
    text = _plain_form(_DECORATED.sub(_shorter_run, shortened(without_reasoning(reply))))
    if not text.strip(_DECORATION):
        return ParsedChoice(index=None, reason="the reply is empty")
    from_json = _json_values(text)
    if from_json is not None:
        return _agree([name for value in from_json for name in _named(_digits(value, choices), choices)], choices)
    whole = _options_with_text(text, choices) or _cut_short(text, choices)
    if whole and not re.fullmatch(r"[0-9]", text.strip(_DECORATION + ".")):
        return _agree([("text", index) for index in whole], choices)
    text = with_ordinals_as_labels(_digits(text, choices), choices)
    last = _after_corrections(text, choices)
    named = _concluded(last, choices) or list(_named(last, choices))
    return _agree(named or [("text", index) for index in options_said(text, choices, question)], choices)


_ANSWER_TAG = re.compile(r"</?(?:final_?)?(?:answer|choice|option|index|respuesta)\s*>", re.IGNORECASE)
_SHORT_CUE = re.compile(r"\A\W*[AR]\s*:\s*(?=[0-9]\b|[A-J]\b)")
_BOXED_LETTER = re.compile(r"\\boxed\{\s*(?:\\text\{)?\s*([A-J])\s*\}+")
_RULED_OUT = re.compile(r"\b(?:rul(?:e|ed|ing) out|eliminat\w+|exclud\w+|descart\w+)\b[^.;\n]*", re.IGNORECASE)
_EXPLAINED = re.compile(
    r"(\A\W*[0-9A-J]\W*)\n\W*(?:explanation|reason|because|rationale|justification|note|explicaci[oó]n|porque)\b.*\Z",
    re.IGNORECASE | re.DOTALL,
)


def _plain_form(text: str) -> str:
    """The text without tags around an answer, options that it rules out, and what explains a bare label."""
    text = _BOXED_LETTER.sub(r"Final answer: \1\n", _SHORT_CUE.sub("Answer: ", _ANSWER_TAG.sub("\n", text)))
    without = _RULED_OUT.sub(" ", text)
    return _EXPLAINED.sub(r"\1", without if re.search(r"[0-9]", without) else text)


_LEAST_CUT = 8
"""Characters. A shorter beginning of an option may be a word of its own."""


def _cut_short(text: str, choices: Sequence[str]) -> list[int]:
    """The one option that a reply begins to say, where the limit of its length ended it."""
    plain = _plain(text)
    begun = [index for index, choice in enumerate(choices) if _plain(choice).startswith(plain)]
    return begun if len(plain) >= _LEAST_CUT and len(begun) == 1 else []


def _after_corrections(text: str, choices: Sequence[str]) -> str:
    """What a reply says after it has corrected itself, where that names an option; else all of it."""
    if len(text) != len(text.casefold()):
        return text
    corrections = list(CORRECTS_ITSELF.finditer(text.casefold()))
    rest = text[corrections[-1].end() :] if corrections else ""
    *_, last = re.split(r"[.!?;\n]\s", rest.strip()) if rest.strip() else [""]
    return next((part for part in (rest, last) if part and list(_named(part, choices))), text)


def _shorter_run(run: re.Match[str]) -> str:
    """A long run of markup and white space, which would slow every pattern down, in eight characters."""
    return run.group()[:4] + ("\n" if "\n" in run.group() else " ") + run.group()[-3:]


def _digits(text: str, choices: Sequence[str]) -> str:
    """The text with labels in words ("option three") and letters ("Answer: C") as digits.

    A letter counts in capitals, or after a word such as "option"; never where an option's text is that letter.
    """

    def digit(found: re.Match[str]) -> str:
        name = found["name"]
        if _options_with_text(name, choices):
            return found.group()
        if len(name) > 1:
            return f"{found['before']}{_SPELLED[folded(name)]}"
        is_alone = not re.search(r"\w", found["before"])
        rest = text[found.end() :]
        if (name.islower() or name == "I") and is_alone and rest.strip(_DECORATION + ".:"):
            return found.group()
        return f"{found['before']}{_LETTERS.index(name.upper())}"

    return _OR_NAME.sub(lambda found: found["or"] + _digit_of(found["name"]), _SPELLED_LABEL.sub(digit, text))


_OR_NAME = re.compile(
    r"(?P<or>\b[0-9]"
    + _MARKUP
    + r"(?:or|and|o|y|/|,|&)"
    + _MARKUP
    + r"(?:option\s+)?)(?P<name>"
    + any_of(_SPELLED)
    + r"|[A-J])\b"
)


def _digit_of(name: str) -> str:
    """The digit of a number in words or a letter."""
    return str(_SPELLED[folded(name)] if len(name) > 1 else _LETTERS.index(name))


_Name = tuple[Literal["label", "text"], int]


def _agree(names: Sequence[_Name], choices: Sequence[str]) -> ParsedChoice:
    """One option, if all names agree."""
    indexes = {index for _, index in names}
    if not indexes:
        return ParsedChoice(index=None, reason="the reply names no option")
    if len(indexes) > 1:
        return ParsedChoice(index=None, reason="the reply names several options")
    kind, index = names[0]
    if kind == "label" and index >= len(choices) and (texts := _options_with_text(str(index), choices)):
        kind, index = "text", texts[0]
    if not 0 <= index < len(choices):
        return ParsedChoice(index=None, reason=f"{index} is out of range")
    return ParsedChoice(
        index=index,
        reason="read from a label" if kind == "label" else "read from an option's text",
        decided_by=kind,
    )


def _concluded(text: str, choices: Sequence[str]) -> list[_Name]:
    """What a reply names as its answer, after or before it discusses the options; empty where it does not say so.

    A "final answer" overrides an earlier one. What stands alone on a line after the answer counts too, so that a
    reply with two answers yields both.
    """
    found: list[tuple[int, bool, list[_Name]]] = []
    for pattern in (_ANSWER, _BOXED):
        for match in pattern.finditer(text):
            is_final = (
                pattern is _BOXED
                or "final" in match.group().casefold()
                or _FINAL.search(text[max(0, match.start() - 20) : match.start()]) is not None
            )
            names = list(_label(text, match.start(), match.end(), match.group(1), choices))
            found.append((match.start(), is_final, names))
    for match in _ANSWER_TEXT.finditer(text):
        before = text[max(0, match.start() - 20) : match.start()]
        if not _DENIED_BEFORE.search(before) and (options := _option_alone(match["text"], choices)):
            found.append((match.start(), _FINAL.search(before) is not None, [("text", one) for one in options]))
    found = sorted((entry for entry in found if entry[2]), key=lambda entry: entry[0])
    finals = [entry for entry in found if entry[1]]
    decisive = finals or found
    if not decisive:
        return []
    start = decisive[0][0]
    names = [name for _, _, each in decisive for name in each]
    names += [("label", _number(one)) for several in _SEVERAL.finditer(text, start) for one in several.groups()]
    for line in text[start:].splitlines()[1:]:
        bare = line.strip(_DECORATION + ".,;:!-•")
        if re.fullmatch(r"[0-9]", bare):
            names.append(("label", int(bare)))
        else:
            names += [("text", index) for index in _options_with_text(bare, choices)]
    return names


def _option_alone(text: str, choices: Sequence[str]) -> list[int]:
    """The option that a text is, unless the text is a number, which is a label."""
    bare = text.strip(_DECORATION + ".,;:!")
    return [] if re.fullmatch(r"[0-9]*", bare) else _options_with_text(bare, choices)


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
    if (
        (len(digits) > 1 and digits[0] == "0")
        or _DENIED_BEFORE.search(text[max(0, start - 40) : start])
        or _DENIED_AFTER.match(rest)
    ):
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
    return list(_answers_in(parsed))


def _answers_in(parsed: object, depth: int = 0) -> Iterator[str]:
    """The values of the answer keys, also within another answer key: ``{"choice": {"index": 3}}``."""
    if depth > 3:
        return
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            if key.casefold().replace(" ", "_") in _JSON_KEYS:
                yield from _answers_in(value, depth + 1)
    elif isinstance(parsed, list):
        for value in parsed:
            yield from _answers_in(value, depth + 1)
    elif isinstance(parsed, str | int | float) and not isinstance(parsed, bool):
        yield str(parsed)


def score_choice(question: Question, text: str) -> Score:
    """Correct if the reply names the correct index; unparsed if it names none."""
    parsed = parse_choice(text, question.choices, question.text)
    index = parsed.index
    if index is None:
        return Score(outcome="unparsed", score=0.0, predicted=text)
    correct = index == question.correct_index
    return Score(
        outcome="correct" if correct else "wrong",
        score=1.0 if correct else 0.0,
        predicted=question.choices[index],
        predicted_index=index,
        decided_by=parsed.decided_by,
    )
