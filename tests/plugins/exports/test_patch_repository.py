"""A repository with tuned kernels in it: the header, the launches that ask it, and what is left alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.exports.cuda_users import BY_MACRO, USERS, cuda_result, patched
from tests.plugins.exports.programs import ran
from tests.plugins.exports.test_patch import built, needs_nvcc
from tunesmith.base.errors import BadInput
from tunesmith.plugins.exports.launch_sites import place_behind_includes
from tunesmith.plugins.exports.patch import LaunchingFile
from tunesmith.problem.problem import SizeRule
from tunesmith.problem.reduced import shorten_source


@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_two_files_with_it_compile_without_a_warning_and_link(tmp_path: Path) -> None:
    kernel = USERS[USERS.index("#define BLOCK") : USERS.index("void both")]
    macro = BY_MACRO.replace("#define LAUNCH", kernel + "#define LAUNCH")
    made = patched(
        LaunchingFile("csrc/a.cu", USERS.replace("both", "first")), LaunchingFile("csrc/b.cu", macro)
    )
    for change in made.changes:
        (tmp_path / change.path).parent.mkdir(exist_ok=True)
        (tmp_path / change.path).write_text(change.after)
    for name in ("csrc/a", "csrc/b"):
        built(tmp_path, f"{name}.cu", "-c", "-o", f"{name}.o")
    ran(["ld", "-r", "csrc/a.o", "csrc/b.o", "-o", "both.o"], tmp_path)


def test_a_winner_with_flags_of_its_own_and_no_machine_code_is_left_out() -> None:
    with pytest.raises(BadInput, match="built with flags of its own, -use_fast_math"):
        patched(LaunchingFile("csrc/a.cu", USERS), result=cuda_result(("-use_fast_math",)), same=False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("void run() {}\n", "nothing in csrc/a.cu launches it by scale<<<"),
        ("void run() { scale<<<1, 2>>>(a); }\n", "it passes 1 arguments, the problem has 5"),
        ("auto x = scale<float, 3><<<1, 2>>>(a, b, c, d, e);\n", "it is no statement of its own"),
        ("::scale_tuned::launch(&scale, 0);\n", "serves launches of scale in csrc/a.cu already"),
    ],
)
def test_launches_that_stay_as_they_are_are_named(text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        patched(LaunchingFile("csrc/a.cu", text))


def test_what_no_launch_can_ask_for_is_refused() -> None:
    sizes = (*cuda_result().dispatch.sizes, SizeRule("more", 1, 8))
    with pytest.raises(BadInput, match="nothing that it passes tells the size more"):
        patched(LaunchingFile("csrc/a.cu", USERS), result=cuda_result(sizes=sizes))
    made = cuda_result()
    tuned, original = made.dispatch.entries
    twice = replace(original, launches=original.launches * 2)
    made = replace(made, dispatch=replace(made.dispatch, entries=(tuned, twice)))
    with pytest.raises(BadInput, match="takes 2 launches"):
        patched(LaunchingFile("csrc/a.cu", USERS), result=made)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ('#include <a>\n#include "b"\nint x;\nHERE', "int x;"),
        ("#include <a>\n#ifdef X\n#include <b>\n#endif\nint x;\nHERE", "#ifdef X"),
        ("int y;\nvoid f() {\nHERE }", "void f"),
    ],
)
def test_the_include_comes_behind_the_others(text: str, before: str) -> None:
    place = place_behind_includes(text, text.index("HERE"))
    assert text[place:].startswith(before)


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_hosts_compiler_passes_over_the_header(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text(patched(LaunchingFile("csrc/a.cu", USERS)).changes[0].after)
    (tmp_path / "a.cpp").write_text('#include "scale.h"\nint main() { return 0; }\n')
    ran(["c++", "-fsyntax-only", "-Wall", "-Werror", "a.cpp"], tmp_path)


DELIVERED = """\
// scale: VEC=4
#define VEC 4
#define WIDE 0
#line 1 "template.cu"
// /// tunesmith
// [params]
// VEC = [1, 4]
// ///
#if WIDE
struct Wide { float4 at; };
#endif
__device__ float unused(float x) { return x; }
__device__ float twice(float x) { return 2 * x; }
__global__ void scale(float* out) { for (int i = 0; i < VEC; ++i) out[i] = twice(out[i]); }
"""


def test_a_delivered_source_is_reduced_to_what_won() -> None:
    found = shorten_source(DELIVERED, "cuda", {"scale"})
    assert found is not None
    for gone in ("Wide", "unused", "tunesmith", "#line", "#if"):
        assert gone not in found
    assert "twice(out[i])" in found
    assert "// scale: VEC=4" in found
    assert shorten_source("__global__ void k() {}", "cuda", {"k"}) is None, "nobody delivers it like that"
