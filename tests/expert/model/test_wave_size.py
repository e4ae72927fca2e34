"""`warpSize` is as wide as the waves of the device that a kernel is read for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, problem_in, row_problem
from tunesmith.backends.as_compiled import as_compiled
from tunesmith.backends.cuda.devices import absent_device as nvidia
from tunesmith.backends.hip.devices import absent_device as amd
from tunesmith.csource.nodes import Number
from tunesmith.csource.walk import expressions_in
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem

BODY = "int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;"


def hip_kernel(flags: tuple[str, ...] = ()) -> Problem:
    plain = row_problem(BODY, grid=("ceildiv(rows * d, 256)",))
    return replace(plain, kernel=replace(plain.kernel, path="kernel.hip", language="hip", flags=flags))


def lanes(problem: Problem) -> set[object]:
    numbers = (e.value for e in expressions_in(lifted(problem).function.body) if isinstance(e, Number))
    return {value for value in numbers if value in (32, 64)}


@pytest.mark.parametrize(
    ("device", "flags", "wave"),
    [
        (amd("gfx942"), (), 64),
        (amd("gfx1100"), (), 32),
        (amd("gfx1100"), ("-mwavefrontsize64",), 64),
        (amd("gfx1100"), ("-mwavefrontsize64", "-mno-wavefrontsize64"), 32),
        (nvidia("H200"), (), 32),
    ],
)
def test_it_is_the_devices(device: Device, flags: tuple[str, ...], wave: int) -> None:
    assert lanes(as_compiled(hip_kernel(flags), device)) == {wave}


def test_without_a_device_it_is_what_the_language_assumes() -> None:
    assert lanes(hip_kernel()) == {64}
    plain = row_problem(BODY, grid=("ceildiv(rows * d, 256)",))
    assert lanes(plain) == {32}
    assert as_compiled(plain, amd("gfx942")) == plain


@pytest.mark.parametrize("name", ["gfx942", "gfx1100"])
def test_the_softmax_is_one_kernel_at_either_width(name: str) -> None:
    problem = problem_in("examples/hip/softmax")
    wide, own = lifted(problem), lifted(as_compiled(problem, amd(name)))
    assert own.steps == wide.steps
