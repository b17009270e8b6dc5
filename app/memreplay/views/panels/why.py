"""Why an answer is what it is: where the fact was lost, the reply, the other answers, and the prompt as sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.provenance import LineSource, PromptLine, prompt_lines
from memreplay.engine.events import QuestionAsked
from memreplay.grading import GradedByRules
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.llm import AS_RECORDED
from memreplay.llm.judging import Verdict
from memreplay.numbers import dollars, whole_share
from memreplay.scoring import type_words
from memreplay.scoring.attribution import Attribution, Attributor, without_verdict
from memreplay.scoring.evidence_trail import LostAt, Trail
from memreplay.scoring.verdicts import VERDICTS
from memreplay.scoring.writer import CAUSES, WriterCause
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.views.panels.answers import System, key_of, label_tone, sign_of
from memreplay.views.panels.conversation import turns_words
from memreplay.views.subjects import AnswerSubject, PromptSubject, TurnSubject
from memreplay.views.text import Line, Span, Tone, line, one_line, paragraphs, visible

_STAGES: Final[Mapping[LostAt | None, tuple[str, Tone]]] = {
    None: ("✓ in the prompt", "good"),
    "not_written": ("✗ never written", "bad"),
    "not_visible": ("– not retrieved; what is stored was not recorded", "warn"),
    "not_retrieved": ("✗ written but not retrieved", "bad"),
    "cut": ("✗ retrieved but cut", "bad"),
}
_NOT_RECORDED: Final[tuple[str, Tone]] = ("– what memory returned was not recorded", "warn")
_NEVER_PROMOTED: Final[tuple[str, Tone]] = ("✗ never promoted", "bad")

_LONGEST_IN_THE_HEAD: Final = 100
"""Characters of a reply that the head of a page shows on any screen."""


@dataclass(frozen=True)
class Explanation:
    """An answer with its attribution and the trail of each evidence turn."""

    answer: Answer
    attribution: Attribution | None
    trails: tuple[Trail, ...]
    conversation: Conversation


def answers_beside(timeline: Timeline, key: AskKey) -> list[Answer]:
    """Return the answers of all systems to the same question, asked at the same position in the same way."""
    same = [
        answer
        for answer in timeline.answers()
        if (answer.asked.question_id, answer.asked.repeat, answer.asked.turn, answer.asked.by_hand)
        == (key.question_id, key.repeat, key.turn, key.by_hand)
    ]
    return sorted(same, key=lambda answer: (timeline.backends.index(answer.asked.backend), answer.asked.model))


def explain_answers(timeline: Timeline, answers: Sequence[Answer]) -> list[Explanation]:
    """Find for each answer where the fact was lost. Slow: it reads every event before them."""
    attributor = Attributor(timeline, by_hand=timeline.answered_by_hand)
    return [_explained(attributor, answer, timeline.conversation) for answer in answers]


def _explained(attributor: Attributor, answer: Answer, conversation: Conversation) -> Explanation:
    attribution, trails = attributor.attribute(answer), tuple[Trail, ...]()
    try:
        with grading_one_answer():
            trails = tuple(attributor.trails(answer))
    except GradingError as error:
        attribution = without_verdict(error)
    return Explanation(answer, attribution, trails, conversation)


def why_lines(
    question: Question,
    explanation: Explanation,
    others: Sequence[Explanation],
    names: Mapping[System, str],
    label: Verdict | None = None,
    ladder: Sequence[Line] = (),
) -> list[Line]:
    """Return the page below its head, without the prompt. ``label`` was given by hand.

    Question, answers and verdict stand in the head, and are not said again. ``ladder`` is what memory ranked.
    """
    return [
        *_lost_lines(explanation),
        *([line(""), *ladder] if ladder else ()),
        line(""),
        *_reply_lines(question, explanation.answer, label),
        line(""),
        *_others_lines(explanation, others, names),
    ]


def waiting_lines(question: Question, answer: Answer, label: Verdict | None = None) -> list[Line]:
    """Return the page while attribution is running."""
    return [
        line(Span("where the fact was lost: reading the events …", "dim")),
        line(""),
        *_reply_lines(question, answer, label),
    ]


def _choices_lines(question: Question, answer: Answer) -> Iterator[Line]:
    for index, choice in enumerate(question.choices):
        right = index == question.correct_index
        taken = answer.scored is not None and answer.scored.score.predicted_index == index
        signs = f"{'▸' if taken else ' '}{'✓' if right else ' '} {index}. "
        yield line(Span(signs, "good" if right else "dim"), one_line(choice), hang=6, most=2)


_WITHOUT_A_CALL: Final = frozenset[WriterCause](["not_called", "not_stored"])
"""Causes that asking the writer again says nothing about."""


def _lost_lines(explanation: Explanation) -> Iterator[Line]:
    attribution = explanation.attribution
    is_right = attribution is not None and attribution.label is not None and VERDICTS[attribution.label].is_right
    yield line(Span("what the answer rests on" if is_right else "where the fact was lost", "title"))
    if attribution is None:
        yield line(Span("not scored yet", "dim"))
        return
    for trail in explanation.trails:
        yield _trail_line(explanation.conversation, trail, explanation.answer.asked)
        if trail.writer is not None:
            yield line(
                Span("  the writer  ", "dim"),
                Span(CAUSES[trail.writer.cause], "warn"),
                Span("" if trail.writer.cause in _WITHOUT_A_CALL else " · W asks it again", "dim"),
                hang=14,
                about=TurnSubject(trail.turn),
            )
    said = _said_besides(attribution.detail, explanation.trails)
    if said and said != explanation.answer.error:
        yield line(one_line(said))


def _said_besides(detail: str, trails: Sequence[Trail]) -> str:
    """Return what a verdict says beyond the lines of the turns, which name stage and ranks but no reasons."""
    for trail in trails:
        if trail.loss is None:
            detail = detail.replace(trail.sentence, "")
    return " ".join(detail.split())


def _trail_line(conversation: Conversation, trail: Trail, asked: QuestionAsked) -> Line:
    """Return how far one evidence turn got. It leads to the turn, and to what should have been written there."""
    stage, tone = _NEVER_PROMOTED if trail.loss == "gated" else _STAGES[trail.lost_at]
    if trail.lost_at == "not_visible" and asked.why_empty == "not_recorded":
        stage, tone = _NOT_RECORDED
    ranks = " · ".join(f"{channel} {rank}" for channel, rank in trail.ranks.items())
    return line(
        Span("◆ ", "warn"),
        Span(f"turn {turns_words(conversation, [trail.turn])}  ", "accent"),
        Span(stage + trail.form, tone),
        Span(f"  {trail.loss.replace('_', ' ')}" if trail.loss else "", "warn"),
        Span(f"  rank {one_line(ranks)}" if ranks else "", "dim"),
        hang=2,
        about=TurnSubject(trail.turn),
    )


def _reply_lines(question: Question, answer: Answer, label: Verdict | None) -> Iterator[Line]:
    """Yield the reply, unless it is the answer that stands in the head, what it cost, and how it was graded."""
    kind = one_line(type_words(question.type, question.other_type))
    yield line(
        Span("the reply as received", "title"), Span(f"  to a question of type {kind}" if kind else "", "dim")
    )
    yield from _choices_lines(question, answer)
    if answer.received is None:
        yield line(Span("no reply yet", "dim"))
        return
    reply = answer.received.reply
    if answer.error is not None:
        yield line(Span(f"! {one_line(answer.error)}", "bad"), hang=2)
    predicted = answer.scored.score.predicted if answer.scored is not None else None
    if reply.text is not None and (reply.text.strip() != predicted or len(reply.text) > _LONGEST_IN_THE_HEAD):
        yield from paragraphs(reply.text, indent=2)
    if answer.asked.model == AS_RECORDED:
        yield line(Span("its tokens, cost and time were not recorded", "dim"))
    else:
        usage = reply.usage
        reused = " · reused from an earlier run" if reply.reused else ""
        tokens = f"{usage.prompt:,} + {usage.completion:,} tokens"
        yield line(Span(f"{tokens} · cost {dollars(reply.cost_usd)} · {reply.ms:,.0f} ms{reused}", "dim"))
    if answer.scored is not None:
        yield line(Span("parsed as  ", "dim"), *_parsed(answer, answer.received.reply.text), hang=11)
        yield from _grading_lines(answer, label)


def _grading_lines(answer: Answer, label: Verdict | None) -> Iterator[Line]:
    """Yield who says what of the answer: the rules, the judge, and somebody by hand."""
    if answer.scored is None:
        return
    score, judgement = answer.scored.score, answer.judgement
    rules = score.grader or GradedByRules(outcome=score.outcome, decided_by=score.decided_by)
    if rules.decided_by is not None or judgement is not None:
        rule = f" by {rules.decided_by.replace('_', ' ')}" if rules.decided_by is not None else ""
        doubt = Span(", uncertain" if score.uncertain else "", "warn")
        yield line(
            Span("the rules  ", "dim"), _verdict(rules.outcome == "correct"), Span(rule, "dim"), doubt, hang=11
        )
    if judgement is not None:
        said = _verdict(judgement.verdict == "right") if judgement.verdict else Span("no verdict", "warn")
        about = f"  {one_line(judgement.judge)}, rubric {judgement.rubric}"
        problem = f": {one_line(judgement.problem)}" if judgement.problem else ""
        yield line(Span("the judge  ", "dim"), said, Span(about + problem, "dim"), hang=11)
    if label is not None:
        yield line(Span("by hand    ", "dim"), _verdict(label == "right"), hang=11)


def _verdict(is_right: bool) -> Span:
    return Span("right", "good") if is_right else Span("wrong", "bad")


def _parsed(answer: Answer, reply: str | None) -> list[Span]:
    assert answer.scored is not None
    score = answer.scored.score
    parts = []
    if score.predicted_index is not None:
        parts.append(f"option {score.predicted_index}")
    elif score.predicted is not None and score.predicted != (reply or "").strip():
        parts.append(f"“{one_line(score.predicted)}”")
    if score.exact_match is not None:
        parts.append("contains the expected words" if score.exact_match else "lacks the expected words")
    if score.entity_recall is not None:
        parts.append(f"{whole_share(score.entity_recall)} of the expected entities")
    if score.f1 is not None:
        parts.append(f"F1 {score.f1:.2f}")
    nothing = "nothing" if score.predicted is None else "it stands"
    return [Span(" · ".join(parts) or nothing), Span(f"  {score.outcome}", "dim")]


def _others_lines(
    explanation: Explanation, others: Sequence[Explanation], names: Mapping[System, str]
) -> Iterator[Line]:
    yield line(Span("the architectures", "title"))
    for other in others:
        answer = other.answer
        here = answer is explanation.answer
        name = names.get(System(answer.asked.backend, answer.asked.model), answer.asked.backend)
        label = other.attribution.label if other.attribution is not None else None
        said = answer.scored.score.predicted if answer.scored is not None else None
        yield line(
            Span("▶ " if here else "  ", "accent"),
            sign_of(answer),
            Span(f" {one_line(name)}  ", "key"),
            Span(VERDICTS[label].words, label_tone(label)) if label is not None else "",
            Span(f"  “{one_line(said)}”" if said and not here else ""),
            hang=4,
            most=2,
            about=AnswerSubject(key_of(answer)),
        )


def absent_lines(conversation: Conversation, absent: Sequence[str], what: str = "this prompt") -> list[Line]:
    """Return one line per evidence turn that the prompt does not contain verbatim."""
    return [
        line(
            Span(f"✗ turn {turns_words(conversation, [turn])} is not word for word in {what}", "bad"),
            about=TurnSubject(turn),
        )
        for turn in absent
    ]


_SIGNS: Final[Mapping[LineSource, tuple[str, Tone, Tone]]] = {
    "evidence": ("◆ ", "evidence", "evidence"),
    "distilled": ("◇ ", "accent", "accent"),
    "memory": ("│ ", "dim", "plain"),
    "frame": ("  ", "dim", "dim"),
}
PROMPT_LEGEND: Final = "◆ evidence, verbatim  ◇ distilled from evidence  │ from memory"


@dataclass(frozen=True)
class PromptView:
    """The lines of a prompt, the index of the first with evidence, and the evidence turns that it lacks.

    Of a running agent the prompt may not be recorded: then the lines are what memory returned.
    """

    lines: tuple[Line, ...]
    first_evidence: int | None
    absent: tuple[str, ...]
    is_recorded: bool = True


def prompt_view(conversation: Conversation, asked: QuestionAsked, evidence: Sequence[str]) -> PromptView:
    """Return the prompt of a question, with the evidence turns that it contains marked."""
    if asked.hits and not asked.prompt:
        return _returned_view(asked, evidence)
    lines: list[Line] = []
    present: set[str] = set()
    first: int | None = None
    message = -1
    for part in prompt_lines(conversation, asked, evidence):
        if part.message != message:
            message = part.message
            lines.append(line(Span(f"── {one_line(asked.prompt[message].role)}", "title")))
        present.update(part.turns)
        if part.source == "evidence" and first is None:
            first = len(lines)
        lines.append(_prompt_line(part))
    if asked.why_empty == "not_recorded":
        unknown = line(Span("– what of this prompt memory gave was not recorded", "dim"))
        return PromptView((unknown, *lines), None, ())
    return PromptView(tuple(lines), first, tuple(turn for turn in evidence if turn not in present))


def _returned_view(asked: QuestionAsked, evidence: Sequence[str]) -> PromptView:
    lines: list[Line] = []
    first: int | None = None
    for hit in asked.hits:
        is_evidence = not set(evidence).isdisjoint(hit.turns)
        is_distilled = not set(evidence).isdisjoint(hit.sources)
        if is_evidence and first is None:
            first = len(lines)
        source: LineSource = "evidence" if is_evidence else "distilled" if is_distilled else "memory"
        sign, sign_tone, tone = _SIGNS[source]
        score = "" if hit.score is None else f" {hit.score:z.3f}"
        text = Span(visible(one_line(hit.text)), tone)
        lines.append(line(Span(sign, sign_tone), Span(f"{hit.rank}{score}  ", "dim"), text, hang=2))
    present = {turn for hit in asked.hits for turn in hit.turns}
    return PromptView(tuple(lines), first, tuple(turn for turn in evidence if turn not in present), False)


def _prompt_line(part: PromptLine) -> Line:
    sign, sign_tone, tone = _SIGNS[part.source]
    whose = f"turn {', '.join(part.turns)}  " if part.turns else ""
    about = None if part.source == "frame" else PromptSubject(part.text)
    return line(
        Span(sign, sign_tone), Span(one_line(whose), "accent"), Span(visible(part.text), tone), hang=2, about=about
    )
