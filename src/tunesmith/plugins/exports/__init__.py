"""Exports: a run's result in the form in which somebody's program takes it. One module for each target."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from tunesmith.deliver.expr_text import template_macros
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.space.expr import Undefined, parse_expr


def export_texts(name: str, **known: Any) -> Any:
    """The macros of a file of texts with holes."""
    return template_macros("tunesmith.plugins.exports", name, **known)


@cache
def runtime_text(name: str) -> str:
    """A module of the runtime that ships with exports."""
    folder = resources.files("tunesmith.deliver").joinpath("runtime")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


def fixed_value(argument: DispatchArgument) -> float | int | None:
    """That of a scalar which the sizes do not decide; None: it has none."""
    if not isinstance(argument.value, str):
        return argument.value
    try:
        return parse_expr(argument.value).evaluate({})
    except Undefined:
        return None
