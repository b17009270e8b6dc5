"""All that a dataset imports, under the names that GoodAI's interfaces give it."""

from __future__ import annotations

from app.dataset_interfaces.actions import (
    SendAndRegisterAction,
    SendMessageAction,
    TestAction,
    TestFinishedAction,
    WaitAction,
)
from app.dataset_interfaces.dataset import DatasetInterface, RunView
from app.dataset_interfaces.dynamic import DynamicDataset, DynamicExample
from app.dataset_interfaces.examples import CallBackTestExample, TestExample
from app.dataset_interfaces.language_model import (
    GPT_4_TURBO_BEST,
    GPT_CHEAPEST,
    LLMContext,
    make_assistant_message,
    make_system_message,
    make_user_message,
)
from app.dataset_interfaces.reply_json import sanitize_and_parse_json
from app.dataset_interfaces.ungraded import Ungraded
from app.dataset_interfaces.waits import WaitCreator

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
