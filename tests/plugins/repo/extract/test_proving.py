"""Captured launches made again: the same memory, or the extraction is refused."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.opencl_here import needs_opencl
from tunesmith import backends
from tunesmith.backends.messages import Unit
from tunesmith.base.errors import KernelWrong
from tunesmith.plugins.repo.capture.records import (
    ArgumentPointer,
    Capture,
    CapturedArgument,
    CapturedCopies,
    CapturedKernel,
    CapturedLaunch,
    CapturedProgram,
    KeptLaunch,
    KeptRange,
    PointedMemory,
)
from tunesmith.plugins.repo.extract.draft import Extraction
from tunesmith.plugins.repo.extract.extract import check_proof
from tunesmith.plugins.repo.extract.prove import (
    ProofReply,
    ProvenLaunch,
    proof_of,
    prove_kept_launches,
    proved_here,
    with_problem,
)
from tunesmith.plugins.repo.extract.seen import launch_difference
from tunesmith.plugins.repo.extract.slice import BuildAttempt
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.session.problems import load_problem

KERNEL = """
__kernel void scaled(__global float* out, __global const float* x, const float factor, const int n) {
  int i = get_global_id(0);
  if (i < n) out[i] = factor * x[i];
}
"""
PROBLEM = """
name = "scaled"
[kernel]
source = "kernel.cl"
entry = "scaled"
[[argument]]
name = "out"
type = "float32*"
role = "output"
shape = ["n"]
[[argument]]
name = "x"
type = "float32*"
role = "input"
shape = ["n"]
[[argument]]
name = "factor"
type = "float32"
value = 3.0
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 64)"]
block = ["64"]
[contract]
n = { min = 1, max = 1024 }
[workloads]
small = { n = 128 }
[accuracy]
"""
N = 128


class Stored:
    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}

    def put(self, array: np.ndarray) -> str:
        data = array.tobytes()
        digest = hashlib.sha256(data).hexdigest()
        self.texts[digest] = data
        return digest


def pointer(base: int, offset: int, size: int) -> CapturedArgument:
    memory = PointedMemory(base, size, offset)
    return CapturedArgument(0, 8, struct.pack("<Q", base + offset).hex(), (ArgumentPointer(0, memory),))


def captured(stored: Stored, factor: float = 3.0, noise: float = 0.0, shift: float = 0.0) -> Capture:
    """Both arrays in one allocation: 64 floats that nobody touches, the output, the input."""
    x = np.arange(N, dtype=np.float32)
    before = np.concatenate([np.full(64, 7, np.float32), np.full(N, -1, np.float32), x])
    after = before.copy()
    after[64 : 64 + N] = np.float32(3.0) * x + np.float32(shift)
    again = after.copy()
    again[70] += np.float32(noise)
    size = before.nbytes
    arguments = (
        pointer(4096, 256, size),
        pointer(4096, 256 + 4 * N, size),
        CapturedArgument(0, 4, struct.pack("<f", factor).hex()),
        CapturedArgument(0, 4, struct.pack("<i", N).hex()),
    )
    whole = KeptRange(4096, 256, size - 256, *(stored.put(a[64:]) for a in (before, after, again)))
    shape = ((2, 1, 1), (64, 1, 1), 0, (0, 0, 0), 0, (0,), 1, 1, 0.0, 0.0)
    launch = CapturedLaunch(5, *shape, arguments)
    kernel = CapturedKernel("scaled", "scaled", "", "", 1, 1, 0.0, (launch,))
    program = CapturedProgram(("bench",), "2026-01-01T00:00:00", 1.0, 0)
    kept = (KeptLaunch("scaled", 5, arguments, (whole,)),)
    return Capture(1, program, 0, (), (kernel,), (), (), (), kept, CapturedCopies(), 1.0)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    (tmp_path / "kernel.cl").write_text(KERNEL)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return load_problem(tmp_path).definition


def run(problem: Problem, capture: Capture, stored: Stored, n: int = N) -> ProvenLaunch:
    backend = backends.make_backend("opencl")
    device = backend.devices()[0]
    variant = original_variant(problem, {"n": N})
    unit = Unit(variant.path, variant.source, "opencl", (), variant.entries)
    session = backend.open(device)
    executable = session.load(unit, backend.build(unit, device).data)
    sizes = {5: {"n": n}}
    (found,) = prove_kept_launches(
        session, executable, problem, capture, "scaled", stored.texts.__getitem__, sizes
    )
    return found


@needs_opencl
def test_the_same_memory_is_a_proof(problem: Problem) -> None:
    stored = Stored()
    found = run(problem, captured(stored), stored)
    assert (found.launch, found.verdict) == (5, "same")
    assert found.words == f"{8 * N} bytes, bit for bit"


@needs_opencl
def test_another_value_is_found(problem: Problem) -> None:
    stored = Stored()
    found = run(problem, captured(stored, factor=2.0), stored)
    assert found.verdict == "differs"
    assert found.words == "out differs from what was captured, by up to 127"


@needs_opencl
def test_a_kernel_that_varies_may_vary_as_much(problem: Problem) -> None:
    stored = Stored()
    assert run(problem, captured(stored, shift=0.25, noise=0.25), stored).verdict == "within"
    assert run(problem, captured(stored, shift=0.25, noise=0.01), stored).verdict == "differs"


@needs_opencl
def test_no_more_than_two_captures_differ(problem: Problem) -> None:
    """From the nearer of the two."""
    stored = Stored()
    assert run(problem, captured(stored, shift=0.25, noise=0.125), stored).verdict == "differs"
    assert run(problem, captured(stored, shift=-0.25, noise=0.375), stored).verdict == "within"
    found = run(problem, captured(stored, shift=0.5, noise=0.25), stored)
    assert found.words == "out differs from what was captured, by up to 0.5; two captures differ by 0.25"


@needs_opencl
def test_other_bits_of_equal_numbers_differ(problem: Problem) -> None:
    stored = Stored()
    capture = captured(stored)
    (whole,) = capture.kept[0].ranges
    after = np.frombuffer(stored.texts[whole.after], np.float32).copy()
    assert after[0] == 0.0
    after[0] = -0.0
    one = stored.put(after)
    ranges = (KeptRange(whole.base, whole.start, whole.size, whole.before, one, one),)
    kept = (KeptLaunch("scaled", 5, capture.kept[0].arguments, ranges),)
    found = run(problem, Capture(**{**vars(capture), "kept": kept}), stored)
    assert (found.verdict, found.words) == ("differs", "out differs from what was captured, by up to 0")


@needs_opencl
def test_memory_that_was_not_kept_proves_nothing(problem: Problem) -> None:
    stored = Stored()
    capture = captured(stored)
    kept = capture.kept[0]
    gone = KeptRange(4096, 256, 1024, "", "")
    broken = KeptLaunch("scaled", 5, kept.arguments, (gone,))
    found = run(problem, Capture(**{**vars(capture), "kept": (broken,)}), stored)
    assert (found.verdict, found.words) == ("unknown", "1024 bytes of its memory were not kept")


@needs_opencl
def test_the_problem_itself_is_proven_not_the_kernel_alone(tmp_path: Path, problem: Problem) -> None:
    stored = Stored()
    (tmp_path / "problem.toml").write_text(PROBLEM.replace("ceildiv(n, 64)", "ceildiv(n, 32)"))
    found = run(load_problem(tmp_path).definition, captured(stored), stored)
    assert found.verdict == "differs"
    assert found.words == "the problem's grid is 4 x 1 x 1, it was launched with 2 x 1 x 1, at n = 128"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", ""),
        (
            'block = ["64"]',
            'block = ["32"]',
            "the problem's block is 32 x 1 x 1, it was launched with 64 x 1 x 1",
        ),
        ("value = 3.0", "value = 2.5", "the problem passes 2.5 as factor, the program passed 3.0"),
        ('value = "n"', 'value = "n // 2"', "the problem passes 64 as n, the program passed 128"),
        ('shape = ["n"]', 'shape = ["2 * n + 1"]', "out has 1028 bytes, behind the pointer were 1024"),
        ('role = "output"', 'role = "output"\ninit = 0', "out did not hold 0 before the launch"),
        ('role = "output"', 'role = "output"\ninit = -1', ""),
        ('role = "output"', 'role = "input"', "out is an input to the problem, the launch changed it"),
    ],
)
def test_what_the_problem_says_of_a_launch_is_compared(tmp_path, problem, old, new, words):
    text = PROBLEM.replace(old, new, 1) if old else PROBLEM
    if 'role = "input"' in new:  # some output there must be
        text = text.replace(
            'name = "x"\ntype = "float32*"\nrole = "input"', 'name = "x"\ntype = "float32*"\nrole = "output"'
        )
    (tmp_path / "problem.toml").write_text(text)
    stored = Stored()
    capture = captured(stored)
    said = load_problem(tmp_path).definition
    launch = capture.kernels[0].launches[0]
    found = launch_difference(said, capture.kept[0], launch, {"n": N}, stored.texts.__getitem__)
    assert words in found
    assert bool(found) == bool(words)


def test_shared_memory_is_compared(problem: Problem) -> None:
    stored = Stored()
    capture = captured(stored)
    launch = replace(capture.kernels[0].launches[0], shared=512)
    found = launch_difference(problem, capture.kept[0], launch, {"n": N}, stored.texts.__getitem__)
    assert found == "the problem's shared memory is 0 bytes, it was launched with 512, at n = 128"


def test_a_size_that_nobody_saw_leaves_the_problem_unproven(problem: Problem) -> None:
    stored = Stored()
    capture = captured(stored)
    same = ProvenLaunch(5, "same", "8 bytes, bit for bit")
    launch = capture.kernels[0].launches[0]
    found = with_problem(same, problem, capture.kept[0], launch, {}, stored.texts.__getitem__)
    assert found.verdict == "unknown"
    assert found.words.endswith("what the problem says of it could not be compared: nobody saw n")
    assert not ProofReply((found,)).holds
    assert ProofReply((found, same)).holds


def test_what_does_something_else_is_refused_and_its_folder_goes(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text("text")
    found = Extraction("a.cu:1", "k", (("kernel.cu", "text"),), 0, 1, 1, BuildAttempt("digest"), ())
    fine = ProofReply((ProvenLaunch(3, "same", "8 bytes, bit for bit"),))
    assert check_proof(tmp_path, found, fine) == ("launch 3: as captured (8 bytes, bit for bit)",)
    nothing = ProofReply(trouble="there is no device here")
    assert check_proof(tmp_path, found, nothing) == (
        "not proven on what was captured: there is no device here",
    )
    wrong = ProofReply((ProvenLaunch(3, "differs", "out differs"),))
    with pytest.raises(KernelWrong, match="does not do what was captured: out differs"):
        check_proof(tmp_path, found, wrong)
    assert list(tmp_path.iterdir()) == []


def test_what_hangs_or_ends_its_process_is_refused(tmp_path: Path) -> None:
    found = Extraction("a.cu:1", "k", (), 0, 1, 1, BuildAttempt("digest"), ())
    reply = proof_of(tmp_path, tmp_path, "k", seconds=0.01)
    assert reply.fault == "its launches did not end within 0 s"
    with pytest.raises(KernelWrong, match="k does not do what was captured: its launches did not end"):
        check_proof(tmp_path, found, reply)
    assert "ended: " in proof_of(tmp_path, tmp_path, "k").fault  # there is no capture


def test_a_capture_without_memory_says_how_to_get_it(tmp_path: Path, problem: Problem) -> None:
    from tunesmith.plugins.repo.capture.records import write_capture

    folder = tmp_path / "capture"
    folder.mkdir()
    bare = Capture(**{**vars(captured(Stored())), "kept": ()})
    write_capture(folder, bare)
    reply = proved_here(tmp_path, folder, "scaled", "opencl")
    assert reply.trouble == "the capture kept no memory of it: capture again with --keep and its name"
