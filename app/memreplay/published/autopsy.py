"""Find where the wrong answers of published runs were lost, from question, context, answer and judgement alone.

A stage is the first of :data:`STAGES` that applies to a wrong answer. All that decides is in the file and the
dataset: no model is asked. What a memory stored is in no file, so nothing is said of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory_backends.text import sentences_of
from memreplay.conversations.formats.locomo import CATEGORIES
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.events import QuestionAsked
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.grading.judge import is_abstention
from memreplay.grading.match import contains, enumeration, has_the_letters_of
from memreplay.grading.read import Token, content_of, folded, same_token, tokens_of
from memreplay.grading.veto import asserted
from memreplay.llm.tokens import TokenCounter, token_counter
from memreplay.published.answers import PublishedAnswer
from memreplay.published.contexts import MonthDay, SaidTurns, dates_in, unescaped
from memreplay.published.importing import Imported
from memreplay.recording.reader import Recording
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import Results
from memreplay.text import normalised

Stage = Literal[
    "no_answer",
    "no_key",
    "key_suspect",
    "never_said",
    "no_context",
    "no_evidence",
    "cut",
    "reworded",
    "absent",
    "part",
    "undated",
    "contradicted",
    "said_not_there",
    "another_value",
    "misread",
]

STAGES: Final[Mapping[Stage, str]] = {
    "no_answer": "no answer in the file",
    "no_key": "no expected answer and no judgement",
    "key_suspect": "the answer key is in doubt",
    "never_said": "it was never said, and is answered",
    "no_context": "the file gives no context",
    "no_evidence": "no evidence known, and the answer is not in the context",
    "cut": "the context breaks off inside the evidence",
    "reworded": "the answer not found in a context that quotes no turn",
    "absent": "neither evidence nor answer in the context",
    "part": "a part of the evidence in the context",
    "undated": "evidence there, its date is not",
    "contradicted": "evidence or answer there, and what contradicts it",
    "said_not_there": "evidence or answer there, “it is not there”",
    "another_value": "evidence or answer there, another value of the context",
    "misread": "evidence or answer there, misread",
}
"""The stages of wrong answers, in the order in which they are tried."""

BUDGETS: Final = (256, 512, 1024, 2048, 4096, 8192)
"""Tokens of context, from its beginning, at which the evidence is looked for."""

_ASKS_FOR_TIME = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|week|weekend|season)\b|\bhow long\b"
    r"|\bhow many (?:days|weeks|months|years)\b",
    re.IGNORECASE,
)
_SOURCES = r"(?:context|conversations?|memor(?:y|ies)|information|text|transcript|chat|history|dialogue|messages?)"
_LACKS = re.compile(
    rf"\b{_SOURCES}\b[^.!?\n]{{0,40}}\b(?:lacks?|(?:does|do|did|is|are|was|were) ?(?:not|n['’]t))\b"
    rf"|\bno (?:information|mention|evidence|record|indication|details?)\b"
    rf"|\bnot (?:mentioned|specified|stated|provided|found)\b[^.!?\n]{{0,40}}\b{_SOURCES}\b",
    re.IGNORECASE,
)
_NEAR_DAYS = 3
_SHARE_OF_WORDS = 0.8


@dataclass(frozen=True)
class Finding:
    """One answer. ``stage`` is None for a right one.

    ``is_right`` is the published judgement, or our rules where there is none; ``by_rules`` is what our rules say
    where there is one. ``evidence`` is how much of the evidence stands in the context word for word, ``held``
    whether the context holds the answer, in whatever words; both are None where it is unknown. ``quoted_turns`` of
    the conversation, whichever, stand in the context word for word. ``tokens`` are those
    of the context at whose end all evidence was given. ``lacks`` marks a reply that says that the context lacks
    the answer, ``abstains`` one that says nothing else, ``gives`` one that gives the expected answer all the same.
    ``guessable`` marks a question that can be answered without memory: with yes or no, or with words of its own.
    """

    conversation: str
    question_id: str
    repeat: int
    type: str
    category: str | None
    question: str
    expected: str
    reply: str
    is_right: bool | None
    by_rules: bool | None
    judge_reason: str
    stage: Stage | None
    evidence: Literal["all", "part", "none"] | None
    held: bool | None
    quoted_turns: int
    tokens: int | None
    context_tokens: int | None
    full_tokens: int | None
    asks_for_time: bool
    session_dates: int | None
    has_evidence_date: bool | None
    names_day_of_asking: bool
    lacks: bool
    abstains: bool
    gives: bool
    guessable: bool

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells that two systems answered the same question."""
        return self.conversation, normalised(self.question)


