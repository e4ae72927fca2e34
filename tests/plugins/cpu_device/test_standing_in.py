"""A kernel that is right for a GPU and has what the cpu device does not know: no fault of the kernel's."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.running import FIXTURES
from tunesmith import api
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.base.errors import BadInput, KernelWrong
from tunesmith.lab.lab import LabSettings
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.plugins.cpu_device.stand_in import watch_for
from tunesmith.run.config import RunConfig
from tunesmith.session import check
from tunesmith.session.problems import load_problem

pytestmark = needs_cpu
KNOWN = "    float x = __half2float(in[idx]);"
POPC = f'    unsigned bits = 1u;\n    asm("popc.b32 %0, %1;" : "=r"(bits) : "r"(bits));\n{KNOWN}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "problem"
    shutil.copytree(FIXTURES / "zoo" / "gelu_tanh", own)
    text = (own / "kernel.cu").read_text()
    assert KNOWN in text
    (own / "kernel.cu").write_text(text.replace(KNOWN, POPC))
    return own


def test_a_rehearsal_of_what_is_not_known_says_so_and_convicts_nobody(folder: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    about = (load_problem(folder).definition, absent_device("H200"), tmp_path, LabSettings(0, 1), "auto")
    rehearsal = stand_in.HostRehearsal(*about, notes.append)
    try:
        assert rehearsal(None, None) is None
    finally:
        rehearsal.close()
    assert "the original is not checked here" in notes[-1]
    assert "does not know the instruction 'popc.b32" in notes[-1]


def test_the_watch_beside_a_gpu_is_absent_there(folder: Path, tmp_path: Path) -> None:
    problem, device = load_problem(folder).definition, replace(absent_device("H200"), absent=False)
    host = watch_for(problem, device, tmp_path, "auto")
    assert host is not None
    with closing(host):
        found = host.of_original(0)
    assert not found.tools
    assert "the cpu device does not know" in found.absent[0][1]


def test_explaining_says_it_and_says_nothing_of_what_is_known(folder: Path) -> None:
    (note,) = [
        n for n in check.explain_kernel(load_problem(folder).definition, RunConfig()).notes if "cpu" in n
    ]
    assert note.startswith("kernel.cu:")
    assert "does not know the instruction 'popc.b32" in note
    known = load_problem(FIXTURES / "zoo" / "gelu_tanh").definition
    assert stand_in.unknown_of(known) == ""


def test_other_words_are_a_fault() -> None:
    assert stand_in.unknown_in("k.cu:3:1: error: expected ';'") == ""


def test_a_check_there_names_what_is_not_known_and_blames_no_file(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"kernel\.cu:\d+: the cpu device does not know") as told:
        api.check(folder, device="cpu")
    assert told.value.hint is not None
    assert "mend" not in told.value.hint


def test_a_wrong_kernel_is_told_with_the_line_that_is_watched(tmp_path: Path) -> None:
    own = tmp_path / "problem"
    shutil.copytree(FIXTURES / "zoo" / "transpose_tiled", own)
    text = (own / "kernel.cu").read_text()
    assert text.count("__syncthreads();") == 1
    (own / "kernel.cu").write_text(text.replace("__syncthreads();", ";"))
    with pytest.raises(KernelWrong, match=r"(?s) at rows=.*; watch finds .* at kernel\.cu:(15|23)"):
        api.check(own, device="cpu", sanitize=True)
