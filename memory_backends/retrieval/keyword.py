"""Keyword scores (BM25) of turns, each read alone and together with its neighbours.

What answers a question often lies across a turn and the ones beside it: a question and its reply, a picture and its
comment. The counts of a stretch of turns are the sums of the counts of its turns, so one table of postings that
grows with every turn gives the scores of all widths, and nothing is ever rebuilt. (bm25s would need one
index a width, each rebuilt after every exchange.)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal

import numpy as np
import Stemmer
from numpy.typing import NDArray

Scores = NDArray[np.float64]

K1 = 1.5
B = 0.75

_WORD = re.compile(r"\w\w+")


def _stop_words() -> tuple[frozenset[str], frozenset[str]]:
    """English and Spanish ones, from one module of bm25s: importing the package would import SciPy where it is."""
    package = find_spec("bm25s")
    assert package is not None and package.origin is not None, "bm25s is a dependency"
    spec = spec_from_file_location("bm25s_stopwords", Path(package.origin).with_name("stopwords.py"))
    assert spec is not None and spec.loader is not None
    lists = module_from_spec(spec)
    spec.loader.exec_module(lists)
    return frozenset(lists.STOPWORDS_EN), frozenset(lists.STOPWORDS_SPANISH)


_STOP_WORDS = dict(zip(("english", "spanish"), _stop_words(), strict=True))
_SPANISH_ONLY = _STOP_WORDS["spanish"] - _STOP_WORDS["english"] - {"a", "me", "no", "he", "sea"}
_SPANISH_SHARE = 0.15
"""Share of Spanish stop words from which a text is read as Spanish."""


@lru_cache(maxsize=8192)
def terms_of(text: str) -> tuple[str, ...]:
    """Return the stemmed words of a text without stop words, in order. The stemmer follows the text's language."""
    return terms_in(text, language_of(text))


def language_of(text: str) -> Literal["english", "spanish"]:
    """Return which of the two languages a text is in, by its small words."""
    words = _WORD.findall(text.casefold())
    spanish = sum(word in _SPANISH_ONLY for word in words) >= max(1, _SPANISH_SHARE * len(words))
    return "spanish" if spanish else "english"


def terms_in(part: str, language: Literal["english", "spanish"]) -> tuple[str, ...]:
    """Return the same of a part of a text, which is too short to tell its language by itself."""
    kept = [word for word in _WORD.findall(part.casefold()) if word not in _STOP_WORDS[language]]
    return tuple(Stemmer.Stemmer(language).stemWords(kept))


class KeywordIndex:
    """Turns by their words. Turns are numbered from 0 in the order in which they were added."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[int, int]] = defaultdict(dict)
        self._lengths: list[int] = []
        self._sessions: list[int] = []

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, session: int, text: str) -> None:
        """Add the next turn."""
        terms = terms_of(text)
        for term, count in Counter(terms).items():
            self._postings[term][len(self)] = count
        self._lengths.append(len(terms))
        self._sessions.append(session)

    def scores(self, query: str, reach: int) -> Scores:
        """Return each turn's BM25 score, shape ``(turns,)``, read with ``reach`` turns of its session on both
        sides.
        """
        sessions = np.array(self._sessions)
        lengths = together(np.array(self._lengths, dtype=float), sessions, reach)
        return self._bm25(query, lengths, lambda counts: together(counts, sessions, reach))

    def _bm25(self, query: str, lengths: Scores, gather: Callable[[Scores], Scores]) -> Scores:
        total = np.zeros(len(lengths))
        norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1.0))
        for term in dict.fromkeys(terms_of(query)):
            postings = self._postings.get(term)
            if not postings:
                continue
            counts = np.zeros(len(self))
            counts[list(postings)] = list(postings.values())
            counts = gather(counts)
            holding = np.count_nonzero(counts)
            total += np.log1p((len(lengths) - holding + 0.5) / (holding + 0.5)) * counts / (counts + norm)
        return total


def together(values: Scores, sessions: NDArray[np.int_], reach: int) -> Scores:
    """Return each value plus those of its neighbours of the same session, up to ``reach`` places away."""
    return weighted(values, sessions, [1.0] * reach)


def weighted(values: Scores, sessions: NDArray[np.int_], weights: Sequence[float]) -> Scores:
    """Return each value plus those of its neighbours of the same session, times the weight of their distance."""
    total = values.astype(float)
    for distance, weight in enumerate(weights, start=1):
        same = sessions[distance:] == sessions[:-distance]
        total[distance:] += weight * values[:-distance] * same
        total[:-distance] += weight * values[distance:] * same
    return total


def scaled(values: Scores) -> Scores:
    """Values scaled to 0..1; all 0 where they do not differ."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def ranks_of(values: Scores) -> NDArray[np.int_]:
    """1-based ranks, best first; of two equal values the earlier first."""
    ranks = np.empty(len(values), dtype=int)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
