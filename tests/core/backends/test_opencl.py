"""OpenCL by itself: what of a binary counts as code, what a kernel needs of a device, clocks."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from tests.opencl_here import needs_opencl
from tunesmith.backends.messages import Unit
from tunesmith.backends.opencl import OpenCLBackend, missing_extensions, pocl_objects, processor_clocks
from tunesmith.backends.port import BuildFailed, LaunchCall, Pointer, Scalar
from tunesmith.problem.device import Clock

SOURCE = (
    "__kernel void scale(__global float* x, int n) { int i = get_global_id(0); if (i < n) x[i] *= 2.0f; }\n"
)


def file(path: bytes, content: bytes) -> bytes:
    return pack("<I", len(path)) + path + pack("<I", len(content)) + content


CODE, OTHER = b"\x7fELF one", b"\x7fELF other"
GENERIC = file(b"/scale/0-0-0/scale.so", CODE)
LAUNCHED = file(b"/scale/64-1-1-goffs0-smallgrid/scale.so", OTHER)


@pytest.mark.parametrize(
    "data", [b"/tmp/a" + GENERIC, b"/tmp/other" + GENERIC + LAUNCHED, LAUNCHED + GENERIC + b"the end"]
)
def test_code_of_launches_and_what_is_around_it_do_not_count(data: bytes) -> None:
    assert pocl_objects(data) == [b"scale", CODE]


def test_every_kernel_counts_whatever_a_source_holds() -> None:
    second = file(b"/add/0-0-0/add.so", OTHER)
    assert pocl_objects(GENERIC + second) == pocl_objects(second + GENERIC) == [b"add", OTHER, b"scale", CODE]
    text = b"/scale/0-0-0/scale.so\0\0\0\0"  # a string of the source
    assert pocl_objects(text + GENERIC) == [b"scale", CODE]
    spans = file(b"/x/0-0-0/x.so", b"\x7fELF" + GENERIC)  # one that hides what follows it
    assert pocl_objects(spans)[:2] == [b"scale", CODE]


def test_other_layouts_count_from_the_first_code_on() -> None:
    assert pocl_objects(b"path" + CODE + b"and more") == [CODE + b"and more"]
    assert pocl_objects(b"") == []
    for cut in range(len(GENERIC)):
        pocl_objects(GENERIC[:cut])


@needs_opencl
def test_a_build_after_launches_has_the_same_digest(tmp_path: Path) -> None:
    source = f"// {tmp_path}: nothing of it is in anybody's cache\n{SOURCE}"
    backend = OpenCLBackend()
    device = backend.devices()[0]
    unit = Unit("kernel.cl", source, "opencl", (), ("scale",))
    first = backend.build(unit, device)
    session = backend.open(device)
    executable = session.load(unit, first.data)
    memory = session.allocate(4096)
    for block in (64, 32):
        args = (Pointer(memory, 0, 4096), Scalar("int32", 1024))
        session.run([LaunchCall(executable, "scale", (1024 // block, 1, 1), (block, 1, 1), 0, args)])
    again = backend.build(unit, device)
    assert len(again.data) > len(first.data), "it holds the code of launches"
    assert again.code_digest == first.code_digest
    longer = Unit("kernel.cl", source.replace("2.0f", "3.0f"), "opencl", (), ("scale",))
    assert backend.build(longer, device).code_digest != first.code_digest


SUB_GROUPS = "__kernel void k(__global float *o) { o[0] = sub_group_reduce_add(o[1]); }"
HALF = "__kernel void k(__global half *o) { o[0] = o[1] * o[2]; }"


@needs_opencl
@pytest.mark.parametrize(
    ("text", "words", "extension"),
    [(SUB_GROUPS, "sub-groups", "cl_khr_subgroups"), (HALF, "half precision", "cl_khr_fp16")],
)
def test_a_build_that_fails_for_want_of_it(text: str, words: str, extension: str) -> None:
    backend = OpenCLBackend()
    device = backend.devices()[0]
    try:
        backend.build(Unit("k.cl", text, "opencl", (), ("k",)), device)
    except BuildFailed as failure:
        first, _, rest = str(failure).partition("\n")
        assert first == f"the kernel needs {words} ({extension}), which {device.name} does not have"
        assert "k.cl:1:" in rest


def test_only_what_is_used_complained_of_and_not_there() -> None:
    said = "k.cl:1:45: implicit declaration of function 'sub_group_reduce_add'"
    assert "sub-groups" in missing_extensions(SUB_GROUPS, said, "cl_khr_fp16", "a device")
    assert missing_extensions(SUB_GROUPS, said, "cl_khr_subgroups", "a device") == ""
    assert missing_extensions(SUB_GROUPS, "k.cl:3: expected ';'", "", "a device") == ""
    assert missing_extensions("// half\n__kernel void k() {}", "unknown type 'half'", "", "a device") == ""
    both = missing_extensions(
        HALF.replace("half", "double") + SUB_GROUPS, "double, sub_group", "", "a device"
    )
    assert both.startswith("the kernel needs double precision (cl_khr_fp64), which a device does not have; ")


CPUINFO = "processor : 0\nmodel name : x\ncpu MHz\t\t: 2499.998\nprocessor : 1\ncpu MHz : 3100.1\n"


def core(system: Path, number: int, **khz: str) -> None:
    folder = system / f"sys/devices/system/cpu/cpu{number}/cpufreq"
    folder.mkdir(parents=True)
    for name, text in khz.items():
        (folder / name).write_text(text)


def test_of_the_fastest_core_with_its_limit(tmp_path: Path) -> None:
    core(tmp_path, 0, scaling_cur_freq="1200000\n", scaling_max_freq="3600000\n")
    core(tmp_path, 1, scaling_cur_freq="3400000\n", scaling_max_freq="3600000\n")
    assert processor_clocks(tmp_path) == (Clock("processor", 3400, 3600),)


def test_where_only_the_list_of_processors_says(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(CPUINFO)
    assert processor_clocks(tmp_path) == (Clock("processor", 3100),)


@pytest.mark.parametrize("text", ["", "<unknown>\n", "-1", "9" * 5000])
def test_unknown(tmp_path: Path, text: str) -> None:
    core(tmp_path, 0, scaling_cur_freq=text)
    assert processor_clocks(tmp_path) == ()
