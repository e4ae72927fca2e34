"""Tuned kernels through PyOpenCL, on the device that is here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.deliver.runtime.dispatches import delivered, dispatch, entry, launch
from tests.opencl_here import needs_opencl
from tunesmith.deliver.runtime.operator import Operator
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.problem.problem import SizeRule

SOURCE = """
__kernel void scaled(__global float *y, __global const float *x, const int n, const float scale,
                     __global float *partial, __local float *shared)
{
    int i = get_global_id(0);
    shared[get_local_id(0)] = partial[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) y[i] += scale * x[i] + shared[0] + BONUS;
}
"""
ARGUMENTS = (
    DispatchArgument("y", "float32", "output", ("n",), align=16, init=10.0),
    DispatchArgument("x", "float32", "input", ("n",), align=16),
    DispatchArgument("n", "int32", "scalar", value="n"),
    DispatchArgument("scale", "float32", "scalar", value=2.0),
    DispatchArgument("shared", "float32", "local", ("64",)),
)
WORKSPACE = (DispatchArgument("partial", "float32", "workspace", ("4",), init=0.5),)
ARGS = ("y", "x", "n", "scale", "partial", "shared")


def one(when: str, bonus: int, config: dict[str, int] | None):
    ran = launch("scaled", "ceildiv(n, 64)", ARGS, block=("64",))
    made = entry(when, "k.cl", config, launches=(ran,), workspace=WORKSPACE)
    from dataclasses import replace

    return replace(made, flags=(f"-DBONUS={bonus}",))


@pytest.fixture
def calls():
    from tunesmith.deliver.runtime.opencl_op import OpenclCalls

    cl = pytest.importorskip("pyopencl")
    names = [d.name.strip() for p in cl.get_platforms() for d in p.get_devices()]
    made = dispatch(
        problem="scaled", language="opencl", device=names[0], architecture="", arguments=ARGUMENTS,
        sizes=(SizeRule("n", 1, 1000),), entries=(one("n <= 500", 100, {"B": 1}), one("1", 0, None)),
    )  # fmt: skip
    return OpenclCalls(Operator([delivered(made, {"k.cl": SOURCE.encode()})]))


def expected(x, scale=2.0, bonus=100):
    return 10 + scale * x + 0.5 + bonus


@needs_opencl
def test_numpy_arrays_are_copied_in_and_out(calls):
    x = np.arange(200, dtype=np.float32)
    np.testing.assert_allclose(calls(x), expected(x))
    np.testing.assert_allclose(calls.original(x), expected(x, bonus=0))
    y = np.zeros_like(x)
    assert calls(y, x) is y
    np.testing.assert_allclose(y, expected(x))
    np.testing.assert_allclose(calls(x=x), expected(x))


@needs_opencl
def test_the_original_serves_other_sizes_and_scalars(calls):
    x = np.arange(600, dtype=np.float32)
    np.testing.assert_allclose(calls(x), expected(x, bonus=0))
    np.testing.assert_allclose(calls(x[:64], scale=3.0), expected(x[:64], 3.0, bonus=0))
    np.testing.assert_allclose(calls(np.ones(2000, np.float32)), expected(np.ones(2000), bonus=0))


@needs_opencl
def test_arrays_and_buffers_of_pyopencl(calls):
    import pyopencl as cl
    import pyopencl.array as cl_array

    queue = calls.usual_queue()
    x = np.arange(320, dtype=np.float32)
    there = cl_array.to_device(queue, x)
    found = calls(there)
    assert isinstance(found, cl_array.Array)
    np.testing.assert_allclose(found.get(), expected(x))
    step = queue.device.mem_base_addr_align // 8 // 4
    np.testing.assert_allclose(calls(there[step:]).get(), expected(x[step:]))
    with pytest.raises(ValueError, match=r"x begins 4 bytes into its buffer.*copy"):
        calls(there[1:])
    y = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, x.nbytes)
    calls(y, there.base_data, queue=queue, n=320)
    back = np.empty_like(x)
    cl.enqueue_copy(queue, back, y)
    np.testing.assert_allclose(back, expected(x))
    with pytest.raises(TypeError, match="x is a buffer, which has no shape: pass every size by name, n="):
        calls(there.base_data, queue=queue)
    with pytest.raises(ValueError, match=r"has 1284 bytes, got a buffer of 1280"):
        calls(y, there.base_data, queue=queue, n=321)


@needs_opencl
def test_arrays_that_overlap_are_left_to_the_original(calls):
    import pyopencl.array as cl_array

    x = np.arange(64, dtype=np.float32)
    there = cl_array.to_device(calls.usual_queue(), x)
    calls(there, there)  # filled with 10, then read
    np.testing.assert_allclose(there.get(), expected(np.full(64, 10.0), bonus=0))


@needs_opencl
@pytest.mark.parametrize(
    ("given", "named", "error", "words"),
    [
        ((np.zeros(8),), {}, TypeError, "x has elements of type float32, got float64"),
        ((np.zeros((8, 2), np.float32),), {}, ValueError, "1 axes, got 2"),
        ((np.zeros(16, np.float32)[::2],), {}, ValueError, r"got strides \[2\]"),
        ((np.zeros(8, np.float32),) * 3, {}, TypeError, "arrays y, x, or without the outputs: x; got 3"),
        ((np.zeros(8, np.float32),), {"m": 3}, TypeError, "no argument 'm'"),
        (([1.0, 2.0],), {}, TypeError, "got list: convert it"),
        ((np.zeros(9, np.float32), np.zeros(8, np.float32)), {}, ValueError, r"which is \[9\] for n = 9"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(calls, given, named, error, words):
    with pytest.raises(error, match=words):
        calls(*given, **named)


@needs_opencl
def test_everything_can_be_built_beforehand(calls):
    calls.prepare()
    assert len(calls._programs) == 2


@needs_opencl
def test_an_unknown_device_gets_the_original(calls):
    calls.operator.results[0].dispatch.device = "another"
    x = np.arange(8, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match="tuned on another"):
        np.testing.assert_allclose(calls(x), expected(x, bonus=0))
