"""``memreplay sweep``: which setting of a memory would have been enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from memory_backends.controls import CONTROLS
from memreplay.cli.options import COMMAND_OPTIONS, AllowFromRecording, GivenSettings, consent_to, takes_settings
from memreplay.conversations.models import Conversation
from memreplay.debugger.sweep import Found, Row, Swept, swept
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.numbers import counted, dollars, interval, share
from memreplay.printable import printable
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.rich_console import terminal_console
from memreplay.runtime.recorded import settings_of_run
from memreplay.runtime.sweeping import Axis, Setting, answerable_questions, fillings, settings_of_sweep
from memreplay.runtime.sweeping import sweep as sweep_one
from memreplay.runtime.work import check_settings, work_of
from memreplay.settings import Settings, read_settings
from memreplay.terminal import say
from memreplay.views.table import Table, for_terminal
from memreplay.views.text import one_line

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
    output: Annotated[Path | None, typer.Option(metavar="PATH", help="Write everything here, as JSON.")] = None,
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
    The first value of each axis is what the others are compared with.
    """
    if output is not None and output.suffix != ".json":
        raise UsageError(f"--output {output}: expected a name that ends in .json")
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
        _print(result, split)
    if output is not None:
        output.write_text(json.dumps([_as_json(each) for each in results], indent=2) + "\n", encoding="utf-8")


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
    found: dict[str, list[Found]] = {each.words: [] for each in plan}
    for number, conversation in enumerate(conversations, 1):
        say(f"{backend}: conversation {number} of {len(conversations)}, {len(plan)} settings")
        new = await sweep_one(
            conversation, backend, plan, asks=ask, warn=lambda sentence: say(f"warning: {sentence}")
        )
        for words, rows in new.items():
            found[words] += [replace(row, question=f"{conversation.id}/{row.question}") for row in rows]
    if not any(found.values()):
        raise UsageError("no question has an answer that was said")
    return swept(backend, found, split=split)


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


def _print(result: Swept, split: bool) -> None:
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    questions = counted(result.rows[0].questions, "question")
    console.print(Text(printable(f"{result.backend}: {questions}"), style="bold"))
    console.print(for_terminal(_table(result)))
    if split:
        print("The setting was chosen by the other half of the questions.")
    failing, fixed = result.fixed_by, [name for name in result.fixed_by.values() if name is not None]
    if failing:
        fails = counted(len(failing), "question")
        print(f"Of {fails} that the first setting fails, another setting puts {len(fixed)} into the prompt.")
    for name in dict.fromkeys(row.setting for row in result.rows):
        if name in fixed:
            print(f"  {counted(fixed.count(name), 'question')}: {printable(name)} is the cheapest")


def _table(result: Swept) -> Table:
    """Return a row for each setting: what reaches the prompt, at what price, and what can be said of it."""
    first = result.rows[0]
    return Table.of(
        "",
        ("setting", "answer in prompt", "95 %", "accuracy", "tokens", "cost", "note"),
        [
            (
                one_line(row.setting),
                share(row.share),
                interval(row.interval),
                share(row.accuracy),
                f"{row.tokens:,.0f}",
                dollars(row.cost_usd),
                "; ".join(_notes(row, first, result.chosen)),
            )
            for row in result.rows
        ],
    )


def _notes(row: Row, first: Row, chosen: str | None) -> Iterator[str]:
    if row.setting == chosen:
        yield "chosen"
    if row.on_front:
        yield "Pareto front"
    if row is not first and not row.is_told_from_chance:
        yield "may be chance"


def _as_json(result: Swept) -> dict[str, Any]:
    rows = [asdict(row) | {"share": row.share, "told_from_chance": row.is_told_from_chance} for row in result.rows]
    return {"backend": result.backend, "chosen": result.chosen, "rows": rows, "fixed_by": dict(result.fixed_by)}
