"""An open CUDA device: launches of every kind, what a bad kernel does to it, and what a recording times."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.cuda.devices import describe_all
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import LaunchCall, LaunchFailed, OutOfMemory, Pointer, Scalar, Session
from tunesmith.lab.worker.requests import Clustering
from tunesmith.problem.device import Device

pytestmark = pytest.mark.gpu

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cooperative_groups.h>
extern "C" __global__ void scalars(double *out, signed char a, short b, __half c, __nv_bfloat16 d,
                                   __nv_fp8_e4m3 e, float f, double g, long long h, unsigned char i)
{
    double all[] = {(double)a, (double)b, (double)(float)c, (double)(float)d, (double)(float)e, f, g,
                    (double)h, (double)i};
    for (int k = 0; k < 9; k++)
        out[k] = all[k];
}
template <typename T, int N>
__global__ void shared(T *out)
{
    extern __shared__ unsigned char memory[];
    T *mine = (T *)memory;
    mine[threadIdx.x * N] = (T)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = mine[(blockDim.x - 1 - threadIdx.x) * N];
}
extern "C" __global__ void clustered(int *out)
{
    auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
    out[blockIdx.x] = (int)cluster.block_rank() + 10 * (int)cluster.num_blocks();
}
extern "C" __global__ void cooperative(int *out, int *sums)
{
    atomicAdd(sums, 1);
    cooperative_groups::this_grid().sync();
    out[blockIdx.x] = *(volatile int *)sums;
}
extern "C" __global__ void add(int *x, int by) { x[threadIdx.x] += by; }
extern "C" __global__ void wait(long long cycles)
{
    for (long long start = clock64(); clock64() - start < cycles;)
        ;
}
"""
ENTRIES = ("scalars", "shared<float, 64>", "clustered", "cooperative", "add", "wait")


@pytest.fixture(scope="module")
def device() -> Device:
    return describe_all()[0]


@pytest.fixture(scope="module")
def session(device: Device) -> Session:
    return CudaBackend().open(device)


@pytest.fixture(scope="module")
def kernels(session: Session, device: Device):
    unit = Unit("kernels.cu", SOURCE, "cuda", (), ENTRIES)
    return session.load(unit, CudaBackend().build(unit, device).data)


def ints(session: Session, count: int) -> Pointer:
    memory = session.allocate(4 * count)
    session.write(memory, 0, bytes(4 * count))
    return Pointer(memory, 0, 4 * count)


def values(session: Session, pointer: Pointer, kind: str = "int32") -> list[float]:
    return np.frombuffer(session.read(pointer.memory, pointer.offset, pointer.nbytes), kind).tolist()


def test_scalars_of_every_type_arrive(session: Session, kernels) -> None:
    given = [
        ("int8", -3),
        ("int16", -300),
        ("float16", 0.5),
        ("bfloat16", -1.5),
        ("float8_e4m3", 0.25),
        ("float32", 0.1),
        ("float64", 1e300),
        ("int64", -(2**40)),
        ("uint8", 200),
    ]
    out = Pointer(session.allocate(72), 0, 72)
    args = (out, *(Scalar(kind, value) for kind, value in given))
    session.run([LaunchCall(kernels, "scalars", (1, 1, 1), (1, 1, 1), 0, args)])
    assert values(session, out, "float64") == [
        float(np.float32(v)) if k == "float32" else v for k, v in given
    ]


def test_more_shared_memory_than_the_default(session: Session, device: Device, kernels) -> None:
    out = ints(session, 512)
    threads = 512
    nbytes = threads * 64 * 4  # 128 KiB
    assert 48 << 10 < nbytes <= device.limits.shared
    session.run([LaunchCall(kernels, ENTRIES[1], (1, 1, 1), (threads, 1, 1), nbytes, (out,))])
    assert values(session, out, "float32") == list(range(threads - 1, -1, -1))


def test_static_and_dynamic_shared_memory_exceed_the_default_together(
    session: Session, device: Device
) -> None:
    source = """extern "C" __global__ void both(int *out) {
        __shared__ int own[8192];
        extern __shared__ int more[];
        own[threadIdx.x] = threadIdx.x; more[threadIdx.x * 8] = 2 * threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = own[blockDim.x - 1 - threadIdx.x] + more[threadIdx.x * 8];
    }"""
    unit = Unit("both.cu", source, "cuda", (), ("both",))
    both = session.load(unit, CudaBackend().build(unit, device).data)
    out = ints(session, 1024)
    session.run([LaunchCall(both, "both", (1, 1, 1), (1024, 1, 1), 32 << 10, (out,))])
    assert values(session, out) == [1023 - i + 2 * i for i in range(1024)]


@pytest.mark.parametrize(
    ("args", "words"),
    [((Scalar("int32", 1),), "has 8 bytes, int32 has 4"), ((), "takes 1 arguments, 0 are given")],
)
def test_arguments_of_another_size_are_refused(session: Session, kernels, args, words: str) -> None:
    with pytest.raises(LaunchFailed, match=words):
        session.run([LaunchCall(kernels, "wait", (1, 1, 1), (1, 1, 1), 0, args)])


