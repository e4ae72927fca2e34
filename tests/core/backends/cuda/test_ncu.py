"""Nsight Compute's words, and programs in its place that behave as it may."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.core.lab.labs import scale_problem
from tests.core.lab.process_list import gone
from tests.wording import says
from tunesmith.backends.cuda import tools
from tunesmith.backends.cuda.tools import (
    DURATION,
    LET_IN,
    METRICS,
    NOT_PERMITTED,
    RATIOS,
    SHARES,
    STALLS,
    SUMS,
    NcuCounting,
    counters_of,
    find_ncu,
    main_of,
    may_count,
    ncu_command,
    read_rows,
    stall_metric,
)
from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.messages import Contender, Counted, CountLaunches, Draw, LaunchOnce, Load, Unit
from tunesmith.backends.tool_process import text_of
from tunesmith.problem.plan import Geometry, Plan, plan_launch
from tunesmith.problem.template import original_variant
from tunesmith.run.config import worker_environment

HEAD = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream")
HEAD += ("Block Size", "Grid Size", "Device", "CC")
PREFACE = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "scale" - 0: 0%....50%....100% - 12 passes
==PROF== Disconnected from process 4711
"""


def csv_of(*launches: Mapping[str, str], units: Mapping[str, str] | None = None) -> str:
    """As ncu prints it: a header, a row of units with nothing below the names, a row for each launch."""
    metrics = sorted({name for launch in launches for name in launch})
    known = {DURATION: "nsecond", "dram__bytes_read.sum": "byte", **(units or {})}

    def line(cells: list[str]) -> str:
        return ",".join(f'"{cell}"' for cell in cells)

    lines = [line([*HEAD, *metrics]), line([*([""] * len(HEAD)), *(known.get(m, "%") for m in metrics)])]
    for number, launch in enumerate(launches):
        own = [str(number), "4711", "python3.11", "127.0.0.1", "scale(float *, const float *, int)"]
        own += ["1", "7", "(128, 1, 1)", "(256, 1, 1)", "0", "9.0"]
        lines.append(line([*own, *(launch.get(m, "n/a") for m in metrics)]))
    return PREFACE + "\n".join(lines) + "\n"


def test_numbers_come_with_units_and_commas() -> None:
    text = csv_of(
        {
            DURATION: "12,345",
            "dram__bytes_read.sum": "1,048,576",
            SHARES["dram"]: "45.50",
            SHARES["l2"]: "n/a",
            SHARES["l1"]: "nan",
            SHARES["issue"]: "inf",
        }
    )
    (row,) = read_rows(text)
    assert row.values[DURATION] == pytest.approx(12345e-9)
    assert row.values["dram__bytes_read.sum"] == 1 << 20
    counters = counters_of([row])
    assert counters.dram == pytest.approx(0.455)
    assert counters.l2 is counters.l1 is counters.issue is None
    assert counters.dram_read == 1 << 20
    assert counters.dram_written is None
    assert counters.stalls == ()


def test_units_that_were_not_asked_for_are_understood() -> None:
    units = {DURATION: "usecond", "dram__bytes_read.sum": "Mbyte", "dram__bytes_write.sum": "Kbyte"}
    launch = {DURATION: "2.5", "dram__bytes_read.sum": "1.5", "dram__bytes_write.sum": "7"}
    (row,) = read_rows(csv_of(launch, units=units))
    assert row.values[DURATION] == pytest.approx(2.5e-6)
    assert counters_of([row]).dram_read == pytest.approx(1.5e6)
    assert counters_of([row]).dram_written == pytest.approx(7e3)


def test_of_several_launches_the_main_one_is_reported_and_bytes_are_added_up() -> None:
    first = {DURATION: "3,000", SHARES["dram"]: "80", "dram__bytes_read.sum": "100"}
    second = {
        DURATION: "1,000",
        SHARES["dram"]: "40",
        "dram__bytes_read.sum": "50",
        RATIOS["load_sectors"]: "4",
    }
    rows = read_rows(csv_of(first, second))
    one, other = counters_of(rows, 0), counters_of(rows, 1)
    assert (one.dram, other.dram) == (pytest.approx(0.8), pytest.approx(0.4))
    assert (one.load_sectors, other.load_sectors) == (None, 4)
    assert one.dram_read == other.dram_read == 150
    silent = [rows[0], replace(rows[1], values={DURATION: 1e-6})]
    assert counters_of(silent).dram_read is None  # a part is not the whole


