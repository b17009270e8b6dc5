"""A published run, scored again by the shipped classes."""

from __future__ import annotations

import json

import pytest

from memreplay.goodai.dataset import SIMULATED_START
from memreplay.goodai.importing import rescore
from memreplay.goodai.interface import TestExample, WaitAction
from memreplay.goodai.master_log import EventType, MasterLog, count_tokens, read_master_log
from memreplay.goodai.scheduler import RunningTest
from memreplay.goodai.sources import load_definitions
from tests.unit.goodai.driving import judge, run

pytestmark = pytest.mark.shared_data


def recorded(folder, test: TestExample):
    path = folder / test.dataset_name / f"{test.example_id}_0.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_all_scores_are_those_of_the_recording_but_for_tests_with_a_judge(shared_data):
    definitions = load_definitions(shared_data / "goodai" / "benchmark3_1k_definitions")
    folder = shared_data / "goodai" / "benchmark3_1k_gpt4o"
    log = MasterLog(read_master_log(folder / "master_log.jsonl"))

    scores = {test.unique_id: (rescore(test, log), recorded(folder, test)["score"]) for test in definitions.tests}

    differing = {name for name, (ours, theirs) in scores.items() if ours.score != pytest.approx(theirs)}
    assert len(scores) == 30
    assert differing == {"Jokes - 0", "Jokes - 1", "Jokes - 2"}
    assert all(scores[name][0].score is None for name in differing)


def test_the_published_definitions_run_to_their_end(shared_data):
    definitions = load_definitions(shared_data / "goodai" / "benchmark3_1k_definitions")

    done = run(definitions.tests, config=definitions.config, model=judge("{}"))

    assert len(done.ended) == 30
    assert definitions.notes == ()


def test_percentage_waits_are_the_recorded_ones_but_for_the_last_reply(shared_data):
    """What has passed since a test began includes the last reply; that run took it off once more."""
    definitions = load_definitions(shared_data / "goodai" / "benchmark3_1k_definitions")
    tests = {test.unique_id: RunningTest(test) for test in definitions.tests}
    waits = {name: iter([wait for wait in one.example.waits if wait]) for name, one in tests.items()}
    said, last_reply, compared = 0, 0, 0
    for event in read_master_log(shared_data / "goodai" / "benchmark3_1k_gpt4o" / "master_log.jsonl"):
        if "message" in event.data:
            last_reply = count_tokens(event.data["message"])
            said += last_reply
        if event.type is EventType.BEGIN:
            assert event.data["tokens"] == said
            tests[event.test_id].example.start_token = said
        if event.type is EventType.WAIT and "percentage_finished" in (wait := next(waits[event.test_id], {})):
            one = tests[event.test_id]
            one.wait(WaitAction(percentage_finished=wait["percentage_finished"]), said, SIMULATED_START)
            assert event.data["tokens"] == max(one.tokens_missing(said) - last_reply, 0)
            compared += 1
    assert compared == 119
