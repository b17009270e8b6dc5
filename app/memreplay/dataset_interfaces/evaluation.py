"""Evaluating replies: JSON from a model's reply, text similarity, and a checklist answered by a judge."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import Stemmer

from memreplay.dataset_interfaces.examples import Evaluation, Ungraded
from memreplay.dataset_interfaces.language_model import JUDGE_MODEL, make_system_message, make_user_message

_FENCE = re.compile(r"```[A-Za-z0-9_-]*\s*\n?(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")


def sanitize_and_parse_json(text: str) -> Any:
    """The JSON value in a text; ``ValueError`` where there is none.

    Tried in this order: the whole text, each fenced block, then the first list or object that parses.
    """
    for candidate in (text, *_FENCE.findall(text)):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    decoder = json.JSONDecoder()
    for opening in _OPENING.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except ValueError:
            continue
        return value
    raise ValueError("There is no JSON in the reply")


_WORD = re.compile(r"[a-z0-9]+")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SHORTEST_STEMMED = 4


def standardise(text: str) -> str:
    """Lower case, without ASCII punctuation."""
    return text.lower().translate(_WITHOUT_PUNCTUATION)


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L: the F-measure, 0..1, of the longest common subsequence of the stemmed words."""
    expected, given = _stems(reference), _stems(candidate)
    if not expected or not given:
        return 0.0
    common = _common_subsequence(expected, given)
    return 2 * common / (len(expected) + len(given))


@cache
def _porter() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("porter")


def _stems(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [str(_porter().stemWord(word)) if len(word) >= _SHORTEST_STEMMED else word for word in words]


def _common_subsequence(first: list[str], second: list[str]) -> int:
    """Its length."""
    row = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for column, other in enumerate(second, start=1):
            above = row[column]
            row[column] = diagonal + 1 if word == other else max(above, row[column - 1])
            diagonal = above
    return row[-1]


_INSTRUCTIONS = """\
You check answers that were given to questions. You get a JSON list; each entry has a question, the answer that \
was expected and the answer that was given. Go through this checklist for every entry, with "yes" or "no" to each:

1. Does the given answer refer to what the expected answer says?
2. Is the expected answer a number or an amount?
3. If it is, is it the same number or amount in the given answer?

Reply with nothing but a JSON list that has one entry for each question, in their order, like this:
[{"question_nr": 1, "checklist": ["yes", "no", "no"]}, {"question_nr": 2, "checklist": ["yes", "yes", "yes"]}]"""

_TOKENS_FOR_ALL = 256
_TOKENS_A_QUESTION = 64


def judge_answers(
    ask: Callable[..., str], questions: Sequence[str], given: Sequence[str], expected: Sequence[Any]
) -> Evaluation:
    """One point for each answer that the model finds right; ``ask`` takes a context, a model and parameters.

    Raises :class:`Ungraded` where the reply is not one checklist a question.
    """
    entries = [
        {"question_nr": number, "question": question, "expected_answer": wanted, "answer_given": answer}
        for number, (question, wanted, answer) in enumerate(zip(questions, expected, given, strict=False), start=1)
    ]
    if len(entries) != len(expected):
        raise Ungraded(f"{len(expected)} answers are expected, and {len(entries)} questions were answered")
    context = [make_system_message(_INSTRUCTIONS), make_user_message(json.dumps(entries, ensure_ascii=False))]
    reply = ask(
        context, model=JUDGE_MODEL, temperature=0, max_tokens=_TOKENS_FOR_ALL + _TOKENS_A_QUESTION * len(entries)
    )
    checklists = _checklists(reply, len(entries))
    right = [refers and (same or not is_number) for refers, is_number, same in checklists]
    return sum(right), len(expected), [_reason(*checklist) for checklist in checklists]


def _checklists(reply: str, questions: int) -> list[tuple[bool, bool, bool]]:
    try:
        return _parsed(reply, questions)
    except (ValueError, TypeError, KeyError) as error:
        raise Ungraded(f"The judge's reply is not the checklist it was asked for ({error})") from None


def _parsed(reply: str, questions: int) -> list[tuple[bool, bool, bool]]:
    entries = sanitize_and_parse_json(reply)
    if isinstance(entries, dict):
        entries = [entries]
    if len(entries) != questions:
        raise ValueError(f"{len(entries)} checklists for {questions} questions")
    found = []
    for entry in entries:
        answers = [str(answer).strip().lower() for answer in entry["checklist"]]
        if len(answers) != 3 or not set(answers) <= {"yes", "no"}:
            raise ValueError("a checklist needs three times yes or no")
        refers, is_number, same = (answer == "yes" for answer in answers)
        found.append((refers, is_number, same))
    return found


def _reason(refers: bool, is_number: bool, same: bool) -> str:
    said = "The answer refers to the expected one" if refers else "The answer does not refer to the expected one"
    if not is_number:
        return f"{said}, which is no number."
    return f"{said}, and the numbers {'are the same' if same else 'differ'}."
