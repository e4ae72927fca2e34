"""What sanitizers print, read: texts as these programs write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith import backends
from tunesmith.backends import opencl
from tunesmith.backends.cuda import tools as cuda
from tunesmith.run.events import (
    Sanitized,
    SanitizerFinding,
    distinct_findings,
    mark_shared_findings,
    merge_sanitized,
    notes_beside,
    sanitizer_lines,
)

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at shifted(float *, const float *, int)+0x90 in kernel.cu:5
=========     by thread (31,0,0) in block (2,0,0)
=========     Access to 0x7f1b4da00404 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f1b4da00200 of size 516 bytes
=========
========= Invalid __global__ read of size 4 bytes
=========     at shifted(float *, const float *, int)+0x90 in kernel.cu:5
=========     by thread (30,0,0) in block (2,0,0)
=========     Access to 0x7f1b4da00408 is out of bounds
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuStreamSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 3 errors
"""  # noqa: E501
OLD_MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 16 bytes
=========     at 0x250 in kernel.cu:12:tile(float*)
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x4000 is out of bounds
=========
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void total<(int)4>(float *, const float *)+0x2f0 in k.cu:9
=========     and Read access at void total<(int)4>(float *, const float *)+0x3b0 in k.cu:11 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""  # noqa: E501
HAZARDS = """========= COMPUTE-SANITIZER
========= ERROR: Potential RAW hazard detected at __shared__ 0x7c in block (0, 0, 0) :
=========     Write Thread (31, 0, 0) at 0x2f0 in k.cu:9:total(float*)
=========     Read Thread (30, 0, 0) at 0x3b0 in k.cu:11:total(float*)
=========     Current Value : 0, Incoming Value : 1
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at partial(float *, float *, int)+0x70
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f1b4da00200
=========
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at halved(float *)+0xd0
=========     by thread (32,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
NO_RACES = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


@pytest.mark.parametrize(
    ("tool", "text", "kind", "kernel", "place"),
    [
        ("memcheck", MEMCHECK, "invalid __global__ read", "shifted", "kernel.cu:5"),
        ("memcheck", OLD_MEMCHECK, "invalid __shared__ write", "tile", "kernel.cu:12"),
        ("racecheck", RACECHECK, "a race (read and write)", "total", "k.cu:9"),
        ("racecheck", HAZARDS, "a RAW hazard in __shared__ memory", "total", "k.cu:9"),
        ("initcheck", INITCHECK, "uninitialized __global__ memory read", "partial", "0x70"),
        ("synccheck", SYNCCHECK, "barrier error detected. Divergent thread(s) in block", "halved", "0xd0"),
    ],
)
def test_each_tool_of_cuda_is_read(tool: str, text: str, kind: str, kernel: str, place: str) -> None:
    (found,) = cuda.read_cuda_findings(tool, text)
    assert (found.tool, found.kind, found.kernel, found.place) == (tool, kind, kernel, place)
    assert "0x7f1b" not in found.words


@pytest.mark.parametrize("text", [CLEAN, NO_RACES, "", "the program printed ========= in the midst\n"])
def test_nothing_is_found_in_what_reports_nothing(text: str) -> None:
    assert all(cuda.read_cuda_findings(tool, text) == () for tool in cuda.TOOLS)


def test_words_of_the_driver_and_of_the_tool_itself_are_no_finding() -> None:
    words = "========= Program hit CUDA_ERROR_NOT_FOUND (error 500) on CUDA API call to cuGetProcAddress.\n"
    words += "=========     at somewhere\n========= Internal Sanitizer Error: at start\n"
    assert cuda.read_cuda_findings("memcheck", f"{words}{CLEAN}") == ()


def test_a_fault_that_is_counted_and_cannot_be_read_is_found_all_the_same() -> None:
    text = "========= COMPUTE-SANITIZER\n========= Something new\n========= ERROR SUMMARY: 2 errors\n"
    (found,) = cuda.read_cuda_findings("memcheck", text)
    assert found.kind == "faults in words that we cannot read"
    assert "Something new" in found.words


def test_a_report_that_was_cut_short_counts() -> None:
    assert len(cuda.read_cuda_findings("memcheck", MEMCHECK[:400])) == 1


def test_terminal_codes_do_not_pass() -> None:
    (found,) = cuda.read_cuda_findings("memcheck", MEMCHECK.replace("shifted", "shif\x1b[31mted"))
    assert found.kernel == "shifted"


def test_the_command_names_the_tool_and_leaves_the_drivers_errors_alone(tmp_path: Path) -> None:
    command = cuda.sanitizer_command("/bin/compute-sanitizer", "memcheck", tmp_path / "log")
    assert command[:3] == ["/bin/compute-sanitizer", "--tool", "memcheck"]
    assert command[command.index("--report-api-errors") + 1] == "no"
    assert command[command.index("--log-file") + 1] == str(tmp_path / "log")
    assert "--report-api-errors" not in cuda.sanitizer_command("x", "racecheck", tmp_path)


RACE = """
Read-write data race at local memory address 0x1000000000004
\tKernel: racy
\t
\tFirst entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
\t  store float %0, float addrspace(3)* %arrayidx2, align 4, !dbg !36, !tbaa !31
\tAt line 3 (column 30) of input.cl:
\t  int l=get_local_id(0); t[l]=x[get_global_id(0)];
\t
\tSecond entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
\t  %1 = load float, float addrspace(3)* %arrayidx5, align 4, !dbg !41, !tbaa !31
\tAt line 4 (column 25) of input.cl:
\t  out[get_global_id(0)]=t[(l+1)%get_local_size(0)];
\t
"""
OUTSIDE = """
Invalid read of size 4 at global memory address 0x1000000000040
\tKernel: oob
\tEntity: Global(15,0,0) Local(7,0,0) Group(1,0,0)
\t  %0 = load float, float addrspace(1)* %arrayidx, align 4, !dbg !28, !tbaa !29
\tAt line 6 (column 98) of input.cl:
\t  (source not available)
\t
"""
UNWRITTEN = """
Uninitialized value written to global memory address 0x2000000000000
\tKernel: sums
\tEntity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
\t  store float %add, float addrspace(1)* %arrayidx4, align 4, !dbg !36, !tbaa !29
\tAt line 8 (column 118) of input.cl:
\t  out[i]= w[i] + x[i];
\t
"""
DIVERGENT = """
Work-group divergence detected (barrier)
\tKernel:     div
\tWork-group: (1,0,0)
\tOnly 3 out of 8 work-items executed barrier
\t  tail call spir_func void @_Z7barrierj(i32 noundef 1) #6, !dbg !29
\tAt line 10 (column 90) of input.cl:
\t  (source not available)
\t
"""
UNSUPPORTED = """
Unsupported instruction: freeze
\tKernel: silu
\tEntity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
\t  %conv.fr = freeze i64 %conv
\t
"""


@pytest.mark.parametrize(
    ("text", "kind", "kernel", "place"),
    [
        (RACE, "read-write data race at local memory", "racy", "line 3 and line 4"),
        (OUTSIDE, "invalid read at global memory", "oob", "line 6"),
        (UNWRITTEN, "uninitialized value written to global memory", "sums", "line 8"),
        (DIVERGENT, "work-group divergence detected (barrier)", "div", "line 10"),
    ],
)
def test_oclgrind_is_read(text: str, kind: str, kernel: str, place: str) -> None:
    (found,) = opencl.read_oclgrind_findings("oclgrind", text * 3)
    assert (found.kind, found.kernel, found.place) == (kind, kernel, place)
    assert opencl.unsupported_feature(text) == ""


def test_what_oclgrind_cannot_interpret_is_no_fault_of_the_kernel() -> None:
    assert opencl.read_oclgrind_findings("oclgrind", UNSUPPORTED) == ()
    assert opencl.unsupported_feature(UNSUPPORTED) == "Unsupported instruction: freeze"
    assert len(opencl.read_oclgrind_findings("oclgrind", UNSUPPORTED + OUTSIDE)) == 1


def test_what_oclgrind_says_of_uninitialised_values_is_believed_with_care() -> None:
    (unwritten,), (outside,) = (
        opencl.read_oclgrind_findings("oclgrind", text) for text in (UNWRITTEN, OUTSIDE)
    )
    assert (opencl.tool_to_confirm(unwritten), opencl.tool_to_confirm(outside)) == (opencl.OPTIMISED, "")
    assert opencl.may_be_imagined(unwritten, "float16 v = exp(w);")
    assert not opencl.may_be_imagined(outside, "float16 v = exp(w);")
    assert not opencl.may_be_imagined(unwritten, "float8 v = exp(w); half16 h;")


def test_several_findings_stay_apart() -> None:
    kinds = [
        found.kind
        for found in opencl.read_oclgrind_findings("oclgrind", RACE + OUTSIDE + UNWRITTEN + DIVERGENT)
    ]
    assert len(kinds) == len(set(kinds)) == 4


class TestFindings:
    READ = SanitizerFinding("memcheck", "invalid read", "k", "a:1")
    RACE = SanitizerFinding("racecheck", "a race", "k", "a:2")

    def test_a_fault_is_told_once_in_each_kernel(self) -> None:
        other = SanitizerFinding("memcheck", "invalid read", "k", "a:9")
        assert distinct_findings((self.READ, other, self.RACE)) == (self.READ, self.RACE)

    def test_what_the_original_has_too_is_marked_by_tool_and_kind(self) -> None:
        there = SanitizerFinding("memcheck", "invalid read", "original", "b:7")
        found = Sanitized(findings=mark_shared_findings((self.READ, self.RACE), (there,)))
        assert [one.shared for one in found.findings] == [True, False]
        assert found.own == (self.RACE,)

    def test_a_tool_was_in_force_where_it_was_for_all_builds(self) -> None:
        whole = Sanitized("x 1", ("memcheck", "racecheck"), cases=((("n", 1),),))
        part = Sanitized("x 1", ("racecheck",), (("memcheck", "too slow"),), ((("n", 1),),))
        both = merge_sanitized((whole, part))
        assert both.sentence == "x 1 (racecheck), on 1 small case; memcheck was not: too slow"
        assert merge_sanitized(()) is None

    def test_what_is_absent_is_said_with_the_reason(self) -> None:
        absent = Sanitized(absent=(("", "it is not on the PATH"),))
        assert absent.sentence == "not in force: it is not on the PATH"
        assert sanitizer_lines([("A=1", absent), ("A=2", None)]) == (
            "sanitizers were not in force: it is not on the PATH",
        )

    def test_a_report_says_what_was_found_and_what_judges_nobody(self) -> None:
        shared = mark_shared_findings((self.READ,), (self.READ,))
        lines = sanitizer_lines([("A=1", Sanitized("x", ("memcheck",), findings=shared))])
        assert lines[0].startswith("sanitizers in force: x (memcheck)")
        assert lines[1].endswith("; so in the original: that judges nobody")
        notes = ("a launch", "sanitizer: x (memcheck)")
        assert notes_beside(notes, lines) == notes[:1]
        assert notes_beside(notes, ()) == notes


def test_doctor_says_whether_they_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    own = backends.find_backend_kind("opencl").sanitizer
    found = own.doctor()
    assert (found.usable, found.what) == (False, "oclgrind")
    assert found.detail.startswith("oclgrind is not on the PATH")
    (tmp_path / "oclgrind").write_text("#!/bin/sh\n")
    (tmp_path / "oclgrind").chmod(0o755)
    assert own.doctor().usable
