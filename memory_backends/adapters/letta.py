"""Letta: ``--backend letta``, a client of a Letta server (``LETTA_BASE_URL``, with ``LETTA_API_KEY`` if it wants
one).

Each conversation has an agent of its own, which is deleted at the end. Without ``--extractor`` exchanges become
passages of its archival memory. With it they are told to the agent, which by that model edits its memory blocks
and its passages. The user's configuration is that of the agent: the fields with which Letta's API creates one, or
what an agent file (``.af``) holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from memory_backends.adapters.library import Found, LibraryMemory
from memory_backends.base import BackendError, ClosingStatus, Exchange, Namespace, Recall, Snapshot
from memory_backends.certificates import trusted
from memory_backends.metering import note_call
from memory_backends.resources import Resources
from memory_backends.stores.trace import ModelCall

DEFAULT_URL = "http://127.0.0.1:8283"
EMBEDDING = "letta/letta-free"
"""Letta embeds by itself: ``LETTA_EMBEDDING`` names another of its models."""

SECONDS = 120.0
_ALL = 10_000


class LettaMemory(LibraryMemory):
    """An agent's memory blocks and passages. Letta's server calls the models, and says what they took."""

    store = "letta"
    takes = ("extractor", "backend_config")
    works_elsewhere = True

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._config = resources.configs.get("letta", {})
        if unsettable := self._config.keys() & _OF_THE_RUN:
            raise BackendError(
                f"Letta's {', '.join(sorted(unsettable))} is the run's own: leave it out of the configuration"
            )
        self._http: httpx.AsyncClient | None = None
        self._agent: str | None = None

    async def open(self, namespace: Namespace) -> None:
        await self.close("cancelled")
        self.forget_all()
        key = os.environ.get("LETTA_API_KEY")
        self._http = httpx.AsyncClient(
            base_url=os.environ.get("LETTA_BASE_URL") or DEFAULT_URL,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=SECONDS,
            verify=trusted(),
        )
        name = f"memreplay-{namespace.point_id('letta')}"
        for left in await self._json("GET", "/v1/agents/", params={"name": name}):
            await self._json("DELETE", f"/v1/agents/{quote(left['id'])}")
        model = {"model": self.resources.chat.name} if self.resources.chat else {}
        embedding = os.environ.get("LETTA_EMBEDDING") or EMBEDDING
        made = self._import if "agents" in self._config else self._create
        self._agent = await made({"name": name, "embedding": embedding, **model})

    async def _create(self, run: Mapping[str, str]) -> str:
        """Return the id of a new agent: empty blocks, unless the user's configuration has others."""
        blocks = [{"label": "human", "value": ""}, {"label": "persona", "value": ""}]
        agent = await self._json("POST", "/v1/agents/", {"memory_blocks": blocks, **self._config, **run})
        return str(agent["id"])

    async def _import(self, run: Mapping[str, str]) -> str:
        """Return the id of the agent that the user's agent file describes, under the run's name and models."""
        agent_file = ("agent.af", json.dumps(self._config), "application/json")
        # The names of servers before 0.16, too.
        old = {"name": "override_name", "embedding": "override_embedding_handle", "model": "override_model_handle"}
        fields = {**run, **{old[name]: value for name, value in run.items()}}
        made = await self._json("POST", "/v1/agents/import", files={"file": agent_file}, fields=fields)
        if len(made["agent_ids"]) != 1:
            for id_ in made["agent_ids"]:
                await self._json("DELETE", f"/v1/agents/{quote(id_)}")
            raise BackendError(f"the agent file describes {len(made['agent_ids'])} agents; expected one")
        return str(made["agent_ids"][0])

    async def add(self, exchange: Exchange) -> None:
        if self.resources.chat is None:
            for passage in await self._json("POST", self._of("archival-memory"), {"text": exchange.text}):
                self.written(passage["id"], exchange)
            return
        before = {passage["id"]: passage for passage in await self._passages()}
        said = [{"role": "user", "content": f"Remember this conversation:\n{exchange.text}"}]
        reply = await self._json("POST", self._of("messages"), {"messages": said})
        usage = reply.get("usage") or {}
        note_call(
            ModelCall(
                purpose="chat",
                model=self.resources.chat.name,
                prompt_tokens=usage.get("prompt_tokens") or 0,
                completion_tokens=usage.get("completion_tokens") or 0,
                **_said(reply.get("messages") or ()),
            )
        )
        self.changed(before, {passage["id"]: passage for passage in await self._passages()}, exchange)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return the memory blocks, which an agent always has before it, then the passages that are found."""
        blocks = [
            Found(block["label"], block["value"], None, order=-1)
            for block in await self._blocks()
            if block["value"].strip()
        ]
        params = {"query": question, "top_k": top_k}
        found = await self._json("GET", self._of("archival-memory/search"), params=params)
        passages = [self.found(each["id"], each["content"], None) for each in found["results"]]
        return self.recall_of([*blocks, *passages][:top_k], context_tokens)

    async def snapshot(self) -> Snapshot:
        if self._agent is None:
            return Snapshot()
        passages = {passage["id"]: {"text": passage["text"]} for passage in await self._passages()}
        blocks = {block["label"]: block["value"] for block in await self._blocks()}
        return Snapshot(
            values={self.store: {"blocks": blocks}},
            points={self.store: {self.place: dict(sorted(passages.items()))}},
        )

    async def close(self, status: ClosingStatus) -> None:
        if self._http is None:
            return
        try:
            if self._agent is not None:
                await self._json("DELETE", f"/v1/agents/{quote(self._agent)}")
        finally:
            http, self._http, self._agent = self._http, None, None
            await http.aclose()

    def _of(self, resource: str) -> str:
        return f"/v1/agents/{quote(self._agent or '')}/{resource}"

    async def _passages(self) -> Sequence[Any]:
        held: Sequence[Any] = await self._json("GET", self._of("archival-memory"), params={"limit": _ALL})
        return held

    async def _blocks(self) -> Sequence[Any]:
        held: Sequence[Any] = await self._json("GET", self._of("core-memory/blocks"))
        return held

    async def _json(
        self, method: str, path: str, body: Any = None, params: Any = None, files: Any = None, fields: Any = None
    ) -> Any:
        """Return the server's reply. Raises :class:`BackendError` with one sentence, without the key."""
        assert self._http is not None
        host = self._http.base_url.netloc.decode()
        try:
            reply = await self._http.request(method, path, json=body, params=params, files=files, data=fields)
        except httpx.HTTPError as error:
            raise BackendError(f"the Letta server at {host} does not answer: {type(error).__name__}") from None
        if reply.status_code in (401, 403):
            raise BackendError(f"the Letta server at {host} refuses the key (LETTA_API_KEY)")
        if reply.status_code >= 300:
            raise BackendError(f"the Letta server at {host} answered {reply.status_code}: {reply.text[:200]}")
        try:
            return reply.json() if reply.content else None
        except ValueError:
            raise BackendError(f"the Letta server at {host} sent no JSON") from None


_OF_THE_RUN = frozenset({"name", "embedding", "model", "embedding_config", "llm_config"})
"""Fields of an agent that the run sets."""


def _said(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what the agent said and the tools that it called, as parts of a call. Its prompt is not told."""
    texts = [str(each["content"]) for each in messages if each.get("message_type") == "assistant_message"]
    calls = [each["tool_call"] for each in messages if each.get("message_type") == "tool_call_message"]
    said = {"reply": "\n".join(texts)} if texts else {}
    return said | ({"wanted": json.dumps(calls, ensure_ascii=False)} if calls else {})
