"""The report as a file: complete, self-contained, small; its plots say how many answers are behind them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from memreplay.pages.report import report_page
from tests.cli.conftest import RunCli
from tests.cli.conftest import run_cli as run_cli
from tests.stubs.many_answers import ManyAnswers

pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def page() -> str:
    answers = ManyAnswers(2, turns=20, questions=20)
    return report_page(answers.results(), [answers])


def data_of(page: str) -> Any:
    (encoded,) = re.findall(r'<script type="text/plain" id="questions-data">(.*?)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(encoded)))


def prompt_in(data: Any, answer: Any) -> list[str]:
    """The lines of a prompt, put together again."""
    messages = data["prompts"][answer["p"]]
    runs = [(start, count) for _, flat in messages for start, count in zip(flat[::2], flat[1::2], strict=True)]
    return [data["lines"][start + place] for start, count in runs for place in range(count)]


def test_every_figure_of_the_comparison_is_there_with_its_n_and_its_table(page: str) -> None:
    figures = re.findall(r'<figure id="figure-([\w-]+)".*?</figure>', page, re.DOTALL)
    assert figures == [
        *("accuracy", "equal-tokens", "tokens", "cost", "writing", "stages", "position"),
        *("by-category", "by-type", "distance"),
    ]
    for figure in re.findall(r"<figure .*?</figure>", page, re.DOTALL):
        (n,) = re.findall(r'<span class="n">(.*?)</span>', figure)
        assert "n = " in n or n.startswith("Not drawn: ")
        assert ("<svg" in figure) == ("n = " in n)
        assert "<table>" in figure and '<th scope="row">' in figure
    assert re.search("<li>hybrid (is ahead of|beats) rag on these 40 questions", page)
    assert "<code>memreplay --batch --dataset many" in page


def test_the_page_may_load_nothing_and_run_only_its_own_script(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (script, style):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert " style=" not in page and not re.search(r"""(?:src|href)=["'](?!#)""", page)


def test_a_prompt_is_there_as_it_was_sent_with_its_evidence_marked(page: str) -> None:
    answers = ManyAnswers(2, turns=20, questions=20)
    data = data_of(page)
    by_id = {question["id"]: question for question in data["questions"]}
    for conversation, asks in answers.conversations():
        for (backend, _, question_id, _), ask in asks.items():
            question = by_id[question_id]
            (answer,) = (each for each in question["answers"] if data["backends"][each["b"]] == backend)
            lines = prompt_in(data, answer)
            assert "\n".join(lines) == "\n".join(message.content for message in ask.asked.prompt)
            evidence = conversation.turns_by_id[question["evidence"][0]["id"]]
            marked = [lines[int(place)] for place in answer["at"]]
            assert marked == ([] if backend == "rag" else [f"User: {evidence.text}"])


def test_thousands_of_answers_stay_small_because_a_line_is_stored_once() -> None:
    answers = ManyAnswers(4, turns=200, questions=200)
    results = answers.results()
    page = report_page(results, [answers])
    assert len(results.questions) == 2400
    assert len(page) < 1_200_000
    assert len(data_of(page)["lines"]) < 4 * (200 + 200) + 10


def test_a_run_and_two_runs_are_written_as_html(run_cli: Any, tmp_path: Path) -> None:
    little = ("--dataset", "identity-01", "--backend", "rag", "--backend", "full_context")
    for name, tokens in (("a", 40), ("b", 4000)):
        ran = run_cli(
            *("--batch", *little, "--context-tokens", tokens, "--recording", tmp_path / f"{name}.sqlite3"),
            *("--output", tmp_path / f"{name}.html", "--output", tmp_path / f"{name}.json"),
        )
        assert ran.code == 0, ran.err
    assert "--context-tokens 40</code>" in (tmp_path / "a.html").read_text()
    again = tmp_path / "again.html"
    assert run_cli("report", tmp_path / "a.sqlite3", "--output", again).code == 0
    assert again.read_text() == (tmp_path / "a.html").read_text()
    both = tmp_path / "both.html"
    assert run_cli("compare", tmp_path / "a.sqlite3", tmp_path / "b.json", "--output", both).code == 0
    data = data_of(both.read_text())
    assert data["backends"] == ["A rag", "A full_context", "B rag", "B full_context"]
    first = data["questions"][0]["answers"]
    assert ["p" in answer for answer in first] == [True, True, False, False]
    assert "B full_context is ahead of A full_context" in both.read_text()


