"""Prompt in, reply out: the embedded reader."""

from __future__ import annotations

from collections.abc import Sequence

from app.answering.agent_prompt import remembered_in
from app.answering.extractive.agent_reply import reply_to_message
from app.answering.extractive.choice_answer import answer_choice
from app.answering.extractive.evidence import read_history
from app.answering.extractive.prompt_reading import read_prompt
from app.answering.extractive.recall_answer import answer_recall
from app.answering.extractive.words import is_spanish

NOT_OUR_PROMPT = "This reader found no question that it understands at the end of the prompt."
_SAMPLE = 4000
"""Characters of a history that tell its language."""


def answer_messages(contents: Sequence[str]) -> str:
    """The reply to the messages of a prompt: as an agent where it is an agent's prompt, else to its question."""
    if len(contents) == 2 and (remembered := remembered_in(contents[0])) is not None:
        return reply_to_message(remembered, contents[1])
    return read_and_answer("\n".join(contents))


def read_and_answer(prompt: str) -> str:
    """The reply to a prompt: an option's index, a sentence of the history, or that the history does not say."""
    asked = read_prompt(prompt)
    if asked is None:
        return NOT_OUR_PROMPT
    history = read_history(asked.context, is_spanish(asked.question) or is_spanish(asked.context[:_SAMPLE]))
    return (
        answer_choice(history, asked.question, asked.options)
        if asked.options
        else answer_recall(history, asked.question)
    )
