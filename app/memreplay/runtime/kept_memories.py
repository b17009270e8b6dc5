"""Filled memories of earlier runs in the user's cache folder, found by everything that affects what they hold.

That is: the memory and its version, the settings that it writes by, and the exchanges in their order. Settings that
affect only reading (``--top-k``, ``--context-tokens``, ``--model``) are not among them.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from memory_backends.base import Exchange, MemoryBackend
from memory_backends.private_files import make_private_folder, take_from_others
from memory_backends.registry import backend_class, settings_taken
from memory_backends.snapshots import plain
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.engine.backend_driver import KeptIngestion, KeptMemoryError
from memreplay.engine.events import REPLAY_EVENT, ReplayEvent, call_in
from memreplay.settings import Settings

FORMAT = 1
"""Raised whenever a kept memory of before can no longer be read."""

MOST_BYTES = 2 * 1024**3
"""Beyond this the memories that were used longest ago are removed."""

_THIS_PROCESS = uuid4().hex

_EVENTS, _HELD, _MEMORY = "events.jsonl.gz", "held.json", "memory"


class KeptMemories:
    """The kept memories of one conversation. ``warn`` receives one sentence where one cannot be used or kept."""

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], conversation: Conversation, warn: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._conversation = conversation
        self._exchanges = exchanges_of(conversation)
        self._warn = warn
        self._prefixes = _prefixes(conversation.id, self._exchanges)

    def has_whole(self, name: str) -> bool:
        """Return whether a memory of this name is kept that has ingested all exchanges; it may turn out to be
        unusable.
        """
        return bool(self._prefixes) and (self._place(name, self._prefixes[-1]) / _HELD).is_file()

    async def restore(self, backend: MemoryBackend) -> KeptIngestion | None:
        """Fill an open, empty memory with the longest beginning of the conversation that is kept.

        What memory holds then is compared with what it held when it was kept.

        Raises:
            KeptMemoryError: it holds something else, or cannot be filled; it has to be opened anew.
        """
        for exchange, prefix in zip(reversed(self._exchanges), reversed(self._prefixes), strict=True):
            kept = self._place(backend.name, prefix)
            if not (kept / _HELD).is_file():
                continue
            try:
                await backend.load(kept / _MEMORY)
                held = plain((await backend.snapshot()).model_dump())
                if held != json.loads((kept / _HELD).read_bytes()):
                    raise ValueError("it holds something else than it did")
                events = await asyncio.to_thread(_read_events, kept / _EVENTS)
                if any(map(_has_failed, events)):
                    raise ValueError("its writer failed")
                os.utime(kept)
                return KeptIngestion(exchange.turn_number, _by_turn(events))
            except Exception as error:
                self._warn(
                    f"a kept memory of {backend.name} cannot be used ({_in_words(error)}); it is filled anew"
                )
                shutil.rmtree(kept, ignore_errors=True)
                raise KeptMemoryError from error
        return None

    async def keep(self, backend: MemoryBackend, until: int, events: Sequence[ReplayEvent]) -> None:
        """Keep a memory under the exchanges that it has ingested; an equal one that is there already stays.

        One whose writer failed is not kept: a later run asks the writer again.
        """
        ingested = sum(exchange.turn_number <= until for exchange in self._exchanges)
        place = self._place(backend.name, self._prefixes[ingested - 1])
        if not ingested or place.exists() or any(map(_has_failed, events)):
            return
        part = place.with_name(f"{place.name}.{uuid4().hex}.part")
        try:
            make_private_folder(part / _MEMORY)
            await backend.save(part / _MEMORY)
            held = plain((await backend.snapshot()).model_dump())
            await asyncio.to_thread(_write_events, part / _EVENTS, events)
            (part / _HELD).write_bytes(orjson.dumps(held))
            take_from_others(part)
            part.rename(place)
        except Exception as error:
            if not place.exists():  # else another process was faster
                self._warn(f"the filled memory of {backend.name} is not kept: {_in_words(error)}")
        finally:
            shutil.rmtree(part, ignore_errors=True)
        await asyncio.to_thread(_make_room, self._folder)

    def _place(self, name: str, prefix: str) -> Path:
        key = {"format": FORMAT, "memory": identity(name), "prefix": prefix}
        taken = settings_taken(name)
        key |= {name: value for name, value in self._settings.items() if name not in _TAKEN or name in taken}
        if "extractor" not in taken or not self._settings["extractor"]:
            del key["api_base"]
        return self._folder / sha256(orjson.dumps(key, option=orjson.OPT_SORT_KEYS)).hexdigest()


_TAKEN = ("ablate", "tier_share", "extractor", "backend_config")


def writing_settings(settings: Settings, embedder: str) -> dict[str, Any]:
    """Return the settings of a run that affect what memories write."""
    return {name: settings.public()[name] for name in (*_TAKEN, "api_base")} | {"embedder": embedder}


def _prefixes(conversation_id: str, exchanges: Sequence[Exchange]) -> list[str]:
    """Return a digest for each beginning of a conversation."""
    digest = sha256(conversation_id.encode("utf-8", "surrogatepass"))
    prefixes = []
    for exchange in exchanges:
        digest.update(exchange.model_dump_json().encode("utf-8", "surrogatepass"))
        prefixes.append(digest.hexdigest())
    return prefixes


def identity(name: str) -> list[str]:
    """Return which code writes: the memory's name, the source of its class and bases, and the version of its
    library.
    """
    found = backend_class(name)
    sources = [source for each in found.__mro__ if (source := _source_of(each)) is not None]
    if _source_of(found) is None:
        # Code that no file has can be told apart in this process alone.
        return [name, _THIS_PROCESS, str(id(found))]
    digests = [sha256(source.read_bytes()).hexdigest() for source in sources if source.is_file()]
    library = getattr(found, "distribution", None)
    with suppress(PackageNotFoundError):
        return [name, *digests, version(library) if library else ""]
    return [name, *digests]


def _source_of(found: type) -> Path | None:
    """Return the file of a class; None for one of Python's own, and one that a notebook or the prompt defined."""
    try:
        source = inspect.getsourcefile(found)
    except TypeError:
        return None
    return Path(source) if source is not None else None


def _write_events(path: Path, events: Sequence[ReplayEvent]) -> None:
    with gzip.open(path, "wb", compresslevel=3) as file:
        for event in events:
            file.write(orjson.dumps(event.model_dump(mode="json")) + b"\n")


def _read_events(path: Path) -> list[ReplayEvent]:
    with gzip.open(path, "rb") as file:
        return [REPLAY_EVENT.validate_json(line) for line in file]


def _by_turn(events: Sequence[ReplayEvent]) -> dict[int, list[ReplayEvent]]:
    by_turn: dict[int, list[ReplayEvent]] = defaultdict(list)
    for event in events:
        by_turn[event.turn].append(event)
    return dict(by_turn)


def _has_failed(event: ReplayEvent) -> bool:
    """Return whether a writer gave no reply."""
    call = call_in(event)
    return call is not None and call.failed


def _make_room(folder: Path) -> None:
    """Remove what was used longest ago. Other processes add and remove memories in this folder meanwhile."""
    used = []
    for each in folder.iterdir():
        with suppress(OSError):
            used.append((each.stat().st_mtime, _bytes_in(each), each))
    excess = sum(size for _, size, _ in used) - MOST_BYTES
    for _, size, each in sorted(used):
        if excess <= 0:
            break
        shutil.rmtree(each, ignore_errors=True)
        excess -= size


def _bytes_in(folder: Path) -> int:
    size = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(inside, name).lstat().st_size
    return size


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