@dataclass(frozen=True)
class SystemAutopsy:
    """The findings of one published run, in the order of its dataset.

    It ``is_judged`` if the file brings judgements; our rules decide about the others, which are ``unjudged``.
    """

    name: str
    harness: str
    file: str
    model: str
    judge: str
    published_accuracy: float | None
    joined: str
    findings: tuple[Finding, ...]
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    is_judged: bool = True
    unjudged: int = 0

    @property
    def graded(self) -> list[Finding]:
        return [each for each in self.findings if each.is_right is not None]

    @property
    def wrong(self) -> list[Finding]:
        return [each for each in self.findings if each.is_right is False]

    @property
    def right(self) -> list[Finding]:
        return [each for each in self.findings if each.is_right]

    @property
    def stages(self) -> Counter[Stage]:
        """Return how many wrong answers were lost at each stage."""
        return Counter(each.stage for each in self.findings if each.stage is not None)

    @property
    def disagreements(self) -> tuple[list[Finding], list[Finding]]:
        """Return the answers that only the judge calls right, and those that only the rules do."""
        judged = [each for each in self.graded if each.by_rules is not None]
        return (
            [each for each in judged if each.is_right and not each.by_rules],
            [each for each in judged if not each.is_right and each.by_rules],
        )

    @property
    def unsupported(self) -> list[Finding]:
        """Return right answers whose context quotes other turns, and holds neither the answer nor any evidence."""
        return [each for each in self.right if each.held is False and each.evidence == "none" and each.quoted_turns]

    @property
    def without_memory(self) -> tuple[list[Finding], list[Finding]]:
        """Return right answers that can be guessed from the question, and others whose context gives nothing."""
        guessed = [each for each in self.right if each.guessable]
        return guessed, [each for each in self.unsupported if not each.guessable and not each.lacks]

    @property
    def quotes(self) -> bool | None:
        """Return whether most contexts quote turns; None where no context can be compared with turns."""
        known = [each.quoted_turns > 0 for each in self.findings if each.context_tokens and each.full_tokens]
        return sum(known) * 2 > len(known) if known else None

    @property
    def said_to_lack(self) -> list[Finding]:
        """Return the answers that say that the context lacks it, and were judged right."""
        return [each for each in self.right if each.lacks]

    @property
    def repeated(self) -> list[Finding]:
        return [each for each in self.findings if each.repeat]

    def evidence_at(self, budget: int) -> tuple[int, int]:
        """Return how many contexts give all evidence within so many tokens, and of how many that is known."""
        known = [each for each in self.findings if each.evidence is not None]
        return sum(each.tokens is not None and each.tokens <= budget for each in known), len(known)

    @property
    def mixed_up(self) -> Counter[tuple[str, str]]:
        """Return how often the file calls a category by the name that the dataset gives to another."""
        types = {_plain(each.type) for each in self.findings} | {_plain(each.locomo) for each in CATEGORIES}
        return Counter(
            (each.category, each.type)
            for each in self.findings
            if each.category is not None
            and (name := _category_name(each.category)) in types
            and (meant := _category_name(each.type)) in types
            and name != meant
        )


def _plain(name: str) -> str:
    return normalised(name).replace(" ", "")


def _category_name(written: str) -> str:
    numbers = {str(each.number): each.locomo for each in CATEGORIES}
    return _plain(numbers.get(written, written))