def test_the_launch_that_is_reported_is_found_among_the_rows() -> None:
    rows = read_rows(csv_of({DURATION: "10"}, {DURATION: "30"}, {DURATION: "20"}))
    several, _ = to_count()
    of_three = replace(with_launches(several, plan_of(several).launches * 3), main=2)
    assert main_of(rows, of_three) == 2
    assert main_of(rows, several) == 1  # there are others among them: the longest


def test_the_hint_is_what_doctor_says() -> None:
    assert LET_IN in NOT_PERMITTED
    assert "ERR_NVGPUCTRPERM" in NOT_PERMITTED


def test_shares_are_made_of_what_is_counted() -> None:
    local = {f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}.sum": "10" for op in ("ld", "st")}
    other = {f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum": "30" for op in ("ld", "st")}
    stalls = {stall_metric("long_scoreboard"): "6", stall_metric("lg_throttle"): "1"}
    stalls |= {stall_metric("mio_throttle"): "1", stall_metric("wait"): "2"}
    cycles = {"sm__cycles_active.avg": "750", "sm__cycles_elapsed.avg": "1,000"}
    conflicts = dict.fromkeys(SUMS["shared_conflicts"], "5")
    counters = counters_of(read_rows(csv_of({**local, **other, **stalls, **cycles, **conflicts})))
    assert counters.local_sectors == pytest.approx(0.25)
    assert counters.sm_active == pytest.approx(0.75)
    assert counters.shared_conflicts == 10
    assert counters.stalls[0] == ("memory", pytest.approx(0.6))
    assert counters.stalled("queue") == pytest.approx(0.2)
    assert sum(share for _, share in counters.stalls) == pytest.approx(1)


@pytest.mark.parametrize(("printed", "hits"), [("64", 0.64), ("100.4", 1.0), ("171", None), ("179.2", None)])
def test_a_hit_rate_whose_parts_were_counted_in_different_replays_is_none(
    printed: str, hits: float | None
) -> None:
    """Nsight Compute prints more than 100 % for small kernels and uneven blocks."""
    counters = counters_of(read_rows(csv_of({SHARES["l2_hits"]: printed, SHARES["dram"]: "40"})))
    assert counters.l2_hits == (None if hits is None else pytest.approx(hits))
    assert counters.dram == pytest.approx(0.4)


@pytest.mark.parametrize("text", ["", PREFACE, '"ID","Kernel Name"\n"x', '"ID"\n"0"\n', "\0\0\n" * 9])
def test_words_without_a_launch_have_no_rows(text: str) -> None:
    assert read_rows(text) == []


def test_the_command_leaves_the_clocks_alone_and_waits_for_the_marks() -> None:
    command = ncu_command("ncu", METRICS, Path("log"), warm=False)
    pairs = dict(pairwise(command))
    assert pairs["--clock-control"] == "none"
    assert pairs["--cache-control"] == "all"
    assert pairs["--profile-from-start"] == "off"
    assert pairs["--target-processes"] == "all"
    assert pairs["--page"] == "raw"
    assert pairs["--metrics"].split(",") == list(METRICS)
    assert "--csv" in command
    warm = ncu_command("ncu", METRICS, Path("log"), warm=True)
    assert dict(pairwise(warm))["--cache-control"] == "none"
    assert len(set(METRICS)) == len(METRICS)
    assert all(stall_metric(reason) in METRICS for reason in STALLS)


# -- programs in its place ------------------------------------------------------------------------------

PROGRAM = """#!{python}
import os, signal, subprocess, sys, time
args = sys.argv[1:]
if args == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler")
    print("Version 2019.1.0.0 (build 1)")
    sys.exit()
at = args.index("--log-file")
log, command, metrics = args[at + 1], args[at + 2:], args[args.index("--metrics") + 1].split(",")
def say(text):
    with open(log, "a") as file:
        file.write(text)
CSV = {csv!r}
{body}
"""


def program(folder: Path, body: str, csv: str = "") -> Path:
    path = folder / "bin" / "ncu"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM.format(python=sys.executable, body=body, csv=csv))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def to_count() -> tuple[CountLaunches, bytes]:
    """A kernel of the simulated device, which a real worker can launch."""
    problem, device = scale_problem(), FakeBackend().devices()[0]
    variant = original_variant(problem)
    unit = Unit(variant.path, variant.source, variant.language, (), variant.entries)
    binary = FakeBackend().build(unit, device)
    plan = plan_launch(problem, variant, problem.workloads[0].as_dict(), device, binary.resources)
    assert isinstance(plan, Plan)
    launch = LaunchOnce(Contender(binary.code_digest, plan), Draw("normal", 1), warm=False)
    return CountLaunches(Load(unit, binary.code_digest, device), launch), binary.data


