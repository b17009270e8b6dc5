"""``memreplay sweep``: which setting of a memory would have been enough."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from memory_backends.controls import CONTROLS
from memreplay.cli.options import COMMAND_OPTIONS, AllowFromRecording, GivenSettings, consent_to, takes_settings
from memreplay.conversations.models import Conversation
from memreplay.debugger.sweep import Swept, swept
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import EXIT_QUESTION_ERRORS, UsageError
from memreplay.files import write_whole
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.rich_console import terminal_console
from memreplay.runtime.recorded import settings_of_run
from memreplay.runtime.sweeping import Axis, Setting, answerable_questions, fillings, settings_of_sweep
from memreplay.runtime.sweeping import sweep as sweep_one
from memreplay.runtime.work import check_settings, work_of
from memreplay.settings import Settings, read_settings
from memreplay.terminal import say
from memreplay.views.sweep import fixes_in_words, sweep_sentences, sweep_table
from memreplay.views.table import for_terminal

command = typer.Typer(**COMMAND_OPTIONS)

_WIDTH_WITHOUT_TERMINAL = 140


@command.command()
@takes_settings()
def sweep(
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=a,b,c",
            help="Try these values of top-k, context-tokens, embedder, reranker, extractor, ablate or tier-share;"
            " none is no value. Repeatable: all combinations are tried.",
        ),
    ],
    file: Annotated[Path | None, typer.Argument(help="A recording, in place of --dataset.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(metavar="ID|GLOB|PATH", help="What to replay.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Also write it here: .json (everything), or .html (a page with the Pareto front as a plot).",
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Also ask the model under each setting: accuracy.")] = False,
    split: Annotated[
        bool, typer.Option("--split", help="Choose a setting by one half of the questions, report the other half.")
    ] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would take; fill no memory.")] = False,
    allow_from_recording: AllowFromRecording = False,
    *,
    given: GivenSettings,
) -> None:
    """Compare settings of memories by the share of questions whose answer is in the prompt, and by tokens.

    A memory is filled once for all settings that change only what is read from it. No model is asked without --ask.
    The first value of each axis is what the others are compared with. With --workers or --cluster, memories are
    filled and read in several processes; the result is the same.
    """
    if output is not None and output.suffix not in (".json", ".html"):
        raise UsageError(f"--output {output}: expected a name that ends in .json or .html")
    if output is not None and output.suffix == ".html":
        from memreplay.pages.plots import require_renderer

        require_renderer(str(output))
    settings, conversations = _work(file, dataset, given, allow_from_recording)
    axes = [Axis.read(text) for text in over]
    names = [name for name in settings.backend if name not in CONTROLS and not is_agent(name)]
    if not names:
        raise UsageError("there is no memory to sweep; name one with --backend")
    plans = {name: settings_of_sweep(settings, name, axes) for name in names}
    if estimate:
        _print_estimate(plans, conversations, ask)
        return
    results = [asyncio.run(_sweep(name, plan, conversations, ask, split)) for name, plan in plans.items()]
    for result in results:
        _print(result)
    if output is not None:
        words = [file.name] if file else [word for one in dataset or () for word in ("--dataset", one)]
        words += [word for name in names for word in ("--backend", name)]
        words += [word for text in over for word in ("--over", text)]
        words += [flag for flag, is_set in (("--ask", ask), ("--split", split)) if is_set]
        write_whole(str(output), _written(output.suffix, results, shlex.join(["memreplay", "sweep", *words])))
    if any(result.failed for result in results):
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _written(suffix: str, results: Sequence[Swept], command: str) -> str:
    if suffix == ".json":
        return json.dumps([_as_json(each) for each in results], indent=2) + "\n"
    from memreplay.pages.sweep import sweep_page

    return sweep_page(results, command)


def _work(
    file: Path | None, datasets: Sequence[str] | None, given: GivenSettings, allowed: bool
) -> tuple[Settings, Sequence[Conversation]]:
    settings = read_settings(**given)
    if file is None:
        check_settings(settings)
        work = work_of(settings, datasets or (), warn=lambda sentence: say(f"warning: {sentence}"))
        return replace(settings, redis_url=None, qdrant_url=None), work.conversations
    if datasets:
        raise UsageError("a recording has its own conversations; remove --dataset")
    for name in ("top_k", "context_tokens", "ablate", "tier_share"):
        if given.get(name):
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag}: the recording has its own; --over {flag}=a,b tries others")
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        run = recording.run(None)
        if not {"model", "backend"} <= run.settings.keys():
            raise UsageError(f"run {run.id} does not say how its memories were set up")
        own = settings_of_run(run.settings, settings, file, consent_to(file, allowed))
        if unknown := set(given.get("backend") or ()) - set(own.backend):
            raise UsageError(f"--backend {min(unknown)}: is not in the run, which has {', '.join(own.backend)}")
        own = replace(own, backend=tuple(given.get("backend") or own.backend))
        return own, [recording.conversation(run.id, id_) for id_ in recording.conversation_ids(run.id)]


async def _sweep(
    backend: str, plan: Sequence[Setting], conversations: Sequence[Conversation], ask: bool, split: bool
) -> Swept:
    times, numbers = len(list(fillings(plan))) * len(conversations), count(1)
    found, failed = await sweep_one(
        conversations,
        backend,
        plan,
        asks=ask,
        begun=lambda each: say(f"{backend}: filled for {each.id}, {next(numbers)} of {times}"),
        warn=lambda sentence: say(f"warning: {sentence}"),
    )
    if not found:
        raise UsageError(f"{backend}: {next(iter(failed.values()))}")
    if not any(found.values()):
        raise UsageError("no question has an answer that was said")
    return swept(backend, found, split=split, failed=failed)


def _print_estimate(plans: dict[str, list[Setting]], conversations: Sequence[Conversation], ask: bool) -> None:
    questions = sum(len(answerable_questions(each)) for each in conversations)
    for name, plan in plans.items():
        times = len(list(fillings(plan))) * len(conversations)
        model = plan[0].settings.model[0]
        paid = questions * len(plan) if ask and model != EXTRACTIVE_MODEL else 0
        print(
            f"{name}: {len(plan)} settings, filled {times} times, {questions * len(plan)} recalls, at most {paid}"
            f" calls of {printable(model)}"
            + (f"; and those of the extractor {plan[0].settings.extractor}" if plan[0].settings.extractor else "")
        )


def _print(result: Swept) -> None:
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    questions = counted(result.rows[0].questions, "question")
    console.print(Text(printable(f"{result.backend}: {questions}"), style="bold"))
    console.print(for_terminal(sweep_table(result)))
    for sentence in (*sweep_sentences(result), *fixes_in_words(result)):
        print(printable(sentence))


def _as_json(result: Swept) -> dict[str, Any]:
    rows = [asdict(row) | {"share": row.share, "told_from_chance": row.is_told_from_chance} for row in result.rows]
    return {
        "backend": result.backend,
        "chosen": result.chosen,
        "split": result.is_split,
        "p_of_chosen": result.p_of_chosen,
        "rows": rows,
        "fixed_by": dict(result.fixed_by),
        "failed": dict(result.failed),
    }