@dataclass(frozen=True)
class Autopsy:
    """Several published runs of one benchmark."""

    systems: tuple[SystemAutopsy, ...]

    @property
    def missed_by_all(self) -> list[list[Finding]]:
        """Return the questions that every one of several systems was asked, and none answered."""
        if len(self.systems) < 2:
            return []
        found: dict[tuple[str, str], dict[str, Finding]] = defaultdict(dict)
        for system in self.systems:
            for each in system.graded:
                found[each.key].setdefault(system.file + system.name, each)
        return [
            list(answers.values())
            for answers in found.values()
            if len(answers) == len(self.systems) and not any(each.is_right for each in answers.values())
        ]

    @property
    def same_questions(self) -> int:
        """Return how many questions all systems were asked."""
        keys = [{each.key for each in system.graded} for system in self.systems]
        return len(set.intersection(*keys)) if keys else 0


def autopsy_of(imported: Imported, recording: Recording, results: Results) -> SystemAutopsy:
    """Return the autopsy of an imported run, whose results are computed from its recording."""
    published = imported.published
    rows = {(row.conversation, row.question_id, row.repeat): row for row in results.questions}
    findings: list[Finding] = []
    for conversation_id in recording.conversation_ids(imported.run_id):
        conversation = recording.conversation(imported.run_id, conversation_id)
        reader = _Examiner(conversation, token_counter(published.model))
        for asked in recording.events(imported.run_id, conversation_id, ("question_asked",)):
            if isinstance(asked, QuestionAsked):
                key = (conversation_id, asked.question_id, asked.repeat)
                findings.append(reader.finding(asked, rows[key], imported.answers[key]))
    order = {key: place for place, key in enumerate(rows)}
    findings.sort(key=lambda each: order[each.conversation, each.question_id, each.repeat])
    return SystemAutopsy(
        name=published.system,
        harness=str(results.run.settings["imported_from"]),
        file=published.path.name,
        model=published.model,
        judge=published.judge,
        published_accuracy=published.accuracy,
        joined=imported.joined.sentence,
        findings=tuple(findings),
        problems=published.problems,
        remarks=published.remarks,
        is_judged=any(answer.judgement is not None for answer in published.answers),
        unjudged=sum(answer.judgement is None and answer.answer is not None for answer in published.answers),
    )


