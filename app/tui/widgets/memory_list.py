"""A list whose entries can be ticked. The tick is a sign and not a colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.text import one_line


class MemoryList(OptionList):
    """Names of memories, some of them ticked."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Toggle", show=False)]

    def __init__(self, names: Sequence[str], ticked: Iterable[str], *, id: str) -> None:
        self._names = tuple(names)
        self._ticked = {name for name in ticked if name in self._names}
        super().__init__(*(Option(self._prompt(name)) for name in self._names), id=id, compact=True)

    @property
    def ticked(self) -> tuple[str, ...]:
        """The ticked names, in the order of the list."""
        return tuple(name for name in self._names if name in self._ticked)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        """Tick or untick."""
        message.stop()
        self._ticked ^= {self._names[message.option_index]}
        name = self._names[message.option_index]
        self.replace_option_prompt_at_index(message.option_index, self._prompt(name))

    def _prompt(self, name: str) -> Content:
        return Content(f"[{'x' if name in self._ticked else ' '}] {one_line(name)}")
