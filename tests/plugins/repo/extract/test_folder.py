"""Folders that `tunesmith extract` writes, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tunesmith
from tests.cuda_here import needs_nvrtc
from tunesmith.base.errors import BadInput
from tunesmith.expert.drafts.bare import KnownWorkload
from tunesmith.plugins.repo import commands
from tunesmith.plugins.repo.extract.extract import ExtractedFolder, given_workloads, wish_of, write_folder
from tunesmith.plugins.repo.extract.tree import Repository

ROOT = Path(__file__).parent / "repository"


@needs_nvrtc
def test_a_folder_is_written_and_read_back(tmp_path: Path) -> None:
    found = tunesmith.extract(
        ROOT, kernel="shift_by_two", out=tmp_path / "shift", workloads=["small: n=1024"], trim=False
    )
    assert found.stands_alone
    assert found.faults == ()
    assert found.fills == 0  # its launch follows from its text
    assert (tmp_path / "shift" / "kernel.cu").is_file()
    with pytest.raises(BadInput, match="would be overwritten"):
        write_folder(tmp_path / "shift", (("kernel.cu", ""),))


@pytest.mark.parametrize(
    ("alone", "fills", "words"),
    [
        (False, 0, "stands alone     no, it does not compile: see"),
        (True, 2, 'stands alone     yes, it compiles; 2 places say "FILL"'),
        (True, 0, "stands alone     yes, it compiles. Next"),
    ],
)
def test_alone_means_that_it_compiles(alone: bool, fills: int, words: str) -> None:
    found = ExtractedFolder(Path("out"), "k", "a.cu:1", (), alone, "nvrtc", 3, fills, (), (), ())
    assert list(commands._extract_lines(found))[-1].startswith(words)


def test_workloads_are_sizes() -> None:
    assert given_workloads(["decode: rows=16, hidden=4096", "n = 3"]) == (
        KnownWorkload("decode", (("rows", 16), ("hidden", 4096))),
        KnownWorkload("workload_2", (("n", 3),)),
    )
    for wrong in ("rows", "rows=a", "rows=1 hidden=2", ""):
        with pytest.raises(BadInput, match="--workload lists sizes"):
            given_workloads([wrong])


def test_an_entry_is_of_the_kernel() -> None:
    assert wish_of("k", entry="own::k<float, 4>").kernel == "k<float, 4>"
    with pytest.raises(BadInput, match="an instance of --kernel k"):
        wish_of("k", entry="other<float>")


def test_names_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    odd.mkdir()
    (odd / "a.cu").write_text("__global__ void k(float* x) { x[0] = 1.0f; }")
    for wish in ({}, {"capture": odd}):
        with pytest.raises(BadInput, match="its name is not UTF-8") as refused:
            tunesmith.extract(tmp_path if wish else odd, kernel="k", **wish)
        str(refused.value).encode()
    link = tmp_path / "link"
    link.symlink_to(odd)
    with pytest.raises(BadInput, match="its name is not UTF-8"):
        Repository(link)
    with pytest.raises(BadInput, match=r"a name in the repository is not UTF-8: # k of caf\\udce9\.cu:1"):
        write_folder(tmp_path / "out", (("problem.toml", "# k of caf\udce9.cu:1\n"),))
    assert not (tmp_path / "out").exists()


def test_a_repository_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a repository is a folder"):
        tunesmith.extract(tmp_path / "nowhere", kernel="k")


@pytest.mark.parametrize("kernel", ["", "scale<", "scale rows", "<float>", "a::"])
def test_a_kernel_that_is_no_name_is_said(kernel: str) -> None:
    with pytest.raises(BadInput, match="--kernel is a name"):
        wish_of(kernel)


def test_one_mistake_at_a_time_is_answered(tmp_path: Path) -> None:
    own = tmp_path / "repository"
    own.mkdir()
    (own / "a.cu").write_text(
        "__global__ void fine(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }\n"
    )
    (own / "b.cu").write_text('template <typename T __global__ void broken(T* x { x[0] = "abc; }\n')
    with pytest.raises(BadInput, match="-I include: the repository has no such folder"):
        tunesmith.extract(own, kernel="fine", include=["include"], out=tmp_path / "out")
    with pytest.raises(BadInput, match="fine is no template: it has no instance fine<float>"):
        tunesmith.extract(own, kernel="fine", entry="fine<float>", out=tmp_path / "out")
    with pytest.raises(BadInput, match=r"b\.cu speaks of a kernel broken, but no definition") as caught:
        tunesmith.extract(own, kernel="broken", out=tmp_path / "out")
    assert "--kernel broken" not in str(caught.value.hint)
    with pytest.raises(BadInput, match="a repository is a folder") as caught:
        tunesmith.extract(own / "a.cu", kernel="fine", out=tmp_path / "out")
    assert caught.value.hint == "name its folder, and --file a.cu"
    assert not (tmp_path / "out").exists()


@needs_nvrtc
def test_a_workload_of_sizes_that_there_are_not_is_said(tmp_path: Path) -> None:
    found = tunesmith.extract(
        ROOT, kernel="shift_by_two", out=tmp_path / "shift", workloads=["small: rows=1024"], trim=False
    )
    assert "--workload says rows, which is no size of the problem (n)" in found.report
