"""Everything a dataset imports, under the names of GoodAI's interfaces."""

from __future__ import annotations

from memreplay.dataset_interfaces.actions import (
    SendAndRegisterAction,
    SendMessageAction,
    TestAction,
    TestFinishedAction,
    WaitAction,
    WaitCreator,
)
from memreplay.dataset_interfaces.dataset import CallBackTestExample, DatasetInterface, RunView, TestExample
from memreplay.dataset_interfaces.dynamic import DynamicDataset, DynamicExample
from memreplay.dataset_interfaces.evaluation import Ungraded, sanitize_and_parse_json
from memreplay.dataset_interfaces.language_model import (
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
