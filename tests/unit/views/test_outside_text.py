"""Text from outside, as pages, plots and reports show it."""

from __future__ import annotations

import pytest

from memreplay.pages.plots import drawn
from memreplay.views.table import in_html
from memreplay.views.text import visible_data

ODD = "a\u202eb\u2066c\x1b[31md\x00e\x85f"


def test_every_text_of_plain_data_is_made_visible() -> None:
    shown = visible_data({ODD: [ODD, {"n": 1.5, "t": (ODD, None, True)}]})
    ((key, values),) = shown.items()
    assert key == values[0] == values[1]["t"][0] == "a\\u202eb\\u2066c\\u001b[31md\\u0000e\\u0085f"
    assert values[1] == {"n": 1.5, "t": [key, None, True]}


def test_inside_an_element_text_is_escaped_as_html_and_mentions_nobody() -> None:
    assert in_html("rag<img src=x onerror='a'> & full_context\n@all") == (
        "rag&lt;img src=x onerror=&#x27;a&#x27;&gt; &amp; full_context @\u200ball"
    )


def test_a_control_character_in_a_name_does_not_abort_a_plot() -> None:
    pytest.importorskip("vl_convert")
    picture = drawn(
        {
            "data": {"values": [{"backend": f"rag\x1b\x07{ODD}", "share": 0.5}]},
            "mark": "bar",
            "encoding": {"x": {"field": "share", "type": "quantitative"}, "y": {"field": "backend"}},
        },
        f"title {ODD}",
    )
    assert "rag" in picture and "\x07" not in picture
