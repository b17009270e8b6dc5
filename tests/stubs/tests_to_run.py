"""Small sets of tests on disk: definitions of a shipped dataset, and Python datasets of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPAN = 150
"""Tokens of memory span: a message or two of filler between the lines of a test."""

_CONFIG = f"""
config:
  run_name: small
datasets:
  args:
    memory_span: {SPAN}
  datasets:
    - name: colours
"""

JUDGED = """
from dataclasses import dataclass

from memreplay.goodai.interface import DatasetInterface, TestExample

EXECUTED = True
open(__file__ + ".executed", "w").close()


@dataclass
class Keys(DatasetInterface):
    name: str = "Keys"
    description: str = "Where a key lies."

    def generate_examples(self, num_examples):
        return [
            TestExample(
                dataset_generator=self,
                script=["The key lies in drawer %d." % place, "Where is the key?"],
                is_question=[False, True],
                expected_responses=["drawer %d" % place],
            )
            for place in range(num_examples)
        ]

    def evaluate_correct(self, questions, responses, expected_answers):
        return self.evaluate_correct_gpt(questions, responses, expected_answers)
"""


def colour_test(*colours: str, said: str = "My favourite colour is") -> dict[str, Any]:
    """A definition: colours one after another, and a question for the last of them."""
    lines = [f"{said} {colour}." for colour in colours]
    return {
        "script": [*lines, "What is my favourite colour?"],
        "is_question": [False] * len(lines) + [True],
        "waits": [{"percentage_finished": 90.0 * (place + 1) / len(lines)} for place in range(len(lines))] + [{}],
        "expected_responses": [colours[-1]],
        "can_be_interleaved": True,
        "is_temporal": False,
        "uses_callback": False,
    }


def small_definitions(folder: Path, datasets: tuple[str, ...] = ("Colours", "Unheard")) -> Path:
    """A folder with two tests of each dataset; of an unheard one there is no class."""
    for dataset in datasets:
        (folder / dataset).mkdir(parents=True)
        for place, colours in enumerate((("Red", "Teal"), ("Ivory", "Coral"))):
            path = folder / dataset / f"{place}.def.json"
            path.write_text(json.dumps(colour_test(*colours)), encoding="utf-8")
    (folder / "config.yml").write_text(_CONFIG, encoding="utf-8")
    return folder


def python_dataset(folder: Path) -> Path:
    """A file with a dataset that a model judges. When it is executed it leaves a file beside it."""
    path = folder / "keys.py"
    path.write_text(JUDGED, encoding="utf-8")
    return path
