"""Builds by clang for AMD's GPUs, where clang, ROCm's device libraries and HIP's headers are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.running import EXAMPLES, FIXTURES
from tunesmith.backends.hip import HipBackend
from tunesmith.backends.hip import compile as clang
from tunesmith.backends.hip.code_object import ARCHITECTURES, CodeObject, unpack
from tunesmith.backends.hip.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported
from tunesmith.problem.template import original_variant
from tunesmith.session.problems import load_problem

needs_clang = pytest.mark.skipif(isinstance(clang.tools(), str), reason=str(clang.tools()))
SUMS = (FIXTURES / "hip" / "sums.hip").read_text()
TARGETS = ("gfx90a", "gfx942", "gfx1100")


def unit(text: str = SUMS, *entries: str) -> Unit:
    return Unit("sums.hip", text, "hip", (), entries or ("row_sums", "mixed<8>"), compiler="clang")


@needs_clang
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.few(1)
def test_registers_spills_and_symbols(target: str) -> None:
    binary = HipBackend().build(unit(), absent_device(target))
    symbols, data = unpack(binary.data)
    assert symbols == {"row_sums": "row_sums", "mixed<8>": "_Z5mixedILi8EEvPdPKd"}
    assert CodeObject(data).target == target
    assert binary.resources.of("row_sums").spills == 0
    assert (binary.resources.of("mixed<8>").spills or 0) > 400
    again = HipBackend().build(unit(f"// only a comment\n{SUMS}"), absent_device(target))
    assert again.code_digest == binary.code_digest


@needs_clang
@pytest.mark.parametrize("folder", sorted((EXAMPLES / "hip").iterdir()), ids=lambda folder: folder.name)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.long
def test_the_examples_build(folder: Path, target: str) -> None:
    problem, _ = load_problem(folder)
    made = original_variant(problem, problem.workloads[0].as_dict())
    own = Unit(problem.kernel.path, made.source, "hip", made.flags, made.entries, compiler="clang")
    assert HipBackend().build(own, absent_device(target)).resources.spills == 0


@needs_clang
def test_what_is_wrong_is_said_with_its_line() -> None:
    head = "#include <hip/hip_runtime.h>\n"
    with pytest.raises(BuildFailed, match=r"sums\.hip:2:\d+: error: use of undeclared identifier 'nonsense'"):
        HipBackend().build(
            unit(f"{head}__global__ void k(int *o) {{ o[0] = nonsense; }}", "k"), absent_device(None)
        )
    with pytest.raises(BuildFailed, match=r"no kernel called 'kk' .*it defines row_sums, mixed"):
        HipBackend().build(unit(SUMS, "kk"), absent_device(None))


def test_what_is_missing_is_named_with_its_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clang, "_rocm_roots", lambda: iter((tmp_path,)))
    monkeypatch.setattr(clang.system_package.__globals__["shutil"], "which", {"apt-get": "x"}.get)
    clang.tools.cache_clear()
    try:
        told = clang.tools()
        (tmp_path / "include" / "hip").mkdir(parents=True)
        (tmp_path / "include" / "hip" / "hip_runtime.h").write_text("")
        clang.tools.cache_clear()
        less = clang.tools()
        with pytest.raises(Unsupported, match="what is missing is clang"):
            HipBackend().build(unit(), absent_device(None))
    finally:
        clang.tools.cache_clear()
    packages = "apt-get install clang-19 lld-19 rocm-device-libs"
    assert told.endswith(f"HIP's headers: {packages} libamdhip64-dev")
    assert less.endswith(packages)


def test_headers_stay_in_their_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = clang.ClangTools("clang++", "19.1.7", tmp_path, tmp_path)
    monkeypatch.setattr(clang, "tools", lambda: here)
    for spelling in ("../up.h", "/etc/passwd", ""):
        with pytest.raises(BuildFailed, match="gets its headers in a folder of their own"):
            HipBackend().build(replace(unit(), headers=((spelling, ""),)), absent_device(None))


@pytest.mark.parametrize(("headers", "is_named"), [("/usr/include", False), ("/opt/rocm/include", True)])
def test_headers_of_the_system_keep_their_place(
    headers: str, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named, /usr/include would come before C++'s own headers, which look behind themselves for C's."""
    program = tmp_path / "clang"
    program.write_text('#!/bin/sh\necho "$@" >&2\nexit 1\n')
    program.chmod(0o755)
    found = clang.ClangTools(str(program), "19.1.7", tmp_path, Path(headers))
    monkeypatch.setattr(clang, "tools", lambda: found)
    with pytest.raises(BuildFailed) as told:
        clang.compile_by_clang(unit(), (), ARCHITECTURES["gfx90a"])
    assert (f"-isystem {headers} " in str(told.value)) == is_named
