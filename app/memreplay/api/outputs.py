"""Writing the results of a recorded run: as data, as tables, or as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memreplay.batch.writers import RENDERERS, check_outputs, write_results
from memreplay.files import write_whole
from memreplay.recording.reader import Recording, RunInfo
from memreplay.scoring.results import Results

HTML = ".html"


def check_report_outputs(outputs: Sequence[str], *, inputs: Iterable[Path]) -> None:
    """Raise UsageError for an output that cannot be written, or an HTML report without the library it needs."""
    check_outputs(outputs, (*RENDERERS, HTML), inputs=inputs)
    for output in pages_among(outputs):
        from memreplay.pages.plots import require_renderer

        require_renderer(output)


def pages_among(outputs: Iterable[str]) -> list[str]:
    """Return the outputs that are HTML reports."""
    return [output for output in outputs if output.endswith(HTML)]


def write_report_files(
    recording: Recording,
    run: RunInfo,
    results: Results,
    outputs: Sequence[str],
    replays: Sequence[Any] = (),
    *,
    brief: bool = False,
) -> None:
    """Write the results of a run to each output, in the format of its ending; HTML has the replays too."""
    pages = pages_among(outputs)
    write_results(results, [output for output in outputs if output not in pages])
    if pages:
        from memreplay.debugger.budget import budget_curves
        from memreplay.pages.questions import Source
        from memreplay.pages.report import report_page

        timelines = (recording.timeline(run.id, id_) for id_ in recording.conversation_ids(run.id))
        curves = budget_curves(timelines, run.settings)
        text = report_page(results, [Source(recording, run)], replays=replays, curves=curves, brief=brief)
        for output in pages:
            write_whole(output, text)
