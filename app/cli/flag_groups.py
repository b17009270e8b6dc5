"""Flags that belong together, declared as one dataclass and handed over as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def flags_in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be dataclasses, as one that takes each of their fields as a flag.

    The fields of a group are annotated and given defaults as the parameters of any command are. Flags come in the
    order of the parameters, a group's in that of its fields.
    """
    parameters = signature(command, eval_str=True).parameters
    groups: dict[str, type[Any]] = {
        name: parameter.annotation for name, parameter in parameters.items() if _is_group(parameter.annotation)
    }

    def flat(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    flags = [
        flag
        for name, parameter in parameters.items()
        for flag in (_flags_of(groups[name]) if name in groups else [parameter])
    ]
    flat.__doc__ = command.__doc__
    flat.__signature__ = Signature(flags)  # type: ignore[attr-defined]  # what inspect.signature() reads
    return flat


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def _flags_of(group: type[Any]) -> list[Parameter]:
    annotations = get_type_hints(group, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name])
        for field in fields(group)
    ]
