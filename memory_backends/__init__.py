"""The memory architectures under test. Nothing here knows of the replayer."""

import os

# onnxruntime reports its use to its maker, unless it is told not to before anybody imports it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

ARCHITECTURES = ("hybrid", "rag", "full_context")
"""The backends that are compared by default."""
