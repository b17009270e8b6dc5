"""A loopback server that speaks OpenAI's chat API slowly and, if told so, badly: for load, in a process of its own.

    python -m tests.stubs.slow_server --latency 1.0 --rate-limited 0.03 --failing 0.02 --hanging 0.005 --broken 0.01

prints its base URL, serves until its standard input ends, and then prints as one JSON object how many requests of
each kind there were, and the ``seconds`` from the first request to the last reply. Replies depend on the prompt;
what goes wrong depends on the prompt and on how often it came.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from hashlib import sha256
from random import Random
from time import monotonic
from typing import Any

_HEAD = "HTTP/1.1 {status} {word}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{extra}\r\n"
_WORDS = {200: "OK", 429: "Too Many Requests", 500: "Internal Server Error"}
_NO = json.dumps({"error": {"message": "no", "type": "error", "code": None, "param": None}}).encode()


class SlowServer:
    """Counts what it does. ``mishaps`` maps a kind to its share of the requests; a hang lasts ``hold`` seconds."""

    def __init__(self, latency: float, mishaps: dict[str, float], hold: float = 3600.0) -> None:
        self.latency, self.mishaps, self.hold = latency, mishaps, hold
        self.counts: Counter[str] = Counter()
        self.under_way = self.most_under_way = 0
        self.first: float | None = None
        self.last = 0.0
        self._asked: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                body = json.loads(await reader.readexactly(length))
                writer.write(await self._reply(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self, body: dict[str, Any]) -> bytes:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self.first = monotonic() if self.first is None else self.first
        try:
            return await self._answer(body)
        finally:
            self.under_way -= 1
            self.last = monotonic()

    async def _answer(self, body: dict[str, Any]) -> bytes:
        digest = sha256(json.dumps(body["messages"]).encode()).hexdigest()
        self._asked[digest] += 1
        self.counts["requests"] += 1
        drawn = Random(f"{digest}/{self._asked[digest]}").random()
        for kind, share in self.mishaps.items():
            if drawn < share:
                self.counts[kind] += 1
                return await self._mishap(kind)
            drawn -= share
        await asyncio.sleep(self.latency)
        self.counts["answered"] += 1
        self.counts["prompts"] += self._asked[digest] == 1
        return _response(200, _completion(str(int(digest[:4], 16) % 10)))

    async def _mishap(self, kind: str) -> bytes:
        if kind == "hanging":
            await asyncio.sleep(self.hold)
        if kind == "rate_limited":
            return _response(429, _NO, "Retry-After: 1\r\n")
        if kind == "broken":
            return _response(200, b'{"choices": [{"mess')
        await asyncio.sleep(self.latency)
        return _response(500, _NO)


def _completion(text: str) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    reply = {
        "id": "s",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(reply).encode()


def _response(status: int, body: bytes, extra: str = "") -> bytes:
    head = _HEAD.format(status=status, word=_WORDS[status], length=len(body), extra=extra)
    return head.encode() + body


async def _main(server: SlowServer) -> None:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=1 << 26)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    seconds = server.last - (server.first or 0.0)
    told = {**server.counts, "most_under_way": server.most_under_way, "seconds": round(seconds, 3)}
    print(json.dumps(told), flush=True)
    # Hung calls would have to be cancelled one by one, each with its traceback.
    os._exit(0)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--latency", type=float, default=1.0)
    for name in ("rate-limited", "failing", "hanging", "broken"):
        options.add_argument(f"--{name}", type=float, default=0.0)
    given = vars(options.parse_args())
    latency = given.pop("latency")
    asyncio.run(_main(SlowServer(latency, given)))
