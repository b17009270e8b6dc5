"""The columns of a retrieval duel: what one memory ranked for a question, and where its prompt ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from memory_backends.controls import CLOSED_BOOK
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.recut import Candidate, Placement, Recut
from memreplay.llm import AGENT_MODEL
from memreplay.scoring.verdicts import VERDICTS, Label
from memreplay.timeline.timeline import Answer
from memreplay.views.panels.answers import label_tone, stage_sign
from memreplay.views.panels.conversation import turns_words
from memreplay.views.text import Line, Span, line, one_line

_ROWS_OF_REPLY = 4
_ROWS_OF_TEXT = 2
DUEL_LEGEND = "◆ evidence, verbatim  ◇ distilled from evidence  × not in the prompt  ▸ opens into its turns"


@dataclass(frozen=True)
class CandidateSubject:
    """A candidate of a ranking, by its rank."""

    rank: int


def duel_lines(
    conversation: Conversation,
    question: Question,
    answer: Answer,
    label: Label | None,
    cut: Recut,
    opened: Collection[int],
) -> list[Line]:
    """Return a column of the duel. ``opened`` are the ranks of hits that are shown turn by turn."""
    if not cut.candidates:
        return [*_reply(answer, label), line(""), line(Span(_without_ranking(answer), "dim"))]
    return [
        *_reply(answer, label),
        line(""),
        *_gold(conversation, question, cut),
        line(""),
        *_ranking(conversation, question, cut, opened),
    ]


def _reply(answer: Answer, label: Label | None) -> Iterator[Line]:
    letter, tone = stage_sign(answer, label)
    words = (
        VERDICTS[label].words
        if label is not None
        else answer.scored.score.outcome
        if answer.scored is not None
        else "not scored"
    )
    words_tone = label_tone(label) if label is not None else "dim"
    yield line(Span(f" {letter} ", tone), Span(f" {words}", words_tone), hang=4)
    if answer.received is None:
        yield line(Span("no reply yet", "dim"))
        return
    reply = answer.received.reply
    if answer.error is not None:
        yield line(Span(f"! {one_line(answer.error)}", "bad"), hang=2, most=_ROWS_OF_REPLY)
    if reply.text is not None:
        yield line(Span(f"“{one_line(reply.text)}”", "value"), hang=1, most=_ROWS_OF_REPLY)


def _without_ranking(answer: Answer) -> str:
    asked = answer.asked
    if asked.backend == CLOSED_BOOK:
        return "no memory, so nothing was ranked"
    if asked.model == AGENT_MODEL or asked.context_tokens:
        return "no ranking is recorded"
    return "memory returned nothing"


def _gold(conversation: Conversation, question: Question, cut: Recut) -> Iterator[Line]:
    """Yield a line for each evidence turn: how far it got."""
    if not question.evidence:
        yield line(Span("this question names no evidence", "dim"))
    else:
        for placed in cut.placements:
            yield _placement(conversation, placed, cut)


def _placement(conversation: Conversation, placed: Placement, cut: Recut) -> Line:
    turn = Span(f"turn {turns_words(conversation, [placed.turn])}  ", "accent")
    if placed.candidate is None:
        words = f"not among the {len(cut.candidates)} candidates recorded"
        return line(Span("✗ ", "bad"), turn, Span(words, "bad"), hang=2)
    about = CandidateSubject(placed.candidate.rank)
    rank = f"rank {placed.candidate.rank}"
    if placed.inside:
        more = f", {placed.below} below the recorded cut" if placed.below else ""
        return line(Span("✓ ", "good"), turn, Span(f"{rank}{more}: in", "good"), hang=2, about=about)
    if not placed.below:
        return line(Span("✗ ", "bad"), turn, Span(f"{rank}: retrieved, no room", "bad"), hang=2, about=about)
    gap = "" if placed.gap is None else f", score {placed.gap:.3f} below the last hit"
    return line(
        Span("✗ ", "bad"),
        turn,
        Span(f"{rank}, {placed.below} below the cut{gap}", "bad"),
        Span(f"; at {placed.candidate.rank} hits it would have been in", "warn"),
        hang=2,
        about=about,
    )


def _ranking(conversation: Conversation, question: Question, cut: Recut, opened: Collection[int]) -> Iterator[Line]:
    hits = sum(each.is_hit for each in cut.candidates)
    let_in = f", {len(cut.inside)} in the prompt" if len(cut.inside) != hits else ""
    what = "hit" if hits == 1 else "hits"
    yield line(Span(f"── {hits} {what}{let_in} · {cut.tokens:,} tokens", "title"), most=1)
    for each in cut.candidates:
        if each.rank == hits + 1:
            yield line(Span(f"── {len(cut.candidates) - hits} more below the cut", "title"))
        yield from _candidate(conversation, question, each, inside=each.rank in cut.inside, opened=opened)


def _candidate(
    conversation: Conversation, question: Question, each: Candidate, *, inside: bool, opened: Collection[int]
) -> Iterator[Line]:
    gold = [turn for turn in each.turns if turn in question.evidence]
    verbatim = any(turn in each.hit.turns for turn in gold)
    sign = Span("◆" if verbatim else "◇", "evidence") if gold else Span(" ")
    score = "" if each.hit.score is None else f" {each.hit.score:.3f}"
    channels = " · ".join(f"{name} {place.rank}" for name, place in each.hit.channels.items())
    foldable = len(each.turns) > 1
    is_open = each.rank in opened
    yield line(
        Span("  " if inside else "× ", "plain" if inside else "removed"),
        Span(f"{each.rank:>2}", "strong" if inside else "dim"),
        Span(score, "value"),
        Span(" "),
        sign,
        Span(f" {_turns(conversation, each)}", "accent"),
        Span(f" {'▾' if is_open else '▸'}" if foldable else "", "key"),
        Span(f"  {one_line(channels)}" if channels else "", "dim"),
        hang=5,
        most=1,
        about=CandidateSubject(each.rank),
    )
    if is_open:
        for turn in each.turns:
            yield from _turn(conversation, turn, turn in question.evidence)
    elif each.hit.text:
        yield line("     ", Span(one_line(each.hit.text), "plain" if inside else "dim"), hang=5, most=_ROWS_OF_TEXT)


def _turn(conversation: Conversation, turn: str, is_gold: bool) -> Iterator[Line]:
    said = conversation.turns_by_id.get(turn)
    text = "not a turn of this conversation" if said is None else f"{conversation.label_of(said)}: {said.text}"
    yield line(
        Span("     "),
        Span("◆ " if is_gold else "  ", "evidence" if is_gold else "plain"),
        Span(f"{turns_words(conversation, [turn])}  ", "accent"),
        Span(one_line(text), "evidence" if is_gold else "plain"),
        hang=7,
        most=4,
    )


def _turns(conversation: Conversation, each: Candidate) -> str:
    turns: Sequence[str] = each.hit.turns or each.hit.sources
    if not turns:
        return one_line(each.hit.place)
    named = turns_words(conversation, turns)
    return f"turn {named}" if each.hit.turns else f"from turn {named}"
