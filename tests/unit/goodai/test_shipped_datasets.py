"""The shipped datasets: what they make, and what they give points for."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.importing import RecordedRun
from memreplay.goodai.interface import Ungraded
from memreplay.goodai.master_log import EventType, LogEvent, MasterLog
from memreplay.goodai.sources import (
    SHIPPED_DATASETS,
    Benchmark,
    create_dataset,
    load_definitions,
    save_definitions,
    shipped_dataset,
)
from tests.unit.goodai.driving import judge, run


def shipped(key, **arguments):
    return create_dataset(shipped_dataset(key), **arguments)


@pytest.mark.parametrize("key", [entry.key for entry in SHIPPED_DATASETS])
def test_two_examples_are_made_offline_and_are_the_same_each_time(key):
    first, again = (shipped(key, memory_span=2000).generate_examples(2) for _ in range(2))

    assert [test.to_dict() for test in first] == [test.to_dict() for test in again]
    assert [test.example_id for test in first] == ["0", "1"]


@pytest.mark.parametrize("key", [entry.key for entry in SHIPPED_DATASETS if entry.key not in ("restaurant",)])
def test_other_seeds_make_other_examples(key):
    scripts = {tuple(shipped(key, seed=seed).generate_examples(2)[1].script) for seed in range(5)}

    assert len(scripts) > 1


@pytest.mark.parametrize("name", [entry.name for entry in SHIPPED_DATASETS])
def test_a_class_is_found_by_the_name_it_gives_itself(name):
    assert shipped(name).name == name


def test_definitions_of_all_shipped_datasets_survive_a_round_trip(tmp_path):
    tests = [test for entry in SHIPPED_DATASETS for test in shipped(entry.key).generate_examples(2)]
    save_definitions(tmp_path, Benchmark(RunConfig(), tuple(tests)))

    read = load_definitions(tmp_path)

    written = {test.unique_id: json.loads(json.dumps(test.to_dict())) for test in tests}
    assert {test.unique_id: test.to_dict() for test in read.tests} == written


def test_all_shipped_datasets_run_together_to_their_end():
    tests = [test for entry in SHIPPED_DATASETS for test in shipped(entry.key).generate_examples(1)]

    done = run(tests, model=judge("no JSON at all"))

    assert len(done.ended) == len(SHIPPED_DATASETS)
    assert {name for name, end in done.ended.items() if end.score is None} == {
        "Delayed Recall - 0",
        "Jokes - 0",
        "Restaurant - 0",
    }


@pytest.mark.parametrize(
    ("key", "response", "expected", "share"),
    [
        ("colours", "That would be CYAN.", ["Cyan"], 1),
        ("colours", "Red, I think.", ["Cyan"], 0),
        ("name_list", '["ann", "Bob"]', ["Ann", "Bob"], 1),
        ("name_list", '```json\n["Bob", "Ann", "Eve", "Joe"]\n```', ["Ann", "Bob"], 0.5),
        ("name_list", '["Ann", "Ann"]', ["Ann", "Bob"], 0.5),
        ("name_list", "Ann and Bob", ["Ann", "Bob"], 0),
        ("name_list", '{"names": 2}', ["Ann"], 0),
        ("shopping", '[{"item": "Leeks", "quantity": 3}]', [["leek", 3]], 1),
        ("shopping", '[{"item": "Leek", "quantity": 1}]', [["leek", 3]], 2 / 3),
        ("shopping", '[{"item": "Leek", "quantity": 3}, {"item": "Rum", "quantity": 1}]', [["leek", 3]], 2 / 3),
        ("shopping", '[{"item": "Leek", "quantity": 3}]', [["leek", 3], ["milk", 1]], 2 / 3),
        ("shopping", "[]", [], 1),
        ("shopping", "Leeks: 3", [["leek", 3]], 0),
        ("sallyanne", '{"answer": "trunk"}', ["trunk"], 1),
        ("sallyanne", '{"answer": "Trunk"}', ["trunk"], 1),
        ("sallyanne", '{"answer": "in the trunk"}', ["trunk"], 0),
        ("sallyanne", "trunk", ["trunk"], 0),
        ("jokes", 'You said: "A clock."', ["A clock."], 1),
        ("spy_meeting", "Meet at Noon in the orchard with a boat.", [["raft", "boat"], ["orchard"], ["noon"]], 1),
        ("spy_meeting", "Where the sea cargo is stored.", [["car"], ["port", "cargo"]], 0.5),
        (
            "trigger_response",
            "Resist temptation, and stick to your diet!",
            ["resist temptation and stick to your diet"],
            1,
        ),
        ("trigger_response", "Enjoy your sweets.", ["resist temptation and stick to your diet"], 0),
        (
            "trigger_response",
            "Sure, I can help with other things today. Resist temptations and stick to your diet. Bye for now!",
            ["resist temptation and stick to your diet"],
            1,
        ),
        (
            "locations_directions",
            "Go 2 km north, then 3 km East.",
            ["From a, go 3km East to b.\nFrom b, go 2km North to c."],
            1,
        ),
        ("locations_directions", "Head west for 3 km.", ["From a, go 3km East to b."], 0),
        ("locations_directions", "Noted.", ["From a, go 1km East to b.\nFrom b, go 1km West to c."], 0),
    ],
)
def test_points_are_given_by_the_datasets_rule(key, response, expected, share):
    score, maximum, reasons = shipped(key).evaluate_correct(["?"], [response], expected)

    assert score / maximum == pytest.approx(share)
    assert all(isinstance(reason, str) for reason in reasons)


def test_directions_in_other_words_are_read_by_a_model():
    dataset = shipped("locations_directions")
    dataset.use_language_model(judge('[{"kilometers": 3, "direction": "East"}]'))

    score, _, _ = dataset.evaluate_correct(
        ["?"], ["Three kilometres towards the east."], ["From a, go 3km East to b."]
    )

    assert score == 1


@pytest.mark.parametrize("reply", ["no JSON", '[{"kilometers": 3}]', '[{"kilometers": 3, "direction": "up"}]'])
def test_directions_that_a_model_cannot_read_are_ungraded(reply):
    dataset = shipped("locations_directions")
    dataset.use_language_model(judge(reply))

    with pytest.raises(Ungraded):
        dataset.evaluate_correct(["?"], ["Three kilometres towards the east."], ["From a, go 3km East to b."])


def test_a_joke_is_asked_for_by_the_hours_and_days_that_have_passed():
    dataset = shipped("jokes")
    (test,) = dataset.generate_examples(1)
    told = datetime(2024, 1, 1)
    times = [told] * len(test.script)

    question = dataset.create_question(test, times, told + timedelta(days=1, hours=2, minutes=5, seconds=30))

    assert question == "Which joke did I tell you about 26 hours 5 minutes ago?"


def prospective(*replies, number=2):
    """The callback's verdict when these were the replies since the instruction."""
    dataset = shipped("prospective_memory")
    (test,) = dataset.generate_examples(1)
    test.expected_responses = [("The early bird: it sings!", "A. Wren", number)]
    log = MasterLog()
    for place, reply in enumerate(replies):
        said = test.script[-1] if place == 0 else "Something else."
        log.append(LogEvent(EventType.SEND_MESSAGE, datetime(2024, 1, 1), "", {"message": said}))
        log.append(LogEvent(EventType.RESPONSE_MESSAGE, datetime(2024, 1, 1), "", {"message": reply}))
    score, _, _, done = dataset.continual_evaluation_callback(RecordedRun(log), test, log.messages())
    return score, done, test.finished