def test_without_the_drawing_library_the_report_is_refused_before_anything_is_asked(
    run_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    recording = tmp_path / "r.sqlite3"
    ran = run_cli("--batch", "--dataset", "identity-01", "--recording", recording, "--output", tmp_path / "r.html")
    assert (ran.code, ran.out) == (2, "") and "pip install 'memreplay[report]'" in ran.err
    assert not recording.exists()


def test_a_brief_report_is_one_sentence_and_one_question_at_two_memories() -> None:
    answers = ManyAnswers(2, turns=20, questions=20)
    brief = report_page(answers.results(), [answers], brief=True)
    assert brief.count('class="conclusion"') == 1
    assert brief.count("<article") == 2
    assert "its prompt held the answer" in brief and "its prompt did not hold the answer" in brief
    assert "<mark>" in brief, "the evidence is marked in the prompt that held it"
    assert "questions-data" not in brief and "<table>" in brief
    (title,) = re.findall("<title>(.*?)</title>", brief)
    assert "top " in title and "context" in title and "read by" in title
    assert len(brief) < len(report_page(answers.results(), [answers])) / 2


@pytest.mark.parametrize("before", ["It was long ago, as they say. " * 40, "A line of its own.\n" * 20])
def test_the_prompt_that_held_the_answer_is_shown_where_it_holds_it(before: str) -> None:
    answers = ManyAnswers(2, turns=20, questions=20, hostile=before)
    brief = report_page(answers.results(), [answers], brief=True)
    (expected,) = re.findall(r"expected: (\d+)", brief)
    marked = re.findall("<mark>(.*?)</mark>", brief)
    assert any(f"fact {expected} " in each for each in marked), marked
    assert max(map(len, marked)) < 300


def test_the_page_draws_estimates_dashed_and_says_what_limits_the_reader(run_cli: RunCli, tmp_path: Path) -> None:
    asked = ("--batch", "--dataset", "identity-01", "--recording", tmp_path / "r.sqlite3")
    for backend, options in (("hybrid", ("--context-tokens", 300)), ("rag", ())):
        page = tmp_path / f"{backend}.html"
        assert run_cli(*asked, "--backend", backend, *options, "--output", page).code == 0
        (figure,) = re.findall(r'<figure id="figure-budget".*?</figure>', page.read_text(), re.DOTALL)
        is_estimated = backend == "hybrid"
        assert ('stroke-dasharray="6,4"' in figure) == ("~" in figure) == is_estimated
        assert ("a dashed curve is an estimate" in figure) == ("at the upright line" in figure) == is_estimated
        assert ("context 300 tokens" if is_estimated else "context not limited") in page.read_text()
        assert 'id="figure-equal-tokens"' not in page.read_text(), "these figures are part of the curve"


def test_the_command_writes_a_brief_report_beside_the_recording(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("--batch", "--dataset", "identity-01", "--backend", "rag", "--backend", "full_context")
    assert run_cli(*asked, "--context-tokens", 500, "--top-k", 3, "--recording", "r.sqlite3").code == 0
    assert run_cli("report", "r.sqlite3", "--brief").code == 0
    brief = Path("r.brief.html").read_text()
    assert '<figure id="figure-budget"' in brief and brief.count("<figure") == 1
    refused = run_cli("report", "r.sqlite3", "--brief", "--output", "r.json")
    assert refused.code == 2 and "--brief is an HTML page" in refused.err
