"""Whether a reply that names all parts of an answer also puts them together as the answer does.

"Luis taught Ana" names who "Ana taught Luis" names; "Ana plays the cello and Luis the violin" has all words of the
opposite; and a list with a further item is not the list that was asked for. Everything works on form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from memreplay.grading.equivalence import enumeration
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import content_of, same_token, tokens_of
from memreplay.grading.vocabulary import STOP_WORDS

_NAME: Final = re.compile(r"(?<![\w'’])[^\W\d_a-zà-ÿ][^\W\d_]+")
_DIRECTIONS: Final = frozenset("from to before after than over by de a antes despues".split())
_TURNS_ROUND: Final = frozenset("by from who whom whose was were been being por fue que than".split())


def is_put_together_otherwise(expected: str, reply: str) -> bool:
    """Whether the reply swaps two names of the answer, or what belongs to each of its items."""
    return _swaps_names(expected, reply) or _mixes_up_items(expected, reply)


def _swaps_names(expected: str, reply: str) -> bool:
    names = list(dict.fromkeys(folded(name) for name in _NAME.findall(expected)))
    wanted, given = tokens_of(expected), tokens_of(reply)
    places = [(_place(name, wanted), _place(name, given)) for name in names]
    if len(names) < 2 or any(one is None or other is None for one, other in places):
        return False
    for (one, its), (other, others) in pairwise(places):
        if one is None or its is None or other is None or others is None or one > other:
            continue
        if _leads(wanted, other) in _DIRECTIONS and _leads(wanted, other) == _leads(given, its):
            return True
        between, said = wanted[one + 1 : other], given[others + 1 : its]
        verbs = [token for _, token in content_of(between) if token.kind == "word" and token.text not in STOP_WORDS]
        is_turned = any(token.text in _TURNS_ROUND for token in (*said, *between))
        if others < its and not is_turned and any(same_token(verb, token) for verb in verbs for token in said):
            return True
    return False


def _place(name: str, tokens: Sequence[Token]) -> int | None:
    return next((place for place, token in enumerate(tokens) if token.text == name), None)


def _leads(tokens: Sequence[Token], place: int) -> str:
    return tokens[place - 1].text if place else ""


def _mixes_up_items(expected: str, reply: str) -> bool:
    """Whether the words of one item of an enumeration stand apart in the reply, those of others between them."""
    items = [[token for _, token in content_of(tokens_of(item))] for item in enumeration(expected)]
    if len(items) < 2 or all(len(item) < 2 for item in items):
        return False
    flat = [token for item in items for token in item]
    if any(same_token(one, other) for place, one in enumerate(flat) for other in flat[place + 1 :]):
        return False
    order = [
        place
        for token in tokens_of(reply)
        for place, item in enumerate(items)
        if any(same_token(one, token) for one in item)
    ]
    if sorted(order) != [place for place, item in enumerate(items) for _ in item]:
        return False
    changes = sum(one != other for one, other in pairwise(order))
    return changes > len(items) - 1


_AND: Final = frozenset({"and", "y", "e", "&", "plus"})
_LONGEST_ITEM: Final = 3


def has_another_item(parts: Sequence[str], reply: str) -> bool:
    """Whether the list that names all parts of an answer has an item of another kind beside them.

    The list is what commas, line breaks and a last "and" join; an item is short, and is no clause.
    """
    if len(parts) < 2:
        return False
    segments: list[list[Token]] = [[]]
    joins = [""]
    for token in tokens_of(reply):
        if token.text in _AND or (token.kind == "mark" and token.text in ",\n;"):
            if segments[-1]:
                segments.append([])
                joins.append("")
            joins[-1] = token.text if joins[-1] not in _AND else joins[-1]
        elif token.kind == "mark" and token.text in ".!?:()":
            segments.append([])
            joins.append(".")
        else:
            segments[-1].append(token)
    wanted = [[token for _, token in content_of(tokens_of(part))] for part in parts]
    mine = [any(_has_all(part, segment) for part in wanted) for segment in segments]
    if sum(mine) < len(parts):
        return False
    first, last = mine.index(True), len(mine) - 1 - mine[::-1].index(True)
    if any(join == "." for join in joins[first + 1 : last + 1]):
        return False
    further = [place for place in range(first + 1, last) if not mine[place]]
    after = last + 1
    ends_as_item = any(len(part) == len(content_of(segments[last])) for part in wanted)
    while ends_as_item and after < len(segments) and joins[after] != "." and segments[after]:
        if joins[after] in _AND or joins[after] == "\n" or any(join in _AND for join in joins[after : after + 2]):
            further.append(after)
        after += 1
    return any(_is_item(segments[place], segments[last]) for place in further if not mine[place])


def _has_all(part: Sequence[Token], segment: Sequence[Token]) -> bool:
    return all(any(same_token(one, token) for token in segment) for one in part)


def _is_item(segment: Sequence[Token], known: Sequence[Token]) -> bool:
    words = [token for token in segment if token.kind != "mark"]
    articles = {"a", "an", "the", "el", "la", "los", "las", "un", "una", "some", "her", "his"}
    is_clause = any(token.kind == "word" and token.text in STOP_WORDS - articles for token in words)
    content = [token for _, token in content_of(words)]
    return bool(content) and len(content) <= _LONGEST_ITEM and not is_clause and content[0].kind == known[-1].kind
