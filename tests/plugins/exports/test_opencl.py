"""The C for OpenCL programs: compiled with nothing but warnings as errors, run on PoCL, called by ctypes."""

from __future__ import annotations

import ctypes
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.deliver.shown.exports import rooted, without
from tests.opencl_here import needs_opencl, show_unpacked_pocl
from tests.plugins.exports.opencl_results import ALPHA, DISPATCH, FILES, SMALL, a_result
from tests.plugins.exports.programs import ran
from tunesmith.base.errors import BadInput
from tunesmith.deliver.artefact import Artefact, one_artefact
from tunesmith.plugins.exports.opencl import TARGET, opencl_files
from tunesmith.problem.dispatch import Dispatch

HEADERS = Path(__file__).parents[2] / "fixtures" / "opencl_headers"
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
CXX = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_cc = pytest.mark.skipif(CC is None, reason="needs a C compiler")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def on_opencl(function: Callable[..., None]) -> Callable[..., None]:
    return needs_opencl(needs_cc(pytest.mark.slow(function)))


def loader() -> Path:
    """The OpenCL loader that pyopencl has loaded, so that its objects are those of the C code too."""
    import pyopencl  # noqa: F401

    for line in Path("/proc/self/maps").read_text().splitlines() if sys.platform == "linux" else ():
        if "libOpenCL" in line:
            return Path(line.split(maxsplit=5)[5])
    pytest.skip("needs an OpenCL loader that C can be linked with")


def compiled(folder: Path, files: dict[str, bytes], *more: str) -> list[str]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [str(CC), "-std=c99", *STRICT, f"-I{HEADERS}", f"-I{folder}", *more]


class Operator:
    """The exported functions, called with pyopencl's objects."""

    def __init__(self, folder: Path, artefact: Artefact, *, in_order: bool = True) -> None:
        import pyopencl as cl

        self.cl = cl
        self.takes_alpha = any(
            a.name == "alpha" and a.value == ALPHA for a in artefact.first.dispatch.arguments
        )
        library, name = folder / "operator.so", artefact.name
        command = [*compiled(folder, opencl_files(artefact)), "-shared", "-fPIC", str(folder / f"{name}.c")]
        ran([*command, loader(), "-o", library])
        self.library = ctypes.CDLL(str(library))
        self.enqueue = getattr(self.library, f"{name}_enqueue")
        self.served_by = getattr(self.library, f"{name}_served")
        self.served_by.restype = ctypes.c_char_p
        self.device = cl.get_platforms()[0].get_devices()[0]
        self.context = cl.Context([self.device])
        properties = 0 if in_order else cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=properties)
        self.handle = ctypes.c_void_p()
        self.destroy = getattr(self.library, f"{name}_destroy")
        create = getattr(self.library, f"{name}_create")
        pointers = (ctypes.c_void_p(self.context.int_ptr), ctypes.c_void_p(self.device.int_ptr))
        assert create(*pointers, ctypes.byref(self.handle)) == 0

    def buffer(self, array: np.ndarray[Any, Any]) -> Any:
        flags = self.cl.mem_flags
        return self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)

    def call(self, out: Any, x: Any, rows: int, d: int, alpha: float = ALPHA) -> int:
        memory = [ctypes.c_void_p(each.int_ptr if each is not None else None) for each in (out, x)]
        given: list[Any] = [ctypes.c_longlong(rows), ctypes.c_longlong(d)]
        if self.takes_alpha:
            given.insert(0, ctypes.c_float(alpha))
        event = ctypes.c_void_p()
        waits = [ctypes.c_uint(0), None, ctypes.byref(event)]
        error = self.enqueue(self.handle, ctypes.c_void_p(self.queue.int_ptr), *memory, *given, *waits)
        if error == 0:
            self.cl.Event.from_int_ptr(event.value, retain=False).wait()
        return int(error)

    @property
    def served(self) -> str | None:
        found = self.served_by(self.handle)
        return found.decode() if found else None

    def result(self, rows: int, d: int, alpha: float = ALPHA) -> tuple[np.ndarray[Any, Any], int, str | None]:
        """What comes of a call with whole numbers in the rows, its error, and who served."""
        x = np.random.default_rng(3).integers(-50, 50, (max(rows, 1), max(d, 1))).astype(np.float32)
        out = np.full_like(x, -1)
        given = self.buffer(x)
        made = self.buffer(out)
        error = self.call(made, given, rows, d, alpha)
        self.cl.enqueue_copy(self.queue, out, made, is_blocking=True)
        right = out == x * np.float32(alpha)
        return right, error, self.served


