"""A patch of the user's file: it applies, it builds, and the kernels in it are those that were delivered."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.deliver.programs import read_program
from tests.opencl_here import needs_opencl, show_unpacked_pocl
from tests.plugins.exports.cuda_users import TUNED, USERS, cuda_result, in_parts
from tests.plugins.exports.opencl_results import ALPHA, DISPATCH, KERNEL, a_result
from tests.plugins.exports.programs import ran
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.base.errors import BadInput
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.plugins.exports.patch import TARGET, patch_of, patched_file

needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")


def applied(folder: Path, text: str, path: str, before: str, tool: str = "patch") -> str:
    """What `patch -p1`, or `git apply`, makes of the file."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before.encode())
    command = ["patch", "-p1", "--no-backup-if-mismatch"] if tool == "patch" else ["git", "apply"]
    got = subprocess.run(
        command, input=text.encode(), cwd=folder, capture_output=True, timeout=20, check=False
    )
    assert got.returncode == 0, got.stdout
    assert b"fuzz" not in got.stdout
    return file.read_bytes().decode()


@needs_patch
@needs_opencl
@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_an_opencl_file_keeps_its_kernels_and_gets_the_tuned_ones(tmp_path: Path, end: str) -> None:
    before = KERNEL.rstrip("\n") + end
    text = patch_of(Artefact((a_result(),)), "src/kernel.cl", before)
    after = applied(tmp_path, text, "src/kernel.cl", before)
    assert after.startswith(before)
    show_unpacked_pocl()
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, after).build(options=["-cl-std=CL1.2"])
    names = set(program.get_info(cl.program_info.KERNEL_NAMES).split(";"))
    assert names >= {"scale", "scale_12", "scale_tuned_0", "part_tuned_0", "scale_tuned_1"}
    x = np.arange(16 * 256, dtype=np.float32)

    def buffer(array: np.ndarray[Any, Any]) -> Any:
        return cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=array)

    def right(out: Any) -> bool:
        got = np.empty_like(x)
        cl.enqueue_copy(queue, got, out, is_blocking=True)
        return np.array_equal(got, x * np.float32(ALPHA))

    alpha, rows, d = np.float32(ALPHA), np.int32(16), np.int32(256)
    for kernel in (program.scale, program.scale_tuned_1):
        out = buffer(np.zeros_like(x))
        kernel(queue, (4096,), (64,), out, buffer(x), alpha, rows, d)
        assert right(out)
    out, work = buffer(np.zeros_like(x)), buffer(np.ones_like(x))
    program.part_tuned_0(queue, (4096,), (64,), work, buffer(x), alpha)
    program.scale_tuned_0(queue, (4096,), (64,), out, work, cl.LocalMemory(256))
    assert right(out)


def test_without_a_kernel_that_can_be_added_there_is_no_patch() -> None:
    small, _, original = DISPATCH.entries
    other = replace(small, flags=(*small.flags, "-cl-fast-relaxed-math"))
    alone = Artefact((a_result(replace(DISPATCH, entries=(other, original))),))
    with pytest.raises(
        BadInput, match=r"no tuned kernel can be added to the file: left out: scale-small\.cl"
    ):
        patch_of(alone, "k.cl", KERNEL)
    with pytest.raises(BadInput, match="the run has no tuned kernel"):
        patch_of(Artefact((a_result(replace(DISPATCH, entries=(original,))),)), "k.cl", KERNEL)


def test_the_target_needs_the_users_file_and_names_no_folder_above() -> None:
    with pytest.raises(BadInput, match="the user's own kernel file is not known"):
        TARGET.write(Artefact((a_result(),)))
    result = replace(a_result(), kernel_path="/home/me/kernel.cl", kernel_text=KERNEL)
    files = TARGET.export(Artefact((result,))).files
    assert b"\n--- a/kernel.cl\n+++ b/kernel.cl\n" in files["scale.patch"]


