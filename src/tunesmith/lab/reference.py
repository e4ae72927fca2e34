"""What a case should give: inputs drawn, and the user's reference computed on them in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.checks.draws import draw_array, logical
from tunesmith.core.digest import digest_of
from tunesmith.core.dtypes import element_type
from tunesmith.core.messages import Draw, Expected, ExpectedArray, Refer
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.core.problem import PythonFunction
from tunesmith.lab.guards import gaps_digest
from tunesmith.lab.python_code import call, fault, numbers

Array = NDArray[Any]


def draw_inputs(plan: Plan, draw: Draw) -> dict[str, Array]:
    """The memory of every array the kernel reads, stride gaps included, as flat arrays by name."""
    linked: dict[str, Any] = {}
    if draw.inputs is not None:
        made = call(draw.inputs, {"rng": np.random.default_rng(draw.seed), **dict(plan.sizes)})
        if not isinstance(made, dict):
            raise fault(draw.inputs, f"returned {type(made).__name__}, not a dict of arrays")
        linked = made
        known = [b.name for b in plan.buffers if b.role in ("input", "inout")]
        for name in linked:
            if name not in known:
                raise fault(draw.inputs, f"gave {name}, which is no input: inputs are {', '.join(known)}")
    return {
        b.name: _place(b, linked[b.name], draw.inputs)
        if draw.inputs is not None and b.name in linked
        else draw_array(b, draw.distribution, draw.seed)
        for b in plan.buffers
        if b.role in ("input", "inout")
    }


def compute(request: Refer) -> tuple[Expected, tuple[bytes, ...]]:
    plan = request.plan
    inputs = draw_inputs(plan, request.draw)
    digests = tuple((name, digest_of(array.tobytes())) for name, array in inputs.items())
    strided = [b for b in plan.buffers if b.role == "inout" and b.extent != b.count]
    gaps = tuple((b.name, gaps_digest(b, inputs[b.name].tobytes())) for b in strided)
    if request.reference is None:
        return Expected(digests, gaps, ()), ()
    rows = np.asarray(request.rows, dtype=np.intp)
    offered: dict[str, Any] = dict(plan.sizes)
    if rows.size and request.independent:
        offered[request.independent] = len(rows)
    for scalar in plan.scalars:
        if scalar.name not in offered:
            offered[scalar.name] = element_type(scalar.type).numpy.type(scalar.value).item()
    for buffer in plan.buffers:
        if buffer.name not in inputs:
            continue
        view = logical(inputs[buffer.name], buffer)
        if rows.size and buffer.name in request.independent_arrays:
            view = view[rows]
        is_float = element_type(buffer.type).kind == "float"
        offered[buffer.name] = view.astype(np.float64) if is_float else view.copy()
    answer = _by_name(call(request.reference, offered), plan, request.reference)
    arrays, blobs = [], []
    for buffer in plan.compared():
        shape = buffer.shape
        if rows.size and buffer.name in request.independent_arrays:
            shape = (len(rows), *shape[1:])
        what = f"returned no array of numbers for {buffer.name}"
        array = numbers(answer[buffer.name], request.reference, what)
        if array.shape != shape:
            words = f"returned shape {array.shape} for {buffer.name}, expected {shape}"
            raise fault(request.reference, words)
        exact = buffer.compare == "exact" and array.dtype.kind in "iub"
        kind = ("uint64" if array.dtype.kind == "u" else "int64") if exact else "float64"
        arrays.append(ExpectedArray(buffer.name, kind, shape))
        blobs.append(array.astype(kind).tobytes())
    return Expected(digests, gaps, tuple(arrays)), tuple(blobs)


def _place(buffer: BufferPlan, values: object, made_by: PythonFunction) -> Array:
    """Linked values in the buffer's memory layout."""
    array = numbers(values, made_by, f"gave no array of numbers for {buffer.name}")
    if array.shape != buffer.shape:
        raise fault(made_by, f"gave {buffer.name} shape {array.shape}, expected {buffer.shape}")
    memory = np.zeros(buffer.extent, dtype=element_type(buffer.type).numpy)
    strides = tuple(s * memory.itemsize for s in buffer.strides)
    np.lib.stride_tricks.as_strided(memory, buffer.shape, strides)[...] = array
    return memory


def _by_name(answer: object, plan: Plan, function: PythonFunction) -> dict[str, Any]:
    names = [b.name for b in plan.compared()]
    if isinstance(answer, dict):
        missing = [name for name in names if name not in answer]
        if missing:
            raise fault(function, f"returned no {', '.join(missing)}, only {', '.join(map(str, answer))}")
        return answer
    parts = answer if isinstance(answer, tuple) else (answer,)
    if len(parts) != len(names):
        raise fault(function, f"returned {len(parts)} arrays, expected {len(names)}: {', '.join(names)}")
    return dict(zip(names, parts, strict=True))