def test_nothing_is_won_while_the_event_is_still_to_come():
    assert prospective("Noted.") == (0, False, False)


def test_the_saying_wins_in_the_right_reply_alone():
    assert prospective("Noted.", "Sure. 'The early bird, it sings.'") == (1, True, True)
    assert prospective("Noted.", "Sure.") == (0, True, True)
    assert prospective("The early bird: it sings!", "The early bird: it sings!") == (0, True, True)


ORDER = '{"has_ordered_something": true, "order": [%s]}'
TEA = '{"is_drink": true, "item": "tea", "menu_nr": 24, "off_menu": false}'
DISH = '{"is_drink": false, "item": "it", "menu_nr": %s, "off_menu": false}'


def evening(*verdicts):
    """How an evening ends when the model gives these replies in turn."""
    replies = iter(verdicts)
    end = run(shipped("restaurant").generate_examples(1), model=lambda request: judge(next(replies))(request))
    return end.ended["Restaurant - 0"]


def test_an_evening_at_the_restaurant_has_five_points():
    end = evening(
        '{"follows_role": true}',
        ORDER % TEA,
        ORDER % (DISH % 8),
        ORDER % (DISH % '"9"'),
        '{"noticed": true}',
        '{"recalls": true}',
    )

    assert (end.score, len(end.questions), len(end.reasoning)) == (1.0, 5, 5)


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        (['{"follows_role": false}'], 0),
        (['{"follows_role": true}', ORDER % ""], 0),
        (['{"follows_role": true}', ORDER % TEA, ORDER % (DISH % 99)], 0.2),
        (['{"follows_role": true}', ORDER % TEA, ORDER % (DISH % "null")], 0.2),
        (['{"follows_role": true}', ORDER % TEA, ORDER % (DISH % 8), ORDER % (DISH % 8)], 0.4),
        (
            ['{"follows_role": true}', ORDER % TEA, ORDER % (DISH % 8), ORDER % (DISH % 9), '{"noticed": false}'],
            0.6,
        ),
    ],
)
def test_the_evening_ends_where_the_guest_fails(verdicts, score):
    assert evening(*verdicts).score == pytest.approx(score)


@pytest.mark.parametrize("verdict", ["perhaps", '{"follows_role": "yes"}', "[]"])
def test_a_verdict_in_the_wrong_form_leaves_the_evening_ungraded(verdict):
    assert evening(verdict).score is None
