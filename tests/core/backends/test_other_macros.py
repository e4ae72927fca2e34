"""What OpenCL and HIP compilers define: by the platform's word, by hipcc where it is, and else assumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.read.kernels import row_problem
from tunesmith.backends.binaries import as_compiled
from tunesmith.backends.hip import compile as hipcc
from tunesmith.backends.opencl import opencl_predefined_macros
from tunesmith.problem.device import HIP
from tunesmith.problem.problem import Kernel

assert HIP.assumed is not None
POCL = replace(HIP.assumed, backend="opencl", driver="OpenCL 3.0 PoCL 6.0; 6.0")


def test_opencl_by_the_platform_and_the_flags() -> None:
    (plain,) = opencl_predefined_macros(Kernel("k.cl", "", "k", "opencl"), POCL, ["__OPENCL_VERSION__"])
    assert dict(plain.macros)["__OPENCL_VERSION__"] == "300"
    assert dict(plain.macros)["__OPENCL_C_VERSION__"] == "120"
    (newer,) = opencl_predefined_macros(Kernel("k.cl", "", "k", "opencl", ("-cl-std=CL2.0",)), POCL, [])
    assert dict(newer.macros)["__OPENCL_C_VERSION__"] == "200"


def test_extensions_are_read_both_ways() -> None:
    without, all_there = opencl_predefined_macros(
        Kernel("k.cl", "", "k", "opencl"), POCL, ["cl_khr_fp64", "OWN"]
    )
    assert "cl_khr_fp64" not in dict(without.macros)
    assert dict(all_there.macros)["cl_khr_fp64"] == "1"
    assert "OWN" not in dict(all_there.macros)


def test_hip_is_asked_of_hipcc_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    kernel = Kernel("k.hip", "", "k", "hip", ("-std=c++20", "-O3"))
    (found,) = hipcc.hip_predefined_macros(kernel, POCL, ["__gfx942__"])
    assert found.said_by == "assumed, since there is no hipcc here: hipcc for AMD, C++17"
    program = tmp_path / "hipcc"
    program.write_text(
        '#!/bin/sh\necho "#define __gfx942__ 1"\necho "#define F(x) x"\necho "#define ARGS $*"\n'
    )
    program.chmod(0o755)
    (told,) = hipcc.hip_predefined_macros(kernel, POCL, ["__gfx942__", "F", "ARGS"])
    assert told.macros == (("__gfx942__", "1"),)
    assert told.others == ("F", "ARGS")
    assert told.said_by == "hipcc, -std=c++20 gfx942"


def test_nobody_is_asked_where_nothing_depends_on_it() -> None:
    plain = row_problem("out[blockIdx.x * d + threadIdx.x] = x[blockIdx.x * d + threadIdx.x];")
    assert as_compiled(plain, POCL) is plain
