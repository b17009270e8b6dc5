"""A report of 6,000 answers opens within two seconds, and stays below 15 MB."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest

from memreplay.pages.report import report_page
from tests.pages.browser import chromium, opened
from tests.stubs.many_answers import ManyAnswers

MOST_SECONDS = 2.0
MOST_BYTES = 15_000_000


def test_a_report_of_six_thousand_answers_opens_at_once(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    answers = ManyAnswers(10, turns=400, questions=200)
    path = tmp_path / "report.html"
    path.write_text(report_page(answers.results(), [answers]), encoding="utf-8")
    with chromium() as browser:
        opened(browser, path).page.context.close()
        started = perf_counter()
        page = opened(browser, path).page
        seconds = perf_counter() - started
        page.context.close()
    print(f"report of 6,000 answers: {path.stat().st_size / 1e6:.1f} MB, opens in {seconds:.2f} s")
    assert path.stat().st_size < MOST_BYTES
    assert seconds < MOST_SECONDS
