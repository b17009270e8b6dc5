"""The notes of ``plain_mcp_server.py`` behind a server of the official MCP package, started in the same way.

With ``--port PORT`` it speaks streamable HTTP.
"""

from __future__ import annotations

import sys

import plain_mcp_server as notes

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:  # before version 2
    from mcp.server.fastmcp import FastMCP as Server  # type: ignore[no-redef,import-not-found]


def put(kind: str = "", note: str = "") -> str:
    """``add_memory`` under a name that says nothing."""
    if "unbearable" in note:
        raise ValueError("this server has had enough")
    return notes.add_memory(note)


def ask(about: str) -> str:
    """The best notes as plain text."""
    return "\n".join(str(found["memory"]) for found in notes.search_memories(about))


if __name__ == "__main__":
    server = Server("notes")
    plainly = (notes.add_memory, notes.search_memories, notes.list_memories)
    for tool in (put, ask) if "tools" in sys.argv else plainly:
        server.tool()(tool)
    if "--port" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[sys.argv.index("--port") + 1]))
    else:
        server.run()
