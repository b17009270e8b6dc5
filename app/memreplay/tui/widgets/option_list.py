"""A list to pick from."""

from __future__ import annotations

from textual.widgets import OptionList


class PickList(OptionList):
    """Textual's list, which raises KeyError for a page key while its options are not laid out."""

    def action_page_up(self) -> None:
        """Move up a page."""
        if self._index_to_line:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """Move down a page."""
        if self._index_to_line:
            super().action_page_down()  # type: ignore[no-untyped-call]
