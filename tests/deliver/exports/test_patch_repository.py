"""A repository with tuned kernels in it: the header, the launches that ask it, and what is left alone."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deliver.exports.test_patch import USERS, built, cuda_result, needs_nvcc
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.launch_sites import macro_sites, place_behind_includes
from tunesmith.deliver.exports.patch_repository import LaunchingFile, RepositoryPatch, patched_repository
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import DispatchBinary
from tunesmith.problem.problem import SizeRule
from tunesmith.problem.reduced import shortened

BY_MACRO = """\
#include <cuda_fp16.h>
#define LAUNCH(width, ...)                                  \\
    do {                                                    \\
        mine::scale<float, width>                           \\
            <<<rows, 64 /* threads */>>>(out, x, 2.0f, rows, \\
                                         2 * d);            \\
    } while (0)
void run(float* out, float* x, int rows, int d) { LAUNCH(3); }
"""


def patched(*files: LaunchingFile, result: DeviceResult | None = None, same: bool = True) -> RepositoryPatch:
    artefact = Artefact((result or cuda_result(),))
    return patched_repository(artefact, files, "csrc", lambda one, other, capability: same)


def test_the_header_lies_beside_the_original_and_is_found_from_everywhere() -> None:
    made = patched(LaunchingFile("csrc/a.cu", USERS), LaunchingFile("src/deep/b.cu", USERS))
    assert [change.path for change in made.changes] == ["csrc/scale_tuned.cuh", "csrc/a.cu", "src/deep/b.cu"]
    header, one, two = (change.after for change in made.changes)
    assert made.changes[0].before is None
    assert '#include <cuda_fp16.h>\n#include "scale_tuned.cuh"\n' in one
    assert '#include "../../csrc/scale_tuned.cuh"\n' in two
    assert made.launches == ("csrc/a.cu:13", "csrc/a.cu:15", "src/deep/b.cu:13", "src/deep/b.cu:15")
    assert one.count("::scale_tuned::launch((const void*)&::mine::scale<float, 3>, ") == 2
    assert "namespace scale_tuned { namespace { namespace v0 {" in header
    assert "--- /dev/null\n+++ b/csrc/scale_tuned.cuh\n" in made.diff


def test_macros_of_the_users_headers_mean_nothing_in_the_header() -> None:
    (header, *_) = patched(LaunchingFile("csrc/a.cu", USERS, frozenset({"Part", "OTHER"}))).changes
    assert '#pragma push_macro("Part")\n' in header.after
    assert "#undef Part\n" in header.after
    assert "OTHER" not in header.after


def test_launches_in_macros_ask_too_and_stay_macros() -> None:
    (site,) = macro_sites(BY_MACRO, "scale")
    assert (site.line, site.fault, len(site.args)) == (4, "", 5)
    after = patched(LaunchingFile("csrc/a.cu", BY_MACRO)).changes[1].after
    assert (
        "        ::scale_tuned::launch((const void*)&::mine::scale<float, 3>, mine::scale<float, width>"
        in after
    )
    goes_on = [sum(line.endswith("\\") for line in text.split("\n")) for text in (BY_MACRO, after)]
    assert goes_on == [5, 4], "name and geometry stand on one line now"


@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_two_files_with_it_compile_without_a_warning_and_link(tmp_path: Path) -> None:
    kernel = USERS[USERS.index("#define BLOCK") : USERS.index("void both")]
    macro = BY_MACRO.replace("#define LAUNCH", kernel + "#define LAUNCH")
    made = patched(
        LaunchingFile("csrc/a.cu", USERS.replace("both", "first")),
        LaunchingFile("csrc/b.cu", macro),
    )
    for change in made.changes:
        (tmp_path / change.path).parent.mkdir(exist_ok=True)
        (tmp_path / change.path).write_text(change.after)
    for name in ("csrc/a", "csrc/b"):
        built(tmp_path, f"{name}.cu", "-c", "-o", f"{name}.o")
    joined = ["ld", "-r", "csrc/a.o", "csrc/b.o", "-o", "both.o"]
    assert subprocess.run(joined, cwd=tmp_path, check=False, timeout=60).returncode == 0


def test_a_winner_with_flags_of_its_own_is_there_as_machine_code_or_left_out() -> None:
    flags = ("-use_fast_math",)
    with pytest.raises(BadInput, match="built with flags of its own, -use_fast_math"):
        patched(LaunchingFile("csrc/a.cu", USERS), result=cuda_result(flags), same=False)
    made = cuda_result(flags)
    tuned, original = made.dispatch.entries
    tuned = replace(tuned, binary=DispatchBinary("k.cubin", "cubin", "", {"scale": "_Z5scale"}))
    files = {**made.files, "k.cubin": b"\x7fELF and more"}
    made = replace(made, dispatch=replace(made.dispatch, entries=(tuned, original)), files=files)
    found = patched(LaunchingFile("csrc/a.cu", USERS), result=made, same=False)
    assert found.notes == (
        "as machine code: scale-general.cu, it is built with flags of its own, -use_fast_math",
    )
    header = found.changes[0].after
    assert 'embedded_kernel(own_0, v0::image, "_Z5scale")' in header
    assert "if (loaded_0 == nullptr) return false;" in header
    assert "__global__" not in header
    same = patched(LaunchingFile("csrc/a.cu", USERS), result=made, same=True).changes[0].after
    assert "__global__ void scale(" in same, "nvcc makes the same of it without the flag"


def test_one_source_that_serves_twice_is_there_once() -> None:
    made = cuda_result()
    tuned, original = made.dispatch.entries
    entries = (replace(tuned, when="rows == 16"), tuned, original)
    made = replace(made, dispatch=replace(made.dispatch, entries=entries))
    found = patched(LaunchingFile("csrc/a.cu", USERS), result=made)
    assert found.delivered == 1
    assert found.changes[0].after.count("__global__") == 1
    assert found.changes[0].after.count("if (holds && !undefined) return run_") == 2


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


def test_launches_of_another_kernel_of_the_same_name_stay() -> None:
    other = USERS.replace("mine", "yours").replace("both", "second")
    made = patched(LaunchingFile("csrc/a.cu", USERS + other))
    assert made.launches == ("csrc/a.cu:13", "csrc/a.cu:15")
    after = made.changes[1].after
    assert after[after.index("namespace yours") :] == other[other.index("namespace yours") :]
    assert (
        "csrc/a.cu: the launch of scale in line 34 stays as it is: it launches another kernel, yours::scale"
        in (made.notes)
    )
    own = LaunchingFile("csrc/b.cu", USERS, other="csrc/b.cu")
    made = patched(LaunchingFile("csrc/a.cu", USERS), own)
    assert made.launches == ("csrc/a.cu:13", "csrc/a.cu:15")
    assert "csrc/b.cu:13 stays as it is: the file defines a kernel of this name itself" in made.notes


def test_a_null_pointer_to_an_array_is_the_originals() -> None:
    header = patched(LaunchingFile("csrc/a.cu", USERS)).changes[0].after
    for number in (0, 1):
        assert f"if (bytes_{number} > 0 && pointer(values, {number}) == nullptr) return false;" in header
    assert header.index("nullptr) return false;") < header.index("architecture(device) == 90")


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_hosts_compiler_passes_over_the_header(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text(patched(LaunchingFile("csrc/a.cu", USERS)).changes[0].after)
    (tmp_path / "a.cpp").write_text('#include "scale.h"\nint main() { return 0; }\n')
    command = ["c++", "-fsyntax-only", "-Wall", "-Werror", "a.cpp"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr.decode()


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
    found = shortened(DELIVERED, "cuda", {"scale"})
    assert found is not None
    for gone in ("Wide", "unused", "tunesmith", "#line", "#if"):
        assert gone not in found
    assert "twice(out[i])" in found
    assert "// scale: VEC=4" in found
    assert shortened("__global__ void k() {}", "cuda", {"k"}) is None, "nobody delivers it like that"
