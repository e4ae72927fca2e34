"""What the exported host code asks of the driver, seen by a driver that only writes it down."""

from __future__ import annotations

from unittest import mock

import pytest

from tests.core.deliver.programs import read_program
from tests.plugins.exports import operators, silu
from tests.plugins.exports.programs import ran
from tests.plugins.exports.test_tensor_call import CXX, INCLUDE, needs_compiler
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.port import Unsupported
from tunesmith.plugins.exports.tensor_call import TensorCall

pytestmark = [needs_compiler, pytest.mark.slow]
_DRIVER = read_program("tensors-driver.cpp")
_PROGRAM = read_program("tensors-program.cpp")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    with silu.without_compiler():
        written_with(TensorCall(operators.artefact()), folder)
    return folder


def written_with(call, folder):
    files = {"sum.h": call.host.header, "sum.cpp": call.host.source, "sum_tensors.h": call.header}
    files |= {"driver.cpp": _DRIVER.encode(), "main.cpp": _PROGRAM.encode()}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    driver = ("-shared", "-fPIC", "driver.cpp", "-o", "libcuda.so.1")
    for arguments in (driver, ("main.cpp", "sum.cpp", "-o", "program")):
        ran([CXX, "-std=c++17", f"-I{INCLUDE}", *arguments], folder)


def told(folder, **environment):
    """What the driver was asked, and what was said on stderr."""
    done = ran([folder / "program"], LD_LIBRARY_PATH=str(folder), **environment)
    return done.stdout.splitlines(), done.stderr


FILLED = "fill 4194304 with 0x7 every 8, {0} times", "fill 4194308 with 0 every 8, {0} times"
LOADED = "relaxed", "load", "kernel sum", "as before"
NOTE = (
    "sum was tuned on sm_90; on sm_{0} {1}. To tune it there run: tunesmith retune RUN; then export both "
    "runs together: tunesmith export RUN NEW_RUN --to ...\n"
)


def test_the_tuned_kernel_the_original_and_what_each_needs(program):
    lines, said = told(program)
    assert said == ""
    out, more = "fill 1048576 with 0x3f000000, {0} times", "fill 5242880 with 0x3e800000, 8 times"
    filled = [out.format(4), *(line.format(4) for line in FILLED), more]
    launched = "launch 4 on stream 77, by {0}, d 10"
    assert lines == [
        "push", "scratch of 32 and 32 bytes", *filled, *LOADED, launched.format(2), "pop",
        "push", "scratch of 32 and 32 bytes", *filled, *LOADED, launched.format(3), "pop",
        "push", "scratch of 32 and 32 bytes", *filled, launched.format(2), "pop",
        "push", "scratch of 800 and 0 bytes", out.format(100), *(line.format(100) for line in FILLED),
        "launch 100 on stream 77, by 2, d 10", "pop",
        "push", "prepared", "pop",
    ]  # fmt: skip


@pytest.mark.parametrize("capability", [75, 86, 100])
def test_on_another_device_the_original_is_compiled_from_ptx_once_with_a_note(program, capability):
    lines, said = told(program, CAPABILITY=str(capability))
    of_kernels = [line for line in lines if line.startswith(("load", "kernel", "launch", "not", "prepared"))]
    launched = "launch {0} on stream 77, by {1}, d 10"
    assert of_kernels == [
        "load PTX of sm_75", "kernel sum", launched.format(4, 2), launched.format(4, 3),
        launched.format(4, 2), launched.format(100, 2), "prepared",
    ]  # fmt: skip
    assert said == NOTE.format(capability, "its original serves")


def test_code_that_cannot_be_loaded_is_an_error_in_words(program):
    elsewhere = (
        "On another device the original serves, as PTX that the driver there compiles: sm_75 and newer, with "
        "a driver for CUDA 12.8 or newer."
    )
    for capability in ("90", "100"):
        lines, _ = told(program, NO_CODE="1", CAPABILITY=capability)
        refused = (
            f"sum: a driver's words (Its machine code is for sm_90. {elsewhere} Tune it on this device, and "
            "export both runs)"
        )
        assert lines.count(refused) == 4
        assert not [line for line in lines if line.startswith("launch")]
        assert lines.count("push") == lines.count("pop") == 5
        assert lines[-2] == "not prepared"


def test_without_a_compiler_other_devices_get_an_error_that_says_so(tmp_path):
    def nothing_here(*_):
        raise Unsupported("NVRTC cannot be loaded: not here")

    with silu.without_compiler(), mock.patch.dict(COMPILERS, nvrtc=nothing_here):
        call = TensorCall(operators.artefact())
    written_with(call, tmp_path)
    assert told(tmp_path)[1] == ""
    lines, said = told(tmp_path, CAPABILITY="80", NO_CODE="1")
    assert said == NOTE.format(80, "there is no original here")
    assert len([line for line in lines if "On another device nothing serves: there is no PTX" in line]) == 4
