"""Problems from files and from what a run keeps: headers travel with the run, CUDA's words are CUDA's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.samples import started
from tunesmith.base.errors import BadInput
from tunesmith.run.folder import RunFolder
from tunesmith.session.check import write_problem_draft
from tunesmith.session.problems import (
    Files,
    HeaderFolders,
    load_problem,
    load_template,
    read_text,
    readable_folders,
    reload_problem,
    store_texts,
)
from tunesmith.session.problems import LoadedProblem as Problem

KERNEL = """\
#include <cuda_fp16.h>
#include "near.cuh"
#include <shared/far.cuh>
extern "C" __global__ void scale(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = TWO * x[i];
}
"""
TEMPLATE = tiny.DECLARATION + KERNEL.replace('"near.cuh"', '"own.cuh"').replace("blockDim.x", "BLOCK")


def problem_below(tmp_path: Path, include: str = "../include") -> Path:
    """A problem whose headers lie beside the source, in an include folder and beside the template."""
    folder = tmp_path / "problem"
    files = {
        "problem.toml": tiny.PROBLEM.format(source="src/kernel.cu").replace(
            'entry = "scale"\n', 'entry = "scale"\ninclude = ["{include}"]\n'.replace("{include}", include)
        ),
        "reference.py": tiny.REFERENCE,
        "src/kernel.cu": KERNEL,
        "src/near.cuh": '#include "shared/far.cuh"\n#define TWO 2.0f\n',
        "templates/template.cu": TEMPLATE,
        "templates/own.cuh": "#define TWO 2.0f\n",
        f"{include}/shared/far.cuh": "#pragma once\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def cuda(tmp_path: Path) -> Iterator[Path]:
    with readable_folders([tmp_path / "include"]):
        yield problem_below(tmp_path)


def test_what_a_run_keeps_is_enough(tmp_path: Path, cuda: Path) -> None:
    problem, files = load_problem(cuda)
    template = load_template(cuda / "templates" / "template.cu", problem, files)
    far = ("shared/far.cuh", "#pragma once\n")
    assert problem.kernel.headers == (("near.cuh", '#include "shared/far.cuh"\n#define TWO 2.0f\n'), far)
    assert template.headers == (("own.cuh", "#define TWO 2.0f\n"), far)
    folder = RunFolder.create(tmp_path / "run")
    stored = store_texts(folder, problem, files, template)
    assert set(stored) == {
        "problem.toml",
        "reference.py",
        "src/kernel.cu",
        "header:near.cuh",
        "header:shared/far.cuh",
        "template:template.cu",
        "template-header:own.cuh",
        "template-header:shared/far.cuh",
    }
    begun = replace(started(), files=tuple(stored.items()), template="template:template.cu")
    folder.unlock()
    for gone in (cuda, tmp_path / "include"):
        shutil.rmtree(gone)
    again, same = reload_problem(folder, begun)
    assert again == problem
    assert same == template
    config = template.default
    assert same.render(again, config).digest == template.render(problem, config).digest


def test_a_run_that_lost_a_header_says_so(tmp_path: Path, cuda: Path) -> None:
    problem, files = load_problem(cuda)
    template = load_template(cuda / "templates" / "template.cu", problem, files)
    folder = RunFolder.create(tmp_path / "run")
    stored = store_texts(folder, problem, files, template)
    folder.unlock()
    (tmp_path / "run" / "objects" / stored["header:near.cuh"]).unlink()
    with pytest.raises(BadInput, match="has lost its file"):
        reload_problem(folder, replace(started(), files=tuple(stored.items())))


def test_headers_of_headers_are_found_wherever_one_stands(
    tmp_path: Path, cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cuda / "src" / "near.cuh").write_text('#include "deep/x.cuh"\n#define TWO 2.0f\n')
    (cuda / "src" / "deep").mkdir()
    (cuda / "src" / "deep" / "x.cuh").write_text('#include "y.cuh"\n')
    (cuda / "src" / "deep" / "y.cuh").write_text("")
    expected, files = load_problem(cuda)
    template = load_template(cuda / "templates" / "template.cu", expected, files)
    assert {"deep/x.cuh", "y.cuh"} < {spelling for spelling, _ in expected.kernel.headers}
    for folder, path in ((tmp_path, "problem"), (cuda, "."), (cuda / "src", "..")):
        monkeypatch.chdir(folder)
        problem, files = load_problem(Path(path))
        assert problem == expected
        assert load_template(Path(path, "templates", "template.cu"), problem, files) == template
    (cuda / "src" / "deep" / "near.cuh").write_text("another")
    (cuda / "src" / "deep" / "x.cuh").write_text('#include "near.cuh"\n')
    with pytest.raises(BadInput, match=r'"near.cuh" means two different files: src/near.cuh and src/deep/'):
        load_problem(Path(".."))


def test_a_kernel_source_in_place_of_a_problem(tmp_path: Path) -> None:
    (tmp_path / "my kernel.cl").write_text("__kernel void k() {}")
    with pytest.raises(BadInput, match="this is a source") as refused:
        load_problem(tmp_path / "my kernel.cl")
    assert f"tunesmith init '{tmp_path / 'my kernel.cl'}'" in (refused.value.hint or "")
    with pytest.raises(BadInput, match="there is no such file"):
        load_problem(tmp_path / "gone.cl")


def test_include_folders_must_be_there(cuda: Path) -> None:
    tiny.spoil(cuda / "problem.toml", '"../include"', '"../include", "../nowhere"')
    with pytest.raises(
        BadInput, match=r"include lists folders, there is no folder '\.\./nowhere'"
    ) as refused:
        load_problem(cuda)
    assert refused.value.hint


def test_a_header_that_is_no_text(cuda: Path) -> None:
    (cuda / "src" / "near.cuh").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"near\.cuh: not UTF-8 text"):
        load_problem(cuda)


@pytest.mark.parametrize("name", ["x" * 5000, "nul\0.h", "folder", "../include", "shared/far.cuh/x"])
def test_headers_that_cannot_be_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "far.cuh").write_text("")
    assert HeaderFolders(tmp_path, tmp_path).find(name, "kernel.cu", ["."]) is None


def test_folders_that_lead_back_to_themselves_end(cuda: Path) -> None:
    (cuda / "src" / "again").symlink_to(".", target_is_directory=True)
    (cuda / "src" / "near.cuh").write_text('#include "again/near.cuh"\n#define TWO 2.0f\n')
    problem, _ = load_problem(cuda)
    assert [spelling for spelling, _ in problem.kernel.headers] == [
        "near.cuh",
        "shared/far.cuh",
        "again/near.cuh",
    ]


class TestWordsOfCuda:
    def test_are_read_for_cuda(self, cuda: Path) -> None:
        words = 'shared = "64"\ncluster = ["2"]\ncooperative = true\npdl = true\n'
        tiny.spoil(cuda / "problem.toml", 'block = ["64"]\n', f'block = ["64"]\n{words}')
        (launch,) = load_problem(cuda)[0].launches
        assert launch.shared is not None
        assert (len(launch.cluster), launch.cooperative, launch.pdl) == (1, True, True)

    @pytest.mark.parametrize(
        "words", ['shared = "64"', 'cluster = ["2"]', "cooperative = true", "pdl = true"]
    )
    def test_are_refused_elsewhere(self, tmp_path: Path, words: str) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "problem.toml", 'block = ["64"]\n', f'block = ["64"]\n{words}\n')
        with pytest.raises(BadInput, match=f"fake launches have no {words.split()[0]}"):
            load_problem(problem)

    def test_local_memory_is_opencls(self, cuda: Path) -> None:
        spoilt = '[[argument]]\nname = "tmp"\ntype = "float32*"\nshape = ["64"]\nrole = "local"\n\n[launch]'
        tiny.spoil(cuda / "problem.toml", "[launch]", spoilt)
        with pytest.raises(BadInput, match="role local is for OpenCL, the language is cuda") as refused:
            load_problem(cuda)
        assert "use shared in [launch]" in f"{refused.value} {refused.value.hint}"

    def test_include_folders_are_cudas(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "problem.toml", 'entry = "scale"\n', 'entry = "scale"\ninclude = ["."]\n')
        with pytest.raises(BadInput, match="fake sources must be self-contained"):
            load_problem(problem)


def test_files_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    files = Files(tmp_path)
    assert files.read("a.txt") == "one"
    (tmp_path / "a.txt").write_text("two")
    assert files.read("a.txt") == "one"
    assert read_text(tmp_path / "a.txt") == "two"


def test_a_draft_elsewhere_finds_the_headers_it_left_behind(tmp_path: Path, cuda: Path) -> None:
    made = write_problem_draft(cuda / "src" / "kernel.cu", tmp_path / "drafts" / "new", None)
    text = (made.folder / "problem.toml").read_text()
    assert 'include = ["../../problem/src"]' in text
    again = write_problem_draft(cuda / "src" / "kernel.cu", cuda / "src", None)
    assert "include" not in (again.folder / "problem.toml").read_text()


SECRET = "aws_secret = 'geheim7'\n"
QUOTED = '"shared/far.cuh"'
OUTSIDE = {
    "source": {"problem.toml": ('"src/kernel.cu"', '"../secret.cu"')},
    "absolute source": {"problem.toml": ('"src/kernel.cu"', '"{top}/secret.cu"')},
    "reference": {"problem.toml": ("reference.py:", "../secret.py:")},
    "include folder": {
        "problem.toml": ('["include"]', '["include", ".."]'),
        "src/near.cuh": ('"shared/far.cuh"', "<secret.cu>"),
    },
    "header": {"src/near.cuh": ("shared/far.cuh", "../../secret.cu")},
    "absolute header": {"src/near.cuh": ("shared/far.cuh", "{top}/secret.cu")},
    "header of no branch": {
        "src/near.cuh": ("#include", '#if 0\n#include "../../secret.cu"\n#endif\n#include')
    },
    "link": {"src/near.cuh": ("shared/far.cuh", "link/secret.cu")},
    "header of a template": {"templates/own.cuh": ("#define", '#include "../../secret.cu"\n#define')},
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_files_of_a_problem_lie_in_its_folder(tmp_path: Path, case: str) -> None:
    for name in ("secret.cu", "secret.py"):
        (tmp_path / name).write_text(SECRET)
    folder = problem_below(tmp_path, "include")
    (folder / "src" / "link").symlink_to(tmp_path)
    for file, (old, new) in OUTSIDE[case].items():
        tiny.spoil(folder / file, old, new.format(top=tmp_path))

    def read(*folders: Path) -> str:
        problem, files = Problem.load(folder, allow_folders=folders)
        return str((files, load_template(folder / "templates" / "template.cu", problem, files)))

    with pytest.raises(BadInput, match=r"secret.*: files of a problem lie in its folder or in f") as refused:
        read()
    assert refused.value.hint == f"if it may be read, name its folder: --allow-folder {tmp_path}"
    assert "geheim7" not in f"{refused.value}"
    said = ""
    try:
        read(tmp_path)
    except BadInput as other:  # it may be read, and is no kernel
        said = str(other)
    assert "files of a problem" not in said


def test_files_that_are_none_keep_nobody_waiting(tmp_path: Path) -> None:
    folder = problem_below(tmp_path, "include")
    for name in ("reference.py", "src/near.cuh", "problem.toml"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(BadInput):
            Problem.load(folder)
