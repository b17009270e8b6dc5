"""``--estimate`` for tests: they are rehearsed with an agent whose replies all are the same short one.

What the agent is asked depends on its replies only where a test watches or makes itself up; the length of its
prompts depends on that of its replies everywhere. A test that a model judges is judged as far as its first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.answering.judge import Judge
from app.answering.model import Reply
from app.assembling.conversing import ConversingAssembly
from app.assembling.streams import streams_of
from app.batch.estimate import Estimate, EstimatingModel
from app.batch.selection import chosen_tests
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.dynamic import DynamicExample
from app.dataset_interfaces.sources import TestSource
from app.errors import UsageError

JUDGING = "(judge, at least)"
"""Stands for a memory in the row of what judging would need."""

_SHORT_REPLY = "Thank you for telling me. I will keep it in mind, and come back to it whenever you want me to."

Estimates = dict[tuple[str, str], Estimate]


async def estimate_tests(
    assembly: ConversingAssembly, sources: Sequence[TestSource], judge_name: str | None
) -> tuple[Estimates, list[str]]:
    """What each memory would need of each model, and of the judge; and in sentences how far that can be told.

    The assembly has no judge: a model that writes tests is not asked either.

    Raises:
        UsageError: tests would have to be written by a model first, or a dataset's code fails.
    """
    settings, cache = assembly.settings, assembly.reply_cache
    agent = EstimatingModel(cache, Reply(text=_SHORT_REPLY))
    judging = EstimatingModel(cache)
    judge = Judge(judge_name, judging, settings.api_base) if judge_name else None
    made = chosen_tests([await _made(assembly, source) for source in sources], settings)
    estimates: Estimates = {}
    for source, benchmark in zip(sources, made, strict=True):
        for stream in streams_of(source, benchmark, settings) if benchmark.tests else []:
            agent.current = estimates.setdefault((stream.backend, stream.model), Estimate())
            agent.current.asked += len(stream.test_ids or ()) if stream.repeat == 0 else 0
            session = assembly.rehearsal(stream, agent, judge)
            await session.open()
            await session.play()
            await session.close("cancelled")
    if judge is not None:
        judging.current.asked = sum(len(benchmark.tests) for benchmark in made)
        estimates[JUDGING, judge.name] = judging.current
    return estimates, list(_caveats(made))


async def _made(assembly: ConversingAssembly, source: TestSource) -> Benchmark:
    try:
        return await assembly.made(source)
    except UsageError as error:
        raise UsageError(f"--estimate asks no model, to write tests neither: {error}") from None


def _caveats(made: Iterable[Benchmark]) -> Iterable[str]:
    tests = [test for benchmark in made for test in benchmark.tests]
    yield f'The agent is taken to reply always: "{_SHORT_REPLY}"'
    free = sum(isinstance(test, DynamicExample) or test.uses_callback for test in tests)
    if free:
        yield (
            f"{free} of {len(tests)} tests go on as the agent replies (dynamic tests, callbacks): what they really"
            " take cannot be told, and may be more or less."
        )
