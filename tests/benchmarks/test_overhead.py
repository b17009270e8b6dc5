"""What a question costs beside the model's call: ours, and that of inspect_ai on the same prompts.

Both have a model that answers at once. Ours is ingested, asked, scored, recorded and written to results; theirs is
asked, scored and logged. Skipped where inspect_ai is not installed (``pip install inspect-ai``).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memreplay.batch.recorded_run import RunPlan
from memreplay.cli.batch import BatchOptions, run_batch
from memreplay.llm.catalogue import litellm_folder
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.settings import read_settings
from tests.benchmarks.test_throughput import CALLS, dataset

REPLY = "0"


def ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[float, list[str]]:
    """Seconds of CPU for all questions, and the prompts that were asked."""
    prompts: list[str] = []

    async def at_once(self: LiteLLMModel, request: AnswerRequest) -> Reply:
        prompts.append(request.messages[0].content)
        return Reply(text=REPLY)

    monkeypatch.setattr(LiteLLMModel, "answer", at_once)
    settings = read_settings(backend=("closed_book",), model=("openai/mock",), api_base="http://127.0.0.1:1/v1")
    options = BatchOptions(
        datasets=(str(dataset(folder)),),
        evidence=None,
        recording=folder / "r.sqlite3",
        plan=RunPlan(perceive=False, resume=False, retry_errors=False),
        estimate=False,
        outputs=(str(folder / "r.json"),),
        fail_under=None,
    )
    started = time.process_time()
    assert run_batch(settings, options) == 0
    return time.process_time() - started, prompts


def theirs(folder: Path, prompts: list[str]) -> float:
    """The same for inspect_ai."""
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    outputs = [ModelOutput.from_content("mockllm/model", REPLY) for _ in prompts]
    task = inspect_ai.Task(
        dataset=[Sample(input=prompt, target=REPLY) for prompt in prompts], solver=generate(), scorer=match()
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    started = time.process_time()
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder / "logs"), display="none", max_connections=64)
    assert log.status == "success", log.error
    return time.process_time() - started


def test_a_question_costs_no_more_than_with_inspect_ai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    folder = litellm_folder()
    assert folder is not None
    # It counts tokens as well, with tables that it would fetch from a network.
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder / "litellm_core_utils" / "tokenizers"))
    our_seconds, prompts = ours(tmp_path, monkeypatch)
    assert len(prompts) == CALLS
    their_seconds = theirs(tmp_path, prompts)
    print(
        f"\n{CALLS} questions: {1000 * our_seconds / CALLS:.1f} ms of CPU each;"
        f" inspect_ai {1000 * their_seconds / CALLS:.1f} ms"
    )
    assert our_seconds <= their_seconds
