"""``memreplay check-backend``: test a memory against the contract."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from memory_backends.base import BackendError, Clock, MemoryBackend
from memory_backends.contract import Finding, Subject, check_memory
from memory_backends.contract.trial import WordEmbedder, count_words
from memory_backends.registry import create_backend
from memory_backends.resources import Resources, system_clock
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import EXIT_BELOW_THRESHOLD, EXIT_DONE, UsageError

_MARKS = {"must": "BROKEN", "should": "note"}
_INDENT = " " * 8
_EVIDENCE = {"Where does Marta work?": ("1",)}

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def check_backend(
    name: Annotated[str, typer.Argument(metavar="package.module:Class", help="A memory of your own.")],
) -> None:
    """Test a memory against the contract, on embedded stores and without a model: one line per rule.

    Exits with 1 if it breaks a rule that it must keep.
    """
    try:
        findings = asyncio.run(_check(name))
    except BackendError as error:
        raise UsageError(str(error)) from None
    kept = sum(finding.broken is None for finding in findings)
    fatal = sum(finding.fatal for finding in findings)
    verdict = f"fix {fatal} before its results count" if fatal else "it can be compared with others"
    print(f"\n{name} keeps {kept} of {len(findings)} promises: {verdict}")
    raise typer.Exit(EXIT_BELOW_THRESHOLD if fatal else EXIT_DONE)


async def _check(name: str) -> list[Finding]:
    redis, qdrant = RedisConnection.embedded(), QdrantConnection.embedded()

    def make(clock: Clock) -> MemoryBackend:
        return create_backend(name, Resources(redis, qdrant, WordEmbedder(), count_words, clock), _EVIDENCE)

    make(system_clock)  # report a memory that cannot be created once, and not for every rule
    findings = []
    try:
        async for finding in check_memory(Subject(name, make)):
            findings.append(finding)
            mark = "kept" if finding.broken is None else _MARKS[finding.rule.weight]
            print(f"{mark:<{len(_INDENT)}}{finding.rule.promise}")
            if finding.broken is not None:
                print(f"{_INDENT}{' '.join(finding.broken.split())}")
                print(f"{_INDENT}to fix it: {finding.rule.fix}")
    finally:
        await redis.aclose()
        await qdrant.aclose()
    return findings
