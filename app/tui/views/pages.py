"""The pages that the panels of an architecture are spread over."""

from __future__ import annotations

from typing import Final, Literal, get_args

Page = Literal["memory", "retrieval", "trace"]
PAGES: Final[tuple[Page, ...]] = get_args(Page)
