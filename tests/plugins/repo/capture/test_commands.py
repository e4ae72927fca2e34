"""`tunesmith capture` and `with tunesmith.capture()`, as people use them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.end_to_end.asking import quickly as command
from tests.plugins.repo.capture.made_up import capture, kernel, launch, pointer
from tests.plugins.repo.capture.played import PRELUDE, driver, library, needs_compiler
from tests.running import tunesmith
from tunesmith.plugins.repo.capture.records import write_capture

HOSTILE = "\x1b]0;owned\x07\x1b[2Jevil\u202e_kernel | a\nb"


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    vendor = kernel("sm90_xmma_gemm", launch(pointer(8), seconds=0.5))
    own = kernel("_Z3ownPf", launch(pointer(10**8), seconds=0.25), demangled="own(float*)")
    evil = kernel(HOSTILE, launch(pointer(8), seconds=0.125))
    notes = ("CUDA graphs were launched 7 times", "a note with \x1b[31mcolour")
    write_capture(folder, replace(capture(vendor, own, evil, span=1.0), notes=notes))
    return folder


def test_a_capture_is_shown_ranked_and_harmless(tmp_path: Path) -> None:
    ended = command(tmp_path, "capture", "--show", made(tmp_path / "seen"))
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    lines = ended.out.splitlines()
    rows = [line for line in lines if line.startswith(("│ 1", "│ 2", "│ 3"))]
    assert ["own(float*)" in rows[0], "evil" in rows[1], "sm90" in rows[2]] == [True] * 3, ended.out
    assert "28.6 %" in rows[0]
    assert "1.33×" in rows[0]
    assert any(line.startswith("missing") and "of 3: a vendor's library" in line for line in lines)
    assert any("of 1, 2: its source" in line for line in lines)
    assert any(line.startswith("note") and "graphs" in line for line in lines)
    assert "exit code 0" in ended.out


def test_as_json(tmp_path: Path) -> None:
    ended = command(tmp_path, "capture", "--show", made(tmp_path / "seen"), "--json")
    first = ended.json["kernels"][0]
    assert (first["demangled"], first["kind"], first["tunable"]) == (
        "own(float*)",
        "own or third-party",
        True,
    )
    assert "\x1b" not in ended.out


def test_one_kernels_launches_are_shown_with_their_arguments(tmp_path: Path) -> None:
    ended = command(tmp_path, "capture", "--show", made(tmp_path / "seen"), "--kernel", "own")
    assert ended.code == 0
    assert "own(float*)" in ended.out
    assert "→ 100000000 of 100000000 B" in ended.out
    as_json = command(tmp_path, "capture", "--show", tmp_path / "seen", "--kernel", "own", "--json")
    assert as_json.json[0]["launches"][0]["block"] == [32, 1, 1]
    none = command(tmp_path, "capture", "--show", tmp_path / "seen", "--kernel", "absent")
    assert (none.code, "absent" in none.err, "own(float*)" in none.err) == (2, True, True)


def test_the_newest_is_shown_where_none_is_named(tmp_path: Path) -> None:
    ended = command(tmp_path, "capture", "--show")
    assert ended.code == 2
    assert "no capture" in ended.err
    made(tmp_path / "tunesmith-captures" / "one")
    assert "own(float*)" in command(tmp_path, "capture", "--show").out


def test_what_cannot_be_run_or_shown(tmp_path: Path) -> None:
    nothing = command(tmp_path, "capture")
    assert (nothing.code, "no program to run" in nothing.err) == (2, True)
    two = command(tmp_path, "capture", "--show", "a", "b")
    assert (two.code, "one folder" in two.err) == (2, True)
    none = command(tmp_path, "capture", "--show", "nowhere")
    assert (none.code, "not a capture" in none.err) == (2, True)
    name = command(tmp_path, "capture", "--keep", "a b", "--", "true")
    assert (name.code, "not a kernel's name" in name.err) == (2, True)
    assert not (tmp_path / "tunesmith-captures").exists() or not any(
        (tmp_path / "tunesmith-captures").iterdir()
    )


@needs_compiler
def test_a_program_without_cuda(tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "capture", "--", sys.executable, "-c", "print('its own words')")
    assert ended.code == 5
    assert "its own words" in ended.out
    assert "launched nothing on a GPU" in ended.err


@needs_compiler
def test_launches_of_ones_own_process(tmp_path: Path) -> None:
    script = f"""
{PRELUDE}
import tunesmith, tunesmith.plugins.repo.capture.capture as building
import pathlib, shutil
building.cupti_paths = lambda _program: [{str(driver() / "libcuda.so.1")!r}]
building.build_watcher = lambda folder: pathlib.Path(shutil.copy({str(library())!r}, folder / "watch.so"))
cuda.cuInit(0)
scale, x = function(*SCALE), memory(4096)
launch(scale, 1, 32, P(x), I(1), F(1.0))
for round in range(2):
    with tunesmith.capture(out=f"seen{{round}}") as seen:
        for _ in range(5 + round):
            launch(scale, 2, 32, P(x), I(1), F(1.0))
    launch(scale, 1, 32, P(x), I(1), F(1.0))
    print(seen.capture.kernels[0].count, [r.demangled for r in seen.ranking()], seen.folder.name)
assert not [name for name in os.environ if name.startswith("TUNESMITH_WATCH")]
try:
    with tunesmith.capture(out="failed") as seen:
        launch(scale, 2, 32, P(x), I(1), F(1.0))
        1 / 0
except ZeroDivisionError:
    print("its own error", seen.capture.kernels[0].count)
try:
    with tunesmith.capture(out="empty"):
        pass
except tunesmith.DeviceMissing as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "LD_LIBRARY_PATH": str(driver())},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "5 ['scale(float*, int, float)'] seen0",
        "6 ['scale(float*, int, float)'] seen1",
        "its own error 1",
        "this block used CUDA, but launched no kernel",
    ]


def test_the_package_does_not_hide_the_function() -> None:
    import tunesmith
    import tunesmith.plugins.repo.capture.records

    assert callable(tunesmith.capture)
    assert hasattr(tunesmith.capture(), "__enter__")
    assert tunesmith.plugins.repo.capture.records is sys.modules["tunesmith.plugins.repo.capture.records"]
