"""The settings of a run, each declared once: its type, default, bounds, and the flag it has on the command line.

A value comes from the flag, else ``MEMREPLAY_*`` in the environment, else the project file, else the user's
config file, else the default. Both files are TOML with the field names as keys.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from annotated_types import Ge, Gt, Interval
from pydantic import ConfigDict, TypeAdapter, ValidationError

from memory_backends import ARCHITECTURES
from memory_backends.addresses import parse_address
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.secrets import register_secret, register_url_secrets, without_secrets
from memreplay.numbers import UNKNOWN
from memreplay.paths import config_file
from memreplay.project_file import project_file, read_toml, refuse_distrusted, settings_in

_CONFIG_VARIABLE = "MEMREPLAY_CONFIG"
_PREFIX = "MEMREPLAY_"
_VARIABLES_BESIDE_SETTINGS = (_CONFIG_VARIABLE, "MEMREPLAY_SERVE_TOKEN", "MEMREPLAY_TABLES")

ADDRESSES = ("redis_url", "qdrant_url", "api_base")
_PRIVATE = ("qdrant_api_key", "agent_token", "keys", "theme", "trusted_projects")
"""Settings that no recording holds: secrets, those of the screen, and whom the user trusts."""
CHANGE_NO_ANSWER = frozenset(
    {"fresh", "concurrency", "rpm", "tpm", "timeout", "cache", "offline", "redis_ttl", "workers", "cluster"}
)
"""Settings that do not affect answers (excluded from the fingerprint)."""

AS_GIVEN = "given"
"""Key under which a recording keeps the original values of settings that the run resolved."""
_LARGEST_NUMBER = 2**53 - 1
"""The largest integer that every JSON reader represents exactly."""

Names = tuple[str, ...]
"""Several names; separated by commas in the environment, a repeatable flag on the command line."""
Positive = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Flag:
    """The appearance of a setting in ``--help`` and in the docs. Without ``metavar`` it is a switch.

    ``default`` describes the default where the value itself does not.
    """

    help: str
    metavar: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class Settings:
    """A setting without a :class:`Flag` is one of the user, such as a secret: environment and config file only."""

    backend: Annotated[
        Names,
        Flag(
            "Memory: hybrid, rag, full_context, mem0 or another of memory_backends/README.md, package.module:Class,"
            " mcp:COMMAND, or an agent, http://host/run_turn or openai:URL.",
            "NAME",
            ", ".join(ARCHITECTURES),
        ),
    ] = ARCHITECTURES
    model: Annotated[Names, Flag(f"LiteLLM model, or {EXTRACTIVE_MODEL}.", "NAME")] = (EXTRACTIVE_MODEL,)
    api_base: Annotated[str | None, Flag("Base URL of an OpenAI-compatible server.", "URL")] = field(
        default=None, repr=False
    )
    redis_url: Annotated[str | None, Flag("Redis server.", "URL", "embedded")] = field(default=None, repr=False)
    qdrant_url: Annotated[str | None, Flag("Qdrant server.", "URL", "embedded")] = field(default=None, repr=False)
    qdrant_api_key: str | None = field(default=None, repr=False)
    agent_token: str | None = field(default=None, repr=False)
    """Bearer token for agents, that is for backends named by a URL."""
    agent_session_header: Annotated[
        str | None,
        Flag(
            "Header that names the session to an agent openai:URL, which then gets every turn and remembers it.",
            "HEADER",
            "none: it gets the whole history with each question",
        ),
    ] = None
    redis_ttl: Annotated[
        Positive | None, Flag("Expire the Redis keys of a finished run after this time.", "SECONDS", "kept")
    ] = None
    top_k: Annotated[Positive, Flag("Most hits per question, from all stores together.", "N")] = 10
    context_tokens: Annotated[
        Positive | None,
        Flag(
            "Most tokens of memory in a prompt.",
            "N",
            "what the model's window leaves; 8,192 where the window is unknown; the embedded reader has none, so"
            " that full_context is not cut, and --top-k limits the other memories (with 8,192 as a safeguard)",
        ),
    ] = None
    embedder: Annotated[str, Flag("Embedder: minilm (bundled), fastembed:NAME or litellm:NAME.", "NAME")] = "minilm"
    reranker: Annotated[
        str | None,
        Flag(
            "Model that reorders what hybrid and rag find, before hits are cut: fastembed:NAME or litellm:NAME.",
            "NAME",
            "none",
        ),
    ] = None
    extractor: Annotated[
        str | None,
        Flag(
            "LiteLLM model that memories write with: hybrid, mem0 and other libraries; its cost is reported apart.",
            "MODEL",
            "rules, or word for word",
        ),
    ] = None
    backend_config: Annotated[
        dict[str, Any],
        Flag(
            "Configuration of a library's own, by the name of its memory: a JSON or TOML file with tables such as"
            " mem0, or that as JSON.",
            "FILE",
            "the library's defaults",
        ),
    ] = field(default_factory=dict)
    ablate: Annotated[
        Names,
        Flag(
            "Switch off a part of hybrid: promotion, supersession, verbatim, knowledge, shared, personal, dense,"
            " keyword, speaker, date.",
            "NAME",
        ),
    ] = ()
    tier_share: Annotated[
        Names,
        Flag(
            "Largest share (0 to 1) of a recall that a tier of hybrid may fill.",
            "TIER=SHARE",
            "personal=0.05, shared=0.1, knowledge=0.1",
        ),
    ] = ()
    concurrency: Annotated[
        Positive | None, Flag("Parallel model calls.", "N", "starts at 20 and adapts to the provider")
    ] = None
    workers: Annotated[
        Positive | None,
        Flag("With --batch, shrink and sweep, play conversations in N processes; tests stay in one.", "N", "1"),
    ] = None
    cluster: Annotated[
        str | None,
        Flag(
            "With --batch and sweep, play conversations on Dask workers (memreplay[cluster]), each with the keys of"
            " its own environment: tcp://host:8786, or local:N.",
            "ADDRESS",
            "none",
        ),
    ] = None
    prompt: Annotated[
        str,
        Flag(
            "Prompt of questions: memreplay, locomo, longmemeval, mc10, or a Jinja template with the fields"
            " context, question, options, offered, kind and type.",
            "NAME|FILE",
        ),
    ] = "memreplay"
    model_args: Annotated[
        dict[str, Any],
        Flag(
            'Parameters of calls of the reader, as JSON: {"temperature": 1}; null leaves one out. An object under'
            " reader, judge or writer, or under a model's name, is for that role or model.",
            "JSON",
        ),
    ] = field(default_factory=dict)
    reply_tokens: Annotated[
        Positive | None,
        Flag(
            "Most tokens of an answer, thoughts included.",
            "N",
            "10 for a choice, 200 for recall, 2,048 more where the model is known to think",
        ),
    ] = None
    rpm: Annotated[Positive | None, Flag("Most requests per minute and model.", "N")] = None
    tpm: Annotated[Positive | None, Flag("Most tokens per minute and model.", "N")] = None
    timeout: Annotated[float, Gt(0), Flag("Time out a model call after this.", "SECONDS")] = 120.0
    limit: Annotated[
        Positive | None, Flag("Ask only the first N questions, or run the first N tests.", "N", "all")
    ] = None
    sample: Annotated[
        Positive | None,
        Flag("Ask a sample of N questions, stratified by type; of tests, by dataset.", "N", "all"),
    ] = None
    repeats: Annotated[int, Interval(ge=1, le=1000), Flag("Ask each question, or run all tests, N times.", "N")] = 1
    shuffle_choices: Annotated[
        bool, Flag("Shuffle the options of a question by the seed, in the same way for every backend.")
    ] = False
    seed: Annotated[int, Flag("Random seed.", "N")] = 0
    examples: Annotated[
        Annotated[int, Interval(ge=1, le=10_000)] | None,
        Flag("Tests per dataset.", "N", "as the dataset defines, or 3"),
    ] = None
    memory_span: Annotated[
        Annotated[int, Interval(ge=1, le=10_000_000)] | None,
        Flag("Number of tokens over which a test is spread.", "TOKENS", "as the dataset defines, or 2000"),
    ] = None
    isolated: Annotated[bool, Flag("Run each test alone, with an empty memory, and do not interleave.")] = False
    judge: Annotated[
        str | None,
        Flag(
            "LiteLLM model that grades recall answers, and tests which need one, and plays parts in these; its cost"
            " is reported apart.",
            "MODEL",
            "recall answers are graded by rules, such tests not at all",
        ),
    ] = None
    judge_rubric: Annotated[
        str,
        Flag(
            "What the judge accepts as right: auto (the rubric of the question's benchmark), plain, locomo,"
            " longmemeval, or a text file that says it.",
            "NAME|FILE",
        ),
    ] = "auto"
    fresh: Annotated[bool, Flag("Fill every memory anew; reuse none that an earlier run filled.")] = False
    cache: Annotated[bool, Flag("Do not reuse replies that other runs paid for.")] = True
    offline: Annotated[bool, Flag("Use no network: a model call without a cached reply is an error.")] = False
    keys: dict[str, str] = field(default_factory=dict)
    """Key bindings of the screen: from an action's id (``replay.step``) to keys separated by commas. A table in the
    config file, a JSON object in the environment."""
    trusted_projects: Names = ()
    """Folders of projects whose own settings may send data elsewhere and run code; see SECURITY.md."""
    theme: str | None = None
    """Colours of the screen: one of the names that the palette lists. One that is picked there stands until this
    changes."""

    def public(self) -> dict[str, Any]:
        """Return the settings as they may be recorded: JSON without secrets, and without those of the screen."""
        values: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }
        for name in _PRIVATE:
            del values[name]
        for name in ADDRESSES:
            values[name] = without_secrets(values[name])
        return values


def recorded_values(recorded: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the settings of a recorded run, as it was given them, checked. ``file`` is named in errors.

    Raises:
        UsageError: a recorded value is unusable.
    """
    as_given = recorded.get(AS_GIVEN, {})
    values = {**recorded, **(as_given if isinstance(as_given, dict) else {})}
    public = [each.name for each in fields(Settings) if each.name not in _PRIVATE]
    return {name: _validated(name, values[name], f"recorded in {file}") for name in public if name in values}


