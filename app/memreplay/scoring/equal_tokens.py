"""The part of a memory's ranking within a number of tokens, so that hits of different size can be compared.

A hit may be one message or a passage of twenty: at equally many hits, the memory with the larger ones has an
advantage. Figures are read off the recorded ranking, cut again at each budget (:mod:`memreplay.scoring.recut`). For
a memory that composes its prompt anew for each budget they are estimates, which never contradict what the recorded
prompt held.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memreplay.conversations.models import Frozen
from memreplay.engine.events import QuestionAsked
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable
from memreplay.scoring.recut import Limits, Ranking

TOKEN_BUDGETS = (256, 512, 1024, 2048)
HEADLINE_TOKENS = 1024
"""The budget at which memories are compared where one figure is quoted."""


class HeldAt(Frozen):
    """The part of one question's hits that a prompt of a number of tokens would hold.

    ``recall`` is the share of evidence turns that it holds word for word; ``evidence`` is whether it holds the
    answer: all evidence turns, or its content (see :mod:`memreplay.scoring.holding`). In results ``recall`` is null
    for a memory that holds no turn word for word. ``estimated`` is whether only the memory itself can say so, which
    composes its prompt anew for each budget.
    """

    recall: float | None
    evidence: bool
    estimated: bool = False


@dataclass
class HeldByCuts:
    """What prompts of a ranking with so many hits hold, by their tokens. Equal prompts are read once.

    The question needs evidence. ``stages`` are those of the prompt as it was recorded.
    """

    ranking: Ranking
    answerable: Answerable
    stages: Stages
    hits: int
    _read: dict[tuple[object, ...], _Found] = field(default_factory=dict)
    _whole: tuple[int, _Found] | None = None
    """The tokens of all hits, and what a prompt with room for them holds."""

    def at(self, tokens: int) -> HeldAt:
        """Return what a prompt of so many tokens holds. What cannot be cut is there as a whole, or not at all."""
        limits, asked = Limits(self.hits, tokens), self.ranking.asked
        if self.ranking.filling == "unknown":
            fits = asked.context_tokens <= tokens
            recall, evidence = self._found_in(asked) if fits else (0.0, False)
            return HeldAt(recall=recall, evidence=evidence, estimated=not fits)
        recall, evidence = self._found_at(limits)
        if not self.is_estimated_at(tokens):
            return HeldAt(recall=recall, evidence=evidence)
        recorded = self._found_in(asked)
        return HeldAt(
            recall=self.ranking.reconciled(limits, recall, recorded[0]),
            evidence=bool(self.ranking.reconciled(limits, evidence, recorded[1])),
            estimated=True,
        )

    def is_estimated_at(self, tokens: int) -> bool:
        """Return whether only the memory itself can say what a prompt of so many tokens holds."""
        return self.ranking.is_estimated and Limits(self.hits, tokens) != self.ranking.limits

    def _found_at(self, limits: Limits) -> _Found:
        if self._whole is not None and limits.tokens >= self._whole[0]:
            return self._whole[1]
        cut = self.ranking.cut(limits)
        assert cut is not None
        found = self._found_in(cut.asked)
        if limits.tokens >= cut.needed and limits != self.ranking.limits:
            self._whole = cut.needed, found
        return found

    def _found_in(self, asked: QuestionAsked) -> _Found:
        """Return the share of evidence turns that a prompt holds word for word, and whether it holds the answer."""
        key = tuple((hit.id, hit.turns, len(hit.text)) for hit in asked.hits if hit.in_prompt)
        if key not in self._read:
            pieces = self.stages.when_asked_as(asked).in_prompt
            evidence = self.answerable.evidence
            verbatim = sum(self.answerable.is_verbatim(turn, pieces) for turn in evidence)
            self._read[key] = verbatim / len(evidence), self.answerable.held_by(pieces)
        return self._read[key]


_Found = tuple[float, bool]


def held_at_tokens(answerable: Answerable, stages: Stages, ranking: Ranking) -> dict[str, HeldAt]:
    """Return what prompts of the hits that memory returned would hold, by budget. The question needs evidence."""
    held = HeldByCuts(ranking, answerable, stages, ranking.limits.hits)
    return {str(budget): held.at(budget) for budget in TOKEN_BUDGETS}
