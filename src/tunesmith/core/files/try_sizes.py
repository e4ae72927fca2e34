"""Try a file's expressions at every workload, so that a shape or launch without sense is found on reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tunesmith.core.expr import LIMIT, Expr, Undefined
from tunesmith.core.files.toml_lines import Keys
from tunesmith.core.files.toml_table import Table, show
from tunesmith.core.problem import Argument, Launch, Problem

Place = tuple[Keys, str, Expr, int, int]  # where, what it is, the expression, its least and largest value


def try_problem(problem: Problem, root: Table) -> None:
    places = [place for i, a in enumerate(problem.arguments) for place in argument_places(a, ("argument", i))]
    places += launch_places(problem.launches, root)
    if problem.traffic is not None:
        places.append((("traffic",), "traffic", problem.traffic, 0, LIMIT))
    for kind, expr in problem.operations:
        places.append((("operations", kind), f"operations: {kind}", expr, 0, LIMIT))
    for workload in problem.workloads:
        places = try_places(places, workload.as_dict(), root, f"workload '{workload.name}'")


def argument_places(argument: Argument, keys: Keys) -> Iterator[Place]:
    what = f"argument '{argument.name}':"
    for key, exprs in (("shape", argument.shape), ("strides", argument.strides)):
        for axis, expr in enumerate(exprs):
            yield (*keys, key, axis), f"{what} {key}", expr, 0, LIMIT
    if argument.traffic is not None:
        yield (*keys, "traffic"), f"{what} traffic", argument.traffic, 0, LIMIT
    if isinstance(argument.value, Expr):
        low, high = argument.element.bounds
        yield (*keys, "value"), f"{what} value", argument.value, low, high


def launch_places(launches: Sequence[Launch], root: Table) -> Iterator[Place]:
    several = isinstance(root.data.get("launch"), list)
    for i, launch in enumerate(launches):
        keys: Keys = ("launch", i) if several else ("launch",)
        label = f"[launch] {i + 1}:" if several else "[launch]:"
        for key, exprs in (("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster)):
            for axis, expr in enumerate(exprs):
                yield (*keys, key, axis), f"{label} {key}", expr, 1, LIMIT
        if launch.shared is not None:
            yield (*keys, "shared"), f"{label} shared", launch.shared, 0, LIMIT


def try_places(places: Sequence[Place], values: Mapping[str, int], root: Table, at: str) -> list[Place]:
    """Note what makes no sense with these values; the places that do, to be tried with others.

    What also depends on the device or on a build is left alone.
    """
    sound: list[Place] = []
    for place in places:
        keys, what, expr, low, high = place
        if expr.names <= values.keys():
            reason = _nonsense(expr, values, low, high)
            if reason is not None:
                message = f"{what} {show(expr.text)} {reason} at {at}"
                root.faults.add(keys, message, "mend the expression or the sizes")
                continue
        sound.append(place)
    return sound


def _nonsense(expr: Expr, values: Mapping[str, int], low: int, high: int) -> str | None:
    try:
        value = expr.evaluate(values)
    except Undefined as error:
        return f"has no value ({error})"
    if low <= value <= high:
        return None
    bound = f"at least {low}" if value < low else f"at most {high}"
    return f"is {value}, allowed is {bound},"
