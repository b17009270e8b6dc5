"""tests/README.md shows a test of a screen that passes."""

from __future__ import annotations

import re
from typing import Any

from memreplay.tui.launch import Launch
from tests.conftest import REPOSITORY


async def test_the_example_in_the_readme_passes(launch: Launch) -> None:
    example = re.search(r"```python\n(.*?)```", (REPOSITORY / "tests" / "README.md").read_text(), re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example[1], names)
    await names["test_space_steps_to_the_next_turn"](launch)
