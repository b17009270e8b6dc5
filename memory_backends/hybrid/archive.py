"""Archiving: the workspace of an event that is over becomes one document of long-term memory."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid5

from memory_backends.base import Clock, TextEmbedder
from memory_backends.hybrid.workspace import values_of
from memory_backends.knowledge_store import KnowledgeStore, Point
from memory_backends.records import KNOWLEDGE_COLLECTION, ArchivedWorkspace, SharedWorkspaceState

_ARCHIVES = UUID("5f2c1d1e-6f0e-5a53-9a50-0a3c5d0c7b1e")
"""The namespace of archive ids."""


async def archive(
    workspace: SharedWorkspaceState, store: KnowledgeStore, embedder: TextEmbedder, clock: Clock
) -> None:
    """Write the workspace to ``hybrid_knowledge``. Archiving an event again replaces its document."""
    document = ArchivedWorkspace(
        id=str(uuid5(_ARCHIVES, workspace.event_id)),
        content=_in_words(workspace),
        workspace=workspace,
        archived_at=clock(),
    )
    vectors = await asyncio.to_thread(embedder.embed, [document.content])
    await store.upsert(KNOWLEDGE_COLLECTION, [Point(document.id, vectors[0], document.model_dump(mode="json"))])


def _in_words(workspace: SharedWorkspaceState) -> str:
    """One line a slot."""
    lines = (
        f"{slot}: {'; '.join(str(value['value']) for value in values_of(held))}"
        for slot, held in workspace.shared_data.items()
    )
    return "\n".join([f"Workspace, {workspace.status}", *lines])
