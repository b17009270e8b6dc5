"""Agents: memories that answer by themselves, over HTTP. Both ends of the line: asking one, and being one."""
