"""``memreplay --batch`` and ``memreplay report``: from options to files and an exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from app.agents.address import is_agent
from app.answering.judge import refuse_extractive_judge
from app.assembling.backend_names import refuse_unknown_backends
from app.assembling.conversing import ConversingAssembly
from app.assembling.streams import refuse_for_tests
from app.batch.estimate import estimate_run, print_estimate
from app.batch.estimate_of_tests import estimate_tests
from app.batch.options import BatchOptions, check_options, without_effect_on_tests
from app.batch.recorded_run import RunPlan, run_recorded
from app.batch.remaining import Asking
from app.batch.report import results_of_run
from app.batch.selection import first_questions, sampled_questions
from app.batch.writers import check_outputs, print_table, write_results
from app.conversations.models import Conversation
from app.conversations.registry import load, shipped_datasets
from app.dataset_interfaces.sources import TestSource, split_specs
from app.errors import (
    EXIT_BELOW_THRESHOLD,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_QUESTION_ERRORS,
    UsageError,
)
from app.reading_progress import shown_reading
from app.recording.damage import damage_told
from app.recording.files import new_recording_path
from app.recording.store import Recording
from app.scoring.answer_key import AnswerKey, read_answer_key
from app.scoring.results import Results
from app.settings import Settings
from memory_backends.controls import CLOSED_BOOK, CONTROLS


def run_batch(settings: Settings, options: BatchOptions) -> int:
    """Run headless and write the results; the exit code says how it went.

    Raises:
        MemreplayError: nothing was asked, since the options, a dataset, a server or a key will not do.
    """
    check_options(settings, options)
    refuse_unknown_backends(settings.backend)
    recording = options.recording or new_recording_path()
    outputs = tuple(dict.fromkeys(options.outputs)) or (_results_beside(recording),)
    # A folder of recordings that is not there yet is made with the first of them.
    to_be_made = not options.outputs and not recording.parent.exists()
    check_outputs(() if to_be_made else outputs, inputs=(recording, *options.files_read()))
    specs, sources = split_specs(options.datasets or tuple(entry.id for entry in shipped_datasets()))
    refuse_for_tests(settings, sources, specs)
    if not specs and (idle := without_effect_on_tests(settings, options)):
        _warn(idle)
    conversations = _chosen_conversations(settings, options, specs) if specs else []
    if not sources and not any(conversation.questions for conversation in conversations):
        raise UsageError("nothing to ask: the chosen datasets hold no questions")
    if options.estimate:
        return _estimate(settings, conversations, sources)
    answer_key = _answer_key(options.answer_key)
    if answer_key is not None:
        answer_key.check(conversations)
    if not _ran_to_its_end(settings, options.plan, conversations, sources, recording):
        print(
            f"interrupted; everything finished so far is saved. Go on with the same options and:"
            f" --recording {recording} --resume",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    results = _report(recording, None, outputs, answer_key)
    print(f"recorded in {recording}", file=sys.stderr)
    return _exit_code(results, options.fail_under)


def _ran_to_its_end(
    settings: Settings,
    plan: RunPlan,
    conversations: Sequence[Conversation],
    sources: Sequence[TestSource],
    recording: Path,
) -> bool:
    """Run and record. What it took, the embedder above all, is let go of before the results are made."""
    along = _asked_along(settings.backend) if conversations else ()
    assembly = ConversingAssembly(settings, recording, asked_along=along, warn=_warn)
    return asyncio.run(run_recorded(assembly, conversations, sources, plan))


def _chosen_conversations(settings: Settings, options: BatchOptions, specs: Sequence[str]) -> list[Conversation]:
    with shown_reading() as opened:
        loaded = load(specs, options.evidence, _warn, opened)
        if settings.sample is not None:
            return sampled_questions(loaded, settings.sample, settings.seed)
        return list(first_questions(loaded, settings.limit))


def _asked_along(backends: Sequence[str]) -> tuple[str, ...]:
    """Closed book is asked along with every memory: without it a right answer may be a guess.

    What an agent would say without its memory no model can tell.
    """
    is_chosen = CLOSED_BOOK in backends
    memories = [name for name in backends if name not in CONTROLS and not is_agent(name)]
    return (CLOSED_BOOK,) if memories and not is_chosen else ()


def _estimate(settings: Settings, conversations: Sequence[Conversation], sources: Sequence[TestSource]) -> int:
    """Embedded stores are as good for it as servers, and it leaves nothing in them; nobody is there to be asked."""
    refuse_extractive_judge(settings.judge)
    embedded = settings.model_copy(update={"redis_url": None, "qdrant_url": None, "judge": None})
    along = _asked_along(settings.backend) if conversations else ()
    assembly = ConversingAssembly(embedded, new_recording_path(), asked_along=along, warn=_warn)
    asking = Asking(settings.backend, assembly.asked_along, settings.model, settings.repeats, retry_errors=False)

    async def estimate() -> None:
        try:
            if conversations:
                print_estimate(await estimate_run(assembly, conversations, asking))
            if sources:
                estimates, caveats = await estimate_tests(assembly, sources, settings.judge)
                print_estimate(estimates, "tests", "about")
                print("\n".join(caveats))
        finally:
            await assembly.finish("interrupted")

    asyncio.run(estimate())
    return EXIT_DONE


def report_again(path: Path, run_id: str | None, outputs: Sequence[str], answer_key: Path | None = None) -> None:
    """Write the results of a recorded run again, from the file alone.

    Raises:
        MemreplayError: the file or an output cannot be used.
    """
    chosen = tuple(dict.fromkeys(outputs)) or (_results_beside(path),)
    check_outputs(chosen, inputs=(path, *([answer_key] if answer_key else ())))
    _report(path, run_id, chosen, _answer_key(answer_key))


def _results_beside(recording: Path) -> str:
    if not recording.name:
        raise UsageError(f"{recording}: not a file; expected the name of a recording")
    return str(recording.with_suffix(".results.json"))


def _answer_key(path: Path | None) -> AnswerKey | None:
    return None if path is None else read_answer_key(path)


def _report(path: Path, run_id: str | None, outputs: Sequence[str], answer_key: AnswerKey | None) -> Results:
    with closing(Recording.open(path)) as recording, damage_told(path):
        results = results_of_run(recording, recording.run(run_id), answer_key)
    write_results(results, outputs)
    if "-" not in outputs:
        print_table(results)
    return results


def _exit_code(results: Results, fail_under: float | None) -> int:
    if any(row.outcome == "error" for row in results.questions):
        return EXIT_QUESTION_ERRORS
    if fail_under is not None and any(
        backend.accuracy is None or backend.accuracy < fail_under for backend in results.backends.values()
    ):
        return EXIT_BELOW_THRESHOLD
    return EXIT_DONE


def _warn(sentence: str) -> None:
    print(f"warning: {sentence}", file=sys.stderr)
