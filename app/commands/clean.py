"""``memreplay doctor --clean``: what runs have left on the configured servers, and its removal."""

from __future__ import annotations

import asyncio

from app.assembling.resources import connections
from app.errors import EXIT_DONE, MissingServerOrKeyError
from app.settings import Settings
from memory_backends.base import StoreUnavailableError
from memory_backends.leftovers import Leftovers, find_leftovers, remove_leftovers

_ASK = (
    "Nothing was removed yet. A run that is still under way would lose its memory.\n"
    "Remove all of it: the same command with --yes"
)


def show_leftovers(settings: Settings) -> int:
    """Print what there is, run by run, and how to remove it.

    Raises:
        MissingServerOrKeyError: a server does not answer.
    """
    found = asyncio.run(_on_servers(settings, remove=False))
    if found.runs:
        print(_ASK)
    return EXIT_DONE


def clean(settings: Settings) -> int:
    """Print what there is, run by run, then remove it.

    Raises:
        MissingServerOrKeyError: a server does not answer.
    """
    removed = asyncio.run(_on_servers(settings, remove=True))
    if removed.runs:
        print(f"Removed {removed.keys.total():,} keys and {removed.points.total():,} points.")
    return EXIT_DONE


async def _on_servers(settings: Settings, *, remove: bool) -> Leftovers:
    redis, qdrant = connections(settings)
    try:
        await redis.check()
        await qdrant.check()
        found = await find_leftovers(redis, qdrant)
        _print(found, f"Redis {redis.description}, Qdrant {qdrant.description}")
        return await remove_leftovers(redis, qdrant) if remove and found.runs else found
    except StoreUnavailableError as error:
        raise MissingServerOrKeyError(str(error)) from None
    finally:
        await redis.aclose()
        await qdrant.aclose()


def _print(found: Leftovers, where: str) -> None:
    if not found.runs:
        print(f"{where}: no run has left anything")
        return
    print(f"{where}: left by {len(found.runs)} runs:")
    for run in found.runs:
        print(f"  {run}  {found.keys[run]:,} keys, {found.points[run]:,} points")
