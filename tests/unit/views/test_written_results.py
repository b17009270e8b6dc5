"""Results as CSV and Markdown: everything is there, and nothing in them is carried out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_backends.base import Excerpt
from memory_backends.controls import NoEvidenceError
from memory_backends.stores.trace import Extraction
from memreplay.batch.writers import RENDERERS, markdown_of, print_table, write_results
from memreplay.conversations.option_style import option_style
from memreplay.engine.events import Observed
from memreplay.files import write_whole
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.model import Reply
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import KeyFacts, Results, RunFacts
from memreplay.scoring.verdicts import LABELS
from memreplay.scoring.writing import Writing
from memreplay.views.remarks import headline_remarks, remarks
from memreplay.views.tables import tables_of
from tests.tables import failing
from tests.unit.scoring.samples import MODEL, choice, hit, recall, reply, row

RUN = RunFacts(
    id="r1",
    started_at="2026-01-01T00:00:00.000Z",
    finished_at=None,
    memreplay_version="0.1.0",
    settings={},
    datasets=("own|set",),
)
FOUND = choice(evidence=("t1", "t2"), evidence_role="supports")


def results_of(*rows: QuestionRow) -> Results:
    return build_results(RUN, rows)


def columns_of(*rows: QuestionRow) -> dict[str, dict[str, dict[str, str]]]:
    return columns_in(results_of(*rows))


def columns_in(results: Results) -> dict[str, dict[str, dict[str, str]]]:
    """The cell of each backend, by the title of its table and the heading of its column."""
    return {
        table.title: {
            heading: {name: cells[place] for name, *cells in table.texts}
            for place, heading in enumerate(table.headings[1:])
        }
        for table in tables_of(results)
    }


def csv_of(results: Results, ending: str = ".csv") -> str:
    text = RENDERERS[ending](results)
    assert isinstance(text, str)
    return text


def cells(*rows: QuestionRow) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(results_of(*rows)), newline="")))


@pytest.mark.parametrize("rows", [(), (row(FOUND, reply("3")), row(FOUND, reply("0"), backend="hybrid"))])
def test_json_is_written_row_by_row_and_is_the_same_as_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: tuple[QuestionRow, ...]
) -> None:
    results, file = results_of(*rows), tmp_path / "results.json"
    write_results(results, [str(file), "-"])
    assert file.read_text(encoding="utf-8") == capsys.readouterr().out == results.to_json()


def test_results_that_cannot_be_rendered_leave_the_file_as_it_was(tmp_path: Path) -> None:
    def breaks_off() -> Iterator[str]:
        yield "the first row"
        raise RuntimeError("no second row")

    file = tmp_path / "results.json"
    write_whole(str(file), "old")
    with pytest.raises(RuntimeError):
        write_whole(str(file), breaks_off())
    assert {each.name: each.read_text(encoding="utf-8") for each in tmp_path.iterdir()} == {"results.json": "old"}


def test_csv_has_a_row_for_each_answer_in_the_order_of_the_results() -> None:
    first, second = cells(row(FOUND, reply("3"), hit(1, "t1")), row(FOUND, reply("0"), backend="hybrid"))
    assert (first["backend"], first["outcome"], first["predicted"]) == ("rag", "correct", "quince")
    assert (first["evidence"], first["evidence_in_prompt"], first["hits"]) == ("t1 t2", "false", "1")
    assert (first["recall_at_10"], first["tokens_prompt"], first["exact_match"]) == ("0.5", "10", "")
    assert (second["backend"], second["outcome"], second["score"]) == ("hybrid", "wrong", "0.0")


def test_csv_carries_attribution_and_the_adjusted_score() -> None:
    ranks = {"t2": {"dense": 14, "keyword": 3}}
    (only,) = cells(row(FOUND, reply("0")).model_copy(update={"failure": "not_retrieved", "failure_ranks": ranks}))
    assert (only["failure"], only["failure_ranks"]) == ("not_retrieved", "t2: dense 14, keyword 3")
    assert only["adjusted_outcome"] == ""


def test_csv_says_which_rule_decided() -> None:
    (written,) = cells(row(recall(), reply("Ida and Bo")))
    assert written["decided_by"] == "exact"


def test_csv_text_that_a_spreadsheet_would_calculate_has_a_quote_before_it() -> None:
    def check(start: str) -> None:
        (only,) = cells(row(recall(text=f"{start}HYPERLINK(1)"), reply(f"{start}1+1")))
        shown = start.replace("\r", "\\r")
        assert only["question"] == f"'{shown}HYPERLINK(1)" and only["reply"] == f"'{shown}1+1"

    assert failing(["=", "+", "-", "@", "\t", "\r", "\n", "＝", "  ="], check) == []


def test_csv_leaves_numbers_and_other_text_as_they_are() -> None:
    text = 'She said "no; maybe",\nthen = left'
    (only,) = cells(row(recall(text=text), reply("x")).model_copy(update={"score": -1.5, "cost_usd": 1.23e-07}))
    assert (only["question"], only["score"], only["cost_usd"]) == (text, "-1.5", "1.23e-07")


def test_markdown_has_the_tables_the_words_and_what_was_run() -> None:
    text = markdown_of(
        results_of(
            row(FOUND, reply("3"), hit(1, "t1", "t2")).model_copy(update={"failure": "grounded"}),
            row(FOUND, reply("0"), backend="full_context").model_copy(update={"failure": "cut"}),
        )
    )
    assert text.startswith("## memreplay: 1 question of own\\|set\n")
    assert "| rag | 1/1 | 100.0 % |" in text and "| full\\_context | 0/1 | 0.0 % |" in text
    heading, columns = "### Where each fact was lost", "| backend | cut | grounded |\n| --- | ---: | ---: |"
    assert f"{heading}\n\n{columns}\n| rag | 0 | 1 |" in text
    assert "- rag is ahead of full\\_context on this one question by 100.0 points" in text
    assert "Run r1, started 2026-01-01T00:00:00.000Z" in text
    assert "- *accuracy*: share of graded answers that are right\n" in text
    assert "- *cut*: wrong: retrieved, then cut from the prompt by the budget\n" in text and "*stale*" not in text


def test_markdown_of_a_hostile_name_makes_no_markup_and_mentions_nobody() -> None:
    text = markdown_of(results_of(row(choice(), reply("3"), backend="<b>|`x`[y](z) @team\n# h")))
    assert "| \\<b\\>\\|\\`x\\`\\[y\\](z) @\u200bteam \\# h | 1/1" in text


def test_a_column_in_which_nobody_has_anything_is_left_out() -> None:
    tables = columns_of(row(recall(), reply("Ida and Bo")))
    assert set(tables[""]) == {"right", "accuracy", "95 %", "errors", "cost"}
    assert set(tables["What the scores rest on"]) == {"tokens/right", "cost/right"}


@pytest.mark.parametrize(("closed_book", "said"), [(None, True), (True, False)])
def test_guessed_is_qualified_if_there_is_no_closed_book_baseline(closed_book: bool | None, said: bool) -> None:
    guessed = row(FOUND, reply("3")).model_copy(update={"failure": "guessed", "closed_book_correct": closed_book})
    assert any("cannot be told apart" in sentence for sentence in remarks(results_of(guessed))) is said


def test_caveats_are_printed_below_the_numbers() -> None:
    style = option_style([choice(choices=("red", "Green", "Blue"), correct_index=0)])
    assert style is not None
    key = KeyFacts(file="errors.json", corrections=156, questions=3)
    results = build_results(RUN, [row(choice(), reply("3"), model=EXTRACTIVE_MODEL)], {"own": style}, key)
    leak, adjusted, reader = remarks(results)
    assert "in 1 of 1 question, and is the right one in 1" in leak and "gets 100.0 % (chance 33.3 %)" in leak
    assert "errors.json" in adjusted and "3 of the questions" in adjusted
    assert "not a language model" in reader


def test_the_commonest_reasons_of_errors_stand_below_the_table() -> None:
    reasons = ["down"] * 3 + ["busy"] * 2 + ["odd", "odder"]
    rows = [row(choice(id=f"q{n}"), reply(None, error=reason)) for n, reason in enumerate(reasons)]
    (sentence,) = remarks(results_of(row(choice(), reply("3")), *rows))
    assert (
        sentence.startswith("errors: 7 of 8 answers")
        and "down (3); busy (2); odd (1); and 1 other reason." in sentence
    )
    assert "--retry-errors" in sentence


def test_errors_of_the_control_that_is_asked_along_are_counted() -> None:
    rows = [row(choice(id=f"q{n}"), reply("3"), backend=name) for n in range(3) for name in ("rag", "hybrid")]
    rows[:2] = [each.model_copy(update={"closed_book_correct": False}) for each in rows[:2]]
    asked_along = RUN.model_copy(update={"settings": {"closed_book_asked_along": True}})
    for sentences in (remarks, headline_remarks):
        said = [each for each in sentences(build_results(asked_along, rows, {}, None)) if "closed_book" in each]
        assert len(said) == 1 and "failed on 2 of 3 questions" in said[0]
        assert not any("closed_book" in each for each in sentences(build_results(RUN, rows, {}, None)))


def test_an_error_that_no_retry_mends_has_no_advice_to_retry() -> None:
    error = str(NoEvidenceError("the dataset names no evidence for this question"))
    (sentence,) = remarks(results_of(row(choice(), reply("3")), row(choice(id="q2"), reply(None, error=error))))
    assert sentence.startswith("errors: 1 of 2 answers") and "--retry-errors" not in sentence


def test_calls_to_write_that_failed_are_reported_below_the_table() -> None:
    rows = [row(choice(), reply("3"), backend="hybrid")]

    def said(*errors: str | None) -> list[str]:
        writing = Writing([Extraction(model="m", turns=("1",), reply="a fact", error=error) for error in errors])
        writing.add(Observed(conversation="c1", turn=2, backend="hybrid", turns=("1",), ms=1.0))
        results = build_results(RUN, rows, writing={"hybrid": writing})
        assert set(remarks(results)) == set(headline_remarks(results))
        return remarks(results)

    assert said(None, None) == []
    (partly,), (wholly,) = said("down", None, "down"), said("down", "no", "down")
    assert partly.startswith("writer: 2 of 3 calls of hybrid to write failed") and "down" in partly
    assert wholly.startswith("writer: none of 3 calls of hybrid to write gave a usable reply (down)")


def test_missing_evidence_is_reported_with_how_to_join_it() -> None:
    unnamed = row(choice(), reply("0")).model_copy(update={"failure": "no_evidence"})
    right = row(choice(id="right"), reply("3"))
    rows = [unnamed, right, row(FOUND.model_copy(update={"id": "named"}), reply("0"))]
    assert any("for 2 of 3 questions" in s and "--evidence" in s for s in remarks(results_of(*rows)))
    assert not any("--evidence" in s for s in remarks(results_of(*rows[1:])))


def test_it_is_said_how_many_right_answers_only_say_that_it_was_never_said() -> None:
    unsaid = choice(id="n", expected="Not answerable", correct_index=8, abstain=True)
    rows = [row(choice(), reply("3")), row(unsaid, reply("8")), row(unsaid, reply("8"), backend="closed_book")]
    said = [sentence for sentence in remarks(results_of(*rows)) if sentence.startswith("abstentions: ")]
    assert len(said) == 1
    assert "to questions of which nothing was ever said: rag 1 of 2, closed_book 1 of 1. Without any" in said[0]
    assert not any(sentence.startswith("abstentions") for sentence in remarks(results_of(rows[0])))


def test_a_turn_that_only_tempts_is_no_evidence_for_an_answer() -> None:
    tempted = choice(evidence=("t1",), evidence_role="tempting")
    (sentence,) = remarks(results_of(row(tempted, reply("0")).model_copy(update={"failure": "no_evidence"})))
    assert sentence.startswith(
        "no evidence: for 1 of 1 question the dataset names no turns that support the answer"
    )


def test_what_is_not_known_of_a_failed_call_is_an_empty_cell_and_not_nothing() -> None:
    failed = Reply(text=None, error="down")
    (only,) = cells(row(choice(), failed))
    assert (only["tokens_prompt"], only["ms"], only["cost_usd"]) == ("", "", "")


def test_a_heading_of_two_tables_is_explained_for_each() -> None:
    rows = [
        row(FOUND, reply("3"), hit(1, "t1", "t2")).model_copy(update={"failure": "grounded"}),
        row(recall(), reply("It was not mentioned.")).model_copy(update={"failure": "abstained"}),
    ]
    legend = markdown_of(results_of(*rows)).partition("What the columns mean")[2]
    scores, _, lost = legend.partition("Where each fact was lost")
    assert "- *grounded*: share of graded questions" in scores and "- *abstained*: replies that say so" in scores
    assert "- *grounded*: right, with the answer in the prompt" in lost
    assert "- *abstained*: wrong: the prompt held the answer" in lost


def test_every_label_is_explained() -> None:
    rows = [row(FOUND, reply("0")).model_copy(update={"failure": label}) for label in LABELS]
    legend = markdown_of(results_of(*rows)).rpartition("Where each fact was lost:")[2]
    assert legend.count("- *") == len(LABELS)


def test_a_control_without_memory_has_no_stage_and_no_count_of_them() -> None:
    lost = row(FOUND, reply("0"), hit(1, "t1")).model_copy(update={"failure": "not_retrieved"})
    columns = columns_of(lost, row(FOUND, reply("0"), backend="closed_book"))
    assert columns["Where each fact was lost"]["not retrieved"] == {"rag": "1", "closed_book": "–"}


def test_it_is_said_that_not_everything_was_asked_and_how_repeats_count() -> None:
    run = RUN.model_copy(update={"settings": {"sample": 2, "seed": 7}})
    rows = [
        row(choice(id=f"q{n}"), reply("3" if n % 2 else "0"), backend=name).model_copy(update={"repeat": repeat})
        for n in range(20)
        for name in ("rag", "hybrid")
        for repeat in (0, 1)
    ]
    said = remarks(build_results(run, rows))
    assert said[0] == "sample: 2 questions were drawn, stratified by type, with seed 7."
    assert any("a question counts as right if more than half of its repeats are" in sentence for sentence in said)
    assert not any("repeats" in sentence for sentence in remarks(results_of(*(r for r in rows if not r.repeat))))


@pytest.mark.parametrize(("model", "said"), [(MODEL, True), (EXTRACTIVE_MODEL, False)])
def test_the_prompt_is_named_where_a_language_model_reads_it(model: str, said: bool) -> None:
    run = RUN.model_copy(update={"settings": {"prompt": "locomo"}})
    results = build_results(run, [row(choice(), reply("3")).model_copy(update={"model": model})])
    assert ("prompt: locomo, the wording of the questions to models (--prompt)." in remarks(results)) is said


def test_where_everything_fits_it_is_said_that_nothing_can_differ_and_what_to_change() -> None:
    whole, half = hit(1, "t1", "t2"), hit(1, "t1")
    rows = [row(FOUND, reply("3"), whole), row(FOUND, reply("0"), whole, backend="hybrid")]
    first, *_ = remarks(results_of(*rows))
    assert first.startswith("everything fits: every prompt of every memory held the answer to 1 of 1 question ")
    assert (
        "cannot differ here in what they find" in first
        and "smaller --context-tokens or --top-k, or longer histories" in first
    )
    assert not any(
        "fits" in sentence for sentence in remarks(results_of(rows[0], row(FOUND, reply("0"), half, backend="x")))
    )


def test_questions_in_words_and_with_options_have_figures_of_their_own() -> None:
    mixed = results_of(row(recall(), reply("No idea")), row(choice(), reply("3")), row(choice(id="o"), reply("0")))
    columns = columns_in(mixed)[""]
    assert (columns["in words"]["rag"], columns["by choice"]["rag"]) == ("0.0 % of 1", "50.0 % of 2")
    assert "by choice" not in columns_of(row(choice(), reply("3")))[""]
    assert not any(sentence.startswith("asked more than once") for sentence in remarks(mixed))


def test_a_question_asked_in_words_and_with_options_is_said_to_be_no_new_evidence() -> None:
    rows = [row(recall(text="Which fruit?"), reply("No idea")), row(choice(id="q-mc"), reply("3"))]
    (sentence,) = remarks(results_of(*rows))
    assert sentence.startswith("asked more than once: 1 of 1 fact, in words and with options or")


def test_the_tables_compare_at_equal_tokens_and_name_the_number_of_hits_that_was_used() -> None:
    run = RUN.model_copy(update={"settings": {"top_k": 3}})
    rows = [row(FOUND, reply("3"), hit(1, "t1", tokens=400), hit(2, "t2", tokens=600))]
    text = markdown_of(build_results(run, rows))
    assert "recall@3" in text and "recall@10" not in text and "recall@5" not in text
    assert "| backend | of | answer 256 | answer 512 | answer 1,024 | answer 2,048 | recall 256 |" in text
    assert "| rag | 1 | 0.0 % | 0.0 % | 100.0 % | 100.0 % | 0.0 % | 50.0 % | 100.0 % | 100.0 % |\n" in text
    assert "| backend | of | recall@1 | recall@3 | tokens/hit | turns/hit |" in text and "| 500.0 | 1.0 |" in text
    assert "### Accuracy against tokens\n\n| backend | prompt tokens/question | accuracy | answer in 1,024" in text
    assert "- *recall@3*: share of a question's evidence turns in the first 3 hits, on average" in text


def test_figures_of_a_memory_that_composes_its_prompt_anew_are_marked_as_estimates_everywhere() -> None:
    said = Excerpt(turn="t1", rank=1, start=0, end=4)
    rows = [
        row(FOUND, reply("3"), hit(1, "t1", tokens=400, excerpts=(said,)), backend="hybrid"),
        row(FOUND, reply("3"), hit(1, "t1", "t2", tokens=400)),
    ]
    results = results_of(*rows)
    text = markdown_of(results)
    assert r"| hybrid | 1 | \~0.0 % | \~0.0 % | \~0.0 % | \~0.0 % | \~50.0 % |" in text
    assert "| rag | 1 | 0.0 % | 100.0 % | 100.0 % | 100.0 % | 0.0 % |" in text
    (sentence,) = [each for each in remarks(results) if each.startswith("~")]
    assert sentence.startswith("~: estimated for hybrid,") and "memreplay sweep FILE" in sentence
    assert not any(each.startswith("~") for each in headline_remarks(results)), "its table has no such figure"
    assert not any(each.startswith("~") for each in remarks(results_of(rows[1])))
    found = results.backends["hybrid"].retrieval
    assert found is not None and all(held.estimated for held in (found.at_tokens or {}).values())
    cells = list(csv.DictReader(io.StringIO(RENDERERS[".csv"](results))))
    assert [each["estimated_at_1024_tokens"] for each in cells] == ["true", "false"]


def test_breakdowns_and_chosen_options_are_in_markdown_and_in_a_csv_file() -> None:
    rows = [
        row(choice(id="a"), reply("3")),
        row(choice(id="b"), reply("0")),
        row(choice(id="c", type="=late"), reply("0")),
    ]
    text = markdown_of(results_of(*rows))
    assert "<summary>By type</summary>\n\n| type (its other name) | rag |\n| --- | ---: |" in text
    assert "| single\\_hop (multi-hop) | 1/2 50.0 % |" in text, (
        "both names of a category" and "By salience" not in text
    )
    assert "<summary>Options chosen: rag</summary>" in text and "| 3 | 2 |  |  | 1 |" in text
    lines = list(csv.DictReader(io.StringIO(csv_of(results_of(*rows), ".breakdown.csv"), newline="")))
    assert [(line["by"], line["group"], line["total"], line["correct"]) for line in lines] == [
        ("type", "'=late", "1", "0"),
        ("type", "single_hop", "2", "1"),
        ("right option, chosen option", "3, 0", "2", ""),
        ("right option, chosen option", "3, 3", "1", ""),
    ]


def test_a_reply_without_a_readable_choice_stands_in_the_row_of_the_right_option() -> None:
    unread = row(choice(id="d"), reply("either, or neither"))
    assert unread.outcome == "unparsed"
    results = results_of(row(choice(id="a"), reply("3")), unread, row(choice(id="e"), reply(None, error="down")))
    text = markdown_of(results)
    assert "| 7 | 8 | 9 | none |" in text and "| 3 |  |  |  | 1 |  |  |  |  |  |  | 1 |" in text
    assert 'rag,"right option, chosen option","3, none",1' in csv_of(results, ".breakdown.csv")


def test_a_breakdown_has_a_row_for_the_questions_that_do_not_have_its_field() -> None:
    results = results_of(row(recall(), reply("Ida and Bo")), row(choice(id="o"), reply("0")))
    text = markdown_of(results)
    for by, named in (("category", "identity"), ("location", "early"), ("salience", "high")):
        assert f"| {named} | 1/1 100.0 % |\n| (no {by}) | 0/1 0.0 % |" in text
    assert "rag,salience,(no salience),1,1,0,0.0," in csv_of(results, ".breakdown.csv")


def test_options_chosen_count_all_repeats_and_say_so() -> None:
    rows = [row(choice(), reply(text)).model_copy(update={"repeat": n}) for n, text in enumerate("330")]
    text = markdown_of(results_of(*rows))
    assert "<summary>Options chosen: rag (all repeats)</summary>" in text
    assert "| 3 | 1 |  |  | 2 |  |  |  |  |  |  |  |" in text


def test_shares_at_equal_tokens_name_their_number_of_questions_only_where_there_are_any() -> None:
    rows = [row(FOUND, reply("3"), hit(1, "t1", "t2"), backend=name) for name in ("rag", "closed_book")]
    for title in ("Answers at equal tokens", "Recall at equally many hits"):
        assert columns_of(*rows)[title]["of"] == {"rag": "1", "closed_book": "–"}


def test_what_is_answerable_has_figures_for_every_backend_where_anything_is_not() -> None:
    unsaid = choice(id="n", expected="Not answerable", correct_index=8, abstain=True)
    silent = [row(choice(), reply("0"), backend="rag"), row(unsaid, reply("0"), backend="rag")]
    right = [row(choice(), reply("3"), backend="hybrid"), row(unsaid, reply("0"), backend="hybrid")]
    assert columns_of(*silent, *right)[""]["answerable"] == {"rag": "0.0 % of 1", "hybrid": "100.0 % of 1"}
    assert "answerable" not in columns_of(row(choice(), reply("3")))[""]


def test_published_figures_of_a_benchmark_are_a_table_that_names_the_number_of_questions() -> None:
    temporal = recall(type="temporal", other_type="multi_hop", expected="7 May", expected_entities=())
    adversarial = recall(type="adversarial", other_type="adversarial", expected="Not answerable", abstain=True)
    rows = [row(temporal, reply("7 May")), row(adversarial, reply("I cannot say."))]
    columns = columns_of(*rows)["LoCoMo's own F1"]
    assert {heading: column["rag"] for heading, column in columns.items()} == {
        "all": "50.0 % of 2",
        "temporal": "100.0 % of 1",
        "adversarial": "0.0 % of 1",
    }
    legend = markdown_of(results_of(*rows))
    assert "whose reply has the words “no information available” or “not mentioned”" in legend
    of_types = columns_of(row(recall(type="multi-session"), reply("Ida and Bo")))["Accuracy by LongMemEval's types"]
    assert of_types == {"multi-session": {"rag": "100.0 % of 1"}}


def test_the_chosen_options_are_printed_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(row(choice(), reply("3")))
    print_table(results)
    assert "Options chosen" not in capsys.readouterr().out
    print_table(results, ["options"])
    assert "Options chosen: rag" in capsys.readouterr().out
    print_table(results_of(row(recall(), reply("Ida"))), ["options"])
    assert "no question has options" in capsys.readouterr().out


def test_what_writing_took_is_a_column_even_where_it_is_unknown() -> None:
    rows = [row(choice(), reply("3"), backend="own.module:Memory")]
    writing = Writing()
    writing.add(Observed(conversation="c", turn=2, backend="own.module:Memory", ms=5.0, turns=("1", "2")))
    columns = columns_in(build_results(RUN, rows, writing={"own.module:Memory": writing}))
    assert columns["Writing and reading"]["cost of writing"] == {"own.module:Memory": "–"}


def test_abstention_has_a_table_where_a_reply_abstains_from_what_was_said() -> None:
    assert "Abstention" not in columns_of(row(recall(), reply("Ida and Bo")))
    columns = columns_of(row(recall(), reply("It was not mentioned.")))["Abstention"]
    assert (columns["never said"]["rag"], columns["abstained"]["rag"]) == ("0", "1")
    assert (columns["precision"]["rag"]) == "0.0 %"
