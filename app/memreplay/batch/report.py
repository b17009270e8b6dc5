"""The results of a recorded run, from the recording alone: no backend and no model is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memory_backends.controls import CLOSED_BOOK
from memreplay.conversations.models import Conversation, Question
from memreplay.conversations.option_style import OptionStyle, option_style
from memreplay.engine.answers import ask_fields, graded_again, score_answer, score_as_shown
from memreplay.engine.events import (
    ASK_KINDS,
    AnswerJudged,
    AnswerScored,
    BackendEvent,
    BackgroundWorkSettled,
    FactsExtracted,
    ModelCalled,
    Observed,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    call_in,
)
from memreplay.llm import AGENT_MODEL
from memreplay.llm.judging import Judgement, Stage, Verdict
from memreplay.recording.counterfactuals import ask_of, reasks_in
from memreplay.recording.overview import progress_of
from memreplay.recording.reader import Recording, RunInfo
from memreplay.recording.rejudgements import Ask, JudgePair, judgements_of
from memreplay.recording.rejudgements import ask_of as ask_of_answer
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.answer_key import AnswerKey
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.counterfactuals import Counterfactual
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import KeyFacts, Results, RunFacts
from memreplay.scoring.rows import TEST_KINDS, cost_of_writing, question_row, rows_of_tests
from memreplay.scoring.what_if import RowKey, with_cures
from memreplay.scoring.writing import Writing
from memreplay.timeline.timeline import Answer, AnswerIndex, AskKey, ask_key

Reasked = dict[RowKey, list[Counterfactual]]


class RecordedHistory:
    """A conversation's events by backend and position, its answers, and by backend what writing took.

    ``backends`` are in the order of their first events.
    """

    def __init__(self, conversation: Conversation, events: Iterable[ReplayEvent]) -> None:
        self.conversation = conversation
        self.backends: list[str] = []
        self.writing: dict[str, Writing] = defaultdict(Writing)
        self._at: dict[tuple[str, int], list[ReplayEvent]] = defaultdict(list)
        self._asks = AnswerIndex()
        for event in events:
            self._add(event)
        self._grade_again()

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what a backend heard, decided and changed up to a position, with its opening, in order."""
        return (event for position in range(turn + 1) for event in self._at.get((backend, position), ()))

    def answers(self) -> Iterator[Answer]:
        """Return all asks, in the order of asking."""
        return iter(self._asks)

    def _grade_again(self) -> None:
        """Grade replies again that an earlier version failed to grade."""
        questions = {question.id: question for question in self.conversation.questions}
        for answer in self._asks:
            question, received, scored = questions.get(answer.asked.question_id), answer.received, answer.scored
            if question is not None and received is not None and scored is not None:
                answer.scored = graded_again(question, answer.asked, received.reply, scored, answer.judgement)

    def judge_again(self, judgements: Mapping[Ask, Judgement]) -> None:
        """Grade all answers by these judgements; those without one by the rules."""
        questions = {question.id: question for question in self.conversation.questions}
        for answer in self._asks:
            question, received, scored = questions.get(answer.asked.question_id), answer.received, answer.scored
            if question is None or received is None or scored is None:
                continue
            judgement = judgements.get(ask_of_answer(answer.asked))
            answer.judged = []
            if judgement is not None:
                answer.judged = [AnswerJudged(**ask_fields(answer.asked), judgement=judgement)]
            score = score_answer(question, answer.asked, received.reply, judgement).score
            answer.scored = scored.model_copy(update={"score": score})

    def judge_stages(self, judged: Mapping[Ask, Mapping[Stage, Judgement]]) -> None:
        """Add what a judge of stages said of the answers."""
        self._asks.judge_stages(judged)

    def _add(self, event: ReplayEvent) -> None:
        if not isinstance(event, BackendEvent):
            return
        if event.backend not in self.backends:
            self.backends.append(event.backend)
        match event:
            case QuestionAsked() | ReplyReceived() | AnswerJudged() | AnswerScored():
                self._asks.apply(event)
            case FactsExtracted(extraction=extraction):
                self.writing[event.backend].extractions.append(extraction)
                self._at[event.backend, event.turn].append(event)
            case ModelCalled(call=call):
                self.writing[event.backend].add_call(call)
                if call_in(event) is not None:
                    self._at[event.backend, event.turn].append(event)
            case BackgroundWorkSettled():
                self.writing[event.backend].add(event)
            case Observed():
                self.writing[event.backend].add(event)
                self._at[event.backend, event.turn].append(event)
            case _:
                self._at[event.backend, event.turn].append(event)


_KINDS = (
    *ASK_KINDS,
    "conversation_opened",
    "observed",
    "background_work_settled",
    "promotion_decided",
    "facts_extracted",
    "model_called",
)
"""Kinds that attribution and costs need, besides store operations that changed a store."""

_CLOSED_BOOK_IS_IMPLICIT = "closed_book_asked_along"
"""The recorded setting for a closed_book baseline that only attribution uses: it gets no rows of its own."""