def test_clusters(session: Session, kernels) -> None:
    out = ints(session, 8)
    session.run([LaunchCall(kernels, "clustered", (8, 1, 1), (32, 1, 1), 0, (out,), cluster=(4, 1, 1))])
    assert values(session, out) == [40, 41, 42, 43] * 2


def test_clusters_that_run_at_once(session: Session, device: Device, kernels) -> None:
    """As many as multiprocessors allow at most; with all of a block's shared memory one block on each."""
    assert isinstance(session, Clustering)

    def held(size: int, shared: int) -> int:
        call = LaunchCall(kernels, "clustered", (64, 1, 1), (32, 1, 1), shared, (), cluster=(size, 1, 1))
        found = session.active_clusters(call)
        assert found is not None
        return found

    full = device.limits.shared
    assert 0 < held(8, full) * 8 <= device.limits.sms
    assert held(8, full) <= held(4, full) <= held(2, full) <= device.limits.sms // 2
    assert held(2, 0) > held(2, full)


def test_cooperative_launches(session: Session, kernels) -> None:
    out, sums = ints(session, 16), ints(session, 1)
    session.run([LaunchCall(kernels, "cooperative", (16, 1, 1), (1, 1, 1), 0, (out, sums), cooperative=True)])
    assert values(session, out) == [16] * 16


def test_a_recording_rotates_and_can_be_played_again(session: Session, kernels) -> None:
    x = ints(session, 4 * 32)
    pointer = Pointer(x.memory, 0, 128, stride=128)
    call = LaunchCall(kernels, "add", (1, 1, 1), (32, 1, 1), 0, (pointer, Scalar("int32", 5)))
    recording = session.record([call, call], slots=((0, 0), (2, 2)))
    recording.start()()
    recording.start()()
    assert values(session, x) == [20] * 32 + [0] * 32 + [20] * 32 + [0] * 32


def test_a_recording_times_the_launches_and_nothing_else(session: Session, device: Device, kernels) -> None:
    call = LaunchCall(kernels, "wait", (1, 1, 1), (1, 1, 1), 0, (Scalar("int64", 200_000),))
    one = min(session.record([call]).start()() for _ in range(5))
    ten = min(session.record([call] * 10).start()() for _ in range(5))
    assert 50e-6 < one < 400e-6  # 200,000 cycles at about 2 GHz
    assert ten == pytest.approx(10 * one, rel=0.1)


def test_a_recording_is_timed_in_parts_too(session: Session, kernels) -> None:
    """What tells a slice of time that another context had."""
    call = LaunchCall(kernels, "wait", (1, 1, 1), (1, 1, 1), 0, (Scalar("int64", 200_000),))
    chain = session.record([call], slots=((0, 0),) * 40)
    for _ in range(3):
        seconds = chain.start()()
        parts = session.parts()
        assert len(parts) == 4
        assert sum(parts) == pytest.approx(seconds, rel=0.01)
        assert max(parts) < 1.2 * min(parts)
    whole = session.record([call]).start()()
    assert session.parts() == (whole,)
    first, second = chain.start(), chain.start()  # as several chains are queued: nothing waits, or fails
    first()
    assert len(session.parts()) in (0, 4)
    second()
    assert sum(session.parts()) == pytest.approx(10 * 4 * whole, rel=0.2)


def test_says_who_else_is_there(session: Session) -> None:
    assert session.neighbours() == "" or "processes" in session.neighbours()


def test_nobody_gets_more_memory_than_there_is(session: Session, device: Device) -> None:
    with pytest.raises(OutOfMemory):
        session.allocate(device.limits.memory)


def test_says_whether_the_clock_is_held_down(session: Session) -> None:
    assert session.throttled() in (True, False)


def test_says_how_fast_it_runs(session: Session) -> None:
    assert [clock.part for clock in session.clocks()] == ["SM", "memory"]


BAD = """
import sys
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import LaunchCall, LaunchFailed, Pointer
backend = CudaBackend()
device = backend.devices()[0]
session = backend.open(device)
unit = Unit("bad.cu", 'extern "C" __global__ void bad(int *x) { ' + sys.argv[1] + ' }', "cuda", (), ("bad",))
executable = session.load(unit, backend.build(unit, device).data)
memory = session.allocate(1024)
try:
    session.run([LaunchCall(executable, "bad", (1, 1, 1), (int(sys.argv[2]), 1, 1), int(sys.argv[3]),
                            (Pointer(memory, 0, 1024),))])
except LaunchFailed as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("body", "threads", "shared", "words"),
    [
        ("*(volatile int *)64 = 1;", 32, 0, "ILLEGAL_ADDRESS"),
        ("*(int2 *)(x + 1) = make_int2(1, threadIdx.x);", 32, 0, "MISALIGNED_ADDRESS"),
        ("__trap();", 32, 0, "LAUNCH_FAILED"),
        ("x[0] = 1;", 1025, 0, "INVALID_VALUE"),
        ("x[0] = 1;", 32, 1 << 20, "INVALID_VALUE"),
    ],
)
def test_a_bad_launch_is_reported_in_the_drivers_words(
    body: str, threads: int, shared: int, words: str
) -> None:
    """In a process of its own, which is of no use afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", BAD, body, str(threads), str(shared)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert words in done.stdout, done.stderr[-2000:]
