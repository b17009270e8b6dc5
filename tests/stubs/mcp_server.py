"""A memory server of the official MCP package: notes in a JSON file, found by the words that they share.

``python -m tests.stubs.mcp_server FILE [tools]`` has tools by other names if asked to.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:  # before version 2
    from mcp.server.fastmcp import FastMCP as Server  # type: ignore[no-redef,import-not-found]

FILE = Path(sys.argv[1])


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def notes() -> list[str]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []


def add_memory(text: str) -> str:
    """Keep a note."""
    if "unbearable" in text:
        raise ValueError("this server has had enough")
    FILE.write_text(json.dumps([*notes(), text]), encoding="utf-8")
    return "kept"


def search_memories(query: str, limit: int = 3) -> list[dict[str, Any]]:
    """The notes that share most words with the query."""
    scored = sorted(((len(words(query) & words(note)), note) for note in notes()), reverse=True)
    return [{"memory": note, "score": score} for score, note in scored[:limit] if score]


def list_memories() -> list[dict[str, Any]]:
    """All notes."""
    return [{"memory": note} for note in notes()]


def put(kind: str = "", note: str = "") -> str:
    """``add_memory`` under a name that says nothing."""
    return add_memory(note)


def ask(about: str) -> str:
    """The best notes as plain text."""
    return "\n".join(str(found["memory"]) for found in search_memories(about))


if __name__ == "__main__":
    server = Server("notes")
    for tool in (put, ask) if "tools" in sys.argv else (add_memory, search_memories, list_memories):
        server.tool()(tool)
    server.run()
