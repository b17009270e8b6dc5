"""Multiple-choice questions as an inspect_ai task, for the Python that has it.

``prompts`` is a file with a JSON object a line: ``input``, ``choices`` and ``target``, the letter of the right one.
"""

from __future__ import annotations

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


@task
def questions(prompts: str) -> Task:
    """Ask the questions of a file, as inspect_ai asks multiple-choice questions."""
    samples = [Sample(**json.loads(line)) for line in Path(prompts).read_text().splitlines()]
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice())
