"""The autopsy of published runs as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memreplay import __version__
from memreplay.pages.document import page
from memreplay.published.autopsy import STAGES, Autopsy
from memreplay.text import shortened
from memreplay.views.autopsy import Section

_LONGEST = 600


@dataclass(frozen=True)
class _WrongAnswers:
    name: str
    rows: Sequence[Sequence[str]]


def autopsy_page(autopsy: Autopsy, sections: Sequence[Section], command: str) -> str:
    """Return the whole file. ``command`` makes it again."""
    return page(
        "autopsy.html",
        styles=("page.css", "autopsy.css"),
        scripts=(),
        data=(),
        title=f"Autopsy: {', '.join(dict.fromkeys(system.name for system in autopsy.systems))}",
        lead="From question, context, answer and judgement alone; no model was asked.",
        version=__version__,
        sections=sections,
        systems=[
            _WrongAnswers(
                system.name,
                [
                    (
                        each.question_id,
                        STAGES[each.stage],
                        shortened(each.question, _LONGEST),
                        shortened(each.expected, _LONGEST),
                        shortened(each.reply, _LONGEST),
                    )
                    for each in system.findings
                    if each.stage is not None
                ],
            )
            for system in autopsy.systems
        ],
        command=command,
    )
