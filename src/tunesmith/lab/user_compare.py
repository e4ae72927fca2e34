"""The user's own comparison of an output, called in a worker: what it is given, and what its answer means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.messages import CompareOutputs, Draw, ExpectedArray, OutputCompared
from tunesmith.lab import references as reference
from tunesmith.problem.draws import logical
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import PythonFunction
from tunesmith.text import cut

Array = NDArray[Any]
LONGEST_REASON = 500  # characters


def answer(request: CompareOutputs, blobs: Sequence[bytes]) -> OutputCompared:
    got = _arrays(request.got, blobs[: len(request.got)])
    expected = _arrays(request.expected, blobs[len(request.got) :])
    reason = ask(request.function, request.plan, request.draw, request.output, got, expected)
    return OutputCompared(reason or "")


def ask(
    function: PythonFunction,
    plan: Plan,
    draw: Draw,
    output: str,
    got: Mapping[str, Array],
    expected: Mapping[str, Array],
) -> str | None:
    """Why the output is wrong; None: it is right."""
    buffer = plan.buffer(output)
    offered = reference.offered_numbers(plan)
    for name, memory in reference.draw_inputs(plan, draw).items():
        offered[name] = reference.as_offered(plan.buffer(name), logical(memory, plan.buffer(name)))
    for other in plan.compared():
        mine, theirs = (reference.as_offered(other, a[other.name]) for a in (got, expected))
        offered |= {f"got_{other.name}": mine, f"expected_{other.name}": theirs}
    offered |= {"got": offered[f"got_{output}"], "expected": offered[f"expected_{output}"]}
    offered |= {"rtol": buffer.rtol, "atol": buffer.atol}
    found = reference.call(function, offered)
    if found is None or isinstance(found, bool | np.bool_):
        return None if found is None or found else f"{function.path}: {function.function} says it is wrong"
    if isinstance(found, str):
        return f"{function.path}: {cut(found.strip(), LONGEST_REASON)}" if found.strip() else None
    words = "True or None where the output is right, False or a text that says why where it is wrong"
    raise reference.fault(function, f"returned {type(found).__name__}: it must return {words}")


def _arrays(specs: Sequence[ExpectedArray], blobs: Sequence[bytes]) -> dict[str, Array]:
    pairs = zip(specs, blobs, strict=True)
    return {spec.name: np.frombuffer(blob, dtype=spec.dtype).reshape(spec.shape) for spec, blob in pairs}
