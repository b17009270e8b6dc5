"""Where a wrong answer was lost, from context, answer and judgement alone."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.batch.report import results_of_run
from memreplay.pages.autopsy import autopsy_page
from memreplay.published.autopsy import Autopsy, Finding, SystemAutopsy, autopsy_of, is_guessable
from memreplay.published.contexts import dates_in, unescaped
from memreplay.published.files import read_source
from memreplay.published.importing import import_published_run
from memreplay.recording.reader import Recording
from memreplay.views.autopsy import autopsy_sections, autopsy_text
from memreplay.views.table import Table
from tests.stubs.published_results import amb, amb_row, said


def opened(document: Any, dataset: Path, name: str = "r") -> SystemAutopsy:
    path = dataset.with_name(f"{name}.json")
    path.write_text(json.dumps(document))
    (run,) = read_source(path)
    made = import_published_run(run, dataset.with_name("a.sqlite3"), (dataset,))
    with closing(Recording.open(dataset.with_name("a.sqlite3"))) as recording:
        return autopsy_of(made, recording, results_of_run(recording, recording.run(made.run_id)))


def finding(dataset: Path, number: int, answer: str, context: str, right: bool = False, **more: Any) -> Finding:
    (found,) = opened(amb(amb_row(number, answer, context, right, **more)), dataset).findings
    return found


@pytest.mark.parametrize(
    ("number", "answer", "context", "stage"),
    [
        (0, "On 11 June.", said("D1:1"), "undated"),
        (0, "On 11 June.", "Session of 4 May 2023. " + said("D1:1"), "misread"),
        (0, "On 11 June.", said("D2:1"), "absent"),
        (0, "On 11 June.", "Ann went to the pottery class the day after 2 May 2023.", "misread"),
        (1, "A green cup.", said("D1:2"), "absent"),
        (1, "Her flat, happy.", said("D1:3", "D2:2"), "another_value"),
        (1, "The context does not mention what she made.", said("D1:3"), "said_not_there"),
        (1, "The context lacks what she made. However, she likes clay.", said("D1:3"), "said_not_there"),
        (3, "A bowl.", said("D1:3"), "part"),
        (2, "Spain.", "Ann: My sister moved from her home, that is how it", "reworded"),
        (2, "Spain.", "Great! What did you make there, a bowl or a cup?", "absent"),
        (2, "Spain.", "Ann: My sister moved from Norway to Lisbon last", "misread"),
        (3, "A bowl.", "Ann: My sister moved from Norway to Lisbon last", "cut"),
        (3, "A jug.", "Ann made a blue bowl in class. It was her sister who moved.", "misread"),
        (3, "A jug.", "Ann made a blue bowl in class.", "reworded"),
    ],
)
def test_the_stage_of_a_wrong_answer(dataset: Path, number: int, answer: str, context: str, stage: str) -> None:
    assert finding(dataset, number, answer, context).stage == stage


@pytest.mark.parametrize(
    ("expected", "context", "stage"),
    [
        (
            "by running, reading, or playing the violin each day",
            "Ann reads, runs or plays violin each day.",
            "misread",
        ),
        ("by running, reading, or playing the violin each day", "Ann runs. Ben plays the violin.", "no_evidence"),
        (
            "a walk of 12 miles along the river Tay",
            "They had a walk of 15 miles along the river Tay.",
            "no_evidence",
        ),
        ("2", "They met 2 friends.", "no_evidence"),
        ("And of it: Ann and her husband met 5 years ago.", "Of it all: Ann met him five years ago.", "misread"),
    ],
)
def test_a_context_in_its_own_words_may_hold_a_long_answer_and_no_small_number(
    dataset: Path, expected: str, context: str, stage: str
) -> None:
    asked = {"query_id": "x", "query": "And what of it?", "gold_answers": [expected]}
    assert finding(dataset, 1, "Something else.", context, **asked).stage == stage


def test_an_answer_without_a_reply_or_a_context_says_so(dataset: Path) -> None:
    assert finding(dataset, 0, "", said("D1:1")).stage == "no_answer"
    row = amb_row(0, "On 11 June.", "", False)
    del row["context"]
    (found,) = opened(amb(row), dataset).findings
    assert (found.stage, found.evidence, found.context_tokens) == ("no_context", None, None)


def test_an_answer_without_a_key_and_a_judgement_is_neither_wrong_nor_missing(dataset: Path) -> None:
    row = {"question_id": "e1", "question": "Which colour does Ben like?", "hypothesis": "Green."}
    system = opened([row, row | {"question_id": "e2", "hypothesis": ""}], dataset)
    assert [each.stage for each in system.findings] == ["no_key", "no_answer"] and not system.graded
    text = " ".join(map(str, autopsy_text(list(autopsy_sections(Autopsy((system,)))))))
    assert "no answer is judged" in text and "no answer is wrong" not in text


def test_figures_of_a_run(dataset: Path) -> None:
    asked_on = {"sample_id": "conv-1", "category": "open-domain", "query_timestamp": "2023-06-12T09:00:00"}
    found = opened(
        amb(
            amb_row(0, "On 11 June 2023.", said("D1:1"), False, meta=asked_on),
            amb_row(1, "The context does not say what it was.", said("D2:2"), True),
            amb_row(1, "A blue bowl.", said("D1:3"), True),
            amb_row(2, "Norway.", said("D1:1", "D1:2", "D2:1"), False),
        ),
        dataset,
    )
    assert found.stages == {"undated": 1, "misread": 1}
    assert [each.question_id for each in found.said_to_lack] == ["conv-1_q1"]
    assert [each.question_id for each in found.unsupported] == ["conv-1_q1"]
    assert [[each.question_id for each in side] for side in found.disagreements] == [["conv-1_q1"], ["conv-1_q2"]]
    assert [each.repeat for each in found.repeated] == [1]
    assert found.mixed_up == {("open-domain", "temporal"): 1}
    assert found.findings[0].names_day_of_asking and found.findings[0].session_dates == 0
    assert found.evidence_at(8192) == (3, 4)


def test_questions_that_all_systems_miss(dataset: Path) -> None:
    wrong, right = (amb_row(2, "Spain.", said("D2:1"), False), amb_row(1, "A bowl.", said("D1:3"), True))
    systems = [opened(amb(wrong, other), dataset, name) for name, other in (("a", right), ("b", right))]
    missed = Autopsy(tuple(systems)).missed_by_all
    assert [[each.question_id for each in answers] for answers in missed] == [["conv-1_q2", "conv-1_q2"]]


def test_the_page_escapes_what_the_file_says_and_the_text_names_everything(dataset: Path) -> None:
    hostile = "<script>alert(1)</script> \x1b[2J"
    found = Autopsy((opened(amb(amb_row(0, hostile, said("D1:1"), False), 5), dataset),))
    sections = list(autopsy_sections(found))
    page = autopsy_page(found, sections, "memreplay autopsy x")
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page and "\x1b" not in page
    text = [part.title if isinstance(part, Table) else part for part in autopsy_text(sections)]
    assert any("1 wrong answer had the evidence but not the date of its session" in line for line in text)
    assert any("not read: r.json: /results/1" in line for line in text)


@pytest.mark.parametrize(
    "written", ["8 May, 2023", "May 8th", "2023-05-08T10:00", "5/8/2023", "8th of May", "08-May-2023", "on May 8."]
)
def test_days_are_found_however_they_are_written(written: str) -> None:
    assert (5, 8) in dates_in(f"It was {written} then")


def test_no_day_is_read_out_of_other_numbers() -> None:
    assert dates_in("We may 10:30 meet, 12 people came in 2023; version 1.2.3") == frozenset()


def test_escapes_of_json_inside_json_are_read() -> None:
    assert unescaped(r"I said \"hello\"\nand caf\u00e9 \ud83d\ude00") == 'I said "hello" and café 😀'


def test_a_reply_without_a_key_is_judged_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "hyp.jsonl"
    rows = [{"question_id": "e1", "hypothesis": "A bowl.", "autoeval_label": {"model": "gpt-4o", "label": True}}]
    path.write_text("\n".join(map(json.dumps, [*rows, {"question_id": "e2", "hypothesis": "A cup."}])))
    (run,) = read_source(path)
    made = import_published_run(run, tmp_path / "a.sqlite3")
    with closing(Recording.open(tmp_path / "a.sqlite3")) as recording:
        found = autopsy_of(made, recording, results_of_run(recording, recording.run(made.run_id)))
    assert [(each.is_right, each.by_rules) for each in found.findings] == [(True, None), (None, None)]


@pytest.mark.parametrize(
    ("question", "expected", "can_be_guessed"),
    [
        ("Would Ann move back?", "Likely no; she is happy here", True),
        ("Would Ann rather see a national park or a theme park?", "National park; she likes the outdoors", True),
        ("Does Ann live in Norway or elsewhere?", "Lisbon", False),
        ("What did Ann make?", "a blue bowl", False),
        ("Where is Norway Street?", "Norway", False),
    ],
)
def test_questions_that_can_be_answered_without_memory_are_marked(
    question: str, expected: str, can_be_guessed: bool
) -> None:
    assert is_guessable(expected, question) is can_be_guessed
