"""The hybrid architecture (DD-01)."""

from memory_backends.hybrid.backend import HybridBackend

__all__ = ["HybridBackend"]
