"""The user's own Python: reference and linked inputs, called by the names their functions ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tunesmith.core.problem import PythonFunction


class UserCodeFailed(Exception):
    """The user's function raised, asked for something unknown or returned the wrong thing."""


def load(function: PythonFunction) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "tunesmith_user_code", "__file__": function.path}
    try:
        exec(compile(function.text, function.path, "exec"), namespace)
    except Exception as error:
        raise UserCodeFailed(f"{function.path} cannot be loaded: {describe(error, function)}") from error
    found = namespace.get(function.function)
    if not callable(found):
        raise UserCodeFailed(f"{function.path} has no function {function.function!r}")
    return found  # type: ignore[no-any-return]


def call(function: PythonFunction, offered: Mapping[str, Any]) -> Any:
    """Call it with those of the offered names that its signature mentions."""
    target = load(function)
    parameters = inspect.signature(target).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    wanted = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    missing = [p.name for p in wanted if p.name not in offered and p.default is p.empty]
    if missing:
        raise UserCodeFailed(
            f"{function.function} in {function.path} asks for {', '.join(missing)}; "
            f"it may ask for {', '.join(offered)}"
        )
    chosen = dict(offered) if takes_all else {p.name: offered[p.name] for p in wanted if p.name in offered}
    try:
        with np.errstate(all="ignore"):
            return target(**chosen)
    except Exception as error:
        raise UserCodeFailed(describe(error, function)) from error


def describe(error: BaseException, function: PythonFunction) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == function.path:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    where = f"{function.path}:{line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"
