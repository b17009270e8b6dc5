"""The report of a run as one HTML file: plots, tables, and every question with its prompts and answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from memory_backends.controls import CLOSED_BOOK
from memreplay.batch.tables import (
    failure_columns,
    meaning_of_failures,
    meaning_of_scores,
    remarks,
    test_remarks,
    titled_tables,
)
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.prompt_lines import prompt_lines
from memreplay.engine.events import ASK_KINDS, AnswerScored, QuestionAsked, ReplyReceived
from memreplay.pages.answers import Answers, Figure, RowKey, row_key
from memreplay.pages.document import Data, page
from memreplay.pages.figures import figures_of
from memreplay.pages.plots import drawn
from memreplay.pages.prompts import PromptTable
from memreplay.recording.reader import Recording, RunInfo
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.results import HitRow, QuestionRow, Results
from memreplay.settings import Settings, flags
from memreplay.timeline.timeline import Answer, AnswerIndex

Asks = Mapping[tuple[str, str, str, int], Answer]
"""The answers of a conversation by backend, model, question and repeat."""


@dataclass(frozen=True)
class Source:
    """A run in an open recording. ``prefix`` stands before the names of its backends if a page shows two runs."""

    recording: Recording
    run: RunInfo
    prefix: str = ""

    def conversations(self) -> Iterator[tuple[Conversation, Asks]]:
        """Each conversation with its answers. One is in memory at a time."""
        for conversation_id in self.recording.conversation_ids(self.run.id):
            index = AnswerIndex()
            for event in self.recording.events(self.run.id, conversation_id, ASK_KINDS):
                if isinstance(event, QuestionAsked | ReplyReceived | AnswerScored):
                    index.apply(event)
            asks = {
                (self.prefix + one.asked.backend, one.asked.model, one.asked.question_id, one.asked.repeat): one
                for one in index
                if not one.asked.by_hand
            }
            yield self.recording.conversation(self.run.id, conversation_id), asks


@dataclass(frozen=True)
class _DrawnFigure:
    figure: Figure
    svg: str | None


def report_page(results: Results, sources: Sequence[Source], *, title: str | None = None) -> str:
    """The whole file. Prompts and evidence come from ``sources``; without one for a row, the page says so."""
    questions = _Questions(results)
    for source in sources:
        for conversation, asks in source.conversations():
            questions.add(conversation, asks)
    answers = Answers.of(results, questions.distances)
    figures = [
        _DrawnFigure(figure, None if figure.spec is None else drawn(figure.spec, figure.title))
        for figure in figures_of(answers)
    ]
    failed = failure_columns(results)
    tables = titled_tables(results)
    headings = dict.fromkeys(heading for _, columns in tables for heading in columns)
    return page(
        "report.html",
        styles=("page.css", "report.css"),
        scripts=("data.js", "report.js"),
        data=[Data("report-data", questions.as_data())],
        title=title or f"memreplay: {', '.join(results.run.datasets)}",
        results=results,
        counted=answers.counted,
        figures=figures,
        tables=tables,
        sentences=[each for each in (*remarks(results), *test_remarks(results)) if each not in _words(results)],
        words=_words(results),
        meanings=[
            *meaning_of_scores(heading for heading in headings if heading not in failed),
            *meaning_of_failures(failed),
        ],
        commands=[command_of(source.run) for source in sources],
        settings=sorted((name, _shown(value)) for name, value in results.run.settings.items()),
    )


def _words(results: Results) -> list[str]:
    return [f"{comparison.words}." for comparison in results.comparisons]


def _shown(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(str, value)) or "–"
    return str(value)


_NOT_REPEATED = ("cache", "offline", "api_base", "redis_url", "qdrant_url")
"""Settings that change no answer, and addresses."""


def command_of(run: RunInfo) -> str:
    """The command that makes such a run again. Files of one's own are named by their dataset's id."""
    words = ["memreplay", "--batch"]
    for dataset in run.datasets:
        words += ["--dataset", dataset]
    defaults = {each.name: each.default for each in fields(Settings)}
    for name, flag in flags().items():
        value = run.settings.get(name)
        if name in _NOT_REPEATED or value is None or value == defaults[name]:
            continue
        if name == "backend" and run.settings.get("closed_book_asked_along"):
            value = [backend for backend in value if backend != CLOSED_BOOK]
        if isinstance(value, list) and (tuple(value) == defaults[name] or ", ".join(value) == flag.default):
            continue
        if name == "embedder" and ":" not in value:
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [option, f"{each:g}" if isinstance(each, float) else str(each)]
    return shlex.join(words)


class _Questions:
    """The questions of a report with all answers, as data for the script of the page."""

    def __init__(self, results: Results) -> None:
        self.distances: dict[RowKey, int] = {}
        self._names = {id(row): name for name, rows in contestants_of(results.questions).items() for row in rows}
        self._order = list(contestants_of(results.questions))
        self._prompts = PromptTable()
        self._questions: dict[RowKey, dict[str, Any]] = {}
        self._rows: dict[RowKey, list[tuple[QuestionRow, dict[str, Any]]]] = {}
        for row in results.questions:
            key = row_key(row)
            self._questions.setdefault(key, _question_of(row))
            answer = _answer_of(row, self._order.index(self._names[id(row)]))
            self._rows.setdefault(key, []).append((row, answer))

    def add(self, conversation: Conversation, asks: Asks) -> None:
        """Add what the recording knows of a conversation's questions: evidence, options, prompts."""
        for question in conversation.questions:
            key = (conversation.dataset, conversation.id, question.id)
            for row, answer in self._rows.get(key, ()):
                ask = asks.get((row.backend, row.model, row.question_id, row.repeat))
                if ask is None:
                    continue
                self._questions[key] |= _details_of(question, conversation)
                answer |= self._prompts.add(
                    [message.role for message in ask.asked.prompt],
                    prompt_lines(conversation, ask.asked, question.evidence),
                )
                self._add_distance(key, question, conversation, ask.asked.turn)

    def _add_distance(self, key: RowKey, question: Question, conversation: Conversation, asked_at: int) -> None:
        said = [
            conversation.turns_by_id[turn].number for turn in question.evidence if turn in conversation.turns_by_id
        ]
        if said and question.evidence_role != "tempting":
            self.distances[key] = asked_at - min(said)

    def as_data(self) -> dict[str, Any]:
        questions = [
            {**question, "answers": [answer for _, answer in self._rows[key]]}
            for key, question in self._questions.items()
        ]
        return {
            "backends": self._order,
            "lines": self._prompts.lines,
            "prompts": self._prompts.prompts,
            "questions": questions,
        }


