"""The same prompts as an inspect_ai task, for the Python that has it: ``inspect_task.py URL PROMPTS AT_ONCE LOGS``.

``PROMPTS`` holds a JSON object a line, with ``prompt`` and ``target``. Its log of every sample is on, as it is by
default; the copy that it writes for a viewer while it runs is off, which saves it a sixth of its time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

url, prompts, at_once, logs = sys.argv[1:]
lines = map(json.loads, Path(prompts).read_text().splitlines())
samples = [Sample(input=line["prompt"], target=line["target"]) for line in lines]
config = GenerateConfig(max_tokens=10, temperature=0)
model = get_model("openai-api/stub/stub", base_url=url, api_key="none", config=config)
(log,) = eval(
    Task(dataset=samples, solver=generate(), scorer=match()),
    model=model,
    log_dir=logs,
    log_realtime=False,
    display="none",
    max_connections=int(at_once),
    max_samples=int(at_once),
)
assert log.status == "success", log.error
