"""Grades a reply to a multiple-choice question: reads the index of an option, or reports the reply as unparsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Literal

from memory_backends.text import ENGLISH_MONTHS, MONTHS, NUMBERS, any_of, folded
from memreplay.conversations.models import Frozen, Question
from memreplay.grading import Score
from memreplay.grading.read import json_values, shortened, without_reasoning
from memreplay.grading.veto import CONCLUDES, CORRECTS_ITSELF, asserted
from memreplay.text import normalised


class ParsedChoice(Frozen):
    """``index`` into the options, or None; ``reason`` says what it was read from, or why there is none.

    ``decided_by`` is whether a label ("3", "C", "three") or the text of an option named it.
    """

    index: int | None
    reason: str
    decided_by: Literal["label", "text"] | None = None


_DECORATION = "*_`~\"'“”‘’«»()[]{}<>$|\\ \t\r\n"
_MONTH = any_of([*MONTHS, *(name[:3] for name in ENGLISH_MONTHS)])
_MARKUP = r"[*_`~\"'“”‘’«»()\[\]{}$#\s]*"
_SAY = (
    r"answer|ans|respuesta(?: final)?|antwort|r[eé]ponse|choice|elecci[oó]n|pick(?:ing)?|choos(?:e|ing)"
    r"|select(?:ing)?|selection"
    r"|go(?:ing)? (?:with|for)|opt for|settled? on|(?:the )?(?:best|right|correct)(?: one)? is"
    r"|chang(?:e|ing) (?:that|it|my answer) to|makes it|lean(?:ing)? towards?"
    r"|(?:current|latest|last) one is"
    r"|i(?:['’]d| would) say|elijo|escojo|elegir[ií]a|escoger[ií]a|selecciono|me quedo con"
    r"|me decanto por|(?:correcta|mejor|adecuada) (?:es|ser[ií]a)|dir[ií]a|(?:i )?(?:think|believe)|creo que"
    r"|match(?:es)?|fits|corresponds to|points to|(?:also )?correct(?: one)?|so(?! (?:is|are|do|does)\b)|therefore"
    r"|thus|hence|por (?:lo )?tanto|as[ií] que"
)
"""Phrases that introduce the answer itself, not an option under discussion."""

_ANSWERS = rf"(?:{_SAY})"
_KEYWORD = (
    rf"(?:{_SAY}|option|index|opci[oó]n|[ií]ndice|number|n[uú]mero|letter|letra|it['’]?s|that['’]?s"
    r"|it(?= (?:is|has|must|would|should)\b)|definitely|clearly|certainly|leaves|queda|es(?= la\b)|but|sino)"
)
_LINK = (
    r"(?:\s*(?:index|number|n[uú]mero|option|opci[oó]n|choice|no\.|is|es|would be|should be|must be|has to be"
    r"|ser[ií]a|debe ser|la|the|el|,|:|=|-(?=\s))){0,5}"
)
_FOR_REASONS = r"because|since|as|which|based|is|unless|although|porque|ya que"
# A number counts unless what follows makes it something else: a date, an amount, a fraction.
_NUMBER_END = (
    rf"(?![0-9])(?!\s*[.,:/\-–][0-9])(?!\s*%)(?!{_MARKUP}[.,]?\s*(?:de\s+)?{_MONTH}\b)"
    rf"(?=[*_`~\"'“”‘’«»\])}}$\s]*(?:$|[\n.,;:)!?]|[-–—]\s|\(|(?:{_FOR_REASONS})\b))"
)
_LABELLED = rf"{_MARKUP}{_LINK}{_MARKUP}(?<![-−–+.,0-9])([0-9]+){_NUMBER_END}"
_LETTERS = "ABCDEFGHIJ"
_SPELLED = {word: value for word, value in NUMBERS.items() if value <= 9}
_EITHER_CASE = re.IGNORECASE | re.MULTILINE
_SPELLED_LABEL = re.compile(
    rf"(?P<before>(?:\A|\b{_KEYWORD}{_MARKUP}{_LINK}){_MARKUP})(?<![^\W_])(?P<name>{any_of(_SPELLED)}|[A-Ja-j])"
    rf"(?={_MARKUP}(?:\Z|[\n.,;:)!?]|[-–—]\s|\(|\b(?:{_FOR_REASONS}|or|and|o|y)\b))",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    rf"\b{_ANSWERS}{_LABELLED}|(?:[:=→⇒]|[=-]>)\s*(?<![0-9]:)[*_`]*([0-9]+)[*_`.\s]*\Z"
    r"|\b(?<![.,:])([0-9])\s+(?:fits|matches|suits|works|is (?:right|correct|(?=better|best)))(?: better| best)?\b",
    _EITHER_CASE,
)
_FINAL = re.compile(r"\b(?:final|better|best)", re.IGNORECASE)
_LABEL = re.compile(rf"\b{_KEYWORD}{_LABELLED}", _EITHER_CASE)
_LEADING = re.compile(
    rf"(?:^|(?<![0-9])[.;]\s|\bno[rt] [0-9][.,;]\s|\bno,\s){_MARKUP}(?<![-−–+.,0-9])([0-9]+){_NUMBER_END}",
    _EITHER_CASE,
)
_BOXED = re.compile(r"\\boxed\{\s*([0-9]+)\s*\}")
_SEVERAL = re.compile(
    rf"(?:^|\b{_KEYWORD}e?s?\b{_LINK}|\bbetween\s){_MARKUP}([0-9]+){_MARKUP}"
    rf"(?:or|and|and/or|to|,|/|&|\bo\b|\by\b|\bu\b|-|–){_MARKUP}(?:option\s+)?([0-9]+)\b(?![.,:/][0-9])",
    _EITHER_CASE,
)
_CLAUSE = re.compile(
    rf"(?<=[?!;\n]|(?<!^[0-9])\.)(?=\s)|(?<=[.?!]['\"”’»*])(?=\s)|(?=\n)|(?<=:)(?=\s(?:it|that|es|la)\b)"
    r"|(?=:\s*[*_`]*[0-9]+[*_`.\s]*\Z)"
    rf"|(?=(?:,|,? and|,? y)\s(?:I\s|I['’]d\s|it\s)?{_ANSWERS}\b)|(?=[→⇒]|[=-]>)"
    r"|(?=,?\s(?:so(?! (?:is|are|do|does)\b)|but|then|therefore|because|since|as[ií] que|sino|pero|porque)\b)"
    r"|(?=(?:,|,? and| [-–—]) (?:not|never)\b|(?:,|,? y) no (?:la|el)\b|\s(?:rather than|instead of|over the)\b)"
    r"|(?=, it['’]s\b)|(?<=\bno,)(?=\s(?:[0-9]|the\b|it))",
    _EITHER_CASE,
)
_DENIED = re.compile(
    r"\b(?:not?|\w+n['’]t|neither|nor|never|cannot|none|wrong|incorrect\w*|false|impossible|ruled? out|is out"
    r"|be too|discard\w*|descart\w+|tampoco|ni|except|rather than|instead of|over the)\b|\?\s*\Z"
    r"|\A\s*\(.*(?<!I )\bwould\b|\A\W*(?:if(?! I\b)|unless|had s?he|were s?he|si)\s",
    re.IGNORECASE,
)
# What only looks like a denial: the reason behind a label ("3: she eats no meat"), doubt, and a correction.
_NO_DENIAL = re.compile(
    rf"\A{_MARKUP}(?:(?:the |my |la )?{_KEYWORD}{_LINK}\s)?{_MARKUP}[0-9\U000f0000-\U000fffff]{_MARKUP}[:.,)–—-]\s+"
    r"(?!no|wrong|incorrect|false|too|out)"
    r"|\bI(?:['’]m| can| could| do| am) ?n[o'’]t|\bno (?:lo|s[eé]|sabr[ií]a|puedo|tengo|doubt)\b"
    r"|\b(?:without (?:a )?doubt|sin duda|unclear|not sure|actually|wait|sorry)\b",
    re.IGNORECASE,
)
_RETRACTS = re.compile(rf"{CORRECTS_ITSELF.pattern}|(?:\A|[.!?…\n]\s*)wait\b|\bno,? espera\b", re.IGNORECASE)
_CONCESSION = re.compile(r"\A\W*(?:while|al?though|since|as|unless|given|aunque|como)\b[^,]*,", re.IGNORECASE)
_TICK = re.compile(r"[✓✔✅☑]")
_OF_ONE = re.compile(r"\s+(?:is|was|would|that|in|of)\b", re.IGNORECASE)
"""What follows a "one" that is no number: "the correct one is"."""
_MISSPELT = 0.85
"""Share of the letters that a misspelt option has in common with it."""
_PRIVATE_USE = 0xF0000  # The first of the characters that stand for options while a reply is cut into clauses.
_DECORATED = re.compile(r"[*_`~\"'“”‘’«»()\[\]{}$#\s]{9,}")
_PICTURES = re.compile(
    "[\u20e3\u2600-\u27bf\ufe0f\U0001f000-\U0001faff\U000f0000-\U000fffff]"
    "|</?(?:final_?)?(?:answer|choice|option|index|respuesta)\\s*>",
    re.I,
)
_COUNTED_FROM_1 = re.compile(
    r"\b(?:count|start|number)(?:ing|ed) (?:from|at|with) (?:1|one)\b|\b(?:1|one)-based", re.I
)
_LETTERS_IN_PICTURES = {0x1F170 + place: letter for place, letter in enumerate(_LETTERS)}
_BOXED_LETTER = re.compile(r"\\boxed\{\s*(?:\\text\{)?\s*([A-J])\s*\}+")


def parse_choice(reply: str, choices: Sequence[str], question: str = "") -> ParsedChoice:
    """Return the option that a reply to a question names. Never raises, and never returns an index out of range."""
    text = shortened(without_reasoning(reply)).translate(_LETTERS_IN_PICTURES)
    ticked = [line for line in text.splitlines() if _TICK.search(line)]
    if len(ticked) == 1 and "\n" in text:
        text = _TICK.sub(":", ticked[0]).strip(": ")
    text = _DECORATED.sub(_shorter_run, _PICTURES.sub(" ", text))
    if _COUNTED_FROM_1.search(text):
        return ParsedChoice(index=None, reason="the reply counts from 1")
    text = _BOXED_LETTER.sub(r"Final answer: \1\n", text)
    if not text.strip(_DECORATION):
        return _agree([("text", index) for index in _options_with_text(reply, choices)], choices)
    from_json = json_values(text)
    if from_json is not None:
        values = (_affirmed(_digits(value, choices), choices) for value in from_json)
        return _agree([name for value in values for name in _named(value, choices)], choices)
    whole = _options_with_text(text, choices)
    if whole and not re.fullmatch(r"[0-9]", text.strip(_DECORATION + ".")):
        return _agree([("text", index) for index in whole], choices)
    said = _affirmed(with_ordinals_as_labels(_digits(text, choices), choices), choices)
    retractions = [*_RETRACTS.finditer(said)][-1:]
    for part in (*(said[one.end() :] for one in retractions), said):
        named = _concluded(part, choices) or list(_named(part, choices))
        if names := named or [("text", index) for index in options_said(part, choices, question)]:
            return _agree(names, choices)
    return _agree([("text", index) for index in _misspelt(text, choices)], choices)


def _misspelt(text: str, choices: Sequence[str]) -> list[int]:
    """Return the option that a reply misspells; a figure that differs is another one."""
    if re.search(r"[0-9]", text):
        return []
    plain = [_plain(choice) for choice in choices]
    return [plain.index(close) for close in get_close_matches(_plain(text), plain, 2, _MISSPELT)]


def _affirmed(text: str, choices: Sequence[str]) -> str:
    """Return a text without what it denies or says under a condition: "not 2, and not 3", "(a husky would not be
    happy)", "if money were an issue, ...". What the text of an option denies ("no pool") stays.
    """

    def kept(clause: str) -> str:
        for part in (clause, _CONCESSION.sub(" ", clause)):
            if not _DENIED.search(part) or _NO_DENIAL.search(part):
                return part
        return " "

    names = {choice.strip(". ") for choice in choices if " " in choice or _DENIED.search(choice)}
    quoted = sorted(names, key=len, reverse=True)
    for at, choice in enumerate(quoted, _PRIVATE_USE):
        text = re.sub(rf"(?<!\w){re.escape(choice)}(?!\w)", chr(at), text, flags=re.IGNORECASE)
    text = re.sub(r"\([^()\n]*\)", lambda aside: kept(aside[0]), text)
    said = _DECORATED.sub(_shorter_run, "".join(map(kept, _CLAUSE.split(text))))
    return said.translate(dict(enumerate(quoted, _PRIVATE_USE)))


def _shorter_run(run: re.Match[str]) -> str:
    """Return a long run of markup and white space, which would slow every pattern down, in eight characters."""
    return run[0][:4] + ("\n" if "\n" in run[0] else " ") + run[0][-3:]


def _digits(text: str, choices: Sequence[str]) -> str:
    """Return the text with labels in words ("option three") and letters ("Answer: C") as digits.

    A letter counts in capitals, or after a word such as "option"; never where an option's text is that letter.
    """

    def digit(found: re.Match[str]) -> str:
        name = found["name"]
        if _options_with_text(name, choices) or (name.lower() == "one" and _OF_ONE.match(text, found.end())):
            return found.group()
        is_alone = not re.search(r"\w", found["before"]) and text[found.end() :].strip(_DECORATION + ".:")
        if len(name) == 1 and (name.islower() or name == "I") and is_alone:
            return found.group()
        index = _SPELLED.get(folded(name), -1) if len(name) > 1 else _LETTERS.find(name.upper())
        # Without regard to case, a pattern also takes letters of other alphabets for its own: a dotless i.
        return f"{found['before']}{index}" if index >= 0 else found.group()

    return _SPELLED_LABEL.sub(digit, text)


_Name = tuple[Literal["label", "text"], int]


def _agree(names: Sequence[_Name], choices: Sequence[str]) -> ParsedChoice:
    """Return one option, if all names agree."""
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
    reason = "read from a label" if kind == "label" else "read from an option's text"
    return ParsedChoice(index=index, reason=reason, decided_by=kind)


def _concluded(text: str, choices: Sequence[str]) -> list[_Name]:
    """Return what a reply names as its answer, after or before it discusses the options; empty where it does not
    say so.

    A "final answer" overrides an earlier one. What stands alone on a line after the answer counts too, so that a
    reply with two answers yields both.
    """
    found: list[tuple[int, bool, list[_Name]]] = []
    for match in (*_ANSWER.finditer(text), *_BOXED.finditer(text)):
        names = list(_label(text, match.end(), match[match.lastindex or 1], choices))
        said = text[max(0, match.start() - 20) : match.end()]
        is_final = match.re is _BOXED or _FINAL.search(said) is not None
        found += [(match.start(), is_final, names)] if names else []
    decisive = [entry for entry in sorted(found) if entry[1]] or sorted(found)
    if not decisive:
        return []
    start = decisive[0][0]
    names = [name for _, _, each in decisive for name in each]
    lines = text[start:].splitlines()
    names += [("label", int(one[:9])) for several in _SEVERAL.finditer(lines[0]) for one in several.groups()]
    for line in lines[1:]:
        bare = line.strip(_DECORATION + ".,;:!-•")
        names += [("label", int(bare))] if re.fullmatch(r"[0-9]", bare) else _alone(bare, choices)
    return names


def _alone(text: str, choices: Sequence[str]) -> list[_Name]:
    """Return the option that a text is, unless the text is a number, which is a label."""
    is_number = re.fullmatch(r"[0-9]*", text.strip(_DECORATION + "."))
    return [] if is_number else [("text", index) for index in _options_with_text(text, choices)]


def _named(text: str, choices: Sequence[str]) -> Iterator[_Name]:
    """Yield everything in a text that names an option; an undecided reply yields several."""
    for several in _SEVERAL.finditer(text):
        yield from (("label", int(digits[:9])) for digits in several.groups())
    for pattern in (_LABEL, _LEADING, _BOXED):
        for match in pattern.finditer(text):
            yield from _label(text, match.end(), match.group(1), choices)
    for line in text.splitlines():
        yield from _alone(line.strip(_DECORATION + "-•"), choices)


def _label(text: str, end: int, digits: str, choices: Sequence[str]) -> Iterator[_Name]:
    """Yield a label that is not denied, and any other option whose text follows it on the line."""
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if len(digits) > 1 and digits[0] == "0":
        return
    index = int(digits[:9])
    yield "label", index
    named = _options_with_text(rest.lstrip(" .,;:)-–—" + _DECORATION), choices)
    if index not in named:
        yield from (("text", other) for other in named)


def _options_with_text(text: str, choices: Sequence[str]) -> list[int]:
    plain = _plain(text)
    return [index for index, choice in enumerate(choices) if plain and _plain(choice) == plain]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_DECORATION + ".,;:!")


def score_choice(question: Question, text: str) -> Score:
    """Correct if the reply names the correct index; unparsed if it names none."""
    parsed = parse_choice(text, question.choices, question.text)
    index = parsed.index
    if index is None:
        return Score(outcome="unparsed", score=0.0, predicted=text)
    correct = index == question.correct_index
    return Score(
        outcome="correct" if correct else "wrong",
        score=float(correct),
        predicted=question.choices[index],
        predicted_index=index,
        decided_by=parsed.decided_by,
    )


_ORDINALS = {
    name: place % 10
    for place, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth"
        " primera segunda tercera cuarta quinta sexta septima octava novena decima".split()
    )
}
_OPTION = (
    r"(?:(?:option|choice|answer|alternative)s?|one|opci[oó]n|respuesta|item|(?:of|in) the (?:list|option)\w*)"
)
_ORDINAL = re.compile(
    r"\b(?:the|la)\s+(?:(?P<digits>[0-9]{1,2})(?:st|nd|rd|th)|(?P<last>last|final|[uú]ltima)|(?P<name>[^\W\d_]{5,7}))"
    rf"(?:\s+(?:of\s+the\s+(?:listed\s+)?)?|(?=\W*\Z))(?:{_OPTION}\b(?:\s+(?:in|on|of) the list)?|(?=\W*\Z))",
    re.IGNORECASE,
)


def with_ordinals_as_labels(text: str, choices: Sequence[str]) -> str:
    """Return the text with "the third option" as the label of that option; labels begin with 0."""

    def label(found: re.Match[str]) -> str:
        if found["last"]:
            return f"option {len(choices) - 1}"
        place = int(found["digits"]) - 1 if found["digits"] else _ORDINALS.get(folded(found["name"]), -1)
        return f"option {place}" if place >= 0 else found.group()

    return _ORDINAL.sub(label, text)


_NO_CHOICE = re.compile(
    r"\b(?:or|if|maybe|perhaps|might|could|would|ni|si|quiz[aá]s?|both|neither|none|ambas|ambos|ning[uú]n\w*)\b|\?",
    re.IGNORECASE,
)
_I_WOULD = re.compile(r"\b(?:i|(?:my|best|right) \w+) would\b|\bwould be my\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not?|none|never|nothing|nada|ning[uú]n\w*)\b", re.IGNORECASE)
_LONGEST_SAID = 60
"""Words. A longer reply discusses options more than it chooses one."""


def options_said(text: str, choices: Sequence[str], question: str) -> list[int]:
    """Return the options that a reply in words, or the sentence that concludes it, asserts ("It was blue, I
    believe.").

    An option that is a part of another ("green" of "dark green") does not count beside it.
    """
    last = folded(re.split(r"(?<=[.!?])\s+|\n", text.strip())[-1])
    said = concluded[0] if (concluded := CONCLUDES.search(last)) else text
    about = re.sub(any_of([" ", *(choice for choice in choices if " " in choice)]), " ", said, flags=re.IGNORECASE)
    if len(text.split()) > _LONGEST_SAID or _NO_CHOICE.search(_I_WOULD.sub(" ", about)):
        return []
    plain = f" {normalised(said)} "
    given = [
        index
        for index, choice in enumerate(choices)
        if (f" {normalised(choice)} " in plain or not _NEGATED.search(choice))
        and asserted(choice, said, question)[0]
    ]
    return [
        index
        for index in given
        if not any(index != other and asserted(choices[index], choices[other])[0] for other in given)
    ]
