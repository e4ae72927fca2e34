"""Tuned kernels through PyOpenCL, on the device that is here."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.core.deliver.programs import read_program
from tests.core.deliver.runtime.dispatches import delivered, dispatch, entry, launch
from tests.opencl_here import needs_opencl
from tunesmith.deliver.runtime.operator import Operator
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.problem.problem import SizeRule

pytestmark = needs_opencl
SOURCE = read_program("scaled.cl")
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
    return replace(made, flags=(f"-DBONUS={bonus}",))


def of_one_kernel(entries, source: str = SOURCE, size: str = "n", arguments=ARGUMENTS):
    from tunesmith.deliver.runtime.opencl_op import OpenclCalls

    cl = pytest.importorskip("pyopencl")
    names = [d.name.strip() for p in cl.get_platforms() for d in p.get_devices()]
    made = dispatch(
        problem="scaled", language="opencl", device=names[0], architecture="", arguments=arguments,
        sizes=(SizeRule(size, 1, 1000),), entries=entries,
    )  # fmt: skip
    return OpenclCalls(Operator([delivered(made, {"k.cl": source.encode()})]))


@pytest.fixture
def calls():
    return of_one_kernel((one("n <= 500", 100, {"B": 1}), one("1", 0, None)))


def expected(x, scale=2.0, bonus=100):
    return 10 + scale * x + 0.5 + bonus


def test_numpy_arrays_are_copied_in_and_out(calls):
    x = np.arange(200, dtype=np.float32)
    np.testing.assert_allclose(calls(x), expected(x))
    np.testing.assert_allclose(calls.original(x), expected(x, bonus=0))
    y = np.zeros_like(x)
    assert calls(y, x) is y
    np.testing.assert_allclose(y, expected(x))
    np.testing.assert_allclose(calls(x=x), expected(x))


def test_the_original_serves_other_sizes_and_scalars(calls):
    x = np.arange(600, dtype=np.float32)
    np.testing.assert_allclose(calls(x), expected(x, bonus=0))
    np.testing.assert_allclose(calls(x[:64], scale=3.0), expected(x[:64], 3.0, bonus=0))
    np.testing.assert_allclose(calls(np.ones(2000, np.float32)), expected(np.ones(2000), bonus=0))


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
    np.testing.assert_allclose(read_back(queue, y, 320), expected(x))
    with pytest.raises(TypeError, match="x is a buffer, which has no shape: pass every size by name, n="):
        calls(there.base_data, queue=queue)
    with pytest.raises(ValueError, match=r"has 1284 bytes, got a buffer of 1280"):
        calls(y, there.base_data, queue=queue, n=321)


def test_arrays_that_overlap_are_left_to_the_original(calls):
    import pyopencl.array as cl_array

    x = np.arange(64, dtype=np.float32)
    there = cl_array.to_device(calls.usual_queue(), x)
    calls(there, there)  # filled with 10, then read
    np.testing.assert_allclose(there.get(), expected(np.full(64, 10.0), bonus=0))


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


PACKED = np.dtype([("a", np.float32), ("tag", np.uint8)])


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.arange(8, dtype=">f4"), TypeError, "x has its bytes in this machine's order, got >f4"),
        (np.zeros(8, PACKED)["a"], ValueError, r"x has steps of whole elements of 4 bytes, got .*\[5\]"),
    ],
)  # fmt: skip
def test_memory_that_elements_cannot_describe_is_refused(calls, x, error, words):
    with pytest.raises(error, match=words):
        calls(x)
    with pytest.raises(error, match=words.replace("x ", "y ", 1)):
        calls(x, np.zeros(8, np.float32))


def test_a_step_that_is_never_taken_may_be_any(calls):
    one_field = np.ones(1, PACKED)["a"]
    np.testing.assert_allclose(calls(one_field), expected(np.ones(1)))


def read_back(queue, buffer, items: int):
    import pyopencl as cl

    found = np.empty(items, np.float32)
    cl.enqueue_copy(queue, found, buffer)
    return found


def over(queue, memory):
    """A buffer of the host's memory."""
    import pyopencl as cl

    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    return cl.Buffer(queue.context, flags, hostbuf=memory)


