"""Marks: what a memory should have returned at a turn, as the user says, and the question that this makes of it.

A mark is a note in the journal like any other. The recording that is made of the journal asks it of every memory
that was read there, with the hits that were really returned and the reply that was really given. Which stage lost
the fact then follows as for any question.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memory_backends.base import Hit
from memreplay.capture.journal import Journal, Note
from memreplay.conversations.models import Conversation, Question, Turn
from memreplay.engine.answers import ask_fields, score_answer
from memreplay.engine.events import AnswerScored, Perceived, QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.grading import GradedByRules, RetrievalScore, Score
from memreplay.llm import AS_RECORDED
from memreplay.llm.model import PromptMessage, Reply
from memreplay.text import normalised


@dataclass(frozen=True)
class Mark:
    """An answer that was expected at a turn of a conversation."""

    conversation: str
    turn: int
    question: Question


def add_mark(
    path: Path, conversation: str, turn: int, expected: str, evidence: Sequence[str], question: str = ""
) -> None:
    """Note an answer that should have been recalled at a turn; ``evidence`` are the ids of the turns that say it.

    Raises:
        RecordingError: the file cannot be written.
    """
    journal = Journal(path)
    body = {"conversation": conversation, "turn": turn, "expected": expected, "evidence": list(evidence)}
    journal.note("mark", time.time(), {**body, "question": question})
    journal.close()


def mark_of(note: Note) -> Mark | None:
    """Return the mark of a note; None if it is damaged."""
    body = note.body
    turn, expected, evidence = body.get("turn"), body.get("expected"), body.get("evidence")
    if not isinstance(turn, int) or not isinstance(expected, str) or not isinstance(evidence, list):
        return None
    question = Question(
        id=f"mark-{note.key}",
        kind="recall",
        type="marked",
        text=str(body.get("question") or ""),
        expected=expected,
        evidence=tuple(map(str, evidence)),
        evidence_role="supports" if evidence else None,
    )
    return Mark(str(body.get("conversation")), turn, question)


def with_text(mark: Mark, conversation: Conversation) -> Mark:
    """Return a mark whose question is what was said at its turn, unless the user gave another."""
    if mark.question.text:
        return mark
    said = conversation.turns[mark.turn - 1].text if 0 < mark.turn <= len(conversation.turns) else ""
    text = said or f"What should have been recalled at turn {mark.turn}?"
    return replace(mark, question=mark.question.model_copy(update={"text": text}))


def asked_of(
    mark: Mark,
    conversation: Conversation,
    memories: Sequence[str],
    events: Sequence[ReplayEvent],
    prompts: Mapping[int, str],
) -> Iterator[ReplayEvent]:
    """Yield the mark as a question to each memory, with what it returned at that turn, and the agent's reply.

    ``prompts`` are those that the agent's model got, by the turn of its reply, where they were recorded.
    """
    turn = max(0, min(mark.turn, len(conversation.turns)))
    exchange = _rest_of_exchange(conversation, turn)
    reply = next((each.text for each in exchange if each.role == "assistant"), None)
    given = next((prompts[each.number] for each in exchange if each.number in prompts), "")
    for memory in memories:
        read = [
            event
            for event in events
            if isinstance(event, Perceived) and event.backend == memory and event.turn == turn
        ]
        hits: tuple[Hit, ...] = read[-1].hits if read else ()
        why_empty = read[-1].why_empty if read else "not_searched"
        if given:
            shown = normalised(given)
            hits = tuple(hit.model_copy(update={"in_prompt": normalised(hit.text) in shown}) for hit in hits)
        asked = QuestionAsked(
            conversation=conversation.id,
            turn=turn,
            backend=memory,
            model=AS_RECORDED,
            question_id=mark.question.id,
            hits=hits,
            why_empty=why_empty,
            cut=(),
            context_tokens=sum(hit.tokens for hit in hits),
            prompt=(PromptMessage(role="user", segments=_with_question_last(given, mark.question)),)
            if given
            else (),
            recall_ms=read[-1].ms if read else 0.0,
        )
        yield asked
        received = Reply(text=reply or "(the agent's reply was not recorded)")
        yield ReplyReceived(**ask_fields(asked), reply=received)
        # The user marks what memory failed to return: a reply that was not recorded counts as wrong, and so does
        # one of which the rules are not sure that it is right.
        if reply is None:
            score = Score(outcome="wrong", score=0.0, predicted=received.text)
            yield AnswerScored(**ask_fields(asked), score=score, retrieval=RetrievalScore())
            continue
        scored = score_answer(mark.question, asked, received)
        score = scored.score
        if score.outcome == "correct" and score.uncertain:
            by_rules = GradedByRules(outcome=score.outcome, decided_by=score.decided_by)
            wrong = {"outcome": "wrong", "score": 0.0, "decided_by": None, "grader": by_rules}
            scored = scored.model_copy(update={"score": score.model_copy(update=wrong)})
        yield scored


def _with_question_last(prompt: str, question: Question) -> tuple[str, str]:
    """Return a prompt that an agent's model got, cut before the question; it may ask in other words."""
    before, found, behind = prompt.rpartition(question.text)
    return (before, found + behind) if found else (prompt, "")


def _rest_of_exchange(conversation: Conversation, turn: int) -> Sequence[Turn]:
    """Return a turn and those after it up to the user's next one: a later reply answers something else."""
    rest = conversation.turns[max(turn - 1, 0) :]
    end = next(
        (
            place
            for place, each in enumerate(rest)
            if (place and each.role == "user") or each.session != rest[0].session
        ),
        len(rest),
    )
    return rest[:end]
