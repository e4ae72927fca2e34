"""The library inside a process really runs here, beside a played driver."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.plugins.repo.capture.played import needs_compiler, program, with_played_gpu
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.plugins.repo.capture.capture import CaptureWish, load_captured_run, watch_program
from tunesmith.plugins.repo.capture.records import Capture, CapturedKernel, read_array, read_capture

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)


def seen(folder: Path, text: str, wish: CaptureWish | None = None) -> Capture:
    found = watch_program(program(text), wish or CaptureWish(), folder / "seen")
    assert read_capture(found.folder) == found.capture
    return found.capture


def only(capture: Capture) -> CapturedKernel:
    (kernel,) = capture.kernels
    return kernel


def test_launches_are_seen_with_geometry_time_and_arguments(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(4096)
for _ in range(3):
    launch(scale, 4, 128, P(x + 1024), I(100), F(2.0), shared=64)
launch(scale, 2, 256, P(x), I(50), F(2.0), stream=0x5000)
"""
    capture = seen(tmp_path, text)
    kernel = only(capture)
    assert (kernel.name, kernel.demangled) == ("_Z5scalePfif", "scale(float*, int, float)")
    assert (kernel.count, kernel.timed, kernel.registers, kernel.ptx_version) == (4, 4, 24, 90)
    assert kernel.seconds == pytest.approx(14e-6)
    first, second = kernel.launches
    assert (first.grid, first.block, first.shared) == ((4, 1, 1), (128, 1, 1), 64)
    assert (first.count, first.seconds, first.least) == (3, pytest.approx(12e-6), pytest.approx(4e-6))
    assert (first.streams, second.streams) == ((0,), (1,))
    pointer, count, factor = first.arguments
    assert (pointer.offset, pointer.size, count.offset, factor.offset) == (0, 8, 8, 12)
    assert struct.unpack("<i", count.value) == (100,)
    assert struct.unpack("<f", factor.value) == (2.0,)
    assert (pointer.memory.size, pointer.memory.offset, pointer.memory.extent) == (4096, 1024, 3072)
    assert pointer.memory.alignment >= 512
    assert count.memory is None
    assert (capture.driver, capture.program.exit_code) == (13000, 0)
    (device,) = capture.devices
    assert (device.name, device.capability, device.bandwidth) == ("Played GPU 0", 90, 1.024e12)
    assert capture.program.processes[0].ended