def aligned(items: int, offset: int = 0):
    """Floats that begin so many bytes behind a multiple of 4096."""
    memory = np.zeros(4 * items + 8192, np.uint8)
    start = -memory.ctypes.data % 4096 + offset
    return memory[start : start + 4 * items].view(np.float32)


def test_buffers_over_the_same_memory_of_the_host_overlap(calls):

    queue = calls.usual_queue()
    memory = aligned(192)
    memory[:] = 3
    first, overlapping, apart = (over(queue, memory[n : n + 64]) for n in (0, 32, 128))
    filled = 10  # into the output before the kernel reads
    for y, x, found in ((first, apart, expected(3)), (first, overlapping, expected(filled, bonus=0))):
        calls(y, x, queue=queue, n=64)
        assert read_back(queue, y, 64)[0] == found


def test_memory_of_the_host_that_is_not_aligned_is_left_to_the_original(calls):
    import pyopencl as cl

    queue = calls.usual_queue()
    y, x = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 256), aligned(64, offset=4)
    for memory, bonus in ((x, 0), (aligned(64), 100)):
        memory[:] = 3
        calls(y, over(queue, memory), queue=queue, n=64)
        np.testing.assert_allclose(read_back(queue, y, 64), expected(memory, bonus=bonus))


def test_a_size_and_a_scalar_may_be_called_queue():
    source = """__kernel void k(__global float *y, const float queue_)
    { y[get_global_id(0)] = queue_; }"""
    arguments = (
        DispatchArgument("y", "float32", "output", ("2 * queue",)),
        DispatchArgument("queue_", "float32", "scalar", value=2.0),
    )
    ran = launch("k", "2 * queue", ("y", "queue_"), block=("1",))
    entries = (entry("1", "k.cl", None, launches=(ran,)),)
    calls = of_one_kernel(entries, source, "queue", arguments)
    assert calls.queue_name == "queue__"
    np.testing.assert_array_equal(calls(queue=3, queue_=7.0), np.full(6, 7.0))
    found = calls(queue=3, queue__=calls.usual_queue())
    np.testing.assert_array_equal(found, np.full(6, 2.0))
    with pytest.raises(TypeError, match="queue__ is a CommandQueue of pyopencl, got int: pass one"):
        calls(queue=3, queue__=4)


def test_a_queue_that_is_none_is_refused(calls):
    with pytest.raises(TypeError, match="queue is a CommandQueue of pyopencl, got str"):
        calls(np.zeros(8, np.float32), queue="the first")


@pytest.mark.parametrize("flags", [("-DBONUS=not_declared",), ("-DBONUS=1", "-DBROKEN=}")])
def test_where_a_tuned_program_does_not_build_the_original_serves(flags):
    source = SOURCE + "\n#ifdef BROKEN\nBROKEN\n#endif\n"
    entries = (replace(one("n <= 500", 0, {"B": 1}), flags=flags), one("1", 0, None))
    calls = of_one_kernel(entries, source)
    x = np.arange(64, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match=r"k\.cl cannot be used here .*: its original serves"):
        np.testing.assert_allclose(calls(x), expected(x, bonus=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # it is said once
        for length in (32, 64):
            np.testing.assert_allclose(calls(x[:length]), expected(x[:length], bonus=0))
        calls.prepare()


def test_where_the_original_does_not_build_an_error_says_so():
    calls = of_one_kernel((one("1", 0, None),), "nonsense")
    with pytest.raises(Exception, match=r"(?i)build"):
        calls(np.zeros(8, np.float32))


def test_work_groups_that_are_too_large_here_are_left_to_the_original(calls, monkeypatch):
    import pyopencl as cl

    monkeypatch.setattr(cl.Kernel, "get_work_group_info", lambda *_: 63)
    x = np.arange(8, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match="work-groups have 64 items, this device takes 63"):
        np.testing.assert_allclose(calls(x), expected(x, bonus=0))


def test_everything_can_be_built_beforehand(calls):
    calls.prepare()
    assert len(calls._programs) == 2


def test_an_unknown_device_gets_the_original(calls):
    calls.operator.results[0].dispatch.device = "another"
    x = np.arange(8, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match="tuned on another"):
        np.testing.assert_allclose(calls(x), expected(x, bonus=0))
