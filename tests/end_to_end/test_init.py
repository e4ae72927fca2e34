"""From a kernel nobody has described yet to a tuned one: init, the places to fill in, check, tune."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.end_to_end.asking import quickly, refused
from tests.opencl_here import needs_opencl
from tests.running import expect_success, tunesmith
from tests.wording import says

KERNEL = """\
// y = alpha * x + y, one work-item for each element
__kernel void saxpy(__global float* y, __global const float* x, float alpha, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] = alpha * x[i] + y[i];
}
"""
FILLED_IN = {
    'value = "FILL"': "value = 0.5",
    'grid = ["ceildiv(n, 256)"]': 'grid = ["ceildiv(n, 16)"]',
    'block = ["256"]': 'block = ["16"]',
    'max = "FILL"': "max = 100",
    'example = { n = "FILL" }': 'example = { n = 64, cache = "warm" }',
}
TEMPLATE = """\
// /// tunesmith
// [params]
// BLOCK = [16, 64]
// [default]
// BLOCK = 16
// [launch]
// grid = ["ceildiv(n, BLOCK)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 16
#endif
__kernel void saxpy(__global float* y, __global const float* x, float alpha, int n) {
    int i = get_group_id(0) * BLOCK + get_local_id(0);
    if (i < n) y[i] = alpha * x[i] + y[i];
}
"""


def fill_in(folder: Path) -> None:
    problem = folder / "problem.toml"
    text = problem.read_text()
    for old, new in FILLED_IN.items():
        assert old in text
        text = text.replace(old, new)
    problem.write_text(text)
    reference = folder / "reference.py"
    lines = reference.read_text().splitlines()
    assert "NotImplementedError" in lines[-1]
    reference.write_text("\n".join([*lines[:-1], "    return alpha * x + y"]))


def test_every_place_to_fill_in_is_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cl").write_text(KERNEL)
    ended = quickly(tmp_path, "init", "saxpy.cl", "-o", "my problem")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    says(ended.out.splitlines()[0], "wrote saxpy.cl, problem.toml, reference.py", "my problem")
    count = int(ended.out.splitlines()[1].split()[0])
    assert ended.out.endswith("Then: tunesmith check 'my problem'\n")

    ended = quickly(tmp_path, "check", "my problem")
    assert ended.code == 2
    assert f"{count} places still say FILL" in ended.err
    named = re.findall(r"(problem\.toml|reference\.py):(\d+): ", ended.err)
    assert len(named) == count
    for file, line in named:
        assert "FILL" in (tmp_path / "my problem" / file).read_text().splitlines()[int(line) - 1]
    says(ended.err, "hint:", "same command")


@needs_opencl
@pytest.mark.timeout(240)
def test_filled_in_it_checks_and_tunes(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cl").write_text(KERNEL)
    assert tunesmith(tmp_path, "init", "saxpy.cl").code == 0
    fill_in(tmp_path / "saxpy")
    template = tmp_path / "saxpy" / "template.cl"
    template.write_text(TEMPLATE)

    ended = expect_success(tmp_path, "check", "saxpy", "--template", template, "--json")
    assert ended.json["right"] is True
    assert ended.json["cases"] > 0
    assert ended.json["feasible"] == 2

    ended = expect_success(tmp_path, "tune", "saxpy", "--template", template, "--json")
    assert ended.json["finished"] is True
    assert ended.json["evaluations"] == {"ok": 2}
    assert (tmp_path / "tunesmith-runs" / "saxpy-1" / "tuned" / "dispatch.json").is_file()


def test_beside_the_source_nothing_is_copied(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cl").write_text(KERNEL)
    ended = quickly(tmp_path, "init", "saxpy.cl", "-o", ".", "--json")
    assert (ended.code, ended.err) == (0, "")
    fills = len(re.findall(r'(?m)^[^#\n]*"FILL', (tmp_path / "problem.toml").read_text())) + 1
    assert ended.json == {"folder": ".", "files": ["problem.toml", "reference.py"], "fill": fills}


def test_one_kernel_of_several(tmp_path: Path) -> None:
    (tmp_path / "two.cl").write_text(KERNEL + KERNEL.replace("saxpy", "other"))
    ended = quickly(tmp_path, "init", "two.cl")
    refused(ended, 2, "two.cl: a draft is of one kernel; this file defines 2: saxpy, other", "--entry saxpy")
    ended = quickly(tmp_path, "init", "two.cl", "--entry", "third", "--json")
    assert ended.code == ended.json["exit"] == 2
    assert "got 'third', it defines saxpy, other" in ended.json["error"]
    assert quickly(tmp_path, "init", "two.cl", "--entry", "other").code == 0
    assert 'entry = "other"' in (tmp_path / "two" / "problem.toml").read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cl").write_text(KERNEL)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "reference.py").symlink_to("elsewhere.py")  # leads nowhere, and must stay so
    ended = quickly(tmp_path, "init", "saxpy.cl", "-o", "mine")
    refused(ended, 2, "mine: reference.py would be overwritten", "hint: choose another folder with -o DIR")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["reference.py"]
    assert not (tmp_path / "mine" / "elsewhere.py").exists()
    ended = quickly(tmp_path, "init", "saxpy.cl", "-o", "saxpy.cl")
    refused(ended, 2, "saxpy.cl: cannot write the draft: File exists")


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"),
    [
        ("nowhere.cl", None, "nowhere.cl: there is no such file", "correct the name"),
        ("kernel.txt", b"x", "must end in .cl, .cu, .cuh, .hip; got '.txt'", "rename the file"),
        ("empty.cl", b"", "must define a function marked __kernel; it has none", "give the file with"),
        ("latin.cl", b"// caf\xe9", "latin.cl: not UTF-8 text: byte 6 is 0xe9", "save it as UTF-8"),
        ("zeros.cl", b"\0" * 100, "must define a function marked __kernel", "give the file with"),
        ("folder", b"", "folder: cannot be read: Is a directory", "name a file"),
        ("loop.cl", b"", "loop.cl: cannot be read: Too many levels of symbolic links", "name a file"),
    ],
)
def test_sources_that_are_none(
    tmp_path: Path, name: str, content: bytes | None, message: str, hint: str
) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name == "loop.cl":
        path.symlink_to(name)
    elif content is not None:
        path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    refused(quickly(tmp_path, "init", name), 2, message, f"hint: {hint}")
    assert [p for p in sorted(tmp_path.iterdir()) if p.name != "tmp"] == before