def plan_of(what: CountLaunches) -> Plan:
    return what.launch.contender.plan


def with_launches(what: CountLaunches, launches: Sequence[Geometry]) -> CountLaunches:
    contender = what.launch.contender
    other = replace(contender, plan=replace(contender.plan, launches=tuple(launches)))
    return replace(what, launch=replace(what.launch, contender=other))


def counting(folder: Path, path: Path | None, seconds: float = 30.0) -> NcuCounting:
    worker = (sys.executable, "-P", "-m", "tunesmith.lab.worker.main", "fake", "profile")
    found = str(path) if path else None
    return NcuCounting(worker, worker_environment(folder), folder, seconds, find=lambda: found)


def counted(folder: Path, body: str, csv: str = "", seconds: float = 30.0) -> Counted:
    return counting(folder, program(folder, body, csv), seconds).count(*to_count())


GOOD = csv_of({DURATION: "12,345", SHARES["dram"]: "45.50"})


def test_the_process_that_is_counted_launches_the_kernel(tmp_path: Path) -> None:
    body = """
assert subprocess.run(command).returncode == 0
replies = open(command[-1], "rb").read()
assert replies.count(b'"Done"') == 2, replies
say(CSV)
"""
    found = counted(tmp_path, body, GOOD)
    assert found.why_not == ""
    assert found.counters.dram == pytest.approx(0.455)
    assert [p.name for p in tmp_path.iterdir()] == ["bin"]  # nothing is left behind


def test_its_home_and_language_are_not_the_users(tmp_path: Path) -> None:
    body = """
assert os.environ["HOME"] == os.environ["TMPDIR"] == os.getcwd() != os.path.expanduser("~user")
assert os.environ["LC_ALL"] == "C"
say(CSV)
"""
    assert counted(tmp_path, body, GOOD).counters is not None


@pytest.mark.long
def test_a_kernel_that_cannot_be_launched_is_reported_in_its_words(tmp_path: Path) -> None:
    path = program(tmp_path, "subprocess.run(command); say('==WARNING== No kernels were profiled.\\n')")
    what, binary = to_count()
    short = with_launches(what, [replace(g, args=("x",)) for g in plan_of(what).launches])
    found = counting(tmp_path, path).count(short, binary)
    assert found.counters is None
    assert found.why_not.startswith(
        "the kernel could not be launched under ncu: the kernel takes 4 arguments"
    )


def test_without_ncu_it_says_where_it_was_looked_for(tmp_path: Path) -> None:
    found = counting(tmp_path, None).count(*to_count())
    assert found.counters is None
    assert "neither on the PATH, nor in CUDA_HOME/bin" in found.why_not


def test_permission_is_reported_with_how_to_get_it_and_asked_for_once(tmp_path: Path) -> None:
    body = """
say("==PROF== Connected to process 1\\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
    "access NVIDIA GPU Performance Counters on the target device 0.\\n")
open(os.path.join(os.path.dirname(sys.argv[0]), "asked"), "a").write("x")
sys.exit(1)
"""
    asker = counting(tmp_path, program(tmp_path, body))
    found = [asker.count(*to_count()) for _ in range(3)]
    assert all("NVreg_RestrictProfilingToAdminUsers=0" in f.why_not for f in found)
    assert (tmp_path / "bin" / "asked").read_text() == "x"


def test_metrics_it_does_not_know_are_left_out(tmp_path: Path) -> None:
    body = """
if "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active" in metrics:
    say("==ERROR== Failed to find metric sm__pipe_tensor_cycles_active\\n")
    sys.exit(1)
say(CSV)
"""
    found = counted(tmp_path, body, GOOD)
    assert found.counters.tensor is None
    assert found.left_out == ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",)


def test_a_list_of_unknown_metrics_may_follow_the_complaint(tmp_path: Path) -> None:
    body = """
unknown = [m for m in metrics if "xu" in m or "fp64" in m]
if unknown:
    say("==ERROR== The following metrics are not available:\\n" + "\\n".join(unknown) + "\\n")
    sys.exit(1)
say(CSV)
"""
    found = counted(tmp_path, body, GOOD)
    assert found.counters is not None
    assert len(found.left_out) == 2


