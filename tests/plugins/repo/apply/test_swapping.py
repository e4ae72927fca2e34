"""Launches of a program, swapped for those of a tuned kernel; the library runs beside a played driver."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.plugins.repo.apply.repositories import a_run
from tests.plugins.repo.capture.made_up import capture, kernel, launch
from tests.plugins.repo.capture.played import COMPILER, PRELUDE, driver, needs_compiler
from tests.samples import DEVICE, a_problem
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.plugins.repo.apply import commands, swap
from tunesmith.plugins.repo.apply.commands import Applied
from tunesmith.plugins.repo.apply.swap import swap_result
from tunesmith.plugins.repo.capture.records import write_capture
from tunesmith.plugins.repo.commands import show_applied
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchArgument,
    DispatchBinary,
    DispatchEntry,
    DispatchLaunch,
)
from tunesmith.problem.problem import Origin, SizeRule
from tunesmith.run.candidates import Templates
from tunesmith.session.progress import listener_of
from tunesmith.session.result import Run

pytestmark = needs_compiler

BUILD = swap.build_library
NAME = "_Z5scalePfif"
# What every program begins with; `ran`: what the driver really ran, with the number of blocks.
BEGIN = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(1 << 16)
floats(x, 512)[:] = [1.0] * 512
cuda.played_ran.restype = cuda.played_node.restype = ctypes.c_char_p
def ran():
    return cuda.played_ran().decode().split()
"""


@functools.cache
def built(text: str) -> Path:
    """Most tests swap in the same kernel."""
    return BUILD(text, Path(tempfile.mkdtemp(prefix="swap-", dir=os.environ["TESTS_SHARED_FOLDER"])))


def program(text: str) -> list[str]:
    """Nothing of what is installed is needed, and looking for it takes longer than the rest."""
    return [sys.executable, "-S", "-E", "-c", PRELUDE + text]


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver()))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(swap, "build_library", lambda text, _folder: built(text))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def tuned_result(image: bytes = b"tuned_scale", where: Origin | None = None, **tuned: Any) -> DeviceResult:
    """Of scale(float *x, int n, float factor), for factor 2 and n of 128 to 4096."""
    args = ("x", "n", "factor")
    own = DispatchLaunch("scale", ("ceildiv(n, 128)",), ("128",), None, args, None, False, False)
    original = DispatchEntry("1", "original.cu", "o", None, (), (own,))
    other = DispatchLaunch("scale", ("ceildiv(n, 512)",), ("64",), "4 * n", args, None, False, False)
    binary = DispatchBinary("scale-0.cubin", "cubin", "c", {"scale": "tuned_scale"})
    entry = DispatchEntry("n >= 128", "scale-0.cu", "t", {"BLOCK": 64}, (), (other,), binary=binary)
    arguments = (
        DispatchArgument("x", "float32", "inout", ("n",), align=16),
        DispatchArgument("n", "int32", "scalar", value="n"),
        DispatchArgument("factor", "float32", "scalar", value=2.0),
    )
    entries = (replace(entry, **tuned), original)
    dispatch = Dispatch(
        "scale", "cuda", "Played GPU 0", entries, "sm_90", "", arguments, (SizeRule("n", 1, 4096),)
    )
    files = {"original.cu": b"", "scale-0.cu": b"", "scale-0.cubin": image}
    usual = Origin("k.cu", (1, 2), ("k.cu:5",), (), kernel=NAME)
    problem = replace(a_problem(), origin=usual if where is None else where)
    texts: Any = None
    return DeviceResult("run", dispatch, files, templates=Templates(problem, DEVICE, None, texts))


def swapped(run: Run, text: str, result: DeviceResult | None = None, **wish: Any) -> Applied:
    given = result if result is not None else tuned_result()
    wish = {"swap": program(BEGIN + text), "rounds": 1, "timeout": 60.0, **wish}
    return swap_result(run, given, listener_of(None), **wish)


def printed(run: Run, side: str = "after") -> str:
    """What the last run of that side printed."""
    return max((run.folder / "apply" / "swap").glob(f"*-program-{side}.log")).read_text()


