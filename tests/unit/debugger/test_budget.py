"""How much reaches the prompt at which budget, read off the recorded rankings."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from memreplay.batch.report import results_of_run
from memreplay.debugger.budget import BudgetCurves, budget_curves
from memreplay.paths import demo_recordings
from memreplay.recording.reader import Recording
from memreplay.views.panels.budget import budget_table, figures_lines, plot_lines

DEMO = demo_recordings()[0]


def curves_of(path: Path, top_k: int | None = None) -> BudgetCurves:
    with closing(Recording.open(path)) as recording:
        run = recording.run()
        timelines = (recording.timeline(run.id, id_) for id_ in recording.conversation_ids(run.id))
        return budget_curves(timelines, run.settings, top_k)


@pytest.fixture(scope="module")
def demo() -> BudgetCurves:
    return curves_of(DEMO)


def test_every_memory_has_a_curve_and_only_what_composes_its_prompt_anew_is_estimated(demo: BudgetCurves) -> None:
    assert list(demo.memories) == ["hybrid", "rag", "full_context"], "in the order of the run, without controls"
    assert [curve.estimated for curve in demo.memories.values()] == [True, False, False]
    assert {curve.n for curve in demo.memories.values()} == {12}
    assert (demo.budgets[:3], demo.budgets[-1]) == ((128, 256, 512), 16384)
    assert (demo.top_k, demo.context_tokens) == (6, 900)


def test_a_larger_budget_holds_no_less_and_intervals_enclose_the_shares(demo: BudgetCurves) -> None:
    for curve in demo.memories.values():
        shares = [share for share in curve.answer_in_prompt if share is not None]
        assert len(shares) == len(demo.budgets) and shares == sorted(shares)
        for share, bounds in zip(shares, curve.interval, strict=True):
            assert bounds is not None and bounds[0] - 1e-9 <= share <= bounds[1] + 1e-9


def test_results_and_curves_give_one_figure_for_a_budget_and_mark_the_same_ones() -> None:
    with closing(Recording.open(DEMO)) as recording:
        results, curves = results_of_run(recording, recording.run()), curves_of(DEMO)
    for name in ("hybrid", "rag"):
        found, curve = results.backends[name].retrieval, curves.memories[name]
        assert found is not None and found.at_tokens is not None
        shown = [curves.budgets.index(int(budget)) for budget in found.at_tokens]
        assert [held.evidence for held in found.at_tokens.values()] == [
            pytest.approx(curve.answer_in_prompt[place]) for place in shown
        ]
        assert [held.estimated for held in found.at_tokens.values()] == [curve.estimates[place] for place in shown]


def test_crossings_are_named_with_the_budget_and_the_leads_on_both_sides(demo: BudgetCurves) -> None:
    (crossing,) = [each for each in demo.crossings if {each.first, each.second} == {"rag", "full_context"}]
    assert (crossing.first, crossing.tokens) == ("rag", 2600)
    assert crossing.below[1] > crossing.below[2] and crossing.above[1] < crossing.above[2]
    assert not crossing.estimated
    assert crossing.model_copy(update={"estimated": True}).words.startswith("by estimate, rag is ahead")
    assert crossing.words.startswith("rag is ahead of full_context below 2,600 tokens (67 % against 0 % at 256)")
    apart = demo.model_copy(update={"crossings": ()})
    assert apart.sentences[0] == "No memory overtakes another at a larger budget by more than one question."


def test_more_hits_raise_the_curve_of_a_memory_that_they_limit(demo: BudgetCurves) -> None:
    wider = curves_of(DEMO, 10)
    assert wider.top_k == 10
    assert wider.memories["rag"].answer_in_prompt[-1] == 1.0 != demo.memories["rag"].answer_in_prompt[-1]
    assert wider.memories["full_context"] == demo.memories["full_context"]


def test_the_drawing_has_each_memory_and_the_cursor_at_any_size(demo: BudgetCurves) -> None:
    for width, height in ((20, 5), (76, 8), (156, 40)):
        rows = ["".join(span.text for span in each.spans) for each in plot_lines(demo, width, height, 2)]
        assert len(rows) == max(height - 1, 4)
        assert "512" in rows[-1] and any("▲" in row for row in rows)
    said = "\n".join("".join(span.text for span in each.spans) for each in figures_lines(demo, 2))
    assert "rag" in said and "n 12" in said and "estimate" in said
    assert "~" in budget_table(demo).texts[0][2]
