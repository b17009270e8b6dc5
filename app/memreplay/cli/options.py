"""Flags of the command line: those of settings, built from :mod:`memreplay.settings`, and those commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer

from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.errors import UsageError
from memreplay.scoring import SHOWN, Shown
from memreplay.settings import Names, Settings, flags, types
from memreplay.terminal import confirm, has_terminal
from memreplay.trust import Consent, Reach, allow, refuse

GivenSettings = dict[str, Any]
"""The settings that were given as flags, for :func:`memreplay.settings.read_settings`; None for the others."""

_DEFAULTS = asdict(Settings())

COMMAND_OPTIONS: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False}
"""Arguments of every command's ``typer.Typer``."""


SessionGap = Annotated[
    float | None,
    typer.Option(
        metavar="HOURS",
        min=0,
        max=1e6,
        help="Silence after which a session of a chat log begins. [default: 6]",
    ),
]
UserName = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Who is the user in a transcript with names.")
]


def log_options(session_gap: float | None, user: str | None) -> LogOptions:
    """Return what the options say about chat logs."""
    gap = DEFAULT_LOG_OPTIONS.session_gap if session_gap is None else session_gap
    return LogOptions(gap, user.strip() if user else None)


def takes_settings(
    *names: str, of_recording: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter ``given`` of a command by the flags of these settings, of all where none is named.

    Those ``of_recording`` allow what the run of a recording was set up with.
    """
    chosen = (*of_recording, *names) or tuple(flags())

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def flat(**arguments: Any) -> None:
            command(
                given={name: _value(name, arguments.pop(_parameter_name(name))) for name in chosen}, **arguments
            )

        parameters: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            if parameter.name == "given":
                parameters += [_parameter(name, of_recording=name in of_recording) for name in chosen]
            else:
                parameters.append(parameter)
        flat.__doc__ = command.__doc__
        flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature() reads
        return flat

    return decorate


def setting_option(name: str, *, of_recording: bool = False, **options: Any) -> Any:
    """Return the typer option of a setting, for a command that reads no settings."""
    flag, default = flags()[name], _DEFAULTS[name]
    words = "what memreplay ships" if of_recording else flag.default or _shown(default)
    text = f"Allow this {name} of the recording." if of_recording else flag.help
    text += " Repeatable." if isinstance(default, tuple) else ""
    spelling = [f"--{_parameter_name(name).replace('_', '-')}"] if flag.metavar is None else []
    return typer.Option(*spelling, metavar=flag.metavar, help=with_default(text, words), **options)


def with_default(help_text: str, default: str) -> str:
    return f"{help_text} [default: {default}]" if default else help_text


def _shown(default: object) -> str:
    match default:
        case None | bool() | dict():
            return ""
        case tuple():
            return ", ".join(default)
        case float():
            return f"{default:g}"
    return str(default)


def _parameter(name: str, *, of_recording: bool) -> Parameter:
    kind: Any = types()[name]
    default: Any = None
    if kind is bool:
        default = False
    elif kind == Names:
        kind = list[str] | None
    elif get_origin(kind) in (Literal, dict):
        kind = str | None
    else:
        kind |= None
    annotation = Annotated[kind, setting_option(name, of_recording=of_recording)]
    return Parameter(_parameter_name(name), Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameter_name(name: str) -> str:
    """Return the parameter of a setting. That of a switch which is on by default turns it off: ``no_cache``."""
    return f"no_{name}" if _DEFAULTS[name] is True else name


def _value(name: str, given: Any) -> Any:
    """Return the value of a flag; None for one that was left out, whose setting may come from elsewhere."""
    if isinstance(given, bool):
        return not _DEFAULTS[name] if given else None
    return given


Outputs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Write results here: .json, .csv (one row per answer), .breakdown.csv, .md (also a name without an"
        " extension), .html (report), .xml (JUnit), or - for JSON on standard output."
        " Repeatable. [default: RECORDING.results.json]",
    ),
]

Breakdowns = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="type|category|location|salience|options",
        help="Print the results by this too, or which options were chosen; Markdown and .breakdown.csv have all."
        " Repeatable.",
    ),
]


TablesShown = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="headline|all",
        help="How much to print: one table and what it says, or every table and remark. [default: headline, or"
        " MEMREPLAY_TABLES]",
    ),
]


def shows_all_tables(given: str | None) -> bool:
    """Return whether every table is to be printed, by the option or else the environment."""
    chosen = given or os.environ.get("MEMREPLAY_TABLES") or "headline"
    if chosen not in ("headline", "all"):
        raise UsageError(f"--tables {chosen}: expected headline or all")
    return chosen == "all"


def chosen_breakdowns(names: Sequence[str] | None) -> tuple[Shown, ...]:
    """Return the values of ``--by``. Raises UsageError for any other."""
    for name in names or ():
        if name not in SHOWN:
            raise UsageError(f"--by {name}: expected {', '.join(SHOWN)}")
    return tuple(by for by in SHOWN if by in (names or ()))


AnswerKeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Corrections of published answers: report adjusted scores beside the raw ones."
    ),
]

JudgedBy = Annotated[
    str | None,
    typer.Option(
        metavar="JUDGE[@RUBRIC]",
        help="Grade by the judgements that memreplay rejudge recorded, not by those of the run.",
    ),
]

AllowFromRecording = Annotated[
    bool,
    typer.Option(
        "--allow-from-recording",
        help="Let this recording run the code and commands, and contact the models and addresses, that it names.",
    ),
]

SET_BY_A_RUN = ("backend", "model", "embedder", "reranker", "extractor", "judge")
"""Settings of a recorded run that run code or contact a provider, unless they name what memreplay ships."""


def consent_to(file: Path, allowed: bool) -> Consent:
    """Return who decides what a recording may run and contact: the flag, else the user, if there is a terminal."""

    def ask(reaches: Sequence[Reach]) -> bool:
        facts = [f"{file} asks for what your settings do not name:", *(f"  {reach}" for reach in reaches)]
        return confirm(facts, "Allow this now?")

    if allowed:
        return allow
    return ask if has_terminal() else refuse
