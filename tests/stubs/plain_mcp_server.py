"""A memory server over MCP's own protocol, without a package: it starts in no time.

Its memory is notes in a JSON file, found by the words that they share. ``python plain_mcp_server.py FILE [tools]``
has tools by other names if asked to. JSON-RPC, a message a line.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])
TEXT = {"type": "string"}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def notes() -> list[str]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []


def add_memory(text: str) -> str:
    """Keep a note."""
    FILE.write_text(json.dumps([*notes(), text]), encoding="utf-8")
    return "kept"


def search_memories(query: str, limit: int = 3) -> list[dict[str, Any]]:
    """The notes that share most words with the query."""
    scored = sorted(((len(words(query) & words(note)), note) for note in notes()), reverse=True)
    return [{"memory": note, "score": score} for score, note in scored[:limit] if score]


def list_memories() -> list[dict[str, Any]]:
    """All notes."""
    return [{"memory": note} for note in notes()]


NAMED_PLAINLY = {
    "add_memory": (add_memory, {"text": TEXT}, ["text"]),
    "search_memories": (search_memories, {"query": TEXT, "limit": {"type": "integer"}}, ["query"]),
    "list_memories": (list_memories, {}, []),
}
NAMED_OTHERWISE = {
    "put": (add_memory, {"kind": TEXT, "note": TEXT}, ["kind", "note"]),
    "ask": (search_memories, {"about": TEXT}, ["about"]),
}
TOOLS = NAMED_OTHERWISE if "tools" in sys.argv else NAMED_PLAINLY


def result_of(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"},
            }
        case "tools/list":
            listed = [
                {
                    "name": name,
                    "description": tool.__doc__,
                    "inputSchema": {"type": "object", "properties": fields, "required": needed},
                }
                for name, (tool, fields, needed) in TOOLS.items()
            ]
            return {"tools": listed}
        case "tools/call":
            tool: Any = TOOLS[parameters["name"]][0]
            returned = json.dumps(tool(**parameters["arguments"]))
            return {"content": [{"type": "text", "text": returned}], "isError": False}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = result_of(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()
