"""The browser is shared by the tests of a module, not of a session: its loop must not outlive them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