@needs_patch
@pytest.mark.parametrize("language", ["opencl", "cuda"])
@pytest.mark.parametrize("last", ["\n", ""])
@pytest.mark.parametrize("tool", ["patch", "git"])
def test_a_patch_applies_whatever_the_line_ends_and_the_name(
    tmp_path: Path, language: str, last: str, tool: str
) -> None:
    """A run keeps the text with plain line ends; the user's file may have those of Windows."""
    kernel, made = (KERNEL, a_result()) if language == "opencl" else (USERS, cuda_result())
    path, kernel = "my kernels/the kernel.cu", kernel.rstrip("\n") + last
    windows = kernel.replace("\n", "\r\n")
    files = TARGET.export(Artefact((replace(made, kernel_path=path, kernel_text=kernel),))).files
    for name, before in (("scale.patch", kernel), ("scale.crlf.patch", windows)):
        after = applied(tmp_path, files[name].decode(), path, before, tool)
        assert "tuned" in after
        assert ("\r\n" in after) == ("\r\n" in before)
        assert after.count("\n") == after.count("\r\n") or "\r" not in after
    own = Artefact((replace(made, kernel_path=path, kernel_text=windows),))
    files = TARGET.export(own).files
    assert "scale.crlf.patch" not in files  # it is known which ones the file has
    assert applied(tmp_path, files["scale.patch"].decode(), path, windows, tool) == after
    mixed = kernel.replace("\n", "\r\n", 3)
    after = applied(tmp_path, patch_of(own, path, mixed), path, mixed, tool)
    assert [line in after for line in mixed.split("\n")[:3]] == [True] * 3
    assert after.count("\r\n") == 3


NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc")


def by_nvcc(function: Callable[..., None]) -> Callable[..., None]:
    return needs_patch(needs_nvcc(pytest.mark.slow(pytest.mark.long(function))))


def cubin_of(folder: Path, name: str, text: str, *flags: str) -> Cubin:
    (folder / name).write_text(text)
    built(folder, name, "-cubin", "-o", f"{name}.cubin", *flags)
    return Cubin((folder / f"{name}.cubin").read_bytes())


def built(folder: Path, name: str, *flags: str) -> None:
    ran([NVCC, "-arch=sm_90", "-Werror", "all-warnings", *flags, name], folder)


def code_of(cubin: Cubin, part: str) -> str:
    (symbol,) = (symbol for symbol in cubin.kernels if part in symbol)
    return cubin.kernel_digest(symbol)


@by_nvcc
def test_launches_in_a_cuda_file_ask_first_and_the_kernels_are_those_delivered(tmp_path: Path) -> None:
    text = patch_of(Artefact((cuda_result(),)), "scale.cu", USERS)
    after = applied(tmp_path, text, "scale.cu", USERS)
    built(tmp_path, "scale.cu", "-c", "-o", "scale.o")
    patched = cubin_of(tmp_path, "scale.cu", after)
    assert code_of(patched, "scale_tuned2v0") == code_of(cubin_of(tmp_path, "alone.cu", TUNED), "scale")


@by_nvcc
@pytest.mark.parametrize("made", [cuda_result, in_parts])
def test_a_file_without_launches_gets_a_function(made: Callable[[], DeviceResult], tmp_path: Path) -> None:
    """Also where sizes decide which launches there are."""
    kernels = USERS[: USERS.index("// each")] + "}\n"
    applied(tmp_path, patch_of(Artefact((made(),)), "scale.cuh", kernels), "scale.cuh", kernels)
    use = '#include "scale.cuh"\nint main() { return scale_tuned_launch(0, 0, 2, 1, 8, 0); }\n'
    (tmp_path / "use.cu").write_text(use)
    built(tmp_path, "use.cu", "-c", "-o", "use.o")


@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_nvcc_says_whether_the_cap_gives_the_same_code() -> None:
    made = patched_file(Artefact((cuda_result(("-maxrregcount=32",)),)), USERS)
    assert made.delivered == 1


# In place of CUDA's runtime: who is launched, on the first device, which is of capability 9.0, or on another.
RUNTIME = read_program("launches-runtime.cpp")
MAIN = read_program("launches-program.cpp")
MORE_LAUNCHES = read_program("more-launches.cu")


@by_nvcc
def test_a_launch_that_is_not_as_tuned_stays_what_it_was(tmp_path: Path) -> None:
    before = USERS + MORE_LAUNCHES
    after = applied(tmp_path, patch_of(Artefact((cuda_result(),)), "scale.cu", before), "scale.cu", before)
    (tmp_path / "scale.cu").write_text(after + MAIN)
    (tmp_path / "runtime.cpp").write_text(RUNTIME)
    built(tmp_path, "scale.cu", "-cudart=none", "-o", "scale", "runtime.cpp")
    lines = ran([tmp_path / "scale"]).stdout.splitlines()
    tuned = "tuned 8 128 16"
    assert lines[0] == lines[13] == tuned
    assert lines[1:13] == [
        *["original 16 64 16"] * 4, "original 2 64 2", "original 5000 64 5000", "original 1 64 -1",
        "original 1 64 16", "original 15 64 16", "original 16 32 16", *["original 16 64 16"] * 2,
    ]  # fmt: skip
    assert lines[14:] == ["original 16 64 16", tuned, "original 16 64 16", "taken 8"]
