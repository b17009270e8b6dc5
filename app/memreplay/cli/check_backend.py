"""``memreplay check-backend``: the contract, run over a memory, in plain words."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from memory_backends.base import BackendError, Clock, MemoryBackend, system_clock
from memory_backends.contract import Finding, Subject, check_memory
from memory_backends.contract.trial import WordEmbedder, count_words
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.errors import EXIT_BELOW_THRESHOLD, EXIT_DONE, UsageError

command = typer.Typer(
    rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@command.command("check-backend")
def check_backend(
    name: Annotated[str, typer.Argument(metavar="package.module:Class", help="A memory of your own.")],
) -> None:
    """Try a memory on the contract, and say in plain words what it does not keep."""
    raise typer.Exit(check_by_name(name))


_MARKS = {"must": "BROKEN", "should": "note"}
_INDENT = " " * 8
_EVIDENCE = {"Where does Marta work?": ("1",)}


def check_by_name(name: str) -> int:
    """Print one line a rule, and what is not kept; 0 where all is kept that must be.

    The memory runs on embedded stores, with an embedder made of words and no model.

    Raises:
        UsageError: there is no such memory, or it cannot be made.
    """
    try:
        findings = asyncio.run(_check(name))
    except BackendError as error:
        raise UsageError(str(error)) from None
    kept = sum(finding.broken is None for finding in findings)
    fatal = sum(finding.fatal for finding in findings)
    verdict = "it can be compared with others" if not fatal else f"{fatal} must be mended before its results count"
    print(f"\n{name} keeps {kept} of {len(findings)} promises: {verdict}")
    return EXIT_BELOW_THRESHOLD if fatal else EXIT_DONE


async def _check(name: str) -> list[Finding]:
    redis, qdrant = RedisConnection.embedded(), QdrantConnection.embedded()

    def make(clock: Clock) -> MemoryBackend:
        return create_backend(name, Resources(redis, qdrant, WordEmbedder(), count_words, clock), _EVIDENCE)

    make(system_clock)  # what cannot be made is told once, and not by every rule
    findings = []
    try:
        async for finding in check_memory(Subject(name, make)):
            findings.append(finding)
            _print(finding)
    finally:
        await redis.aclose()
        await qdrant.aclose()
    return findings


def _print(finding: Finding) -> None:
    mark = "kept" if finding.broken is None else _MARKS[finding.rule.weight]
    print(f"{mark:<{len(_INDENT)}}{finding.rule.promise}")
    if finding.broken is not None:
        print(f"{_INDENT}{' '.join(finding.broken.split())}")
