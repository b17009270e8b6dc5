"""The memory architectures under test. Nothing here imports memreplay."""

import os

# onnxruntime sends telemetry unless this is set before its first import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

ARCHITECTURES = ("hybrid", "rag", "full_context")
"""The backends that are compared by default."""
