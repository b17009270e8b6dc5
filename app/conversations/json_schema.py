"""The JSON Schema of TestConversation files, generated from the models, for the editors of those who write one."""

from __future__ import annotations

import json
from typing import Any

from app.conversations.test_conversation import TestConversation

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def conversation_schema() -> dict[str, Any]:
    """The schema, by the names that stand in JSON."""
    return {"$schema": _DIALECT, **TestConversation.model_json_schema(by_alias=True)}


def conversation_schema_text() -> str:
    """The schema as it is shipped."""
    return json.dumps(conversation_schema(), indent=2, ensure_ascii=False) + "\n"
