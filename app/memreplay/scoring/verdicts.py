"""The verdicts on answers, one row each. A new verdict is a name in its Literal, a row here, and its rule.

The rule that gives a verdict is in :mod:`memreplay.scoring.attribution`; everything that is said, drawn or counted
of verdicts is derived from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

WrongLabel = Literal[
    "error",
    "cut_reply",
    "unparsed",
    "refused",
    "prompt_cut",
    "key_suspect",
    "not_visible",
    "no_evidence",
    "not_written",
    "not_retrieved",
    "cut",
    "stale",
    "false_attribution",
    "abstained",
    "misread",
]
RightLabel = Literal["grounded", "correct_abstention", "guessed", "lucky"]
Label = WrongLabel | RightLabel

WRONG: Final[tuple[WrongLabel, ...]] = get_args(WrongLabel)
"""Verdicts on wrong answers, in the order in which they are tried."""
LABELS: Final[tuple[Label, ...]] = (*WRONG, *get_args(RightLabel))

Intervention = Literal[
    "unchanged",
    "evidence_only",
    "stored_only",
    "evidence_added",
    "evidence_replacing",
    "evidence_first",
    "evidence_last",
    "half_budget",
    "double_budget",
    "double_top_k",
    "current_value_only",
    "distractors_removed",
    "closed_book",
]
"""A change under which a wrong answer is asked again."""
INTERVENTIONS: Final[tuple[Intervention, ...]] = get_args(Intervention)

_DOUBLED: Final[frozenset[Intervention]] = frozenset({"double_budget", "double_top_k"})
FROM_MEMORY: Final[frozenset[Intervention]] = _DOUBLED | {"half_budget"}
"""Interventions for which the memory is rebuilt; all others change the recorded prompt."""

Fault = Literal["run", "dataset", "memory", "reader"]
"""The stage at fault. ``run``: there is no readable answer."""

Standing = Literal["sound", "doubtful", "lost"]
"""The standing of an answer: soundly right, in doubt, or lost."""

_ADDED: Final[frozenset[Intervention]] = frozenset({"evidence_added", "evidence_replacing"})
_READING: Final[frozenset[Intervention]] = frozenset(
    {"evidence_first", "evidence_last", "distractors_removed", "evidence_only"}
)


@dataclass(frozen=True)
class Verdict:
    """One verdict: its letter, words, side and remedy.

    ``letter`` stands in a cell of the results matrix, ``words`` on screens, ``sentence`` below tables. ``fault`` is
    None for right answers. ``repaired_by`` are the changes that repair the blamed stage, and no other stage.
    """

    letter: str
    words: str
    sentence: str
    standing: Standing
    fault: Fault | None = None
    repaired_by: frozenset[Intervention] = frozenset()

    @property
    def is_right(self) -> bool:
        """Return whether it is a verdict on right answers."""
        return self.fault is None


VERDICTS: Final[Mapping[Label, Verdict]] = {
    "error": Verdict("!", "an error, not an answer", "the answer ended in an error", "lost", "run"),
    "cut_reply": Verdict(
        "L", "the reply was cut by its limit", "the reply was cut by its limit of tokens", "lost", "run"
    ),
    "unparsed": Verdict(
        "?", "the reply could not be parsed", "the reply has no readable answer", "doubtful", "run", _READING
    ),
    "refused": Verdict("⊘", "the provider refused to answer", "the provider refused", "doubtful", "run"),
    "prompt_cut": Verdict(
        "P",
        "the model's server read less than it was sent",
        "wrong, and the model's server read less of the prompt than it was sent",
        "doubtful",
        "run",
    ),
    "key_suspect": Verdict(
        "K",
        "the expected answer is in doubt",
        "wrong by an expected answer that the answer key corrects, or whose evidence was edited",
        "doubtful",
        "dataset",
    ),
    "not_visible": Verdict(
        "V",
        "what memory stored or gave was not recorded",
        "wrong, and what memory stored or gave to the model was not recorded",
        "doubtful",
        "memory",
        _ADDED | _DOUBLED,
    ),
    "no_evidence": Verdict(
        "E",
        "the dataset names no evidence for the answer",
        "wrong, and the dataset names no turns that support the answer",
        "doubtful",
        "dataset",
        _DOUBLED,
    ),
    "not_written": Verdict(
        "W",
        "the fact was never written",
        "wrong: memory never held the fact, or no longer does",
        "lost",
        "memory",
        _ADDED,
    ),
    "not_retrieved": Verdict(
        "R",
        "written but not retrieved",
        "wrong: memory held the fact but did not retrieve it",
        "lost",
        "memory",
        _ADDED | _DOUBLED,
    ),
    "cut": Verdict(
        "C",
        "retrieved but cut by the token budget",
        "wrong: retrieved, then cut from the prompt by the budget",
        "lost",
        "memory",
        _ADDED | _DOUBLED,
    ),
    "stale": Verdict(
        "S",
        "answered with an outdated value",
        "wrong: the answer is a superseded value",
        "lost",
        "reader",
        frozenset({"current_value_only"}),
    ),
    "false_attribution": Verdict(
        "F",
        "answered although it was never said",
        "wrong: it was never said, but the model answered",
        "lost",
        "reader",
        frozenset({"distractors_removed"}),
    ),
    "abstained": Verdict(
        "A",
        "in the prompt, but the model said it was not",
        "wrong: the prompt held the answer, and the model said that it was not there",
        "lost",
        "reader",
        _READING,
    ),
    "misread": Verdict(
        "M",
        "in the prompt but misread",
        "wrong: the prompt held the answer, and the model gave another",
        "lost",
        "reader",
        _READING,
    ),
    "grounded": Verdict(
        "✓", "right, with the answer in the prompt", "right, with the answer in the prompt", "sound"
    ),
    "correct_abstention": Verdict(
        "✓",
        "right: it was never said, and the model says so",
        "right: it was never said, and the model says so",
        "sound",
    ),
    "guessed": Verdict(
        "g",
        "right without the answer in the prompt: guessed",
        "right without the answer in the prompt; without memory the model is right too, or was not asked",
        "doubtful",
    ),
    "lucky": Verdict(
        "l",
        "right without the answer in the prompt: lucky",
        "right without the answer in the prompt; without memory the model is wrong",
        "doubtful",
    ),
}

if VERDICTS.keys() != set(LABELS):
    raise AssertionError(f"verdicts without a row, or rows without a verdict: {VERDICTS.keys() ^ set(LABELS)}")