@pytest.fixture(scope="module")
def here() -> str:
    """The device's name."""
    show_unpacked_pocl()
    import pyopencl as cl

    return str(cl.get_platforms()[0].get_devices()[0].name.strip())


Start = Callable[..., Operator]


@pytest.fixture
def start(here: str, tmp_path: Path) -> Iterator[Start]:
    """Compiles, and makes an operator whose results are this device's unless told otherwise."""
    started: list[Operator] = []

    def make(dispatch: Dispatch = DISPATCH, device: str | None = None, **more: Any) -> Operator:
        own = replace(dispatch, device=here if device is None else device)
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Operator(folder, Artefact((a_result(own),)), **more))
        return started[-1]

    yield make
    for operator in started:
        assert operator.destroy(operator.handle) == 0


@on_opencl
def test_each_size_is_served_as_the_dispatch_says_and_right(start: Start) -> None:
    operator = start()
    for rows, d, file in [
        (16, 256, "scale-small.cl"),
        (16, 256, "scale-small.cl"),  # again: programs, kernels and workspaces are there already
        (4, 2048, "scale-general.cl"),
        (1, 8, "scale-general.cl"),
        (5, 12, "original.cl"),  # no multiple of 8
        (64, 2048, "original.cl"),  # beyond what was verified
        (5000, 8, "original.cl"),  # outside the contract
        (3, 7, "original.cl"),
    ]:
        assert DISPATCH.entry_for({"rows": rows, "d": d}).file == file
        right, error, served = operator.result(rows, d)
        assert (error, served) == (0, file), (rows, d)
        assert right.all(), (rows, d)


@on_opencl
def test_commands_keep_their_order_where_the_queue_does_not(start: Start) -> None:
    operator = start(in_order=False)
    for _ in range(5):
        right, error, served = operator.result(**SMALL)
        assert (error, served, right.all()) == (0, "scale-small.cl", True)


@on_opencl
def test_a_launch_is_left_out_where_its_condition_does_not_hold(start: Start) -> None:
    small, *others = DISPATCH.entries
    part, whole = small.launches
    spoils = replace(
        part, args=("out", "x", "alpha"), when="rows > 16"
    )  # the first half again, into the result
    entries = (replace(small, launches=(part, whole, spoils)), *others)
    for in_order in (True, False):
        operator = start(replace(DISPATCH, entries=entries), in_order=in_order)
        right, error, served = operator.result(**SMALL)
        assert (error, served, right.all()) == (0, "scale-small.cl", True)
    never = replace(small, launches=(replace(part, when="rows == 16"), replace(whole, when="rows > 16")))
    right, error, _ = start(replace(DISPATCH, entries=(never, *others))).result(**SMALL)
    assert error == 0
    assert not right.any()


@on_opencl
def test_what_was_not_tuned_for_is_served_by_the_original(start: Start) -> None:
    operator = start()
    right, error, served = operator.result(**SMALL, alpha=4.0)
    assert (error, served, right.all()) == (0, "original.cl", True)
    assert operator.result(0, 8)[1:] == (-63, None)  # CL_INVALID_GLOBAL_WORK_SIZE, as the kernel's own launch
    assert operator.result(-(2**63), 8)[1:] == (-30, None)
    stranger = start(device="another device")
    right, error, served = stranger.result(**SMALL)
    assert (error, served, right.all()) == (0, "original.cl", True)


