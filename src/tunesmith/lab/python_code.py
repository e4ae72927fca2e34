"""The user's own Python: reference and linked inputs, called by the names their functions ask for."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.problem import PythonFunction


class UserCodeFailed(Exception):
    """The user's function raised, asked for something unknown or returned the wrong thing."""


def load(function: PythonFunction) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "tunesmith_user_code", "__file__": function.path}
    try:
        exec(compile(function.text, function.path, "exec"), namespace)
    except Exception as error:
        raise UserCodeFailed(describe(error, function)) from error
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
        raise fault(function, f"asks for {', '.join(missing)}; it may ask for {', '.join(offered)}")
    chosen = dict(offered) if takes_all else {p.name: offered[p.name] for p in wanted if p.name in offered}
    try:
        with np.errstate(all="ignore"):
            return target(**chosen)
    except Exception as error:
        raise UserCodeFailed(describe(error, function)) from error


def numbers(value: object, function: PythonFunction, what: str) -> NDArray[Any]:
    """The value as an array, where it is one of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise fault(function, f"{what}: {error}") from error
    if array.dtype.kind in "OSUMmc" and array.shape:
        raise fault(function, f"{what}, but of {array.dtype}")
    return array


def fault(function: PythonFunction, words: str) -> UserCodeFailed:
    """The failure of a function that ran and did something else than it should."""
    lines = [n.lineno for n in ast.parse(function.text).body if getattr(n, "name", "") == function.function]
    return UserCodeFailed(f"{function.path}:{lines[-1] if lines else 1}: {function.function} {words}")


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
