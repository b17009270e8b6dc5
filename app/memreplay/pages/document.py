"""One self-contained HTML file: markup, style, script and data, under a policy that allows nothing else.

The policy names the hashes of the style and the script, and no source besides: the page can load nothing, send
nothing and run nothing that came in with the data. The data is compressed JSON in an element that is not executed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memreplay.views.text import visible

STYLES = ("questions.css", "replay.css")
SCRIPTS = ("data.js", "questions.js", "replay.js")
"""Assets that every page needs for its questions and replays."""

_ASSETS = files("memreplay.pages") / "assets"


@dataclass(frozen=True)
class Data:
    """A value that a script of the page reads, by the id of the element that holds it."""

    id: str
    value: Any

    @property
    def encoded(self) -> str:
        """Base64 of gzip of JSON. Without a time stamp: equal values give equal pages."""
        return base64.b64encode(gzip.compress(orjson.dumps(self.value), 9, mtime=0)).decode()


def page(
    template: str, *, styles: Sequence[str], scripts: Sequence[str], data: Sequence[Data], **values: Any
) -> str:
    """Return the page of a template. ``styles`` and ``scripts`` are names of assets; the values are escaped."""
    style = "\n".join(map(_asset, styles))
    script = "\n".join(map(_asset, scripts))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        _environment()
        .get_template(template)
        .render(policy=policy, style=Markup(style), script=Markup(script), data=data, **values)
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").strip()


def _shown(value: Any) -> Any:
    """Return a value as a template prints it: text from outside is made visible."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("memreplay.pages", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