def test_addresses_alone_make_no_other_launch_and_the_smallest_extent_is_kept(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(1 << 20)
for i in range(600):
    launch(scale, 1, 32, P(x + 512 * i), I(1), F(1.0))
"""
    capture = seen(tmp_path, text)
    (launch,) = only(capture).launches
    assert launch.count == 600
    (pointer,) = launch.arguments[0].pointers
    assert pointer.memory.extent == 1 << 20
    assert pointer.least < 1 << 20, "the driver was asked about later ones too"


def test_only_so_many_launches_are_told_apart(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(4096)
for i in range(100):
    launch(scale, 1, 32, P(x), I(i), F(1.0))
"""
    kernel = only(seen(tmp_path, text, CaptureWish(shapes=10)))
    assert kernel.count == 100
    assert len([launch for launch in kernel.launches if launch.complete]) == 10
    (rest,) = [launch for launch in kernel.launches if not launch.complete]
    assert (rest.count, rest.arguments) == (90, ())


def test_pointers_inside_a_struct_are_found(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
class Plan(ctypes.Structure):
    _fields_ = [("a", P), ("b", P), ("n", I)]
launch(function("_Z4plan4Plan", (0, 24)), 1, 32, Plan(memory(256), memory(512), 8))
"""
    capture = seen(tmp_path, text)
    (argument,) = only(capture).launches[0].arguments
    assert [(p.at, p.memory.size) for p in argument.pointers] == [(0, 256), (8, 512)]
    assert argument.memory is None


def test_which_launches_follow_each_other_on_a_stream(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
a, b, c = (function(name) for name in "abc")
for _ in range(5):
    launch(a, 1, 32); launch(c, 1, 32, stream=0x9000); launch(b, 1, 32)
"""
    capture = seen(tmp_path, text)
    number = {kernel.name: kernel.launches[0].number for kernel in capture.kernels}
    pairs = {(one.before, one.after): one.count for one in capture.successions}
    assert pairs[number["a"], number["b"]] == 5
    assert pairs[number["b"], number["a"]] == 4
    assert pairs[number["c"], number["c"]] == 4
    assert (number["a"], number["c"]) not in pairs
    assert capture.order[:3] == (number["a"], number["c"], number["b"])


def test_memory_around_a_launch_is_kept_and_the_program_sees_its_own_result(tmp_path: Path) -> None:
    wish = CaptureWish(keep=("scale",))
    found = watch_program(
        program(
            """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(64)
floats(x, 16)[:] = [float(i) for i in range(16)]
launch(scale, 1, 32, P(x + 16), I(4), F(3.0))
launch(scale, 1, 32, P(x + 16), I(4), F(3.0))
assert list(floats(x, 16))[4:9] == [36.0, 45.0, 54.0, 63.0, 8.0], list(floats(x, 16))
cuda.cuMemcpyHtoD_v2(P(x), ctypes.c_char_p(b"1234"), ctypes.c_size_t(4))
"""
        ),
        wish,
        tmp_path / "seen",
    )
    assert found.capture.program.exit_code == 0
    (kept,) = found.capture.kept
    (part,) = kept.ranges
    before, after, again = (
        np.frombuffer(read_array(found.folder, digest), np.float32)
        for digest in (part.before, part.after, part.again)
    )
    assert (part.start, part.size) == (16, 48)
    assert before.tolist() == [float(i) for i in range(4, 16)]
    assert after.tolist() == [12.0, 15.0, 18.0, 21.0, *map(float, range(8, 16))]
    assert again.tolist() == after.tolist()
    memory = kept.arguments[0].memory
    assert memory is not None
    assert kept.range_of(memory) == part
    kernel = only(found.capture)
    assert (kernel.count, kernel.timed) == (2, 2), "what was launched for the proof is not counted"
    assert found.capture.copies.count == 1, "nor what was copied: the program has one copy of its own"


def test_a_module_that_is_loaded_because_we_look_at_its_function(tmp_path: Path) -> None:
    """It is told of on the thread that is looking, in the midst of it."""
    text = """
cuda.cuInit(0)
launch(function("lazy_scale", *SCALE[1:]), 1, 32, P(memory(64)), I(4), F(3.0))
"""
    capture = seen(tmp_path, text, CaptureWish(keep=("lazy_scale",)))
    assert only(capture).count == 1
    assert len(capture.kept) == 1


def test_a_kernel_that_varies_is_kept_with_its_spread(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
x = memory(64)
launch(function("count", (0, 8)), 1, 32, P(x))
print((ctypes.c_int * 1).from_address(x)[0])
"""
    found = watch_program(program(text), CaptureWish(keep=("count",)), tmp_path / "seen")
    (part,) = found.capture.kept[0].ranges
    assert part.after != part.again
    assert len({part.before, part.after, part.again}) == 3


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
launch(function(*SCALE), 1, 32, P(memory(1 << 20)), I(4), F(3.0))
"""
    found = watch_program(program(text), CaptureWish(keep=("scale",), keep_bytes=1 << 20), tmp_path / "seen")
    (part,) = found.capture.kept[0].ranges
    assert (part.size, part.before, part.after) == (1 << 20, "", "")
    assert list((found.folder / "arrays").iterdir()) == []


@pytest.mark.parametrize(
    ("ending", "code"), [("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6), ("os._exit(7)", 7)]
)
def test_a_program_that_crashes_leaves_what_it_did(tmp_path: Path, ending: str, code: int) -> None:
    text = f"""
cuda.cuInit(0)
for _ in range(1000):
    launch(function("_Z4workv"), 1, 32)
{ending}
"""
    capture = seen(tmp_path, text)
    assert only(capture).count == 1000
    assert capture.program.exit_code == code
    assert not capture.program.processes[0].ended
    assert any("did not come to its end" in note for note in capture.notes)


def test_a_program_that_forks_and_starts_others(tmp_path: Path) -> None:
    text = """
import subprocess
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split(chr(0))[2], "child"])
cuda.cuInit(0)
launch(function("_Z4workv"), 1, 32)
pid = os.fork()
if not pid:
    launch(function("_Z5childv"), 1, 32)
    os._exit(0)
os.waitpid(pid, 0)
launch(function("_Z4workv"), 1, 32)
"""
    capture = seen(tmp_path, text)
    assert only(capture).count == 4, "of a child that has its parent's CUDA nothing is seen"
    assert len(capture.program.processes) == 2
    assert any("forked" in note for note in capture.notes)
    assert any("2 processes" in note for note in capture.notes)


def test_times_survive_a_crash_that_comes_later(tmp_path: Path) -> None:
    text = """
import time
cuda.cuInit(0)
work = function("_Z4workv")
for _ in range(1000):
    launch(work, 1, 32)
time.sleep(0.6)
os.abort()
"""
    kernel = only(seen(tmp_path, text))
    assert (kernel.count, kernel.timed) == (1000, 1000)


def test_ctrl_c_ends_the_program_and_keeps_what_it_did(tmp_path: Path) -> None:
    text = """
import time
cuda.cuInit(0)
launch(function("_Z4workv"), 1, 32)
time.sleep(60)
"""
    said: list[str] = []

    def interrupt(line: str) -> None:
        said.append(line)
        if "1 launch so far" in line:
            raise KeyboardInterrupt

    capture = watch_program(program(text), CaptureWish(), tmp_path / "seen", interrupt).capture
    assert (only(capture).count, capture.program.exit_code) == (1, -15)
    assert any("signal 15" in note for note in capture.notes)
    assert "putting together" in said[-1]


def test_launches_of_many_threads(tmp_path: Path) -> None:
    text = """
import threading
cuda.cuInit(0)
scale, x = function(*SCALE), memory(4096)
def work(i):
    for _ in range(300):
        launch(scale, 1 + i, 32, P(x), I(0), F(1.0))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    capture = seen(tmp_path, text)
    assert sorted(launch.count for launch in only(capture).launches) == [300] * 4


def test_modules_that_are_loaded_while_another_thread_launches(tmp_path: Path) -> None:
    """The driver holds a lock while it tells us of a module; we hold one while we ask it about addresses."""
    text = """
cuda.cuInit(0)
cuda.played_contention(function(*SCALE), P(memory(4096)))
"""
    capture = seen(tmp_path, text)
    assert only(capture).count == 2000


def test_a_kernel_without_a_call_is_known_by_its_name(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
launch(function("parent"), 1, 32)
cuda.played_child(function("child"), 5)
"""
    capture = seen(tmp_path, text)
    child = next(kernel for kernel in capture.kernels if kernel.name == "child")
    assert (child.count, child.launches[0].grid, child.launches[0].complete) == (1, (5, 1, 1), False)


def test_launches_that_fail_are_not_counted(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
work = function("work")
launch(work, 1, 2048); launch(work, 1, 32)
"""
    capture = seen(tmp_path, text)
    assert only(capture).count == 1
    assert any("1 launch failed" in note for note in capture.notes)


def test_names_that_nobody_would_choose(tmp_path: Path) -> None:
    text = r"""
cuda.cuInit(0)
for name in (b"\x1b[2J\x1b]0;owned\x07evil", b"\xff\xfe\x80", b"", b"_Z" + b"9" * 50000, b"a" * 60000):
    launch(function(name), 1, 32)
"""
    capture = seen(tmp_path, text)
    names = {kernel.name for kernel in capture.kernels}
    assert "\\xff\\xfe\\x80" in names
    assert "" in names
    assert max(map(len, names)) == 16_000


def test_a_driver_that_does_not_tell_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYED_OLD", "1")
    text = "cuda.cuInit(0)\nlaunch(function(*SCALE), 1, 32, P(memory(64)), I(1), F(1.0))\n"
    (launch,) = only(seen(tmp_path, text)).launches
    assert (launch.complete, launch.arguments, launch.count) == (False, (), 1)


def test_records_that_the_profiler_lost_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYED_DROPS", "1")
    capture = seen(tmp_path, 'cuda.cuInit(0)\nlaunch(function("work"), 1, 32)\n')
    assert capture.dropped == 3
    assert any("lost 3 records" in note for note in capture.notes)


def test_another_profiler_in_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYED_REFUSES", "1")
    with pytest.raises(DeviceMissing, match="another profiler"):
        seen(tmp_path, 'cuda.cuInit(0)\nlaunch(function("work"), 1, 32)\n')


def test_a_program_without_cuda_is_told_so_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DeviceMissing, match="exit code 3, and launched nothing on a GPU"):
        watch_program(program("sys.exit(3)"), CaptureWish(), tmp_path / "seen")
    assert not (tmp_path / "seen").exists()
    with pytest.raises(DeviceMissing, match="launched no kernel"):
        watch_program(program("cuda.cuInit(0)"), CaptureWish(), tmp_path / "idle")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot run no-such-program"):
        watch_program(["no-such-program"], CaptureWish(), tmp_path / "seen")
    with pytest.raises(BadInput, match="no program"):
        watch_program([], CaptureWish(), tmp_path / "seen")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="folder of its own"):
        watch_program(program(""), CaptureWish(), tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_nothing_is_written_outside_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    seen(tmp_path, 'cuda.cuInit(0)\nlaunch(function("work"), 1, 32)\n')
    assert list((tmp_path / "work").iterdir()) == []
    left = {path.name for path in (tmp_path / "seen").iterdir()}
    assert left == {"capture.json", "raw", "images", "arrays"}


def test_a_capture_that_broke_off_is_put_together_when_it_is_shown(tmp_path: Path) -> None:
    found = watch_program(
        program('cuda.cuInit(0)\nlaunch(function("work"), 1, 32)\n'), CaptureWish(), tmp_path / "seen"
    )
    (found.folder / "capture.json").unlink()
    again = load_captured_run(found.folder).capture
    assert again.kernels == found.capture.kernels
    assert any("broke off" in note for note in again.notes)