class _Examiner:
    """Examines the answers about one conversation."""

    def __init__(self, conversation: Conversation, count: TokenCounter) -> None:
        self._said = SaidTurns(conversation)
        self._count = count
        self._questions = {question.id: question for question in conversation.questions}
        self._full_tokens = count(self._said.full_text) if conversation.turns else None
        self._session_days = {(date.month, date.day) for date in self._said.session_dates}

    def finding(self, asked: QuestionAsked, row: QuestionRow, answer: PublishedAnswer) -> Finding:
        question = self._questions[asked.question_id]
        has_context = bool(asked.prompt)
        context = unescaped("\n".join(hit.text for hit in asked.hits))
        dates = dates_in(context)
        evidence = question.evidence if question.evidence_role == "supports" else ()
        held_turns = held_turns_of(asked)
        there = [turn for turn in evidence if turn in held_turns]
        known = has_context and bool(evidence)
        reply = row.reply or ""
        is_right = None if row.outcome == "error" else row.outcome == "correct"
        expected = "" if question.abstain else question.expected
        dated = [each for turn in evidence if (each := self._said.has_date_of(turn, dates)) is not None]
        amount: Literal["all", "part", "none"] | None = None
        if known:
            amount = "all" if len(there) == len(evidence) else "part" if there else "none"
        held = row.answer_in_prompt if known else _holds(expected, context) if has_context and expected else None
        if amount != "all" and has_context and expected:
            # "2" and "no" stand in every context.
            held = None if _is_everywhere(expected) else held or _holds_by_parts(expected, question.text, context)
        found = Finding(
            conversation=self._said.conversation.id,
            question_id=question.id,
            repeat=asked.repeat,
            type=question.type,
            category=answer.category,
            question=question.text,
            expected=question.expected,
            reply=reply or (row.error or ""),
            is_right=is_right,
            by_rules=None if row.grader is None else row.grader.outcome == "correct",
            judge_reason=answer.judge_reason or "",
            stage=None,
            evidence=amount,
            quoted_turns=len(held_turns),
            held=held,
            tokens=self._tokens_to_evidence(asked, evidence) if amount == "all" else None,
            context_tokens=asked.context_tokens if has_context else None,
            full_tokens=self._full_tokens,
            asks_for_time=_ASKS_FOR_TIME.search(question.text) is not None,
            session_dates=len(self._session_days & dates) if has_context and self._session_days else None,
            has_evidence_date=all(dated) if has_context and dated else None,
            names_day_of_asking=_is_near(dates_in(reply), dates_in(answer.asked_at or "")),
            lacks=_says_it_lacks(reply),
            abstains=_says_it_lacks(reply) and len(list(sentences_of(reply))) == 1,
            gives=bool(expected) and _holds(expected, reply),
            guessable=bool(expected) and is_guessable(expected, question.text),
        )
        if is_right is False or (is_right is None and row.outcome == "error"):
            stage = self._stage(found, row, question, asked, context, dates)
            if stage == "no_answer" and answer.answer is not None:
                stage = "no_key"
            return Finding(**{**vars(found), "stage": stage})
        return found

    def _stage(
        self,
        found: Finding,
        row: QuestionRow,
        question: Question,
        asked: QuestionAsked,
        context: str,
        dates: frozenset[MonthDay],
    ) -> Stage:
        if found.is_right is None:
            return "no_answer"
        if row.failure == "key_suspect":
            return "key_suspect"
        if question.abstain:
            return "never_said"
        if not asked.prompt:
            return "no_context"
        if found.evidence is None and not found.held:
            return "no_evidence"
        if not found.held and found.evidence != "all":
            if any(cut.turns for cut in asked.cut):
                return "cut"
            if not held_turns_of(asked):
                return "reworded"
            return "absent" if found.evidence == "none" else "part"
        lacks_date = found.asks_for_time and found.has_evidence_date is False
        if found.evidence == "all" and lacks_date and not _holds(question.expected, context):
            return "undated"
        try:
            with grading_one_answer():
                if _is_contradicted(question.expected, context, map(self._said.words_of, question.evidence)):
                    return "contradicted"
                if found.lacks or is_abstention(found.reply):
                    return "said_not_there"
                return "another_value" if _stands_in(found.reply, question, context, dates) else "misread"
        except GradingError:
            return "misread"

    def _tokens_to_evidence(self, asked: QuestionAsked, evidence: Sequence[str]) -> int | None:
        """Return the tokens of the context up to where the last turn of the evidence ends.

        Inside a memory they are counted in proportion to its words.
        """
        total = sum(hit.tokens for hit in asked.hits)
        scale = asked.context_tokens / total if total else 1.0
        ends: dict[str, float] = {}
        before = 0.0
        for hit in asked.hits:
            new = [turn for turn in evidence if turn in hit.turns and turn not in ends]
            words = normalised(unescaped(hit.text)) if new else ""
            for turn in new:
                said = self._said.words_of(turn)
                end = f" {words} ".find(f" {said} ") + len(said)
                ends[turn] = before + hit.tokens * min(1.0, end / max(1, len(words)))
            before += hit.tokens
        return round(scale * max(ends.values())) if ends else None


def held_turns_of(asked: QuestionAsked) -> frozenset[str]:
    """Return the turns that the context quotes."""
    return frozenset(turn for hit in asked.hits for turn in hit.turns)


def _holds(expected: str, text: str) -> bool:
    try:
        with grading_one_answer():
            return has_the_letters_of(expected, text) and contains(expected, text)
    except GradingError:
        return False


_YES_OR_NO = re.compile(r"\W*(?:(?:most )?(?:likely|probably|possibly) )?(?:yes|no)\b", re.IGNORECASE)


def is_guessable(expected: str, question: str) -> bool:
    """Return whether an answer is yes or no, or one of the things that the question lets choose between."""
    if _YES_OR_NO.match(expected):
        return True
    main = re.split(r"[;,.(]", expected)[0].strip()
    return " or " in question.lower() and len(normalised(main)) >= _SHORTEST_ANSWER and _holds(main, question)


def _is_everywhere(expected: str) -> bool:
    """Return whether an answer is so short that any context has it by chance: a small number, yes or no."""
    return re.fullmatch(r"\d{1,2}|yes|no", normalised(expected)) is not None