def test_another_version_is_named(tmp_path: Path) -> None:
    body = "say('==ERROR== Unknown metric ' + ' '.join(metrics) + '\\n'); sys.exit(1)"
    found = counted(tmp_path, body)
    says(found.why_not, "version 2019.1.0.0", "not know", "metrics", "gpu__time_duration")


@pytest.mark.long
def test_one_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    body = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(os.path.join(os.path.dirname(sys.argv[0]), "child"), "w").write(str(child.pid))
time.sleep(600)
"""
    started = time.monotonic()
    asker = counting(tmp_path, program(tmp_path, body), seconds=2.0)
    assert asker.count(*to_count()).why_not == "ncu took more than 2 s and was ended"
    assert time.monotonic() - started < 20
    child = int((tmp_path / "bin" / "child").read_text())
    assert gone(child)
    assert asker.count(*to_count()).why_not == "ncu took more than 2 s and was ended"  # not waited for again
    assert time.monotonic() - started < 20


def test_one_that_is_killed_half_way_leaves_no_counters(tmp_path: Path) -> None:
    found = counted(tmp_path, "say(CSV); os.kill(os.getpid(), signal.SIGKILL)", GOOD)
    assert found.counters is None
    assert found.why_not == "ncu was killed by SIGKILL before it was through"


def test_one_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "MAX_OUTPUT", 1 << 20)
    found = counted(tmp_path, "while True: say('x' * 100_000)")
    assert found.why_not == "ncu printed more than 1 MiB and was ended"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pass", "ncu printed no counters"),
        ("say('==WARNING== No kernels were profiled.\\n')", "no counters: No kernels were profiled."),
        ("sys.stderr.write('cannot open shared object\\n'); sys.exit(127)", "exit status 127: cannot open"),
        (
            "say('==ERROR== Driver resource was unavailable.\\n'); sys.exit(9)",
            "exit status 9: Driver resource",
        ),
        ("say('==ERROR== \\x1b[31mred\\n'); sys.exit(9)", "exit status 9: red"),
        ("say(CSV[:CSV.rindex('9.0')])", "ncu printed no counters"),
    ],
)
def test_whatever_else_happens_is_a_sentence(tmp_path: Path, body: str, said: str) -> None:
    found = counted(tmp_path, body, GOOD)
    assert found.counters is None
    assert said in found.why_not


def test_one_that_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ncu"
    path.write_text("not a program")
    path.chmod(0o755)
    assert counting(tmp_path, path).count(*to_count()).why_not.startswith("ncu does not start: ")


def test_it_is_found_on_the_path_with_the_toolkit_and_where_packages_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "OPT", tmp_path / "opt")
    monkeypatch.setattr(tools.toolkit, "USUAL_PLACE", tmp_path / "usual")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert find_ncu() is None
    for version in ("2024.3.2", "2025.10.1", "2025.9.0"):
        _executable(tmp_path / "opt" / version / "ncu")
    assert find_ncu() == str(tmp_path / "opt" / "2025.10.1" / "ncu")
    _executable(tmp_path / "home" / "bin" / "ncu")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_ncu() == str(tmp_path / "home" / "bin" / "ncu")
    _executable(tmp_path / "path" / "ncu")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_ncu() == str(tmp_path / "path" / "ncu")


def _executable(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    os.chmod(path, 0o755)


def test_links_in_place_of_its_files_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("not for a report")
    (tmp_path / "log").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe")
    assert [text_of(tmp_path / name) for name in ("log", "pipe", "key")] == ["", "", "not for a report"]


ROOT, NOBODY, PERFMON = "000001ffffffffff", "0000000000000000", "0000004000000000"


@pytest.mark.parametrize(
    ("params", "capabilities", "verdict"),
    [
        ("RmProfilingAdminOnly: 0\n", NOBODY, True),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", ROOT, True),
        ("RmProfilingAdminOnly: 1\n", PERFMON, True),
        ("RmProfilingAdminOnly: 1\n", NOBODY, False),
        ("RmProfilingAdminOnly: 1\n", "", False),
        ("EnableMSI: 1\n", ROOT, None),
        ("", ROOT, None),
    ],
)
def test_who_may_count(tmp_path: Path, params: str, capabilities: str, verdict: bool | None) -> None:
    (tmp_path / "params").write_text(params)
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    found, why = may_count(tmp_path / "params", tmp_path / "status")
    assert found is verdict
    assert "counters" in why


def test_where_there_is_no_driver_nobody_says(tmp_path: Path) -> None:
    assert may_count(tmp_path / "params", tmp_path / "status")[0] is None
