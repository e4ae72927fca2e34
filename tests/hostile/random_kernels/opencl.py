"""Generated kernels in OpenCL C, run by the driver that is here and held against their original."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.hostile.random_kernels.program import Case, Outcome, Trial
from tunesmith.problem.problem import element_type

_MARGIN = 4096  # bytes before and behind every array
_AXES = {"x": 0, "y": 1, "z": 2}
_IDS = {"threadIdx": "local_id", "blockIdx": "group_id", "blockDim": "local_size", "gridDim": "num_groups"}
_WORDS = (
    (r"^#include.*\n", ""),
    (r'extern "C" |__device__ |__forceinline__ ', ""),
    (r"__global__", "__kernel"),
    (r"__restrict__", "restrict"),
    (r"__shared__", "__local"),
    (r"__syncthreads\(\)", "barrier(CLK_LOCAL_MEM_FENCE)"),
    (r"\batomic(Add|Max)\b", lambda m: f"atomic_{m[1].lower()}"),
    (r"\bf(max|min|abs)f\b", r"f\1"),
    (r"\bfloorf\b", "floor"),
    (r"\bmake_(\w+)\(", r"(\1)("),
    (r"reinterpret_cast<([^>]+)>\(([^()]*)\)", r"((\1)(\2))"),
    (r"\blong long\b", "long"),
    (r"\bsigned char\b", "char"),
    (r"\bmin\((.+?) \+ 2, d - 1\)", r"min((int)(\1) + 2, d - 1)"),
    (r"\bunchar\b", "unsigned char"),
    (r"\b(\w+Idx|\w+Dim)\.([xyz])", lambda m: f"(int)get_{_IDS[m[1]]}({_AXES[m[2]]})"),
)


def translated(source: str) -> str:
    """A kernel of CUDA that has no shuffles, templates or narrow floats; pointers are to global memory."""
    text = source.replace("unsigned char", "unchar")
    for word, instead in _WORDS:
        text = re.sub(word, instead, text, flags=re.MULTILINE)
    text = re.sub(r"((?:const )?(?:unsigned char|\w+) )\*(?=\w|restrict|\))", r"__global \1*", text)
    return re.sub(r"^(float|int|static float) (?=\w+\()", r"static \1 ", text, flags=re.MULTILINE).replace(
        "static static ", "static "
    )


def run(cases: Sequence[Case]) -> list[Outcome]:
    if not cases:
        return []
    import pyopencl as cl

    found = []
    for case in cases:
        first: dict[str, NDArray[Any]] | None = None
        for trial in case.trials:
            try:
                got, stray = _run(trial, case)
            except cl.Error as error:
                found.append(Outcome(case, trial, "build", str(error)[:500]))
                if first is None:
                    break
                continue
            first = got if first is None else first
            verdict = ("stray", stray) if stray else _difference(first, got)
            found.append(Outcome(case, trial, *verdict))
    return found


def _difference(want: dict[str, NDArray[Any]], got: dict[str, NDArray[Any]]) -> tuple[str, str]:
    for name, values in got.items():
        one, other = values.astype(np.float64), want[name].astype(np.float64)
        wrong = np.flatnonzero(~((one == other) | (np.isnan(one) & np.isnan(other))))
        if len(wrong):
            at = int(wrong[0])
            return "differs", f"{name} at element {at}: {one[at]} for {other[at]}"
    return "ok", ""


@cache
def _queue() -> Any:
    import pyopencl as cl

    return cl.CommandQueue(cl.create_some_context(interactive=False))


@cache
def _built(source: str, entry: str) -> Any:
    import pyopencl as cl

    return getattr(cl.Program(_queue().context, source).build(), entry)


def _run(trial: Trial, case: Case) -> tuple[dict[str, NDArray[Any]], str]:
    import pyopencl as cl

    queue, launch, plan = _queue(), trial.launch, trial.plan
    kernel = _built(trial.variant.source, launch.entry)
    scalars = {s.name: np.array([s.value], element_type(s.type).numpy)[0] for s in plan.scalars}
    whole: dict[str, tuple[Any, NDArray[np.uint8]]] = {}
    parts: dict[str, Any] = {}
    for buffer in plan.buffers:
        values = case.inputs.get(buffer.name)
        host = np.full(buffer.nbytes + 2 * _MARGIN, 0xAB, np.uint8)
        inner = host[_MARGIN : _MARGIN + buffer.nbytes]
        inner[...] = 0xFF if values is None else np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        memory = cl.Buffer(queue.context, flags, hostbuf=host)
        whole[buffer.name] = memory, host
        parts[buffer.name] = memory.get_sub_region(_MARGIN, buffer.nbytes)
    arguments = [scalars[name] if name in scalars else parts[name] for name in launch.args]
    threads = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
    kernel(queue, threads, launch.block, *arguments)
    found, stray = {}, ""
    for buffer in plan.buffers:
        memory, host = whole[buffer.name]
        cl.enqueue_copy(queue, host, memory)
        if (host[:_MARGIN] != 0xAB).any() or (host[_MARGIN + buffer.nbytes :] != 0xAB).any():
            stray = f"{buffer.name} was written outside"
        found[buffer.name] = host[_MARGIN : _MARGIN + buffer.nbytes].view(element_type(buffer.type).numpy)
    return found, stray