def command_line(values: Mapping[str, Any]) -> list[str]:
    """Return the flags that give these recorded settings, leaving out defaults."""
    words: list[str] = []
    values = {**values, **values.get(AS_GIVEN, {})}
    defaults = asdict(Settings())
    for each in fields(Settings):
        flag, value = flags().get(each.name), values.get(each.name)
        value = tuple(value) if isinstance(value, list) else value
        if flag is None or value is None or value == defaults[each.name]:
            continue
        name = each.name.replace("_", "-")
        match value:
            case bool():
                words.append(f"--{name}" if value else f"--no-{name}")
            case tuple():
                words += [word for one in value for word in (f"--{name}", str(one))]
            case dict():
                words += [f"--{name}", json.dumps(value)]
            case _:
                words += [f"--{name}", str(value)]
    return words


def budget_words(context_tokens: int | None, models: Collection[str]) -> str:
    """Return what limits the memory in a prompt; the embedded reader has no window."""
    if context_tokens is not None:
        return f"{context_tokens:,} tokens"
    return "not limited" if set(models) == {EXTRACTIVE_MODEL} else "the model's window"


def value_words(value: Any) -> str:
    """Return the value of a setting as it is shown to people."""
    match value:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if value else "no"
        case dict():
            return json.dumps(value) if value else UNKNOWN
        case list() | tuple():
            return ", ".join(map(str, value)) or UNKNOWN
    return str(value)


