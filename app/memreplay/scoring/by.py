"""The fields of a question by which results are broken down. Imports nothing: the command line needs the names."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["type", "category", "location", "salience"]
BREAKDOWNS: tuple[By, ...] = get_args(By)
