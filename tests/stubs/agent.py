"""Agents on the loopback, as strangers might have built them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Behave = Callable[["StubAgent", web.Request, dict[str, Any]], web.StreamResponse]


def says(text: str) -> Behave:
    return lambda agent, request, payload: web.json_response({"reply": text})


@dataclass
class StubAgent:
    """Has one memory for everything. ``behave`` makes each reply; ``turns`` keeps what was said to it.

    ``drops`` connections are cut after the turn was processed; ``state`` is shown at /memory_state unless None.
    """

    behave: Behave = field(default_factory=lambda: says("I see."))
    state: Any = None
    drops: int = 0
    hangs: bool = False
    turns: list[dict[str, Any]] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    async def run_turn(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        payload = await request.json()
        self.turns.append(payload)
        if self.hangs:
            await asyncio.Event().wait()
        if self.drops:
            self.drops -= 1
            assert request.transport is not None
            request.transport.abort()
        return self.behave(self, request, payload)

    async def memory_state(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path))
        if self.state is None:
            raise web.HTTPNotFound
        return web.json_response(self.state)


@asynccontextmanager
async def stub_agent(**settings: Any) -> AsyncIterator[StubAgent]:
    """An agent for the length of the block."""
    agent = StubAgent(**settings)
    application = web.Application()
    application.add_routes([web.post("/run_turn", agent.run_turn), web.get("/memory_state", agent.memory_state)])
    runner = web.AppRunner(application, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    agent.url = f"http://127.0.0.1:{runner.addresses[0][1]}/run_turn"
    try:
        yield agent
    finally:
        await runner.cleanup()