def results_of_run(
    recording: Recording,
    run: RunInfo,
    answer_key: AnswerKey | None = None,
    conversations: Sequence[str] | None = None,
    judged_by: JudgePair | None = None,
) -> Results:
    """Return the results of a run, or of some of its conversations. In dataset order, then by backend and model.

    ``judged_by``: by the judgements of ``memreplay rejudge``; answers that this judge did not judge are graded by
    the rules.
    """
    rows: list[QuestionRow] = []
    styles = _OptionStyles()
    corrected: set[str] = set()
    writing: dict[str, Writing] = defaultdict(Writing)
    written: list[float | None] = []
    reasked: Reasked = {}
    for conversation_id in recording.conversation_ids(run.id) if conversations is None else conversations:
        conversation = recording.conversation(run.id, conversation_id)
        its_rows, asked_again = _rows_of(conversation, recording, run, answer_key, writing, judged_by)
        rows.extend(its_rows)
        reasked |= asked_again
        if conversation.conversing:
            of_tests = list(recording.events(run.id, conversation_id, TEST_KINDS))
            rows.extend(rows_of_tests(conversation, of_tests))
            written.append(cost_of_writing(of_tests))
        styles.add(conversation)
        if answer_key is not None:
            corrected.update(q.id for q in conversation.questions if q.id in answer_key.corrections)
    facts = RunFacts(
        id=run.id,
        started_at=run.started_at,
        finished_at=run.finished_at,
        memreplay_version=run.version,
        settings=run.settings,
        datasets=run.datasets,
        status=progress_of(recording.path, run),
    )
    return build_results(
        facts,
        with_cures(rows, reasked),
        styles.by_dataset(),
        _key_facts(answer_key, len(corrected)),
        writing,
        sum(known) if (known := [cost for cost in written if cost is not None]) else None,
    )


def _key_facts(answer_key: AnswerKey | None, questions: int) -> KeyFacts | None:
    if answer_key is None:
        return None
    return KeyFacts(file=answer_key.path.name, corrections=len(answer_key.corrections), questions=questions)


def _rows_of(
    conversation: Conversation,
    recording: Recording,
    run: RunInfo,
    answer_key: AnswerKey | None,
    writing: dict[str, Writing],
    judged_by: JudgePair | None,
) -> tuple[list[QuestionRow], Reasked]:
    """Return the rows of a conversation and its re-asks. Its events can be freed before the next ones are read."""
    history = RecordedHistory(conversation, recording.writes_and(run.id, conversation.id, _KINDS))
    for backend, of_conversation in history.writing.items():
        writing[backend].merge(of_conversation)
    if judged_by is not None:
        history.judge_again(judgements_of(recording, run.id, conversation.id, judged_by))
    history.judge_stages(recording.stage_judgements(run.id, conversation.id))
    labels = recording.labels(run.id, conversation.id)
    return list(_rows(history, run, answer_key, labels)), _reasked(history, recording, run)


def _reasked(history: RecordedHistory, recording: Recording, run: RunInfo) -> Reasked:
    found: Reasked = {}
    id_ = history.conversation.id
    questions = {question.id: question for question in history.conversation.questions}
    asked = {ask_of(answer.asked): answer.asked for answer in history.answers() if not answer.asked.by_hand}
    for reask in reasks_in(recording, run.id, id_, asked):
        score = reask.score
        if score is not None and score.problem is not None and score.grader is None:
            again = score_as_shown(questions[reask.question_id], asked[reask.ask].choice_order, reask.reply)
            reask = reask.model_copy(update={"score": again})
        if (each := reask.counterfactual) is not None:
            found.setdefault((id_, *reask.ask), []).append(each)
    return found


def _rows(
    history: RecordedHistory, run: RunInfo, answer_key: AnswerKey | None, labels: Mapping[AskKey, Verdict]
) -> Iterator[QuestionRow]:
    attributor = Attributor(history, answer_key.reasons if answer_key else {})
    conversation = history.conversation
    questions = {question.id: question for question in conversation.questions}
    for answer in _in_order(history, run):
        assert answer.received is not None and answer.scored is not None
        question = questions[answer.asked.question_id]
        yield question_row(
            attributor.answerable(question),
            conversation,
            attributor.stages(answer.asked),
            answer.received,
            answer.scored,
            attributor.attribute(answer),
            attributor.closed_book_is_right(answer.asked),
            answer_key,
            answer.judged,
            labels.get(ask_key(answer.asked)),
            run.settings,
        )


def _in_order(history: RecordedHistory, run: RunInfo) -> list[Answer]:
    """Return the scored answers of the run's own backends, without questions that were asked by hand."""
    place = {question.id: index for index, question in enumerate(history.conversation.questions)}
    implicit_baselines = CLOSED_BOOK if run.settings.get(_CLOSED_BOOK_IS_IMPLICIT) else None
    backends = {name: index for index, name in enumerate(run.settings["backend"]) if name != implicit_baselines}
    models = {name: index for index, name in enumerate([*run.settings["model"], AGENT_MODEL])}
    answers = [
        answer
        for answer in history.answers()
        if answer.scored is not None
        and answer.received is not None
        and not answer.asked.by_hand
        and answer.asked.backend in backends
    ]
    return sorted(
        answers,
        key=lambda answer: (
            place[answer.asked.question_id],
            backends[answer.asked.backend],
            models[answer.asked.model],
            answer.asked.repeat,
        ),
    )


class _OptionStyles:
    """Collects each dataset's questions to measure the style of their options."""

    def __init__(self) -> None:
        # The questions alone: a copy of a conversation keeps its turns alive in its cached properties.
        self._questions: dict[str, list[Question]] = defaultdict(list)

    def add(self, conversation: Conversation) -> None:
        self._questions[conversation.dataset].extend(conversation.questions)

    def by_dataset(self) -> dict[str, OptionStyle]:
        """Return the style of datasets with multiple-choice questions."""
        styles = {dataset: option_style(questions) for dataset, questions in self._questions.items()}
        return {dataset: style for dataset, style in styles.items() if style is not None}
