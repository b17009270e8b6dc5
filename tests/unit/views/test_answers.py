"""What the panels of answers, of results and of scores make of a timeline, without a screen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from memreplay.scoring.verdicts import VERDICTS
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.views.document import LinesDocument
from memreplay.views.panels.answers import AnswersTable, ListedQuestion, answers_view, reader_label
from memreplay.views.panels.results import (
    Matrix,
    MatrixDocument,
    ResultsChoice,
    breakdowns,
    labels_of,
    question_details,
    scores_lines,
    tally,
    title_of,
)
from memreplay.views.panels.why import waiting_lines
from tests.tui.builder import conversation, events, timeline
from tests.unit.views.test_panels import rows_of, text_of


def test_answers_carry_a_sign_for_each_architecture_once_they_were_asked() -> None:
    known = timeline()
    assert "asked after the last turn" in text_of(answers_view(known, 7).document)
    view = answers_view(known, 8)
    assert (view.title, view.note) == ("answers", "hybrid rag full_context")
    assert text_of(view.document).splitlines() == [
        "✓ ! ✗ 1. What is the user's full name?",
        "✗ ✓ ✓ 2. Which port does the database listen on?",
        "✓ ? ✓ 3. In which city does the user work now?",
    ]


def test_scores_of_a_run_whose_answers_are_still_being_read_are_an_empty_table() -> None:
    empty = Matrix(AnswersTable([], [], ["hybrid"]))
    assert [row.split()[:2] for row in text_of(LinesDocument(scores_lines(empty, None, 80)), 80).splitlines()] == [
        ["architecture", "right"]
    ]


def test_an_error_is_no_wrong_answer_and_nothing_divided_by_nothing_is_a_dash() -> None:
    table = AnswersTable.until(timeline(), 8)
    hybrid, rag, full = (tally(Matrix(table), table.questions, who) for who in table.systems)
    assert (hybrid.correct, hybrid.graded, hybrid.accuracy) == (2, 3, 2 / 3)
    assert (rag.correct, rag.graded, rag.errors, rag.accuracy) == (1, 2, 1, 0.5)
    assert full.recall is None
    shown = text_of(LinesDocument(scores_lines(Matrix(table), None, 100)), 100).splitlines()
    assert shown[0].split() == [
        "architecture",
        "right",
        "acc",
        "evidence",
        "context",
        "recall@10",
        "errors",
        "unparsed",
    ]
    assert shown[2].split() == ["2", "rag", *"1/2 50 % 100 % 80 100 % 1 1".split()]


def test_recall_is_labelled_with_the_number_of_hits_that_was_really_used() -> None:
    headings = [
        text_of(LinesDocument(scores_lines(Matrix(AnswersTable.until(timeline(), 8, top_k)), None, 118)), 118)
        .splitlines()[0]
        .split()[5]
        for top_k in (None, 3, 10, 50)
    ]
    assert headings == ["recall@10", "recall@3", "recall@10", "recall@10"]


def matrix() -> Matrix:
    table = AnswersTable.until(timeline(), 8)
    return Matrix(table, labels_of(timeline(), table))


@pytest.mark.parametrize("width", [78, 118, 158])
def test_a_cell_says_with_a_letter_which_stage_lost_the_fact(width: int) -> None:
    known = matrix()
    shown = text_of(MatrixDocument(known, known.table.questions), width).splitlines()
    cells = [row.replace("[", " ").replace("]", " ") for row in shown]
    assert [each.split()[:5] for each in cells] == [
        ["▶", "1", "early", "g", "!"],
        ["2", "early", "R", "g", "g"],
        ["3", "middle", "g", "?", "g"],
    ]
    assert cells[0].split()[5] == "R"
    assert all(len(row) <= width for row in shown)


def test_a_failure_stands_out_without_colour_and_every_letter_means_one_stage() -> None:
    known = matrix()
    document = MatrixDocument(known, known.table.questions)
    spans = {span.text.strip(): span.tone for row in rows_of(document, 118) for span in row.spans}
    assert (spans["R"], spans["!"], spans["?"]) == ("lost", "lost", "doubt")
    failures = [verdict.letter for verdict in VERDICTS.values() if verdict.standing != "sound"]
    assert len(set(failures)) == len(failures)


def test_the_selected_question_is_shown_whole_with_every_reply() -> None:
    known = matrix()
    shown = text_of(LinesDocument(question_details(known, known.table.questions[0], 1, roomy=False)), 78)
    assert len(shown.splitlines()) == 5, "at 80×24 the whole question fits"
    for wanted in ("What is the user's full name?", "expected Marta Vidal", "written but not retrieved"):
        assert wanted in shown
    assert "▸ !  rag" in shown and "the collection does not answer" in shown


def test_questions_are_sorted_by_any_column_in_both_directions() -> None:
    known = matrix()
    assert known.sort_columns() == ["number", "type", "wrong answers", "hybrid", "rag", "full_context", "question"]

    def order(**choice: Any) -> list[int]:
        return [known.numbers[listed] for listed in known.select(ResultsChoice(**choice))]

    assert order(sort="hybrid") == [2, 1, 3]
    assert order(sort="rag") == [1, 3, 2]
    assert order(sort="question") == [3, 1, 2]
    assert order(sort="wrong answers") == [1, 2, 3]
    assert order(descending=True) == [3, 2, 1]
    assert order(words="rag:unparsed") == [3]
    assert order(words="PORT listen") == [2]
    assert order(filter="not_retrieved") == [1, 2]


def test_scores_are_broken_down_by_the_fields_that_questions_have() -> None:
    known = timeline()
    asked, places = known.conversation.questions, ("recent", "early", "early")
    located = [q.model_copy(update={"info_location": at}) for q, at in zip(asked, places, strict=True)]
    known.conversation = known.conversation.model_copy(update={"questions": tuple(located)})
    table = AnswersTable.until(known, 8)
    broken = Matrix(table, labels_of(known, table))
    assert breakdowns(broken) == [None, "type", "location"]
    shown = text_of(LinesDocument(scores_lines(broken, "location", 118)), 118).splitlines()
    assert [row.split()[:2] for row in shown] == [["location", "n"], ["early", "2"], ["recent", "1"]]
    assert shown[1].split()[2:6] == ["50", "%", "R1", "g1"]
    by_system = text_of(LinesDocument(scores_lines(broken, None, 118)), 118).splitlines()
    assert by_system[0].split()[6:] == ["!", "?", "R", "g"]
    assert by_system[1].split() == [
        "1",
        "hybrid",
        "2/3",
        "67",
        "%",
        "67",
        "%",
        "80",
        "100",
        "%",
        "·",
        "·",
        "1",
        "2",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 118])
def test_stages_that_do_not_fit_leave_an_ellipsis(width: int) -> None:
    known = timeline()
    table = AnswersTable.until(known, 8)
    labels = labels_of(known, table)
    wide, narrow = (
        text_of(LinesDocument(scores_lines(Matrix(table, labels), "type", each)), each).splitlines()[1:]
        for each in (200, width)
    )
    for full, cut in zip(wide, narrow, strict=True):
        lost = re.findall(r"[A-Za-z?!]\d+", full)
        assert lost == re.findall(r"[A-Za-z?!]\d+", cut) or "…" in cut


def test_the_options_that_a_memory_chose_are_counted_by_the_right_one() -> None:
    table = AnswersTable.until(timeline(), 8)
    with_options = [
        ListedQuestion(
            listed.conversation,
            listed.question.model_copy(update={"choices": ("Vic", "Olot", "Ripoll"), "correct_index": 1}),
        )
        for listed in table.questions
    ]
    chosen = {"q1": 1, "q2": 2, "q3": None}

    def choosing(answer: Answer) -> Answer:
        assert answer.scored is not None
        predicted = chosen[answer.asked.question_id]
        score = answer.scored.score.model_copy(update={"outcome": "wrong", "predicted_index": predicted})
        return replace(answer, scored=answer.scored.model_copy(update={"score": score}))

    answers = [choosing(answer) for answer in table.all_answers() if answer.asked.backend == "rag"]
    known = Matrix(AnswersTable(with_options, answers, ["rag"]))
    (*_, last) = breakdowns(known)
    assert title_of(known, last) == "options chosen by rag"
    shown = [row.split() for row in text_of(LinesDocument(scores_lines(known, last, 78)), 78).splitlines()]
    assert shown == [
        ["right", "\\", "chosen", "0", "1", "2", "none"],
        ["0", "·", "·", "·", "·"],
        ["1", "·", "1", "1", "1"],
        ["2", "·", "·", "·", "·"],
    ]


def test_the_embedded_reader_is_named_for_what_it_is() -> None:
    assert reader_label("memreplay/extractive").endswith("an embedded reader and not a language model")
    assert reader_label("openai/some-model") == "openai/some-model"


def test_a_category_with_two_names_is_called_by_both_wherever_it_is_shown() -> None:
    named = conversation().model_copy(
        update={
            "questions": tuple(
                question.model_copy(update={"type": "temporal_reasoning", "other_type": "open-domain"})
                if question.id == "q1"
                else question
                for question in conversation().questions
            )
        }
    )
    known = Timeline(named, events(named))
    table = AnswersTable.until(known, known.reached)
    matrix, first, both = Matrix(table), table.questions[0], "temporal_reasoning (open-domain)"
    assert both in " ".join(text_of(LinesDocument(question_details(matrix, first, 0, roomy=True))).split())
    assert both in text_of(LinesDocument(scores_lines(matrix, "type", 78)), 78)
    answer = next(iter(known.answers()))
    assert both in " ".join(text_of(LinesDocument(waiting_lines(first.question, answer))).split())
    for words in ("open-domain", "temporal_reasoning"):
        assert matrix.select(ResultsChoice(words=words)) == (first,), "a search finds either name"
