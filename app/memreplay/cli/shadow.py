"""``memreplay shadow``: what another memory would have returned to a running agent."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from memory_backends.controls import CONTROLS
from memreplay.batch.estimate import print_estimate
from memreplay.capture.assembling import bring_up_to_date, is_captured
from memreplay.cli.options import COMMAND_OPTIONS, GivenSettings, takes_settings
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import EXIT_QUESTION_ERRORS, UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.numbers import counted, interval, share
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.rich_console import terminal_console
from memreplay.runtime.counting import Counting, Estimates
from memreplay.runtime.reasking import Reasking
from memreplay.runtime.shadowing import Outcome, Read, outcomes, reads_of
from memreplay.runtime.work import check_settings
from memreplay.settings import Settings, read_settings
from memreplay.terminal import say
from memreplay.views.table import Table, for_terminal
from memreplay.views.text import one_line

command = typer.Typer(**COMMAND_OPTIONS)

_WIDTH_WITHOUT_TERMINAL = 140
_MORE_TOKENS = 1.25
"""A memory that returns more tokens than this many times those of the other has an advantage that is said."""


@command.command()
@takes_settings(
    "backend", "top_k", "context_tokens", "embedder", "reranker", "extractor", "backend_config", "ablate",
    "tier_share", "api_base", "cache", "offline",
)  # fmt: skip
def shadow(
    file: Annotated[Path, typer.Argument(help="A recording of a running agent.")],
    output: Annotated[Path | None, typer.Option(metavar="PATH", help="Write everything here, as JSON.")] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Count calls, tokens and cost; call no model.")
    ] = False,
    *,
    given: GivenSettings,
) -> None:
    """Replay a running agent's conversation into another memory, and read that wherever the agent read its own.

    At marked turns it compares which memory returned the answer. No model answers; with --extractor one writes.
    """
    if output is not None:
        if estimate:
            raise UsageError("--estimate writes no --output")
        if output.suffix != ".json":
            raise UsageError(f"--output {output}: expected a name that ends in .json")
        refuse_unusable_output(str(output), [file])
    settings = replace(read_settings(**given), redis_url=None, qdrant_url=None)
    names = [name for name in given.get("backend") or () if name not in CONTROLS]
    if not names:
        raise UsageError("which memory is to shadow the agent's own? Name it with --backend, such as --backend rag")
    if agents := [name for name in names if is_agent(name)]:
        raise UsageError(f"--backend {agents[0]}: an agent answers by itself; expected a memory")
    check_settings(settings)
    settings = replace(settings, backend=tuple(names))
    counting = Counting(settings) if estimate else None
    reads, failures = asyncio.run(_shadow(file, settings, counting))
    for failure in failures:
        say(f"warning: {failure}")
    if counting is not None:
        print_estimate(Estimates(counting.finished({}), []))
        return
    found = outcomes(reads)
    _print(found, reads)
    if output is not None:
        everything = {"memories": [asdict(one) for one in found], "reads": [asdict(read) for read in reads]}
        write_whole(str(output), json.dumps(everything, indent=2, ensure_ascii=False) + "\n")
    if failures:
        raise typer.Exit(EXIT_QUESTION_ERRORS)


async def _shadow(file: Path, settings: Settings, counting: Counting | None) -> tuple[list[Read], list[str]]:
    """Return the reads of all conversations, and what failed. With ``counting`` no model is called."""
    bring_up_to_date(file)
    reads: list[Read] = []
    failures: list[str] = []
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        run = recording.run(None)
        if not is_captured(run.settings):
            raise UsageError(
                f"{file}: not a recording of a running agent; memreplay --batch runs other memories on its dataset"
            )
        rebuilding = Reasking(
            settings, f"shadow-{run.id}", lambda sentence: say(f"warning: {sentence}"), counting=counting
        )
        try:
            for id_ in recording.conversation_ids(run.id):
                timeline = recording.timeline(run.id, id_)
                for name in settings.backend:
                    say(f"{name}: {printable(id_)}, {counted(timeline.last_turn, 'turn')}")
                    async for read in reads_of(timeline, name, rebuilding):
                        if isinstance(read, str):
                            failures.append(read)
                        else:
                            reads.append(read)
        finally:
            await rebuilding.close()
    return reads, failures


def _print(found: list[Outcome], reads: list[Read]) -> None:
    if not found:
        print("No read of the agent's memory was recorded, so there is nothing to compare.")
        return
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    rows: dict[str, tuple[str, ...]] = {}
    for one in found:
        rows[one.memory] = _row(one.memory, one.own_held, one.marks, one.own_interval, one.own_tokens)
        rows[f"{one.memory}/{one.shadow}"] = _row(
            f"  {one.shadow}", one.other_held, one.marks, one.other_interval, one.other_tokens
        )
    columns = ("memory", "answer returned", "share", "95 %", "tokens a read")
    console.print(for_terminal(Table.of("", columns, list(rows.values()))))
    for one in found:
        for sentence in _sentences(one, sum(each.marks > 0 for each in found)):
            print(printable(sentence))
    for read in reads:
        if read.own is not None and read.own.holds is not None and read.own.holds != read.other.holds:
            better = read.shadow if read.other.holds else read.memory
            print(printable(f"turn {read.turn}: only {better} returned the answer to “{one_line(read.query)}”"))


def _row(
    name: str, held: int, marks: int, between: tuple[float, float] | None, tokens: float | None
) -> tuple[str, ...]:
    shown = "–" if tokens is None else f"{tokens:,.0f}"
    return one_line(name), f"{held} of {marks}", share(held / marks if marks else None), interval(between), shown


def _sentences(one: Outcome, comparisons: int) -> list[str]:
    """Return what a comparison shows, one of several whose p-values are adjusted."""
    adjusted = f", adjusted by Holm for {comparisons} comparisons" if comparisons > 1 else ""
    pair = f"{one.shadow} against {one.memory}"
    said: list[str] = []
    if one.difference is None:
        said.append(
            f"{pair}: no marked turn was read, so nothing says which is better; memreplay mark says what should"
            " have been recalled at a turn"
        )
    else:
        between = interval(one.difference_interval)
        said.append(
            f"{pair}: {one.difference * 100:+.1f} points ({between}), p = {one.p_value:.3g} (McNemar's exact test,"
            f" {counted(one.marks, 'mark')}{adjusted}; marks of one conversation may depend on each other)"
        )
        ratio = one.other_tokens / one.own_tokens if one.own_tokens and one.other_tokens else 1.0
        if not 1 / _MORE_TOKENS <= ratio <= _MORE_TOKENS:
            said.append(
                f"{one.shadow} returned {ratio:.2g} times the tokens;"
                " --context-tokens and --top-k make it return as much as the agent's memory"
            )
    if one.unknown:
        marks = counted(one.unknown, "mark")
        said.append(f"{marks} at turns where it was not recorded what {one.memory} returned: unknown")
    if one.returned_too is not None:
        said.append(
            f"{one.shadow} returned {share(one.returned_too)} of the turns that {one.memory} returned, over"
            f" {counted(one.compared, 'read')}"
        )
    return said