def _holds_by_parts(expected: str, question: str, context: str) -> bool:
    """Return whether a context has every item of an expected list, or most words of a long answer in a sentence.

    Of an answer that repeats words of the question, one of these and what it adds have to be there.
    """
    items = enumeration(expected)
    if len(items) > 1 and all(
        len(normalised(item)) >= _SHORTEST_ANSWER and _holds(item, context) for item in items
    ):
        return True
    try:
        with grading_one_answer():
            wanted = [token for _, token in content_of(tokens_of(expected))]
            if len(wanted) < _LONG_ANSWER:
                return False
            asked = [token for _, token in content_of(tokens_of(question))]
            repeated = [token for token in wanted if any(same_token(token, other) for other in asked)]
            added = [token for token in wanted if token not in repeated]
            # A name stands in every other sentence.
            names = {folded(name) for name in re.findall(r"\b[A-Z]\w+", f"{question} {expected}")}
            repeated = [token for token in repeated if token.text not in names]
            return any(
                _covers(wanted, sentence)
                or (bool(repeated and added) and _covers(added, sentence, least=1) and _has_any(repeated, sentence))
                for sentence in sentences_of(context)
            )
    except GradingError:
        return False


_LONG_ANSWER = 4
"""Words; of a shorter answer all must be there."""


def _has_any(wanted: Sequence[Token], sentence: str) -> bool:
    given = [token for _, token in content_of(tokens_of(sentence))]
    return any(same_token(token, other) for token in wanted for other in given)


def _covers(wanted: Sequence[Token], sentence: str, least: float = _SHARE_OF_WORDS) -> bool:
    """Return whether a sentence has at least this share of the words, and every number and name with figures."""
    words = folded(sentence)
    near = [token for token in wanted if not token.text.isalpha() or token.text[:3] in words]
    if len(near) < least * len(wanted):
        return False
    given = [token for _, token in content_of(tokens_of(sentence))]
    there = [token for token in wanted if any(same_token(token, other) for other in given)]
    missing = [token for token in wanted if token not in there]
    return len(there) >= least * len(wanted) and all(token.text.isalpha() for token in missing)


def _says_it_lacks(reply: str) -> bool:
    first = next(iter(sentences_of(reply)), "")
    return _LACKS.search(first) is not None or is_abstention(reply)


def _is_near(days: frozenset[MonthDay], asked_on: frozenset[MonthDay]) -> bool:
    """Return whether a reply names a day shortly before the question was asked."""
    return any(
        month == of_asking and 0 <= day_of_asking - day <= _NEAR_DAYS
        for month, day in days
        for of_asking, day_of_asking in asked_on
    )


def _is_contradicted(expected: str, context: str, evidence: Iterable[str]) -> bool:
    """Return whether a sentence of the context, none of the evidence, denies the expected answer or replaces it."""
    own = " ".join(evidence)
    if len(normalised(expected)) < _SHORTEST_ANSWER:
        return False
    return any(
        asserted(expected, sentence)[1] in ("denied", "superseded")
        for sentence in sentences_of(context)
        if has_the_letters_of(expected, sentence)
        and contains(expected, sentence)
        and not _share_words(normalised(sentence), own)
    )


def _share_words(sentence: str, own: str) -> bool:
    """Return whether a sentence is, or quotes, a part of the evidence: most of its words in a row stand there."""
    words = sentence.split()
    return any(" ".join(words[start : start + 5]) in own for start in range(max(1, len(words) - 4)))


_SHORTEST_ANSWER = 4
"""Characters. “Yes” and “2” are denied all the time, of something else."""


def _stands_in(reply: str, question: Question, context: str, dates: frozenset[MonthDay]) -> bool:
    """Return whether what a wrong reply says beyond the question stands in the context."""
    days = dates_in(reply) - dates_in(question.expected)
    if days:
        return bool(days & dates)
    known = {token.text for text in (question.text, question.expected) for _, token in content_of(tokens_of(text))}
    new = {token.text for _, token in content_of(tokens_of(reply))} - known
    if not new:
        return False
    words = set(normalised(context).split())
    return sum(word in words for word in new) >= _SHARE_OF_WORDS * len(new)


def mean_of(values: Sequence[float | int | None]) -> float | None:
    """Return the mean of the values that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