LAUNCHES = """
launch(scale, 4, 128, P(x), I(512), F(2.0))       # as verified
launch(scale, 4, 128, P(x), I(512), F(2.0), stream=0x5000)
launch(scale, 4, 128, P(x), I(512), F(3.0))       # another value
launch(scale, 1, 128, P(x), I(100), F(2.0))       # a size that nothing was tuned for
launch(scale, 5, 128, P(x), I(512), F(2.0))       # another grid
launch(scale, 4, 128, P(x + 4), I(512), F(2.0))   # not aligned
launch(function("other"), 1, 32)
assert list(floats(x, 101))[::100] == [48.0, 48.0], floats(x, 101)[:]
print(*ran())
"""


def test_launches_as_verified_are_swapped_and_all_others_are_the_originals(run: Run) -> None:
    done = swapped(run, LAUNCHES, rounds=2)
    assert done.ending == "swapped", done.fault
    assert (done.counts.launches, done.counts.ours, done.counts.swapped) == (7, 6, 2)
    assert (done.counts.left, done.counts.unverified, done.counts.processes) == (4, 4, 1)
    assert printed(run).split() == [
        *["tuned_scale/1"] * 2, f"{NAME}/4", f"{NAME}/1", f"{NAME}/5", f"{NAME}/4", "other/1"
    ]  # fmt: skip
    assert "tuned" not in printed(run, "before")
    assert (len(done.bench.before), len(done.bench.after), done.bench.unit) == (2, 2, "s")
    assert any(note.startswith("as they are, 4: sizes, values") for note in done.notes)
    assert os.listdir() == []
    left = {path.suffix for path in (run.folder / "apply" / "swap").rglob("*")}
    assert left == {".log"}


def test_every_way_to_a_launch_leads_through_the_library(run: Run) -> None:
    """By name, by the driver's own search, with arguments in a buffer, with a configuration."""
    text = """
class Config(ctypes.Structure):
    _fields_ = [("grid", I * 3), ("block", I * 3), ("shared", I), ("stream", P), ("attributes", P)]
    _fields_ += [("count", I)]
def asked(name, *types):
    at, status = ctypes.c_void_p(), I()
    assert cuda.cuGetProcAddress_v2(name, ctypes.byref(at), 12050, P(0), ctypes.byref(status)) == 0
    return ctypes.CFUNCTYPE(I, *types)(at.value)
pointer, V = ctypes.byref, ctypes.c_void_p
n, factor, at = I(512), F(2.0), P(x)
params = (V * 3)(*[ctypes.addressof(v) for v in (at, n, factor)])
again = asked(b"cuGetProcAddress", V, V, I, P, V)
found = V()
assert again(ctypes.cast(ctypes.c_char_p(b"cuLaunchKernel"), V), ctypes.addressof(found), 12050, 0, None) == 0
plain = ctypes.CFUNCTYPE(I, V, I, I, I, I, I, I, I, V, V, V)(found.value)
assert plain(scale, 4, 1, 1, 128, 1, 1, 0, None, params, None) == 0
config = Config((I * 3)(4, 1, 1), (I * 3)(128, 1, 1), 0, 0, 0, 0)
assert asked(b"cuLaunchKernelEx", V, V, V, V)(ctypes.addressof(config), scale, params, None) == 0
attribute = (ctypes.c_char * 72)()
attribute[0] = 9
config.attributes, config.count = ctypes.addressof(attribute), 1
assert cuda.cuLaunchKernelEx(pointer(config), scale, params, None) == 0
assert cuda.cuLaunchCooperativeKernel(scale, 4, 1, 1, 128, 1, 1, 0, None, params) == 0
packed = (ctypes.c_char * 16).from_buffer_copy(bytes(at) + bytes(n) + bytes(factor))
size = ctypes.c_size_t(16)
extra = (V * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), None)
assert cuda.cuLaunchKernel(scale, 4, 1, 1, 128, 1, 1, 0, None, None, extra) == 0
assert floats(x, 512)[511] == 32.0, floats(x, 512)[511]
print(*ran())
"""
    done = swapped(run, text)
    assert done.ending == "swapped", done.fault
    assert (done.counts.ours, done.counts.swapped, done.counts.attributes) == (5, 4, 1)
    assert printed(run).split().count("tuned_scale/1") == 4