@cache
def types(*, annotated: bool = False) -> Mapping[str, Any]:
    """Return the type of each setting; annotated, with its bounds and its flag."""
    return get_type_hints(Settings, include_extras=annotated)


@cache
def flags() -> dict[str, Flag]:
    """Return the flag of each setting that has one, in the order of declaration."""
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in types(annotated=True).items()}
    return {name: mark for name, found in marks.items() for mark in found if isinstance(mark, Flag)}


def read_settings(**flags: Any) -> Settings:
    """Return the settings with these flags; a flag that is None or empty was not given.

    Raises:
        UsageError: a value is unusable. The message names the setting, where it can come from, and the problem.
    """
    sources = (_from_user_file(), _from_project_file(), _from_environment())
    origin = {name: place for source, place in sources for name in source}
    given: dict[str, Any] = {}
    for source, _ in sources:
        given |= source
    given |= {name: value for name, value in flags.items() if value not in (None, (), [])}
    settings = Settings(
        **{
            name: _validated(name, value, f"flag, {_PREFIX}{name.upper()} or {origin.get(name) or config_path()}")
            for name, value in given.items()
        }
    )
    of_project, project = sources[1]
    if project is not None:
        counts = {name: getattr(settings, name) for name, value in of_project.items() if given[name] is value}
        own = asdict(Settings()) | sources[0][0]
        refuse_distrusted(project, counts, own, settings.trusted_projects, config_path())
    for url in (settings.api_base, settings.redis_url, settings.qdrant_url):
        register_url_secrets(url)
    for secret in (settings.qdrant_api_key, settings.agent_token):
        register_secret(secret)
    return settings


def _from_user_file() -> tuple[dict[str, Any], Path]:
    path = config_path()
    if not path.is_file():
        if os.environ.get(_CONFIG_VARIABLE):
            raise UsageError(f"{path}: file not found (named by {_CONFIG_VARIABLE})")
        return {}, path
    return _known(read_toml(path), path), path


def _from_project_file() -> tuple[dict[str, Any], Path | None]:
    path = project_file()
    if path is None:
        return {}, None
    values = _known(settings_in(path), path)
    if "trusted_projects" in values:
        raise UsageError(f"{path}: trusted_projects is a setting of the user, which no project can give itself")
    return values, path


