"""Everything a dataset imports, under the names of GoodAI's interfaces."""

from __future__ import annotations

from memreplay.goodai.actions import (
    SendAndRegisterAction,
    SendMessageAction,
    TestAction,
    TestFinishedAction,
    WaitAction,
    WaitCreator,
)
from memreplay.goodai.dataset import (
    CallBackTestExample,
    DatasetInterface,
    DynamicDataset,
    DynamicExample,
    RunView,
    TestExample,
)
from memreplay.goodai.evaluation import Ungraded, sanitize_and_parse_json
from memreplay.goodai.language_model import (
    GPT_4_TURBO_BEST,
    GPT_CHEAPEST,
    LLMContext,
    make_assistant_message,
    make_system_message,
    make_user_message,
)

__all__ = [
    "GPT_4_TURBO_BEST",
    "GPT_CHEAPEST",
    "CallBackTestExample",
    "DatasetInterface",
    "DynamicDataset",
    "DynamicExample",
    "LLMContext",
    "RunView",
    "SendAndRegisterAction",
    "SendMessageAction",
    "TestAction",
    "TestExample",
    "TestFinishedAction",
    "Ungraded",
    "WaitAction",
    "WaitCreator",
    "make_assistant_message",
    "make_system_message",
    "make_user_message",
    "sanitize_and_parse_json",
]
