"""Operators over tensors: what shapes tell, what is refused, and that every binding compiles."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import string
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.deliver.programs import read_program
from tests.plugins.exports import operators, silu, torch_stand_in
from tests.plugins.exports.programs import failing, ran
from tunesmith.base.errors import BadInput
from tunesmith.deliver.expr_text import c_text
from tunesmith.plugins.exports import python_package, sglang, vllm
from tunesmith.plugins.exports.tensor_call import TensorCall, strip_markup

CXX = shutil.which("g++")


def cuda_headers() -> Path | None:
    nvcc = shutil.which("nvcc")
    roots = [Path(nvcc).resolve().parents[1]] if nvcc else []
    roots += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"))]
    return next((root / "include" for root in roots if (root / "include" / "cuda.h").exists()), None)


INCLUDE = cuda_headers()
needs_compiler = pytest.mark.skipif(CXX is None or INCLUDE is None, reason="needs g++ and CUDA's headers")
MADE = {"silu": lambda: silu.artefact(silu.result(90)), "sum": operators.artefact}


@pytest.fixture(autouse=True)
def made_up():
    """Nothing of the kernels is run."""
    with silu.without_compiler():
        yield


def checked(source: Path, *more: Path, flags: tuple[str, ...] = ("-Wextra",)) -> None:
    folders = [f"-I{folder}" for folder in (INCLUDE, sysconfig.get_paths()["include"], *more)]
    ran([CXX, "-std=c++17", "-Wall", "-Werror", *flags, "-fsyntax-only", *folders, source])


@needs_compiler
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("where", ["vllm", "native"])
@pytest.mark.few(1)
def test_torch_bindings_compile(tmp_path, made, where):
    artefact = MADE[made]()
    torch = torch_stand_in.written_to(tmp_path / "torch")
    if where == "vllm":
        silu.written(vllm.TARGET.export(artefact).files, tmp_path)
        checked(tmp_path / "csrc" / "tuned" / f"{artefact.name}_op.cpp", torch)
    else:
        silu.written(python_package.native_files(artefact), tmp_path)
        checked(tmp_path / "csrc" / "torch_op.cpp", torch)
        checked(tmp_path / "csrc" / f"{artefact.name}.cpp", flags=())


_CHECK = read_program("tensors-check.cpp")


@needs_compiler
@pytest.mark.slow
@pytest.mark.long
def test_what_does_not_fit_is_refused_in_words(tmp_path):
    artefact = MADE["silu"]()
    call = TensorCall(artefact)
    (tmp_path / f"{call.name}.h").write_bytes(call.host.header)
    (tmp_path / f"{call.name}.cpp").write_bytes(call.host.source)
    (tmp_path / f"{call.name}_tensors.h").write_bytes(call.header)
    (tmp_path / "check.cpp").write_text(_CHECK.replace("@", call.name))
    program = tmp_path / "check"
    ran([CXX, "-std=c++17", f"-I{INCLUDE}", "check.cpp", f"{call.name}.cpp", "-o", program], tmp_path)
    lines = ran([program], CUDA_VISIBLE_DEVICES="").stdout.splitlines()
    assert lines[0] == "16 64: fine"
    assert lines[1] == (
        "16 64: silu_and_mul: input has the shape [tokens, 2 * d], which is [16, 128] for tokens = 16, d = 64"
        "; got [16, 127]: pass tensors whose shapes agree"
    )
    assert "dense, the last axis fastest, got strides [256, 1] of shape [16, 128]: copy it" in lines[2]
    assert lines[3].endswith("input has the shape [tokens, 2 * d], 2 axes, got 1: reshape it before the call")
    assert lines[4] == "64"
    assert lines[5] == "silu_and_mul: the device cuda:0 cannot be used"
    assert "(Its machine code is for sm_90. On another device the original serves, as PTX" in lines[6]
    assert lines[6].endswith("Tune it on this device, and export both runs)")
    assert lines[7] == "silu_and_mul: n = 1099511627776 does not fit its type: pass a smaller number"


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="is about machines without PyTorch")
def test_a_package_is_built_without_what_it_cannot_have(tmp_path):
    silu.written(python_package.native_files(MADE["silu"]()), tmp_path)
    (tmp_path / "tuned_silu_and_mul.py").write_text("")
    command = [sys.executable, "setup.py", "--quiet", "build"]
    ran(command, tmp_path)
    done = failing(command, tmp_path, TUNESMITH_NATIVE="1")
    assert done.returncode != 0
    assert "torch" in done.stderr


def test_without_machine_code_nothing_is_built_ahead_of_time():
    assert python_package.native_files(silu.artefact(silu.result(90, binaries=False))) == {}


HOSTILE = 'x"); system("id"); //\n\\u0022 ${IFS} `id` *{}'


def test_a_hostile_name_of_the_problem_is_text_everywhere():
    own = silu.result(90)
    dispatch = replace(own.dispatch, problem=HOSTILE, device=HOSTILE)
    artefact = silu.artefact(replace(own, dispatch=dispatch))
    for files in (
        sglang.TARGET.export(artefact).files,
        vllm.TARGET.export(artefact).files,
        python_package.native_files(artefact),
    ):
        for name, data in files.items():
            assert set(name) <= set(string.ascii_letters + string.digits + "_./"), name
            if name.endswith(".py"):
                ast.parse(data)
                assert b"system(" not in data
            elif name.endswith((".h", ".cpp", ".cuh")):
                for line in data.decode().splitlines():
                    if "system(" in line:  # in a comment, or between quotes that it cannot end
                        assert line.startswith("//") or "x\\042); system(\\042id" in line


@needs_compiler
@pytest.mark.slow
@pytest.mark.long
def test_hostile_names_compile(tmp_path):
    own = silu.result(90)
    artefact = silu.artefact(replace(own, dispatch=replace(own.dispatch, problem=HOSTILE, device=HOSTILE)))
    silu.written(python_package.native_files(artefact), tmp_path)
    checked(tmp_path / "csrc" / "torch_op.cpp", torch_stand_in.written_to(tmp_path / "torch"))
    checked(tmp_path / "csrc" / f"{artefact.name}.cpp", flags=())


@pytest.mark.parametrize("name", ["a b", "x)", "_tunesmith_x", "é", ""])
@pytest.mark.few(2)
def test_a_name_that_is_none_is_refused(name):
    first, *rest = operators.ARGUMENTS
    arguments = (replace(first, name=name or "1x"), *rest)
    with pytest.raises(BadInput, match="no name for an operator's argument"):
        TensorCall(operators.artefact(arguments=arguments))


def test_two_arguments_of_one_name_are_refused():
    arguments = (
        replace(operators.ARGUMENTS[0], name="extra"),
        *operators.ARGUMENTS[1:7],
        *operators.ARGUMENTS[8:],
    )
    with pytest.raises(BadInput, match="called 'extra'"):
        TensorCall(operators.artefact(arguments=arguments))


def test_text_of_others():
    assert c_text('a"\\\n?é') == '"a\\042\\134\\012\\077\\303\\251"'
    assert strip_markup("a `b` |\n[c](d) <e>") == "a b  c(d) e"
