"""Rendering of memory in a context: one form for all backends.

Messages with a known date follow a heading line with that date, one line a message:

    [8 May 2023, 13:56]
    Caroline: I went to the support group yesterday.

Where the conversation has no dates there is no heading. Text of a conversation is never used as a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memory_backends.base import Cut, Hit, Recall, TokenCounter

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

BETWEEN_HITS = "\n\n"


def date_heading(moment: datetime) -> str:
    """``[8 May 2023, 13:56]``, in English whatever the locale."""
    return f"[{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment.hour:02}:{moment.minute:02}]"


def under_date(text: str, said_at: datetime | None) -> str:
    """Return the text under its heading line; unchanged if it has no date."""
    return text if said_at is None else f"{date_heading(said_at)}\n{text}"


def assemble(
    hits: Sequence[Hit], turn_numbers: Mapping[str, int], context_tokens: int, count_tokens: TokenCounter
) -> Recall:
    """Return a context of at most ``context_tokens`` tokens from hits in rank order.

    Whole hits are taken, best first; one that does not fit is left out (``in_prompt`` False, and named in the
    cut) and smaller ones after it may still fit. The context has them in the order of ``turn_numbers`` (hit
    id to turn number), because a correction has to follow what it corrects. Hits come back
    in rank order, with their tokens.
    """
    counted = [hit.model_copy(update={"tokens": count_tokens(hit.text)}) for hit in hits]
    taken: list[Hit] = []
    context, tokens = "", 0
    for hit in counted:
        # The separators cost tokens as well, so a hit that seems to fit is tried.
        if tokens + hit.tokens > context_tokens:
            continue
        trial = BETWEEN_HITS.join(h.text for h in sorted([*taken, hit], key=lambda h: turn_numbers[h.id]))
        trial_tokens = count_tokens(trial)
        if trial_tokens <= context_tokens:
            taken.append(hit)
            context, tokens = trial, trial_tokens
    kept = {hit.id for hit in taken}
    return Recall(
        hits=tuple(hit.model_copy(update={"in_prompt": hit.id in kept}) for hit in counted),
        context=context,
        tokens=tokens,
        cut=_cuts([hit for hit in counted if hit.id not in kept]),
    )


def _cuts(left_out: Sequence[Hit]) -> tuple[Cut, ...]:
    """Return one cut a place."""
    places = dict.fromkeys(hit.place for hit in left_out)
    return tuple(
        Cut(
            place=place,
            turns=tuple(dict.fromkeys(turn for hit in left_out if hit.place == place for turn in hit.turns)),
            tokens=sum(hit.tokens for hit in left_out if hit.place == place),
        )
        for place in places
    )
