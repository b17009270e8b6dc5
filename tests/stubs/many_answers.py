"""Results of any size with the prompts behind them, as a recording would give them: for the pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.engine.events import QuestionAsked
from memreplay.llm.model import PromptMessage
from memreplay.recording.reader import RunInfo
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.equal_tokens import HeldAt
from memreplay.scoring.question_row import HitRow, QuestionRow, Tokens
from memreplay.scoring.results import Results, RunFacts
from memreplay.timeline.timeline import Answer

BACKENDS = ("hybrid", "rag", "full_context")
FACTS = RunFacts(
    id="many",
    started_at="2026-01-01T00:00:00.000Z",
    finished_at="2026-01-01T01:00:00.000Z",
    memreplay_version="0.1.0",
    settings={"backend": list(BACKENDS), "top_k": 10},
    datasets=("many",),
)


@dataclass(frozen=True)
class ManyAnswers:
    """``conversations`` of ``turns`` turns, with ``questions`` each, put to three memories."""

    conversations_: int
    turns: int
    questions: int
    hostile: str = ""
    run: RunInfo = field(
        default_factory=lambda: RunInfo(
            **{name: getattr(FACTS, name) for name in ("id", "started_at", "finished_at", "settings", "datasets")},
            status="finished",
            version="0.1.0",
            fingerprint="f",
        )
    )

    def conversation(self, number: int) -> Conversation:
        turns = tuple(
            Turn(
                id=str(n + 1),
                number=n + 1,
                session=1,
                role="assistant" if n % 2 else "user",
                speaker=None,
                text=f"{self.hostile}In conversation {number} fact {n} is that item {n * 37 % 1009} costs"
                f" {n * 91 % 997} crowns and was bought in town {n * 13 % 211} by neighbour {n * 7 % 61}.",
            )
            for n in range(self.turns)
        )
        questions = tuple(
            Question(
                id=f"c{number}-q{n}",
                kind="recall",
                type=("early", "middle", "recent")[n % 3],
                text=f"{self.hostile}What does item {n} of conversation {number} cost?",
                expected=str(n),
                info_location=("early", "middle", "recent")[n % 3],
                salience=("high", "medium", "low")[n % 2],
                category=f"category {n % 4}",
                evidence=(str(n % self.turns + 1),),
                evidence_role="supports",
            )
            for n in range(self.questions)
        )
        return Conversation(
            id=f"c{number}",
            dataset="many",
            sessions=(Session(number=1, id="s"),),
            turns=turns,
            questions=questions,
        )

    def hits(self, conversation: Conversation, question: Question, backend: str) -> tuple[Hit, ...]:
        """Everything, or ten turns: with the evidence for hybrid, without it for rag."""
        at = int(question.evidence[0]) - 1
        places = range(self.turns) if backend == "full_context" else range(at + (backend == "rag"), at + 10)
        chosen = [conversation.turns[place % self.turns] for place in places]
        if backend == "full_context":
            return (self._hit(1, chosen),)
        return tuple(self._hit(rank, [turn]) for rank, turn in enumerate(chosen, start=1))

    def _hit(self, rank: int, turns: list[Turn]) -> Hit:
        return Hit(
            id=f"h{turns[0].id}",
            store="qdrant",
            place="p",
            rank=rank,
            score=1 / rank,
            text="\n".join(f"User: {turn.text}" for turn in turns),
            tokens=30,
            turns=tuple(turn.id for turn in turns),
            in_prompt=True,
        )

    def conversations(self) -> Iterator[tuple[Conversation, dict[tuple[str, str, str, int], Answer]]]:
        for number in range(self.conversations_):
            conversation = self.conversation(number)
            asks = {}
            for question in conversation.questions:
                for backend in BACKENDS:
                    hits = self.hits(conversation, question, backend)
                    context = "\n".join(hit.text for hit in hits)
                    asked = QuestionAsked(
                        conversation=conversation.id,
                        turn=self.turns,
                        backend=backend,
                        model="m",
                        question_id=question.id,
                        hits=hits,
                        cut=(),
                        context_tokens=100,
                        prompt=(
                            PromptMessage(role="system", segments=("Answer from the history.",)),
                            PromptMessage(role="user", segments=(context, f"\n{question.text}")),
                        ),
                        recall_ms=1.0,
                    )
                    asks[backend, "m", question.id, 0] = Answer(asked)
            yield conversation, asks

    def results(self) -> Results:
        rows = []
        for number in range(self.conversations_):
            conversation = self.conversation(number)
            for place, question in enumerate(conversation.questions):
                for backend in BACKENDS:
                    rows.append(self._row(conversation, question, backend, place))
        return build_results(FACTS, rows)

    def _row(self, conversation: Conversation, question: Question, backend: str, place: int) -> QuestionRow:
        right = (backend, place % 5 == 0) in (("hybrid", False), ("rag", True), ("full_context", True))
        at = {str(tokens): HeldAt(evidence=backend == "hybrid", recall=0.5) for tokens in (256, 512, 1024, 2048)}
        return QuestionRow(
            question_id=question.id,
            dataset=conversation.dataset,
            conversation=conversation.id,
            backend=backend,
            model="m",
            repeat=0,
            kind="recall",
            type=question.type,
            question=question.text,
            expected=question.expected,
            predicted=f"{self.hostile}{place}",
            score=float(right),
            max_score=1.0,
            outcome="correct" if right else "wrong",
            reply=f"{self.hostile}It costs {place} crowns, as far as I know.",
            error=None,
            evidence=question.evidence,
            evidence_role="supports",
            hits=tuple(
                HitRow(**hit.model_dump(include={each.name for each in fields(HitRow)}))
                for hit in self.hits(conversation, question, backend)
            ),
            evidence_in_prompt=backend != "rag",
            answer_in_prompt=backend != "rag",
            failure="grounded" if right else "not_retrieved" if backend == "rag" else "misread",
            failure_detail=f"{self.hostile}Turn {question.evidence[0]}.",
            tokens=Tokens(prompt=300 + place, completion=5, cached=0),
            cost_usd=0.001,
            ms=12.0,
            recall_ms=3.0,
            location=question.info_location,
            salience=question.salience,
            category=question.category,
            recall_at_10=None if backend == "full_context" else 0.5,
            at_tokens=None if backend == "full_context" else at,
            closed_book_correct=False,
        )