def test_a_name_in_words_is_found_in_the_capture_and_tests_say_what_was_swapped(run, tmp_path):
    shown = "scale(float*, int, float)"
    write_capture(tmp_path, capture(kernel(NAME, launch(seconds=0.4), demangled=shown), span=1.0))
    done = swapped(run, LAUNCHES, kernel=shown, capture=str(tmp_path), test="true")
    assert (done.kernel, done.ending) == (NAME, "swapped")
    assert "in the tests no launch was swapped: they say nothing about the tuned kernel" in done.notes
    test = shlex.join(program(BEGIN + LAUNCHES))
    assert (
        "in the tests 2 launches were swapped, of 6 of the kernel" in swapped(run, LAUNCHES, test=test).notes
    )


LINKED = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
extern int cuInit(unsigned), cuMemAlloc_v2(void *, size_t);
typedef unsigned U;
extern int cuLaunchKernel(void *, U, U, U, U, U, U, U, void *, void **, void **);
extern void *played_function(const char *, int, const size_t *, const size_t *);
extern const char *played_ran(void);
int main(void) {
    const size_t offsets[] = {0, 8, 12}, sizes[] = {8, 4, 4};
    float *x = NULL, factor = 2.0f;
    int n = 512;
    void *params[] = {&x, &n, &factor};
    if (cuInit(0) || cuMemAlloc_v2(&x, 4096)) return 1;
    void *scale = played_function("_Z5scalePfif", 3, offsets, sizes);
    if (cuLaunchKernel(scale, 4, 1, 1, 128, 1, 1, 0, NULL, params, NULL)) return 2;
    puts(played_ran());
}
"""


def test_a_program_that_is_linked_with_the_driver(run: Run, tmp_path: Path) -> None:
    source, made = tmp_path / "linked.c", tmp_path / "linked"
    source.write_text(LINKED)
    assert COMPILER is not None
    words = [COMPILER, "-w", "-o", str(made), str(source), f"-L{driver()}", "-l:libcuda.so.1"]
    subprocess.run(words, check=True, env={k: v for k, v in os.environ.items() if k != "LIBRARY_PATH"})
    counts = swapped(run, "", swap=[str(made)]).counts
    assert (counts.launches, counts.swapped) == (1, 1)
    assert printed(run).strip() == "tuned_scale/1"


def test_the_name_alone_is_not_enough(run: Run) -> None:
    """Another module may have a kernel of the same name with other parameters."""
    text = """
for layout in (((0, 8), (8, 4)), ((0, 8), (8, 8), (16, 4)), ((0, 8), (8, 4), (12, 4), (16, 4))):
    launch(function(SCALE[0], *layout), 4, 128, P(x), I(0), F(2.0), I(0))
launch(scale, 4, 128, P(x), I(512), F(2.0))
"""
    counts = swapped(run, text).counts
    assert (counts.ours, counts.swapped, counts.parameters) == (4, 1, 3)


def test_a_module_that_is_unloaded_leaves_no_name_behind(run: Run) -> None:
    text = """
launch(scale, 4, 128, P(x), I(512), F(2.0))
ctypes.memmove(scale, b"_Z5otherPfif", 13)   # the same address, another kernel
cuda.cuModuleUnload(None)
launch(scale, 4, 128, P(x), I(512), F(2.0))
"""
    counts = swapped(run, text).counts
    assert (counts.launches, counts.ours, counts.swapped) == (2, 1, 1)


def test_launches_that_are_recorded_go_into_the_graph_as_swapped(run: Run) -> None:
    text = """
cuda.played_begin()
launch(scale, 4, 128, P(x), I(512), F(2.0), stream=0x5000)   # the first of all: the kernel is loaded now
cuda.played_end()
assert cuda.played_mode() == 0
launch(scale, 4, 128, P(x), I(512), F(2.0))
print(cuda.played_node(1).decode())
node = (ctypes.c_void_p * 9)(scale)
assert cuda.cuGraphAddKernelNode_v2(None, None, None, ctypes.c_size_t(0), node) == 0
"""
    done = swapped(run, text)
    assert (done.counts.swapped, done.counts.recorded, done.counts.nodes) == (2, 1, 1)
    assert printed(run).strip() == "tuned_scale"
    assert any("1 swapped launch went into graphs" in note for note in done.notes)
    assert any("1 node of the kernel in graphs" in note for note in done.notes)


def test_nodes_of_any_kind_that_are_added_to_graphs_are_counted_where_they_are_of_the_kernel(run):
    text = """
