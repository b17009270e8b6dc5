"""Prompts for a page: every line is stored once, and a prompt is runs of lines.

Prompts of one conversation share most of their text. A memory that puts the whole conversation into each prompt
would otherwise fill the page with copies of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from memreplay.debugger.prompt_lines import LineSource, PromptLine

_SIGNS: Final[dict[LineSource, str]] = {"frame": "f", "memory": "m", "distilled": "d", "evidence": "e"}


@dataclass
class PromptTable:
    """``lines`` are all lines, ``prompts`` the messages of each prompt as a role and runs (first line, count)."""

    lines: list[str] = field(default_factory=list)
    prompts: list[list[Any]] = field(default_factory=list)
    _line_ids: dict[str, int] = field(default_factory=dict)
    _prompt_ids: dict[Any, int] = field(default_factory=dict)

    def add(self, roles: Sequence[str], lines: Iterable[PromptLine]) -> dict[str, Any]:
        """Add a prompt. Returns its number ``p``, its ``marks`` by line and the evidence turns ``at`` lines.

        ``marks`` are runs of a source and a count: ``f12m3e1``.
        """
        lines = list(lines)
        messages: list[list[Any]] = [[role, []] for role in roles]
        for line in lines:
            runs = messages[line.message][1]
            number = self._number(line.text)
            if runs and number == runs[-2] + runs[-1]:
                runs[-1] += 1
            else:
                runs += [number, 1]
        key = tuple((role, *runs) for role, runs in messages)
        if key not in self._prompt_ids:
            self._prompt_ids[key] = len(self.prompts)
            self.prompts.append(messages)
        marks = "".join(
            f"{_SIGNS[source]}{len(list(run))}" for source, run in groupby(line.source for line in lines)
        )
        at = {str(place): line.turns for place, line in enumerate(lines) if line.turns}
        return {"p": self._prompt_ids[key], "marks": marks, "at": at}

    def _number(self, text: str) -> int:
        number = self._line_ids.setdefault(text, len(self.lines))
        if number == len(self.lines):
            self.lines.append(text)
        return number
