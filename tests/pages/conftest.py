"""The browser is shared by the tests of a module, not of a session: its loop must not outlive them.

While it runs, no other loop can run in this thread. So it starts after ``pages``, in which a module makes all that
it opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.browser import chromium


@pytest.fixture(scope="module")
def browser(pages: Any) -> Iterator[Any]:
    with chromium() as started:
        yield started