V, P64 = ctypes.c_void_p, ctypes.c_uint64
def node(function, kernel, kind=0):
    return (P64 * 32)(kind, 0, function.value if function else 0, *[0] * 6, kernel.value if kernel else 0)
def added(version, *given):
    address = V()
    assert cuda.cuGetProcAddress_v2(b"cuGraphAddNode", ctypes.byref(address), version, P64(0), None) == 0
    return ctypes.CFUNCTYPE(ctypes.c_int, *[V] * len(given))(address.value)(*given)
other = function("_Z5otherPfif", *SCALE[1:])
launch(scale, 4, 128, P(x), I(512), F(2.0))
assert cuda.cuGraphAddNode(None, None, None, P64(0), node(scale, None)) == 0
assert cuda.cuGraphAddNode_v2(None, None, None, None, P64(0), node(None, scale)) == 0
assert cuda.cuGraphAddNode_v2(None, None, None, None, P64(0), node(other, None)) == 0
assert cuda.cuGraphAddNode_v2(None, None, None, None, P64(0), node(scale, None, kind=2)) == 0   # a fill
assert added(12020, None, None, None, 0, node(scale, None)) == 0
assert added(12030, None, None, None, None, 0, node(scale, None)) == 0
print([cuda.played_node(number).decode() for number in range(1, 6)])
"""
    done = swapped(run, text)
    assert (done.counts.nodes, done.counts.swapped) == (4, 1)
    assert printed(run).strip() == str([NAME, NAME, "_Z5otherPfif", NAME, NAME])


def test_forks_threads_and_crashes_are_survived(run: Run) -> None:
    text = """
import subprocess, threading
if len(sys.argv) == 1:
    words = open("/proc/self/cmdline").read().split(chr(0))[:-1]
    assert subprocess.run([*words, "child"]).returncode == -9
def work():
    for _ in range(200):
        launch(scale, 4, 128, P(x), I(512), F(2.0))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
if not (pid := os.fork()):
    launch(scale, 4, 128, P(x), I(512), F(2.0))
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
[t.join() for t in threads]
if len(sys.argv) > 1:
    os.kill(os.getpid(), 9)
"""
    counts = swapped(run, text).counts
    assert counts.swapped == counts.launches == 2 * (800 + 1)
    assert counts.processes == 4


def test_a_driver_that_refuses_the_tuned_kernel(run: Run) -> None:
    text = "launch(scale, 4, 128, P(x), I(512), F(2.0))\nassert floats(x, 1)[0] == 2.0\n"
    with pytest.raises(BadInput, match="1: the driver refuses the tuned kernel"):
        swapped(run, text, tuned_result(b"broken"))
    with pytest.raises(BadInput, match="1: the driver refuses the tuned kernel"):
        swapped(run, text, tuned_result(b"another"))  # it lacks the kernel
    large = replace(tuned_result().dispatch.tuned[0].launches[0], shared="232449")
    with pytest.raises(BadInput, match="1: the driver refuses the tuned kernel"):
        swapped(run, text, tuned_result(launches=(large,)))
    assert "tuned" not in printed(run)


def test_a_program_that_fails_with_swapped_launches_is_told(run: Run) -> None:
    done = swapped(
        run, "launch(scale, 4, 128, P(x), I(512), F(2.0))\nassert 'tuned' not in ran()[0], 'wrong result'\n"
    )
    assert done.ending == "swap failed"
    assert "with swapped launches the program ended with exit code 1: AssertionError: wrong" in done.fault
    assert done.bench is None
    with pytest.raises(typer.Exit) as caught:
        show_applied(done, as_json=False)
    assert caught.value.exit_code == 3


def test_metric_test_and_what_amdahl_foretells(run, tmp_path, capsys):
    write_capture(tmp_path, capture(kernel(NAME, launch(seconds=0.4)), span=1.0))
    text = """
