"""What of PoCL's binaries counts as code."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from tests.opencl_here import needs_opencl
from tunesmith.backends.messages import Unit
from tunesmith.backends.opencl import OpenCLBackend, pocl_objects
from tunesmith.backends.port import LaunchCall, Pointer, Scalar

SOURCE = (
    "__kernel void scale(__global float* x, int n) { int i = get_global_id(0); if (i < n) x[i] *= 2.0f; }\n"
)


def file(path: bytes, content: bytes) -> bytes:
    return pack("<I", len(path)) + path + pack("<I", len(content)) + content


CODE, OTHER = b"\x7fELF one", b"\x7fELF other"
GENERIC = file(b"/scale/0-0-0/scale.so", CODE)
LAUNCHED = file(b"/scale/64-1-1-goffs0-smallgrid/scale.so", OTHER)


@pytest.mark.parametrize(
    "data",
    [b"/tmp/a" + GENERIC, b"/tmp/other" + GENERIC + LAUNCHED, LAUNCHED + GENERIC + b"the end"],
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
