"""Kernels that need what a device has not say so, beside the compiler's words."""

from __future__ import annotations

import pytest

from tests.opencl_here import needs_opencl
from tunesmith.backends.messages import Unit
from tunesmith.backends.opencl import OpenCLBackend, missing_extensions
from tunesmith.backends.port import BuildFailed

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
