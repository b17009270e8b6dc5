"""Failures that no further asking would mend: a wrong key, a model that is not there, an account without credit.

Providers say most of them by the status of HTTP, and an empty account often by words alone: Anthropic with a 400,
OpenAI with a 429.
"""

from __future__ import annotations

import re

from app.answering.provider_errors import has_no_credit, reason_of, status_of, words_of
from app.answering.reachability import variable_of_key

_NO_MODEL = re.compile(r"model_not_found|invalid_model|\binvalid model\b|not a valid model", re.IGNORECASE)
_ABOUT_THE_PROMPT = re.compile(r"moderat|flagged|content.?policy|blocked|safety", re.IGNORECASE)


def past_mending(error: BaseException, model: str, *, has_answered: bool) -> str | None:
    """Why a model need not be asked again, and what would mend it, in one sentence; None where asking may help.

    A 403 may be a gateway's objection to one prompt: it only counts where the model has not answered yet.
    """
    status, said, reason = status_of(error), words_of(error), reason_of(error)
    if has_no_credit(error):
        return f"{model} is asked no more, for the account has no credit left: top it up ({reason})"
    if status == 401:
        return f"{model} is asked no more, for the key is not accepted: set a right one{_in(model)} ({reason})"
    if status == 404 or (status == 400 and _NO_MODEL.search(said)):
        return (
            f"{model} is asked no more, for there is no such model where it was asked for: put it there, or start"
            f" another run with the right --model and --api-base ({reason})"
        )
    if status == 403 and not has_answered and not _ABOUT_THE_PROMPT.search(said):
        return f"{model} is asked no more, for the key{_in(model)} has no right to it: get it the right ({reason})"
    return None


def _in(model: str) -> str:
    """Where the key stands, where that can be told."""
    name = variable_of_key(model)
    return f" in {name}" if name else ""
