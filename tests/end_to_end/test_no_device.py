"""Where the device is absent: configurations are built, the run waits, and goes on where there is one."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.cuda_here import needs_no_driver, needs_nvcc, needs_nvrtc
from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly, refused
from tests.running import (
    Ended,
    events_in,
    expect_success,
    facts,
    journal,
    report_in,
    start,
    tunesmith,
    wait_for_events,
    wait_until_alone,
)
from tests.wording import says

# BLOCK=32 does not compile; 64 and 128 are fine; what 256 requires of its build does not hold.
FAULTY = tiny.FAKE_TEMPLATE.replace(
    '// time = "100 * BLOCK"', '// time = "100 * BLOCK"\n// fault = "1 if BLOCK == 32 else 0"'
).replace("// [launch]", '// [require]\n// few = "BLOCK + resources.registers < 256"\n// [launch]')


def absent(folder: Path, *more: object) -> Ended:
    arguments = ("--template", "problem/template.fake", "--backend", "fake:absent", *more)
    return tunesmith(folder, "tune", "problem", *arguments)


def kinds(run: Path) -> list[str]:
    return [line["type"] for line in journal(run)]


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    folder = tmp_path_factory.mktemp("survey")
    problem = tiny.fake(folder / "problem")
    (problem / "template.fake").write_text(FAULTY)
    ended = absent(folder, "--out", "run", "--no-cache")
    shutil.rmtree(problem)
    return folder, ended


class TestSurvey:
    def test_builds_everything_tells_and_waits(self, surveyed: tuple[Path, Ended]) -> None:
        folder, ended = surveyed
        assert ended.code == 5, ended.err
        error, hint = ended.err.splitlines()[-2:]
        says(error, "error:", "simulated device", "not here", "fake backend", "no device")
        says(hint, "hint:", "tunesmith resume run")
        lines = ended.out.splitlines()
        says(lines[0], "tiny", "simulated device", "not here")
        assert "┃ by the compiler             ┃ original ┃ least ┃ median ┃ most ┃" in lines
        assert "│ registers                   │       32 │    32 │     32 │   32 │" in lines
        assert lines[-5] == "configurations   4 of 4 built (2 can run, 1 build_failed, 1 over_limits)"
        reasons = dict(line.split(None, 1) for line in lines[-4:-2])
        assert "BLOCK=32: kernel.fake:1: error: this kernel was" in reasons["build_failed"].replace(
            "template.fake", "kernel.fake"
        )
        assert reasons["over_limits"].startswith("BLOCK=256: requires ")
        assert lines[-1] == "resume it with   tunesmith resume run"
        run = folder / "run"
        assert kinds(run) == ["Started", "Admitted", *["Surveyed"] * 5]
        assert {p.name for p in run.iterdir()} == {"journal.jsonl", "objects", "lock"}
        assert list((folder / "tmp").iterdir()) == []

    @pytest.mark.long
    def test_the_report_shows_it_again(self, surveyed: tuple[Path, Ended]) -> None:
        folder, ended = surveyed
        again = tunesmith(folder, "report", "run")
        assert (again.code, again.out, again.err) == (0, ended.out, "")
        value = tunesmith(folder, "report", "run", "--json").json
        assert value["survey"]["statuses"] == {"ok": 2, "build_failed": 1, "over_limits": 1}
        markdown = expect_success(folder, "report", "run", "--format", "md")
        assert "- configurations: 4 of 4 built" in markdown.out

    @pytest.mark.long
    def test_goes_on_where_there_is_one(self, surveyed: tuple[Path, Ended], tmp_path: Path) -> None:
        run = shutil.copytree(surveyed[0] / "run", tmp_path / "run")
        before = kinds(run)
        ended = expect_success(tmp_path, "resume", "run")
        assert "going on with simulated device" in ended.err
        assert kinds(run)[: len(before) + 2] == [*before, "Attached", "Baseline"]
        full = tunesmith(tmp_path, "report", "run", "--full").out
        says(full, "2 evaluations", "2 ok")
        says(full, "Built: 4 configurations")
        says(full, "cannot run", "2")
        report = report_in(run)
        assert report["general"] == {"BLOCK": 64}
        assert {f["status"] for f in report["failures"]} == {"build_failed", "over_limits"}
        assert report["survey"] is None
        asked = [event["trials"] for event in events_in(run, "Asked")]
        tried = [trial["config"] for trials in asked for trial in trials]
        assert {dict(config["items"])["BLOCK"] for config in tried} == {64, 128}
        # And it is as finished as any other.
        assert tunesmith(tmp_path, "resume", "run", "--json").json["finished"] is True

    @pytest.mark.long
    def test_a_budget_json_and_a_kill(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "template.fake", "[32, 64, 128, 256]", str([32 * i for i in range(1, 25)]))
        whole = absent(tmp_path, "--evals", 20, "--out", "whole", "--json")
        assert (whole.code, whole.json["exit"]) == (5, 5)
        assert whole.json["hint"] == "go on where there is one: tunesmith resume whole"
        assert whole.json["report"]["survey"]["planned"] == 20
        assert whole.json["report"]["survey"]["statuses"] == {"ok": 20}
        more = ("--evals", 20, "--out", "run")
        process = start(
            tmp_path,
            *("tune", "problem", "--template", "problem/template.fake", "--backend", "fake:absent", *more),
        )
        wait_for_events(tmp_path / "run", 6, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert wait_until_alone(tmp_path) == []
        written = facts(tmp_path / "run")
        # Here the simulated device is there after all: the rest is not surveyed, and nothing is lost.
        assert written == facts(tmp_path / "whole")[: len(written)]
        ended = expect_success(tmp_path, "resume", "run", "--json")
        assert sum(ended.json["evaluations"].values()) == 20
        assert facts(tmp_path / "run")[: len(written)] == written


class TestCheck:
    def test_builds_and_says_what_is_missing(self, tmp_path: Path) -> None:
        tiny.fake(tmp_path / "problem")
        ended = tunesmith(tmp_path, "check", "problem", "--backend", "fake:absent")
        refused(
            ended, 5, "tiny builds for simulated device, which is not here to check it on: the fake backend"
        )

    def test_tells_what_the_template_has(self, tmp_path: Path) -> None:
        tiny.fake(tmp_path / "problem")
        asked = ("check", "problem", "--template", "problem/template.fake", "--backend", "fake:absent")
        ended = tunesmith(tmp_path, *asked)
        assert ended.code == 5
        (line,) = ended.out.splitlines()
        says(line, "template", "4 configurations")
        says(ended.err, "error:", "tiny builds", "simulated device", "not here")
        value = tunesmith(tmp_path, *asked, "--json").json
        assert (value["problem"], value["device"], value["feasible"]) == ("tiny", "simulated device", 4)
        assert value["exit"] == 5

    def test_an_original_over_the_limits(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "problem.toml", 'block = ["64"]', 'block = ["2048"]')
        for command in (("check",), ("tune", "--template", "problem/template.fake", "--out", "run")):
            ended = tunesmith(tmp_path, command[0], "problem", *command[1:], "--backend", "fake:absent")
            refused(
                ended,
                2,
                "the kernel cannot run on simulated device at workload only: 2048 threads per block, "
                "the device allows 1024",
            )
        assert not (tmp_path / "run").exists()

    def test_a_kernel_that_does_not_build(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "kernel.fake", '// time = "20000"', '// time = "20000"\n// fault = "1"')
        for command in (("check",), ("tune", "--template", "problem/template.fake", "--out", "run")):
            ended = tunesmith(tmp_path, command[0], "problem", *command[1:], "--backend", "fake:absent")
            refused(ended, 2, "kernel.fake: the kernel does not compile:\nkernel.fake:1: error:")
        assert not (tmp_path / "run").exists()


CUDA = """\
#include "twice.cuh"
extern "C" __global__ void scale(float* out, const float* x, int n) {
    int i = blockIdx.x * STEP + threadIdx.x;
    if (i < n) out[i] = twice(x[i]);
}
"""
TWICE = "#pragma once\n__device__ inline float twice(float x) { return 2.0f * x; }\n"


def cuda(folder: Path) -> Path:
    problem = tiny.fake(folder)
    for name in ("kernel.fake", "template.fake"):
        (problem / name).unlink()
    tiny.spoil(problem / "problem.toml", '"kernel.fake"', '"kernel.cu"')
    tiny.spoil(problem / "problem.toml", 'entry = "scale"', 'entry = "scale"\ninclude = ["include"]')
    (problem / "kernel.cu").write_text(CUDA.replace("STEP", "64"))
    (problem / "template.cu").write_text(tiny.DECLARATION + CUDA.replace("STEP", "BLOCK"))
    (problem / "include").mkdir()
    (problem / "include" / "twice.cuh").write_text(TWICE)
    return problem


@needs_no_driver
class TestCuda:
    @needs_nvrtc
    @pytest.mark.long
    def test_a_survey_with_the_users_own_headers(self, tmp_path: Path) -> None:
        problem = cuda(tmp_path / "problem")
        template = ("--template", "problem/template.cu", "--out", "run")
        ended = tunesmith(tmp_path, "tune", "problem", *template, "--device", "sm_90")
        assert ended.code == 5, ended.err
        assert ended.out.startswith("tiny for NVIDIA H200, which is not here, built with nvrtc ")
        assert "configurations   4 of 4 built (4 can run)" in ended.out
        assert "│ occupancy, %" in ended.out
        assert "hint: go on where there is one: tunesmith resume run" in ended.err
        begun = journal(tmp_path / "run")[0]["event"]
        assert begun["compiler"].startswith("nvrtc ")
        assert begun["device"]["absent"] is True
        assert {"header:twice.cuh", "template-header:twice.cuh"} < {name for name, _ in begun["files"]}
        assert "cuda-bindings" in dict(begun["versions"])
        # Without the user's files: everything that was surveyed is known, what is left is built from copies.
        shutil.rmtree(problem)
        lines = (tmp_path / "run" / "journal.jsonl").read_bytes().splitlines(keepends=True)
        (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(lines[:-2]))
        before = facts(tmp_path / "run")
        again = tunesmith(tmp_path, "resume", "run")
        assert (again.code, again.out) == (5, ended.out)
        assert facts(tmp_path / "run")[: len(before)] == before
        assert len(journal(tmp_path / "run")) == len(lines)

    @needs_nvrtc
    @pytest.mark.long
    def test_check(self, tmp_path: Path) -> None:
        problem = cuda(tmp_path / "problem")
        ended = tunesmith(tmp_path, "check", "problem", "--device", "A100")
        refused(ended, 5, "tiny builds with nvrtc ", " for NVIDIA A100", "there is no NVIDIA driver")
        tiny.spoil(problem / "include" / "twice.cuh", "2.0f * x", "2.0f * y")
        ended = tunesmith(tmp_path, "check", "problem")
        refused(ended, 2, "kernel.cu: the kernel does not compile with ", 'identifier "y" is undefined')

    @needs_nvrtc
    @pytest.mark.parametrize(
        ("old", "new", "device", "limit"),
        [
            ('["64"]', '["2048"]', "sm_90", "2048 threads per block, the device allows 1024"),
            ('["64"]', '["64"]\nshared = "300000"', "sm_90", "300000 bytes of shared memory per block"),
            ('["64"]', '["64"]\ncluster = ["1"]', "sm_80", ""),
            ('["ceildiv(n, 64)"]', '["n"]\ncluster = ["2"]', "sm_80", "clusters need compute capability 9.0"),
            ('["ceildiv(n, 64)"]', '["n"]\ncluster = ["16"]', "sm_90", "16 blocks in a cluster"),
            ('["ceildiv(n, 64)"]', '["1", "65536"]', "sm_90", "grid (1, 65536, 1), the device allows"),
        ],
    )
    @pytest.mark.few(1)
    def test_an_original_over_the_limits(
        self, tmp_path: Path, old: str, new: str, device: str, limit: str
    ) -> None:
        problem = cuda(tmp_path / "problem")
        tiny.spoil(problem / "problem.toml", old, new)
        ended = quickly(tmp_path, "check", "problem", "--device", device)
        refused(ended, 2 if limit else 5, f"at workload only: {limit}" if limit else "tiny builds with")

    @needs_nvcc
    @pytest.mark.slow
    @pytest.mark.long
    def test_nvcc_where_the_source_needs_the_host(self, tmp_path: Path) -> None:
        problem = cuda(tmp_path / "problem")
        header = problem / "include" / "twice.cuh"
        header.write_text("#include <vector>\n" + header.read_text())
        ended = tunesmith(tmp_path, "check", "problem", "--device", "sm_90")
        refused(ended, 5, "tiny builds with nvcc ")

    @pytest.mark.long
    def test_devices_and_why_there_are_none(self, tmp_path: Path) -> None:
        ended = tunesmith(tmp_path, "devices", "--backend", "cuda")
        refused(ended, 5, "error: ", "see what is missing with: tunesmith doctor")
        ended = expect_success(tmp_path, "devices", "--json")
        assert "cuda" not in [device["backend"] for device in ended.json]
        assert ended.err
