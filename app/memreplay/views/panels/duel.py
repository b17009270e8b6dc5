"""The columns of a retrieval duel: what one memory ranked for a question, and where its prompt ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from memory_backends.base import Hit
from memory_backends.controls import CLOSED_BOOK
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.probes import TYPED
from memreplay.llm import AS_RECORDED
from memreplay.numbers import counted
from memreplay.scoring.evidence_trail import LostAt
from memreplay.scoring.recut import Placement, Ranking, Recut, Way
from memreplay.scoring.verdicts import VERDICTS, Label
from memreplay.timeline.timeline import Answer
from memreplay.views.panels.answers import label_tone, stage_sign
from memreplay.views.panels.conversation import turns_words
from memreplay.views.text import Line, Span, line, one_line

_ROWS_OF_REPLY = 4
_ROWS_OF_TEXT = 2
_WIDTH_OF_BAR = 8
DUEL_LEGEND = "◆ evidence, verbatim  ◇ distilled from evidence  × not in the prompt  ▸ opens into its turns"


@dataclass(frozen=True)
class CandidateSubject:
    """A candidate of a ranking, by its rank."""

    rank: int


@dataclass(frozen=True)
class Reached:
    """Stage that the answer reached at some limits, and what other limits would do for it.

    ``lost_at`` is None where the prompt holds the answer, and ``is_known`` False where nobody can say: the question
    has no answer to hold.
    """

    lost_at: LostAt | None = None
    way: Way | None = None
    is_known: bool = True


def duel_lines(
    question: Question,
    answer: Answer,
    label: Label | None,
    ranking: Ranking,
    cut: Recut | None,
    reached: Reached | None,
    opened: Collection[int],
) -> list[Line]:
    """Return a column of the duel. ``opened`` are the ranks of hits that are shown turn by turn."""
    reply = [*_reply(answer, label), line("")]
    if cut is None or not (ranking.candidates or cut.asked.cut):
        return [*reply, line(Span(_without_ranking(answer), "dim"))]
    return [
        *reply,
        *_outcome(ranking, cut, reached),
        *_gold(ranking, question),
        line(""),
        *ladder_lines(ranking, cut, question, opened),
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
    if asked.context_tokens or asked.hits:
        return "no ranking is recorded, so this memory cannot be cut again; a fork asks it"
    if asked.why_empty == "not_recorded":
        return "what memory returned was not recorded"
    return "memory returned nothing"


def _outcome(ranking: Ranking, cut: Recut, reached: Reached | None) -> Iterator[Line]:
    """Yield what becomes of the answer at these limits, and at which it would be in the prompt."""
    is_changed = cut.limits != ranking.limits
    estimate = Span("estimate · F forks  ", "warn") if is_changed and ranking.is_estimated else Span("")
    if reached is None:
        yield line(Span("looking for the answer …", "dim"))
        return
    if not reached.is_known:
        if estimate.text:
            yield line(estimate)
        return
    if reached.lost_at is None:
        yield line(estimate, Span("✓ the answer is in the prompt", "good"), hang=2)
    else:
        yield line(estimate, Span(f"✗ {lost_words(reached.lost_at, cut)}", "bad"), hang=2)
    if reached.way is not None:
        sign = "≈ " if ranking.is_estimated else "→ "
        yield line(Span(sign, "warn"), Span(way_words(reached.way, cut), "warn"), hang=2)


def lost_words(lost_at: LostAt, cut: Recut) -> str:
    """Return what became of an answer that is not in the prompt."""
    match lost_at:
        case "cut":
            return f"retrieved, then cut: {cut.needed:,} > {cut.limits.tokens:,} tokens"
        case "not_written":
            return "never written"
        case "not_visible":
            return "not retrieved; what is stored was not recorded"
    return "not retrieved"


def way_words(way: Way, cut: Recut) -> str:
    """Return what other limits would do."""
    hits = f"{counted(way.limits.hits, 'hit')}"
    if way.lost_at is None:
        more_hits = way.limits.hits > cut.limits.hits
        return f"at {hits if more_hits else f'{way.limits.tokens:,} tokens'} it would be in the prompt"
    sentence = f"at {hits} it would be retrieved, and then cut: {way.needed:,} > {way.limits.tokens:,} tokens"
    return sentence if way.enough is None else f"{sentence}; {hits} and {way.enough:,} tokens let it in"


def _gold(ranking: Ranking, question: Question) -> Iterator[Line]:
    """Yield the place of each evidence turn in the ranking."""
    if not question.evidence:
        typed = question.type == TYPED and not question.expected
        words = "t: say the right answer, to grade and keep it" if typed else "this question names no evidence"
        yield line(Span(words, "dim"))
    elif ranking.is_ranked:
        for turn in dict.fromkeys(question.evidence):
            yield placement_line(ranking, ranking.placed(turn))


def placement_line(ranking: Ranking, placed: Placement) -> Line:
    """Return the place of an evidence turn in a ranking."""
    turn = Span(f"turn {turns_words(ranking.conversation, [placed.turn])}  ", "accent")
    if placed.rank is None:
        words = f"not among the {counted(len(ranking.candidates), 'candidate')} recorded"
        return line(Span("◆ ", "warn"), turn, Span(words, "dim"), hang=2)
    gap = "" if placed.gap is None else f", score {placed.gap:z.3f} below the last hit"
    below = f", {placed.below} below the cut{gap}" if placed.below else ""
    words = f"rank {placed.rank}{below}"
    return line(Span("◆ ", "warn"), turn, Span(words), hang=2, about=CandidateSubject(placed.rank))


def ladder_lines(
    ranking: Ranking, cut: Recut, question: Question, opened: Collection[int] = (), *, most: int | None = None
) -> Iterator[Line]:
    """Yield the candidates by rank with bars of their scores, and the line where the prompt ends.

    ``most`` candidates are shown, the evidence and those around the cut among them; all by default.
    """
    shown = cut.asked.hits if not ranking.is_ranked else _ranked(ranking, cut)
    inside = cut.inside
    yield line(Span(f"── {_extent(ranking, cut)}", "title"))
    top = max((hit.score for hit in shown if hit.score is not None), default=0.0)
    hits = len(cut.asked.hits)
    chosen = _chosen(shown, question, hits, most)
    skipped = 0
    for rank, hit in enumerate(shown, start=1):
        if rank == hits + 1:
            yield line(Span(f"── the cut · {len(shown) - hits} more below it", "title"))
        if rank not in chosen:
            skipped += 1
            continue
        if skipped:
            yield line(Span(f"   … {skipped} more", "dim"))
            skipped = 0
        yield from _candidate(
            ranking.conversation,
            question,
            hit,
            rank,
            top,
            inside=hit.id in inside,
            opened=opened,
            short=most is not None,
        )
    if skipped:
        yield line(Span(f"   … {skipped} more", "dim"))
    for part in cut.asked.cut if not ranking.is_ranked else ():
        turns = turns_words(ranking.conversation, part.turns)
        gold = any(turn in question.evidence for turn in part.turns)
        yield line(
            Span("× ", "removed"), Span("◆ " if gold else "  ", "evidence"), Span(f"cut: turn {turns}", "accent"),
            Span(f"  {part.tokens:,} tokens", "dim"), hang=4,
        )  # fmt: skip


def _extent(ranking: Ranking, cut: Recut) -> str:
    """Return the number of hits and tokens in the prompt with their limits, as far as they are known."""
    if cut.asked.model == AS_RECORDED and not cut.asked.prompt:
        return f"{counted(len(cut.asked.hits), 'hit')} returned · the prompt was not recorded"
    hits = counted(sum(hit.in_prompt for hit in cut.asked.hits), "hit")
    limit = f" of at most {cut.limits.hits}" if ranking.is_ranked and not ranking.is_published else ""
    budget = "" if cut.limits.has_no_budget else f" of {cut.limits.tokens:,}"
    return f"{hits}{limit} in the prompt · {cut.asked.context_tokens:,}{budget} tokens"


def _ranked(ranking: Ranking, cut: Recut) -> Sequence[Hit]:
    """Return the hits of a cut, then the candidates below it with their words."""
    taken = {hit.id for hit in cut.asked.hits}
    return [*cut.asked.hits, *(hit for hit in ranking.candidates if hit.id not in taken)]


def _chosen(shown: Sequence[Hit], question: Question, hits: int, most: int | None) -> frozenset[int]:
    """Return the ranks to show: the evidence, those beside the cut, then the best."""
    ranks = range(1, len(shown) + 1)
    if most is None or len(shown) <= most:
        return frozenset(ranks)
    gold = [
        rank
        for rank, hit in enumerate(shown, start=1)
        if not set(question.evidence).isdisjoint((*hit.turns, *hit.sources))
    ]
    first = [*gold[:2], hits, hits + 1]
    return frozenset([rank for rank in dict.fromkeys([*first, *ranks]) if rank in ranks][:most])


def _candidate(
    conversation: Conversation,
    question: Question,
    hit: Hit,
    rank: int,
    top: float,
    *,
    inside: bool,
    opened: Collection[int],
    short: bool,
) -> Iterator[Line]:
    turns = tuple(dict.fromkeys((*hit.turns, *hit.sources)))
    gold = [turn for turn in turns if turn in question.evidence]
    verbatim = any(turn in hit.turns for turn in gold)
    sign = Span("◆" if verbatim else "◇", "evidence") if gold else Span(" ")
    score = "" if hit.score is None else f" {hit.score:z.3f}"
    channels = " · ".join(f"{name} {place.rank}" for name, place in hit.channels.items())
    foldable = len(turns) > 1 and not short
    is_open = rank in opened
    yield line(
        Span("  " if inside else "× ", "plain" if inside else "removed"),
        Span(f"{rank:>2}", "strong" if inside else "dim"),
        Span(score, "value"),
        Span(_bar(hit.score, top), "good" if inside else "dim"),
        Span(" "),
        sign,
        Span(f" {_turns(conversation, hit)}", "accent"),
        Span(f" {'▾' if is_open else '▸'}" if foldable else "", "key"),
        Span(f"  {one_line(hit.text)}" if short else f"  {one_line(channels)}" if channels else "", "dim"),
        hang=5,
        most=1,
        about=CandidateSubject(rank) if not short else None,
    )
    if short:
        return
    if is_open:
        for turn in turns:
            yield from _turn(conversation, turn, turn in question.evidence)
    elif hit.text:
        yield line("     ", Span(one_line(hit.text), "plain" if inside else "dim"), hang=5, most=_ROWS_OF_TEXT)


def _bar(score: float | None, top: float) -> str:
    """Return a bar of a score, as long as it is of the best one; blanks where there is none."""
    if score is None or top <= 0:
        return ""
    eighths = max(0, min(round(score / top * _WIDTH_OF_BAR * 2), _WIDTH_OF_BAR * 2))
    bar = "━" * (eighths // 2) + ("╸" if eighths % 2 else "")
    return f" {bar:<{_WIDTH_OF_BAR}}"


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


def _turns(conversation: Conversation, hit: Hit) -> str:
    turns: Sequence[str] = hit.turns or hit.sources
    if not turns:
        return one_line(hit.place)
    named = turns_words(conversation, turns)
    return f"turn {named}" if hit.turns else f"from turn {named}"
