"""Facts about a model that are known before calling it: its limits, its prices, and whether its key is set."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import orjson

from memreplay.conversations.models import Frozen
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.litellm_setup import loaded_litellm

DUMMY_KEY = "no-key-needed"
"""Sent to a local server where the user has set no key, since most clients insist on one."""

_environment = Lock()


def missing_keys(model: str, api_base: str | None) -> str | None:
    """Return the variables to set, as ``A and B``, or ``A or B`` where one is enough; None if nothing is missing.

    An empty variable counts as missing: that is how a CI passes a secret that does not exist.
    """
    litellm = loaded_litellm()
    with _without_empty_variables():
        found = litellm.validate_environment(model)
        names = [name for name in found["missing_keys"] if not name.endswith("_VERSION")]
        if found["keys_in_environment"] or not names:
            return None
        with _set(names[0]):
            one_is_enough = litellm.validate_environment(model)["keys_in_environment"]
    if any(_OTHER_WAYS.get(name, _no_other_way)() for name in names):
        return None
    if one_is_enough and len(names) > 1:
        return " or ".join(names)
    bases = [name for name in names if name.endswith("_BASE")]
    if api_base is not None or len(bases) == len(names):
        # The address of a server, which is given or has a default, is no key.
        names = [name for name in names if name not in bases]
    return " and ".join(name for name in names if not os.environ.get(name, "").strip()) or None


@contextmanager
def _without_empty_variables() -> Iterator[None]:
    with _environment:
        empty = {name: value for name, value in os.environ.items() if not value.strip()}
        for name in empty:
            del os.environ[name]
        try:
            yield
        finally:
            os.environ.update(empty)


@contextmanager
def _set(name: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = before or DUMMY_KEY
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _no_other_way() -> bool:
    return False


def _aws_has_credentials() -> bool:
    """Return a profile, a role, or a token; whether they are valid, AWS says when they are used.

    A profile that ``AWS_PROFILE`` names is enough for LiteLLM, so it is not asked for here.
    """
    if any(os.environ.get(name) for name in _AWS_VARIABLES) or _is_on_ec2():
        return True
    return (os.environ.get("AWS_DEFAULT_PROFILE") or "default") in _aws_profiles()


_AWS_VARIABLES = (
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def _aws_profiles() -> set[str]:
    """Profiles in AWS's two files. The config file calls them ``profile NAME``, except the default one."""
    files = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))
    profiles: set[str] = set()
    for variable, default in files:
        parser = configparser.RawConfigParser(default_section="")
        try:
            parser.read(Path(os.environ.get(variable) or default).expanduser(), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        profiles |= {
            name.removeprefix("profile ").strip() for name in parser.sections() if set(parser[name]) & _CREDENTIALS
        }
    return profiles


_CREDENTIALS = {
    "aws_access_key_id",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "credential_process",
    "web_identity_token_file",
    "login_session",
}


def _is_on_ec2() -> bool:
    """Return a machine at Amazon may have a role of its own, which only a request would show."""
    try:
        return Path("/sys/devices/virtual/dmi/id/sys_vendor").read_text().strip() == "Amazon EC2"
    except OSError:
        return False


def _azure_has_credentials() -> bool:
    return any(os.environ.get(name) for name in ("AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"))


def _google_has_credentials() -> bool:
    named = ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_CREDENTIALS")
    default = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    return any(os.environ.get(name) for name in named) or default.is_file()


_OTHER_WAYS: Mapping[str, Callable[[], bool]] = {
    "AWS_ACCESS_KEY_ID": _aws_has_credentials,
    "AWS_SECRET_ACCESS_KEY": _aws_has_credentials,
    "AZURE_API_KEY": _azure_has_credentials,
    "VERTEXAI_PROJECT": _google_has_credentials,
}
"""Checks whether a provider has credentials without the variable. None of them uses the network."""


_TABLE = "model_prices_and_context_window_backup.json"
# Names of reasoning models that are missing from the table (local and brand-new ones).
_REASONING_NAME = re.compile(
    r"(?:^|[/:_-])(?:o[1-9]|gpt-5|r1|qwq|reason\w*|think\w*|magistral)(?:$|[/:._-])", re.IGNORECASE
)


class ModelFacts(Frozen):
    """``context_window`` in tokens; prices in US dollars per token; None where unknown.

    ``reasons_first``: it thinks before it answers. ``caches_prompts``: its provider charges less for a prompt
    prefix that it has seen before.
    """

    context_window: int | None = None
    reasons_first: bool = False
    caches_prompts: bool = False
    prompt_price: float | None = None
    completion_price: float | None = None


def litellm_folder() -> Path | None:
    """Return where LiteLLM is installed, without importing it (which takes seconds)."""
    spec = find_spec("litellm")
    return Path(spec.origin).parent if spec and spec.origin else None


Entry = dict[str, Any]


@lru_cache(maxsize=64)
def _entries(model: str) -> tuple[Entry | None, Entry | None]:
    """Return what LiteLLM's table says under the model's full name, and under its name without the provider.

    Of the table, which takes 8 MB, nothing else is kept: a run asks for few models.
    """
    folder = litellm_folder()
    path = folder / _TABLE if folder else None
    if path is None or not path.is_file():
        return None, None
    table: dict[str, Entry] = orjson.loads(path.read_bytes())
    return table.get(model), table.get(model.partition("/")[2])


def table_entry(model: str) -> Entry | None:
    """Return what LiteLLM's table says of a model: under its full name, or under the name that its provider has
    for it.
    """
    entry, bare = _entries(model)
    if entry is None and bare is not None and bare.get("litellm_provider") == model.partition("/")[0]:
        return bare
    return entry


@lru_cache(maxsize=64)
def model_facts(model: str) -> ModelFacts:
    """Return the facts in LiteLLM's table, under the model's full name or without its provider."""
    if model == EXTRACTIVE_MODEL:
        # It is not in the table, which takes 0.02 s to read.
        return ModelFacts()
    full, bare = _entries(model)
    entry = full or bare or {}
    window = entry.get("max_input_tokens") or entry.get("max_tokens")
    return ModelFacts(
        context_window=window if isinstance(window, int) and window > 0 else None,
        reasons_first=bool(entry.get("supports_reasoning")) or bool(_REASONING_NAME.search(model)),
        caches_prompts=bool(entry.get("supports_prompt_caching")),
        prompt_price=entry.get("input_cost_per_token"),
        completion_price=entry.get("output_cost_per_token"),
    )


_OWN_PREFIX = EXTRACTIVE_MODEL.partition("/")[0] + "/"


def ensure_reachable(model: str, api_base: str | None) -> None:
    """Check that a model can be called. A local server needs no key.

    The first check of any model but the embedded reader imports LiteLLM, which takes seconds.

    Raises:
        UsageError: an unknown model or provider.
        MissingServerOrKeyError: a hosted model without its key; names the environment variable.
    """
    if model == EXTRACTIVE_MODEL:
        return
    if model.startswith(_OWN_PREFIX):
        raise UsageError(f"unknown model {model!r}; the embedded reader is {EXTRACTIVE_MODEL!r}")
    if api_base is not None and "@" in urlsplit(api_base).netloc:
        raise UsageError(
            "--api-base must not contain a user or password, which model clients do not send; put the key into the"
            " provider's variable"
        )
    litellm = loaded_litellm()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except Exception:
        raise UsageError(
            f"unknown model {model!r}; LiteLLM names are provider/model, such as openai/gpt-4o-mini"
        ) from None
    missing = missing_keys(model, api_base)
    if missing and not is_local(api_base):
        raise MissingServerOrKeyError(f"{model} needs a key: set {missing}")


def key_for(model: str, api_base: str | None) -> str | None:
    """Return a dummy key for a local server where the user has set none; None lets LiteLLM find the real one."""
    return DUMMY_KEY if is_local(api_base) and missing_keys(model, api_base) else None


def variable_of_key(model: str) -> str | None:
    """Return the environment variable that holds, or would hold, the key; None where that is unknown."""
    try:
        name = f"{loaded_litellm().get_llm_provider(model)[1].upper()}_API_KEY"
    except Exception:
        return None
    return name if os.environ.get(name) else missing_keys(model, None)


def is_local(api_base: str | None) -> bool:
    """Return whether a URL points to this machine or its private network."""
    host = urlsplit(api_base).hostname if api_base else None
    if host is None:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))


def is_loopback(url: str) -> bool:
    """Return whether a URL points to this machine."""
    host = urlsplit(url).hostname
    try:
        return host is None or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