def _question_of(row: QuestionRow) -> dict[str, Any]:
    known = {
        "dataset": row.dataset,
        "conversation": row.conversation,
        "id": row.question_id,
        "text": row.question,
        "expected": row.expected,
        "kind": row.kind,
        "type": row.type,
        "category": row.category,
        "position": row.location,
        "salience": row.salience,
        "evidence": [{"id": turn} for turn in row.evidence],
    }
    return {name: value for name, value in known.items() if value is not None}


def _details_of(question: Question, conversation: Conversation) -> dict[str, Any]:
    evidence = []
    for turn_id in question.evidence:
        turn = conversation.turns_by_id.get(turn_id)
        entry = {"id": turn_id}
        if turn is not None:
            date = conversation.date_of(turn)
            entry |= {"speaker": conversation.label_of(turn), "text": turn.text}
            entry |= {"date": f"{date:%Y-%m-%d %H:%M}"} if date else {}
        evidence.append(entry)
    details: dict[str, Any] = {"evidence": evidence}
    if question.evidence_role == "tempting":
        details["tempting"] = True
    if question.choices:
        details |= {"choices": question.choices, "right": question.correct_index}
    return details


def _answer_of(row: QuestionRow, backend: int) -> dict[str, Any]:
    """Fields without a value are left out."""
    known = {
        "b": backend,
        "repeat": row.repeat or None,
        "outcome": row.outcome,
        "stage": row.failure,
        "detail": row.failure_detail,
        "predicted": row.predicted,
        "reply": row.reply if row.reply != row.predicted else None,
        "error": row.error,
        "decided": row.decided_by,
        "tokens": row.tokens.prompt if row.tokens else None,
        "cost": row.cost_usd,
        "ms": round(row.ms, 1) if row.ms is not None else None,
        "recall_ms": round(row.recall_ms, 1) if row.recall_ms is not None else None,
        "cut_tokens": row.cut_tokens or None,
        "evidence_in_prompt": row.evidence_in_prompt,
        "hits": [_hit(hit) for hit in row.hits],
    }
    return {name: value for name, value in known.items() if value is not None}


def _hit(hit: HitRow) -> list[Any]:
    """Rank, store, score, turns (else sources), tokens, whether it was in the prompt."""
    score = None if hit.score is None else round(hit.score, 4)
    return [hit.rank, hit.store, score, " ".join(hit.turns or hit.sources), hit.tokens, int(hit.in_prompt)]
