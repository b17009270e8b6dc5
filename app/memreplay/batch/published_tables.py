"""The figures that papers on LoCoMo and LongMemEval report: columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memreplay.batch.cells import NOTHING, ColumnsByHeading, share_of
from memreplay.conversations.formats.locomo import ADVERSARIAL, CATEGORIES, Category
from memreplay.scoring.locomo_metric import ADVERSARIAL_REPLIES
from memreplay.scoring.published import LONGMEMEVAL_TYPES, LocomoCategory, LocomoF1
from memreplay.scoring.results import BackendResults


def _locomo_share(scored: LocomoF1 | LocomoCategory | None) -> str:
    return share_of(scored.f1, scored.questions) if scored is not None else NOTHING


def _locomo(category: Category) -> Callable[[BackendResults], str]:
    def cell(backend: BackendResults) -> str:
        scored = backend.recall.locomo_f1 if backend.recall is not None else None
        return _locomo_share(scored.by_category.get(category.locomo) if scored is not None else None)

    return cell


def _longmemeval(type_: str) -> Callable[[BackendResults], str]:
    def cell(backend: BackendResults) -> str:
        scored = backend.recall.longmemeval if backend.recall is not None else None
        group = scored.by_type.get(type_) if scored is not None else None
        return share_of(group.accuracy, group.graded) if group is not None else NOTHING

    return cell


_ABSTENTIONS = " or ".join(f"“{words}”" for words in ADVERSARIAL_REPLIES)

LOCOMO: Final[ColumnsByHeading] = {
    "all": (
        lambda backend: _locomo_share(backend.recall.locomo_f1 if backend.recall else None),
        "mean F1 of the replies' stemmed words, as LoCoMo's own evaluation computes it",
    ),
    **{
        category.locomo: (
            _locomo(category),
            f"share of these whose reply has the words {_ABSTENTIONS}, which alone count"
            if category is ADVERSARIAL
            else "the same over the questions of this category",
        )
        for category in CATEGORIES
    },
}

LONGMEMEVAL: Final[ColumnsByHeading] = {
    name: (_longmemeval(name), "accuracy over the questions of this type, by our grader and not the paper's judge")
    for name in LONGMEMEVAL_TYPES
}