def _known(values: dict[str, Any], path: Path) -> dict[str, Any]:
    known = [each.name for each in fields(Settings)]
    for name in values:
        if name not in known:
            raise UsageError(f"{path}: unknown setting {name}{_suggestion(name, known)}")
    return values


def _from_environment() -> tuple[dict[str, str], None]:
    """Raises UsageError for a variable that is no setting: a misspelt one would be ignored silently."""
    variables = {_PREFIX + each.name.upper(): each.name for each in fields(Settings)}
    known = [*variables, *_VARIABLES_BESIDE_SETTINGS]
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known:
            hint = _suggestion(name, known) or "; options of a single run can be given only as flags"
            raise UsageError(f"{name} is not a setting{hint}")
    return {name: os.environ[variable] for variable, name in variables.items() if variable in os.environ}, None


def _suggestion(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _validated(name: str, value: Any, source: str) -> Any:
    """Return the value as the setting's type. Raises UsageError, which names the ``source``."""
    place = name
    try:
        kind = TypeAdapter(types(annotated=True)[name], config=ConfigDict(allow_inf_nan=False))
        return _checked(name, kind.validate_python(_parsed(name, value)))
    except ValidationError as error:
        first = error.errors()[0]
        place, problem = ".".join(map(str, (name, *first["loc"]))), first["msg"]
    except ValueError as error:
        problem = str(error)
    raise UsageError(f"setting {place} ({source}): {problem}") from None


def _parsed(name: str, value: Any) -> Any:
    """Return the value of a setting that environment variables spell as text."""
    if not isinstance(value, str):
        return value
    if types()[name] == Names:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if name == "backend_config" and not value.lstrip().startswith("{"):
        return _tables_of(Path(value))
    if name in _OBJECTS:
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError(f"not JSON; expected {_OBJECTS[name]}") from None
    return value


def _tables_of(path: Path) -> Any:
    """Return what a file of configuration holds; raises ValueError."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a usable file of JSON or TOML: {error}") from None


_SECRET = re.compile(r"key|token|password|secret|credential", re.IGNORECASE)


def _check_backend_config(config: Mapping[str, Any]) -> None:
    """Raise ValueError for a configuration that is no table, or holds a secret, which would be recorded."""
    for name, table in config.items():
        if not isinstance(table, dict):
            raise ValueError(
                f"expected a table of {name}, not {table!r}; a library's settings stand under its name"
            )
    for place, value in _places_in(config):
        if value and _SECRET.search(place.rpartition(".")[2]) and isinstance(value, str):
            raise ValueError(
                f"{place} looks like a secret, which would be recorded; keys come from the environment"
            )


def _places_in(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in a table, each with the names that lead to it."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        at = f"{place}.{name}" if place else str(name)
        yield at, inner
        yield from _places_in(inner, at)


_OBJECTS: Mapping[str, str] = {
    "keys": 'actions and their keys, {"replay.step": "space,l"}',
    "model_args": 'parameters and their values, {"temperature": 1}',
    "backend_config": 'a file, or a configuration by memory, {"mem0": {"custom_instructions": "…"}}',
}
"""Settings that are a table in a file, and JSON elsewhere, with an example of each."""


def _checked(name: str, value: Any) -> Any:
    """Return what types and bounds cannot express."""
    match name:
        case "backend" | "model":
            if not value:
                raise ValueError("name at least one")
            return tuple(dict.fromkeys(value))
        case "ablate":
            return tuple(sorted(set(value)))
        case "model_args":
            from memreplay.llm.parameters import check_model_args

            check_model_args(value)
        case "backend_config":
            _check_backend_config(value)
        case "agent_session_header":
            if value is not None and not re.fullmatch(r"[A-Za-z0-9-]+", value):
                raise ValueError("not the name of a header; expected one such as X-Session-Id")
        case "redis_url" | "qdrant_url":
            return _address(value, "scheme://host[:port]", ())
        case "api_base":
            return _address(value, "http://host[:port]/path or https://…", ("http", "https"))
    if isinstance(value, int) and not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER:
        raise ValueError(f"the number is too large; the largest is {_LARGEST_NUMBER}")
    return value


def _address(value: str | None, expected: str, schemes: Sequence[str]) -> str | None:
    """Return the URL that clients get, written as it was understood."""
    try:
        return parse_address(value, schemes).url if value else None
    except ValueError as error:
        raise ValueError(f"not a URL; expected {expected}: {error}") from None


def config_path() -> Path:
    named = os.environ.get(_CONFIG_VARIABLE)
    return Path(named) if named else config_file()
