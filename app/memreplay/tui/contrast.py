"""Contrast of colours, as WCAG 2 defines it, and a filter that keeps text and marks readable in every theme."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import BLACK, WHITE, Color
from textual.filter import LineFilter

_TEXT: Final = 4.5
_MARK: Final = 3.0
"""The least contrast with what is behind them."""
_RULES: Final = frozenset(" ─│╭╮╰╯▔▁▕▏")
"""Borders of panels without the focus, which tell nothing."""
_MARKS: Final = _RULES | frozenset("━┃┏┓┗┛█")
_STEPS: Final = 20


class Readable(LineFilter):
    """Moves the colour of text and marks towards white or black as far as their contrast demands."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments; colours of the terminal's own palette stay, as nobody knows what they look like."""
        return [
            Segment(text, readable(style, least), control) if style and (least := _least(text)) else segment
            for segment in segments
            for text, style, control in (segment,)
        ]


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two opaque colours, from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@lru_cache(maxsize=4096)
def readable(style: Style, least: float = _TEXT) -> Style:
    """Return the style with a colour of at least this contrast."""
    if not _is_known(style.color) or not _is_known(style.bgcolor):
        return style
    assert style.color is not None and style.bgcolor is not None
    text, behind = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
    if contrast(text, behind) >= least:
        return style
    end = max(WHITE, BLACK, key=lambda colour: contrast(colour, behind))
    moved = (text.blend(end, step / _STEPS) for step in range(1, _STEPS + 1))
    found = next((colour for colour in moved if contrast(colour, behind) >= least), end)
    return style + Style(color=found.rich_color)


@lru_cache(maxsize=4096)
def _least(text: str) -> float:
    """Return the least contrast of a text; 0 if it needs none."""
    shown = set(text)
    return 0.0 if shown <= _RULES else _MARK if shown <= _MARKS else _TEXT


def _is_known(colour: RichColor | None) -> bool:
    return colour is not None and colour.triplet is not None


def _luminance(colour: Color) -> float:
    red, green, blue = (_linear(each / 255) for each in colour.rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)