@on_opencl
def test_arrays_that_are_not_as_verified_are_served_by_the_original(start: Start) -> None:
    operator = start()
    cl, rows, d = operator.cl, 16, 256
    nbytes = 4 * rows * d
    x = np.arange(rows * d, dtype=np.float32).reshape(rows, d)
    step = operator.device.mem_base_addr_align // 8

    def served(out: Any, given: Any, *, shifted: bool = False) -> str | None:
        cl.enqueue_copy(operator.queue, given, x, is_blocking=True)
        assert operator.call(out, given, rows, d) == 0
        got = np.empty_like(x)
        cl.enqueue_copy(operator.queue, got, out, is_blocking=True)
        assert shifted or np.array_equal(got, x * np.float32(ALPHA))  # shifted: by chance, as ever
        return operator.served

    whole = cl.Buffer(operator.context, cl.mem_flags.READ_WRITE, 4 * nbytes)
    first, second = whole.get_sub_region(0, nbytes), whole.get_sub_region(nbytes, nbytes)
    assert served(first, second) == "scale-small.cl"
    assert served(first, first) == "original.cl"  # in place
    assert served(whole.get_sub_region(0, nbytes), first) == "original.cl"  # the same by another name
    assert served(whole, first) == "original.cl"  # one within the other
    assert served(first, whole.get_sub_region(step, nbytes), shifted=True) == "original.cl"
    # Two buffers over the same memory of the host.
    memory = np.zeros(2 * nbytes + 4096, np.uint8)
    memory = memory[-memory.ctypes.data % 4096 :]
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    low = cl.Buffer(operator.context, flags, hostbuf=memory[:nbytes])
    high = cl.Buffer(operator.context, flags, hostbuf=memory[nbytes : 2 * nbytes])
    across = cl.Buffer(operator.context, flags, hostbuf=memory[nbytes - 128 : 2 * nbytes - 128])
    assert served(high, low) == "scale-small.cl"
    assert operator.call(across, low, rows, d) == 0
    assert operator.served == "original.cl"
    odd = cl.Buffer(operator.context, flags, hostbuf=memory[4 : 4 + nbytes])
    assert operator.call(second, odd, rows, d) == 0
    assert operator.served == "original.cl"  # not where vectors may begin


@on_opencl
@pytest.mark.parametrize("device", [None, "another device"])
def test_what_no_kernel_may_run_with_is_an_error(start: Start, device: str | None) -> None:
    """Neither a tuned kernel nor the original writes past the end of a buffer, or into an image."""
    operator = start(device=device)
    cl, rows, d = operator.cl, 16, 256
    flags, nbytes = cl.mem_flags.READ_WRITE, 4 * rows * d
    whole, other = (cl.Buffer(operator.context, flags, nbytes) for _ in range(2))
    short = cl.Buffer(operator.context, flags, nbytes - 4)
    part = whole.get_sub_region(0, nbytes - 128)
    kind = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
    image = cl.create_image(operator.context, flags, kind, (64, 64))
    too_small, no_buffer = -61, -38
    for out, x, error in [
        (whole, short, too_small), (short, whole, too_small), (part, other, too_small),
        (None, whole, no_buffer), (whole, None, no_buffer), (image, whole, no_buffer),
    ]:  # fmt: skip
        assert operator.call(whole, other, rows, d) == 0
        assert operator.served is not None
        assert operator.call(out, x, rows, d) == error
        assert operator.served is None
    assert operator.call(short, whole, rows - 1, d) == 0  # large enough for this
    assert operator.call(whole, other, 2**40, 2**40) == too_small  # more than there are numbers for
    assert operator.call(None, None, 0, d) == -63  # CL_INVALID_GLOBAL_WORK_SIZE: empty arrays may be NULL


@on_opencl
def test_a_tuned_kernel_that_does_not_build_or_fit_leaves_the_call_to_the_original(start: Start) -> None:
    broken, small, *others = DISPATCH.tuned
    flags = replace(broken, flags=("-DBROKEN",))
    large = replace(small, config={"STEP": 1}, launches=(replace(small.launches[0], block=("100000",)),))
    operator = start(replace(DISPATCH, entries=(flags, large, *others, DISPATCH.original)))
    for sizes in (SMALL, {"rows": 4, "d": 2048}):
        right, error, served = operator.result(**sizes)
        assert (error, served, right.all()) == (0, "original.cl", True)


