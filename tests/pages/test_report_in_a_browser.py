"""The report as its readers see it: in a real browser, from disk, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memreplay.pages.report import report_page
from tests.pages.browser import opened, serious_violations
from tests.stubs.many_answers import ManyAnswers

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;\u202e{{7*7}}\x1b[31m "


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two conversations whose every text is an attack."""
    pytest.importorskip("vl_convert")
    answers = ManyAnswers(2, turns=30, questions=60, hostile=HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(answers.results(), [answers]), encoding="utf-8")
    return path


def test_filters_links_and_prompts_work_and_hostile_text_stays_text(browser: Any, pages: Path) -> None:
    seen = opened(browser, pages)
    page = seen.page
    filters, count, items = page.locator("#filters"), page.locator("#count"), page.locator("#list li")
    count.filter(has_text="120 of 120 questions").wait_for()
    assert items.count() == 100
    page.get_by_role("button", name="Show 20 more").click()
    assert items.count() == 120

    filters.get_by_label("Stage").select_option("not_retrieved")
    filters.get_by_label("Memory").select_option("hybrid")
    count.filter(has_text="0 of 120 questions").wait_for()
    filters.get_by_label("Stage").select_option("misread")
    count.filter(has_text="24 of 120 questions").wait_for()
    filters.get_by_label("Category").select_option("category 1")
    count.filter(has_text="6 of 120 questions").wait_for()
    filters.get_by_role("button", name="Clear").click()
    filters.get_by_label("memories disagree").check()
    count.filter(has_text="120 of 120 questions").wait_for()
    filters.get_by_role("searchbox").fill("item 7 of conversation 1 ")
    count.filter(has_text="1 of 120 questions").wait_for()

    items.first.get_by_role("link").click()
    detail = page.locator("#detail")
    detail.get_by_text("The prompt as sent").wait_for()
    assert detail.locator(".line.evidence").count() == 1
    assert detail.locator(".line.evidence").inner_text().startswith("◆ turn 8  User: </script><img src=x")
    detail.get_by_role("link", name="full_context").click()
    detail.locator(".line.memory").nth(28).wait_for()
    assert detail.locator(".line.memory").count() == 29
    detail.get_by_role("link", name="rag").click()
    detail.locator(".line.evidence").wait_for(state="detached")
    assert "backend=rag" in page.url and "q=c1-q7" in page.url

    assert page.locator("img").count() == 0 and page.title().startswith("memreplay: many · ")
    assert seen.problems == []
    page.context.close()


def test_a_link_opens_its_question_and_prints(browser: Any, pages: Path) -> None:
    seen = opened(browser, pages, "#q=c0-q3&backend=full_context")
    detail = seen.page.locator("#detail")
    detail.get_by_role("link", name="full_context", exact=False).wait_for()
    assert detail.locator("[aria-current=true]").inner_text().endswith("full_context")
    assert "What does item 3 of conversation 0 cost?" in detail.inner_text()
    assert seen.page.pdf().startswith(b"%PDF-")
    assert seen.problems == []
    seen.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violation_of_accessibility(browser: Any, pages: Path, scheme: str) -> None:
    seen = opened(browser, pages, "#q=c0-q3", color_scheme=scheme, viewport={"width": 1000, "height": 800})
    seen.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert serious_violations(seen.page) == []
    assert seen.problems == []
    seen.page.context.close()