launch(scale, 4, 128, P(x), I(512), F(2.0))
print("step:", 8.0 if "tuned" in ran()[0] else 10.0, "ms")
"""
    metric = r"step: ([\d.]+) ms"
    done = swapped(run, text, metric=metric, rounds=3, capture=tmp_path, test="true")
    assert (done.bench.before, done.bench.after, done.bench.gain) == ((10.0,) * 3, (8.0,) * 3, 1.25)
    assert done.foretold.gain == pytest.approx(1.25)
    assert len(done.tested) == 2
    show_applied(done, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert "launches         1 swapped, 0 as they are; of all kernels 1, in 1 process" in lines
    assert "program          as it is 10 (10 to 10), swapped 8 (8 to 8), 3 runs each" in lines
    assert "end to end       1.250× (1.250 to 1.250)" in lines
    assert any(line.startswith("foretold         1.250×: the kernel has 40.0 % of") for line in lines)
    with pytest.raises(BadInput, match="prints no positive number"):
        swapped(run, text, metric="tokens: (.*)")
    with pytest.raises(BadInput, match="the test command fails before anything is swapped"):
        swapped(run, text, test="false")


@pytest.mark.parametrize(
    ("text", "fault", "kind"),
    [
        ("launch(function('other'), 1, 32)", f"none of 1 launch is of {NAME}", BadInput),
        (
            "launch(scale, 4, 128, P(x), I(512), F(3.0))",
            "no launch of 1 launch could be swapped: 1: s",
            BadInput,
        ),
        ("sys.exit(7)", "fails before anything is swapped: it ended with exit code 7", BadInput),
        ("", "no process of it asked CUDA's driver how", DeviceMissing),
        ("cuda.cuLaunchKernel", "used CUDA, but launched no kernel", DeviceMissing),
    ],
)
def test_where_nothing_can_be_swapped_that_is_said(run, text, fault, kind):
    with pytest.raises(kind, match=fault):
        swapped(run, text)


def test_what_is_refused_before_anything_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tuned_result()
    entry, original = good.dispatch.entries

    def of(*entries: DispatchEntry) -> DeviceResult:
        return replace(good, dispatch=replace(good.dispatch, entries=entries))

    with pytest.raises(BadInput, match="there is no program"):
        swapped(run, "", swap=[])
    with pytest.raises(BadInput, match="--dry-run is for patches"):
        swapped(run, "", dry_run=True)
    with pytest.raises(BadInput, match="takes 2 launches"):
        swapped(run, "", of(entry, replace(original, launches=original.launches * 2)))
    with pytest.raises(BadInput, match=r"scale-0\.cu, the run has no machine code of it"):
        swapped(run, "", of(replace(entry, binary=None), original))
    work = DispatchArgument("w", "float32", "workspace", ("n",))
    with pytest.raises(BadInput, match="it needs memory beside"):
        swapped(run, "", of(replace(entry, workspace=(work,)), original))
    nameless = Origin("k.cu", (1, 2), ("k.cu:5",), ())
    with pytest.raises(BadInput, match="by what name") as caught:
        swapped(run, "", tuned_result(where=nameless))
    assert "--kernel" in (caught.value.hint or "")
    monkeypatch.setattr(swap, "build_library", BUILD)
    monkeypatch.setattr(commands, "_COMPILERS", ())
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BadInput, match=r"no C\+\+ compiler is here"):
        swapped(run, "")


def test_a_name_can_be_given_and_folders_may_be_called_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(swap, "build_library", BUILD)
    run = a_run(tmp_path / "my runs: all" / "scale")
    nameless = Origin("k.cu", (1, 2), ("k.cu:5",), ())
    text = "launch(scale, 4, 128, P(x), I(512), F(2.0))"
    done = swapped(run, text, tuned_result(where=nameless), kernel=NAME)
    assert (done.kernel, done.counts.swapped) == (NAME, 1)


def test_a_program_that_loads_libraries_first_keeps_them(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    found = commands.swap_environment(tmp_path / "swap.so", tmp_path)
    assert found["LD_PRELOAD"] == f"{tmp_path}/swap.so:libm.so.6"
    assert swap.FOLDER == "apply"
