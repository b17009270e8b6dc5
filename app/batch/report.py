"""From a recorded run to its results: the recording alone is read, no backend and no model."""

from __future__ import annotations

from app.recording.recorder import ASK_KINDS
from app.recording.store import Recording, RunInfo
from app.replay.timeline import Timeline
from app.scoring.results import Results, RunFacts, build_results
from app.scoring.rows import question_row
from app.scoring.rows_of_tests import TEST_KINDS, rows_of_tests
from app.scoring.sections import QuestionRow


def results_of_run(recording: Recording, run: RunInfo) -> Results:
    """The results of a run: rows in dataset order, then backend, then model, whatever the order of asking."""
    rows: list[QuestionRow] = []
    for conversation_id in recording.conversation_ids(run.id):
        conversation = recording.conversation(run.id, conversation_id)
        timeline = Timeline(conversation, recording.events(run.id, conversation_id, ASK_KINDS))
        place = {question.id: index for index, question in enumerate(conversation.questions)}
        backends = {name: index for index, name in enumerate(run.settings["backend"])}
        models = {name: index for index, name in enumerate(run.settings["model"])}
        answers = [
            answer for answer in timeline.answers() if answer.scored is not None and answer.received is not None
        ]
        answers.sort(
            key=lambda answer: (
                place[answer.asked.question_id],
                backends[answer.asked.backend],
                models[answer.asked.model],
                answer.asked.repeat,
            )
        )
        for answer in answers:
            question = conversation.questions[place[answer.asked.question_id]]
            assert answer.received is not None and answer.scored is not None
            rows.append(question_row(question, conversation, answer.asked, answer.received, answer.scored))
        if conversation.conversing:
            rows += rows_of_tests(conversation, recording.events(run.id, conversation_id, TEST_KINDS))
    facts = RunFacts(
        id=run.id,
        started_at=run.started_at,
        finished_at=run.finished_at,
        memreplay_version=run.version,
        settings=run.settings,
        datasets=run.datasets,
    )
    return build_results(facts, rows)
