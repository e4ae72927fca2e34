"""READMEs of the exports for OpenCL and of patches: what they say is true of the files beside them."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.deliver.exports import silu
from tests.deliver.exports.opencl_results import DISPATCH, KERNEL, a_result
from tests.deliver.exports.test_patch import USERS, cuda_result
from tunesmith.deliver.exports.artefact import Artefact
from tunesmith.deliver.exports.for_cupy import TARGET as CUPY
from tunesmith.deliver.exports.opencl import TARGET as OPENCL
from tunesmith.deliver.exports.patch import TARGET as PATCH

OF_CUDA = ("machine code", "NVRTC", "nvcc", "PyTorch")


def test_the_opencl_export_says_nothing_of_cuda() -> None:
    files = OPENCL.export(Artefact((a_result(),))).files
    for name in ("README.md", "python/README.md"):
        text = files[name].decode()
        assert not [word for word in OF_CUDA if word in text], name
        assert "driver" in text
        assert "The original serves" in text or "the original serves" in text
    cuda = CUPY.export(silu.artefact(silu.result(90, binaries=False))).files["README.md"].decode()
    assert all(word in cuda for word in ("machine code", "NVRTC"))


def test_the_readme_of_the_c_part_names_its_files_and_its_call() -> None:
    files = OPENCL.export(Artefact((a_result(),))).files
    text = files["README.md"].decode()
    for name in re.findall(r"^\| (`.*`) \|", text, re.MULTILINE):
        for each in re.findall(r"`([^`]*)`", name):
            assert each in files or any(file.startswith(each) for file in files), each
    call = re.search(r"scale_enqueue\((.*)\);", text)
    declared = re.search(r"scale_enqueue\((.*)\);", files["scale.h"].decode())
    assert call
    assert declared
    words = call[1].split(", ")
    assert len(words) == declared[1].count(",") + 1
    assert words[2:-3] == [part.split()[-1] for part in declared[1].split(", ")][2:-3]
    assert "--target scale_example" in text
    assert "add_executable(scale_example" in files["CMakeLists.txt"].decode()
    assert "- small on a device: 2.00×" in text


def test_a_patch_has_a_readme_with_what_is_left_out() -> None:
    small, general, original = DISPATCH.entries
    other = replace(small, flags=(*small.flags, "-cl-mad-enable"))
    dispatch = replace(DISPATCH, entries=(other, general, original), device="a `device`\n# x")
    result = replace(a_result(dispatch), kernel_path="src/kernel.cl", kernel_text=KERNEL)
    files = PATCH.export(Artefact((result,))).files
    text = files["README.md"].decode()
    assert "patch -p1 < FOLDER/scale.patch\n" in text
    assert "apply `scale.crlf.patch` instead" in text
    assert "It changes `src/kernel.cl`" in text
    assert "delivered: 1 of 2 tuned kernels" in text
    assert "left out: scale-small.cl, which is built with -cl-mad-enable" in text.replace("\\", "")
    assert "build options `-cl-std=CL1.2`" in text
    assert "\n# x" not in text
    assert "nvcc" not in text
    windows = replace(result, kernel_text=KERNEL.replace("\n", "\r\n"))
    assert "crlf" not in PATCH.export(Artefact((windows,))).files["README.md"].decode()


def test_a_patch_of_a_cuda_file_says_what_its_launches_become() -> None:
    files = PATCH.export(Artefact((cuda_result(path="k.cu", text=USERS),))).files
    assert "`scale_tuned::launch`" in files["README.md"].decode()
    assert "::scale_tuned::launch(" in files["scale.patch"].decode()