@on_opencl
def test_the_device_decides_first_and_an_entry_may_name_a_size(here: str, tmp_path: Path) -> None:
    original = DISPATCH.original
    named = replace(original, launches=(replace(original.launches[0], entry="scale_{d}"),))
    elsewhere = replace(DISPATCH, device="another device", entries=(*DISPATCH.tuned, named))
    own = replace(DISPATCH, device=here, entries=(DISPATCH.tuned[1], named))
    artefact = one_artefact((a_result(elsewhere), a_result(own)))
    operator = Operator(tmp_path, artefact)
    for rows, d, file, error in [
        (16, 256, "scale-general.cl", 0), (5, 12, "original.cl", 0), (5, 20, "original.cl", 0),
        (5, 13, None, -46), (5, 12, "original.cl", 0),
    ]:  # fmt: skip
        right, got, served = operator.result(rows, d)
        assert (got, served) == (error, file), (rows, d)
        assert right.all() == (error == 0)
    assert operator.destroy(operator.handle) == 0


@on_opencl
def test_the_example_is_compiled_and_runs(
    here: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Within this process: pyopencl's loader works nowhere else."""
    artefact = Artefact((a_result(replace(DISPATCH, device=here)),))
    library = tmp_path / "example.so"
    sources = [str(tmp_path / "scale.c"), str(tmp_path / "example.c")]
    command = [*compiled(tmp_path, opencl_files(artefact), "-Dmain=example"), "-shared", "-fPIC", *sources]
    ran([*command, loader(), "-o", library])
    assert ctypes.CDLL(str(library)).example() == 0
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "served by scale-small.cl\n"


@needs_cc
@pytest.mark.parametrize("kind", ["scalar", "array", "size"])
@pytest.mark.few(1)
def test_no_warning_where_a_kernel_takes_no_scalar_array_or_size(tmp_path: Path, kind: str) -> None:
    files = opencl_files(Artefact((without(kind),)))
    ran([*compiled(tmp_path, files, "-O2", "-c"), tmp_path / "scale.c", "-o", tmp_path / "scale.o"])


@pytest.mark.skipif(CXX is None, reason="needs a C++ compiler")
def test_the_source_is_also_cpp(tmp_path: Path) -> None:
    compiled(tmp_path, opencl_files(Artefact((a_result(),))))
    shutil.copy(tmp_path / "scale.c", tmp_path / "scale.cpp")
    ran([CXX, "-std=c++11", *STRICT, f"-I{HEADERS}", "-c", "-o", "scale.o", "scale.cpp"], tmp_path)


@pytest.mark.skipif(shutil.which("cmake") is None or CC is None, reason="needs cmake and a C compiler")
@pytest.mark.slow
def test_cmake_builds_the_library(tmp_path: Path) -> None:
    compiled(tmp_path, opencl_files(Artefact((a_result(),))))
    library = tmp_path / "libOpenCL.a"
    library.write_bytes(b"!<arch>\n")
    found = [f"-DOpenCL_INCLUDE_DIR={HEADERS}", f"-DOpenCL_LIBRARY={library}"]
    ran(["cmake", "-B", "build", *found], tmp_path)
    ran(["cmake", "--build", "build"], tmp_path)
    assert (tmp_path / "build" / "libscale.a").is_file()


@on_opencl
def test_a_float_that_follows_the_sizes_is_computed(tmp_path: Path, here: str) -> None:
    """`alpha` is the root of the rows: nobody passes it."""
    made = Operator(tmp_path, Artefact((rooted(here),)))
    for rows, d in ((16, 256), (9, 64), (4, 4)):
        right, error, served = made.result(rows, d, math.sqrt(rows))
        assert (error, right.all()) == (0, True), served


def test_what_c_cannot_say_is_refused() -> None:
    def dispatch(**change: Any) -> Artefact:
        arguments = (*DISPATCH.arguments[:-1], replace(DISPATCH.arguments[-1], **change))
        return Artefact((a_result(replace(DISPATCH, arguments=arguments)),))

    with pytest.raises(BadInput, match="d is a float16 that follows the sizes"):
        TARGET.write(dispatch(type="float16"))
    zero = {**FILES, "original.cl": b"kernel void scale() {}\0"}
    with pytest.raises(BadInput, match=r"original\.cl has a zero byte"):
        TARGET.write(Artefact((replace(a_result(), files=zero),)))
