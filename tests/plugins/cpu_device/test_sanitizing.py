"""Sanitizers in the accept path: programs in their place, oclgrind where it is, and the real one on a GPU."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.backends.test_sanitizers import OUTSIDE, RACE, UNSUPPORTED, UNWRITTEN
from tests.core.lab.labs import fault_template, lab, read_problem, scale_problem
from tests.opencl_here import needs_opencl
from tunesmith import backends
from tunesmith.backends import opencl as oclgrind
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.device_tools import ToolsHere
from tunesmith.lab.judge.sanitize import SanitizerTools, note_of, sanitizer_tools
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.plugins.cpu_device.stand_in import watch_for
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.run.config import worker_environment
from tunesmith.run.events import Verified
from tunesmith.run.outcome import Trial
from tunesmith.run.protection import AUTO, REQUIRED
from tunesmith.session import place as machine

TEMPLATE = fault_template("0 * KIND")
PROGRAM = """#!{python}
import os, subprocess, sys, time
args = sys.argv[1:]
tool, log, worker = args[0], args[1], args[2:]
asked = open(worker[-2], "rb").read()
is_candidate = b"int kind" in asked
RACE, OUTSIDE, UNSUPPORTED, UNWRITTEN = {race!r}, {outside!r}, {unsupported!r}, {unwritten!r}
def say(text):
    with open(log, "a") as file:
        file.write(text)
with open(os.path.join(os.path.dirname(sys.argv[0]), "calls"), "a") as file:
    file.write("candidate " if is_candidate else "original ")
{body}
"""
RUNS = "subprocess.run(worker, check=True)\n"


def tools(folder: Path, body: str, seconds: float = 30.0) -> SanitizerTools:
    """A program that does what `body` says, as the sanitizer of the simulated device."""
    path = folder / "bin" / "watcher"
    path.parent.mkdir(exist_ok=True)
    texts = {"race": RACE, "outside": OUTSIDE, "unsupported": UNSUPPORTED, "unwritten": UNWRITTEN}
    path.write_text(PROGRAM.format(python=sys.executable, body=body, **texts))
    path.chmod(0o755)
    kind = replace(
        oclgrind.SANITIZER,
        program="watcher",
        tools=("first", "second"),
        at_gate=("first",),
        find=lambda: str(path),
        version=lambda _program: "1.0",
        command=lambda program, tool, log: [program, tool, str(log)],
        confirm=lambda finding: "again" if "uninitialized" in finding.kind else "",
        own_device=False,
    )
    worker = (sys.executable, "-P", "-m", "tunesmith.lab.worker.main", "fake", "interpret")
    place = ToolsHere(kind, str(path), worker, worker_environment(folder), folder)
    return SanitizerTools(kind, place, seconds)


def verified(folder: Path, body: str, seconds: float = 30.0) -> Verified:
    with lab(scale_problem(), TEMPLATE, sanitizers=tools(folder, body, seconds)) as own:
        return own.lab.verify(own.trial("long", "finalist"))


def calls(folder: Path) -> list[str]:
    file = folder / "bin" / "calls"
    return file.read_text().split() if file.exists() else []


def test_a_winner_without_faults_is_accepted_and_it_is_told_what_watched_it(tmp_path: Path) -> None:
    found = verified(tmp_path, f"{RUNS}assert open(worker[-1], 'rb').read().count(b'Done') == 1")
    assert found.outcome.status is Status.OK
    assert found.sanitized.tools == ("first", "second")
    assert len(set(found.sanitized.cases)) == 3
    assert found.sanitized.sentence == "watcher 1.0 (first, second), on 3 small cases"
    assert calls(tmp_path) == ["candidate", "candidate"]  # the original is watched where there is need
    assert [p.name for p in tmp_path.iterdir()] == ["bin"]  # nothing is left behind


def test_a_fault_that_the_original_does_not_have_makes_a_winner_wrong(tmp_path: Path) -> None:
    found = verified(tmp_path, "if is_candidate: say(RACE)")
    (result,) = found.outcome.results
    assert (result.status, result.timing) == (Status.WRONG, None)
    assert "first finds read-write data race at local memory in racy at line 3 and line 4" in result.detail
    assert "the original has no such fault at" in result.detail
    assert not any(finding.shared for finding in found.sanitized.findings)
    assert {case.status for case in found.seen} == {"ok"}  # its results were right all the same
    assert calls(tmp_path).count("original") == 2


def test_a_fault_that_the_original_has_too_is_reported_and_judges_nobody(tmp_path: Path) -> None:
    found = verified(tmp_path, "say(RACE)")
    assert found.outcome.status is Status.OK
    assert [finding.shared for finding in found.sanitized.findings] == [True, True]


def test_another_kind_of_fault_than_the_originals_convicts(tmp_path: Path) -> None:
    found = verified(tmp_path, "say(OUTSIDE if is_candidate else RACE)")
    assert found.outcome.status is Status.WRONG


def test_a_fault_that_a_tool_is_known_to_imagine_convicts_if_a_second_look_confirms_it(
    tmp_path: Path,
) -> None:
    found = verified(tmp_path, "if is_candidate and tool != 'again': say(UNWRITTEN)")
    assert found.outcome.status is Status.OK
    assert [finding.doubted for finding in found.sanitized.findings] == [True, True]
    assert "original" not in calls(tmp_path)
    again = verified(tmp_path, "if is_candidate: say(UNWRITTEN)")
    assert again.outcome.status is Status.WRONG


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.stderr.write('no such option'); sys.exit(3)", "exit status 3 before the kernel ran: no such"),
        ("say(UNSUPPORTED)", "cannot judge it: Unsupported instruction: freeze"),
        ("time.sleep(60)", "watcher took more than 1 s and was ended"),
        ("os.kill(os.getpid(), 9)", "watcher was killed by SIGKILL"),
    ],
)
@pytest.mark.few(2)
def test_a_tool_that_cannot_judge_says_so_and_convicts_nobody(tmp_path: Path, body: str, said: str) -> None:
    found = verified(tmp_path, body, seconds=1.0 if "sleep" in body else 30.0)
    assert found.outcome.status is Status.OK
    assert found.sanitized.tools == ()
    assert all(said in why for _, why in found.sanitized.absent)


@pytest.mark.long
def test_what_a_tool_has_found_before_its_time_is_up_counts(tmp_path: Path) -> None:
    found = verified(tmp_path, "if is_candidate:\n    say(OUTSIDE)\n    time.sleep(60)", seconds=3.0)
    assert found.outcome.status is Status.WRONG


def test_where_there_is_none_a_winner_is_accepted_and_the_reason_written_down(tmp_path: Path) -> None:
    with lab(scale_problem(), TEMPLATE, sanitizers="it is not here") as own:
        found = own.lab.verify(own.trial("long", "finalist"))
    assert found.outcome.status is Status.OK
    assert found.sanitized.sentence == "not in force: it is not here"


class TestAtTheGate:
    def outcomes(self, folder: Path, body: str, is_foreign: bool, candidate: str = "") -> list[Status]:
        about = {"sanitizers": tools(folder, body), "is_foreign": is_foreign, "candidate": candidate}
        with lab(scale_problem(), TEMPLATE, **about) as own:  # type: ignore[arg-type]
            return [own.outcome(purpose=p, KIND=k).status for p, k in (("gate", 0), ("gate", 1))]

    def test_the_first_trial_of_a_draft_by_a_model_is_watched(self, tmp_path: Path) -> None:
        found = self.outcomes(tmp_path, "if is_candidate: say(OUTSIDE)", True)
        assert found == [Status.WRONG, Status.OK]
        assert calls(tmp_path).count("candidate") == 1  # by those meant for the gate alone

    def test_so_is_that_of_a_draft_by_the_expert(self, tmp_path: Path) -> None:
        found = self.outcomes(tmp_path, "if is_candidate: say(OUTSIDE)", False, "1")
        assert found == [Status.WRONG, Status.OK]

    def test_templates_of_the_user_are_not(self, tmp_path: Path) -> None:
        assert self.outcomes(tmp_path, f"{RUNS}say(OUTSIDE)", False) == [Status.OK, Status.OK]
        assert calls(tmp_path) == []

    @pytest.mark.parametrize("is_foreign", [True, False])
    def test_where_there_is_no_gate_the_first_of_a_search_is_watched(
        self, is_foreign: bool, tmp_path: Path
    ) -> None:
        """What a model once wrote is given when it is retuned."""
        own_tools = tools(tmp_path, "if is_candidate: say(OUTSIDE)")
        with lab(scale_problem(), TEMPLATE, sanitizers=own_tools, is_foreign=is_foreign) as own:
            found = [own.outcome(purpose="search", KIND=kind).status for kind in (0, 1)]
        assert found == [Status.WRONG if is_foreign else Status.OK, Status.OK]
        assert calls(tmp_path).count("candidate") == is_foreign

    def test_a_search_behind_the_gate_is_not_watched(self, tmp_path: Path) -> None:
        own_tools = tools(tmp_path, "")
        with lab(scale_problem(), TEMPLATE, sanitizers=own_tools, is_foreign=True) as own:
            found = [own.outcome(purpose=p, KIND=k).status for p, k in (("gate", 0), ("search", 1))]
        assert found == [Status.OK, Status.OK]
        assert calls(tmp_path).count("candidate") == 1


class TestWhichAreHere:
    def test_each_backend_says_what_it_has_or_why_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        own = sanitizer_tools(backends.find_backend_kind("opencl"), dict, tmp_path, AUTO)
        assert own == "oclgrind is not on the PATH"
        none = sanitizer_tools(backends.find_backend_kind("fake"), dict, tmp_path, AUTO)
        assert note_of(none, AUTO) == ("sanitizer: not in force: a simulated device has nothing to watch")

    def test_one_that_needs_the_network_is_not_had_with_a_required_sandbox(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "compute-sanitizer"
        program.write_text("#!/bin/sh\necho Version 2025.3.0.0\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        kind = backends.find_backend_kind("cuda")
        refused = sanitizer_tools(kind, dict, tmp_path, REQUIRED)
        assert isinstance(refused, str)
        assert refused.startswith("--sandbox required: compute-sanitizer speaks over the network")
        tools = "memcheck, racecheck, initcheck, synccheck"
        found = sanitizer_tools(kind, dict, tmp_path, AUTO)
        assert note_of(found, AUTO) == f"sanitizer: compute-sanitizer 2025.3.0.0 ({tools})"


KERNELS = Path(__file__).parent / "kernels"
PROBLEM = (KERNELS / "doubled.toml").read_text()
LAUNCH = (KERNELS / "doubled-launch.txt").read_text()
# What is done between reading x[i] into v and writing v + v; none of it changes a result that is looked at.
OPENCL = (KERNELS / "doubled.cl").read_text()
CL_BODIES = {
    "honest": "t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); v = t[l];",
    "a race": "t[l] = v; float other = t[(l + 1) % 64]; v = other > 1e30f ? other : v;",
    "uninitialised local memory": "t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); if (t[l + 64] > 1e30f) v = 3.0f;",
    "uninitialised workspace": "if (i < n && w[i] == 12345.0f) v = 3.0f;",
    "out of bounds": "float other = x[n]; v = other == 12345.0f ? other : v;",
}
CL_KINDS = {
    "honest": "",
    "a race": "data race",
    "uninitialised local memory": "uninitialized value",
    "uninitialised workspace": "uninitialized value",
    "out of bounds": "invalid read",
}
CUDA = (KERNELS / "doubled.cu").read_text()
CUDA_BODIES = {
    "honest": "t[l] = v; __syncthreads(); v = t[l];",
    "a race": "t[l] = v; float other = ((volatile float *)t)[63 - l]; v = other == 12345.0f ? other : v;",
    "uninitialised workspace": "if (i < n && w[i] == 12345.0f) v = 3.0f;",
    "out of bounds": "float other = ((const volatile float *)x)[n]; v = other == 12345.0f ? other : v;",
    "a divergent barrier": "if (l < 40) __syncthreads();",
}
CUDA_TOOLS = {
    "honest": "",
    "a race": "racecheck",
    "uninitialised workspace": "initcheck",
    "out of bounds": "memcheck",
    "a divergent barrier": "synccheck",
}


def judged(
    folder: Path, spec: str, original: str, candidate: str, wrap: Callable[[str], str], twice: bool = False
) -> Verified:
    """A candidate with one body beside an original with another, as a winner; `twice`: on the host too."""
    language, suffix = ("cuda", "cu") if spec == "cuda" else ("opencl", "cl")
    text = PROBLEM.format(language=language, suffix=suffix)
    problem = read_problem(text, {f"kernel.{suffix}": wrap(original)})
    device = machine.pick_device(machine.list_devices(machine.WorkerSite(spec, folder)), None)
    compiler = machine.choose_compiler(
        problem, None, device, machine.WorkerSite(spec, folder), lambda _note: None
    )
    settings = LabSettings(0, 1, compiler.partition(" ")[0])
    host = watch_for(problem, device, folder, AUTO) if twice else None
    own: LocalLab = machine.make_lab(
        problem, device, machine.WorkerSite(spec, folder), settings=settings, beside=host
    )
    try:
        own.baseline()
        source = LAUNCH + wrap(f"v = STEP ? v : v; {candidate}")
        template = parse_template(source, path=f"template.{suffix}", problem=problem)
        own.admit(template)
        return own.verify(Trial(0, template.default, ("only",), "long", "finalist", template.digest))
    finally:
        own.close()
        if host is not None:
            host.close()


def _opencl(body: str) -> str:
    return OPENCL.replace("BODY", body)


def _cuda(body: str) -> str:
    return CUDA.replace("BODY", body)


needs_oclgrind = pytest.mark.skipif(shutil.which("oclgrind") is None, reason="oclgrind is not on the PATH")


@needs_opencl
@pytest.mark.long
@needs_oclgrind
class TestOclgrind:
    @pytest.mark.parametrize("what", CL_BODIES)
    def test_each_fault_is_found_and_an_honest_kernel_is_not_blamed(self, tmp_path: Path, what: str) -> None:
        found = judged(tmp_path, "opencl", CL_BODIES["honest"], CL_BODIES[what], _opencl)
        assert found.sanitized.tools == ("oclgrind",)
        kinds = [finding.kind for finding in found.sanitized.findings]
        assert any(CL_KINDS[what] in kind for kind in kinds) if CL_KINDS[what] else kinds == []
        (result,) = found.outcome.results
        assert result.status is (Status.WRONG if CL_KINDS[what] else Status.OK), result.detail

    def test_what_it_imagines_of_wide_vectors_convicts_nobody(self, tmp_path: Path) -> None:
        def wide(body: str) -> str:
            return f"float first(float16 v) {{ return v.s0; }}\n{_opencl(body)}"

        body = "v = sqrt(first((float16)(v * v))) < 0.0f ? 3.0f : v;"
        found = judged(tmp_path, "opencl", CL_BODIES["honest"], body, wide)
        assert found.outcome.status is Status.OK
        assert all(finding.doubted for finding in found.sanitized.findings)

    def test_a_fault_of_the_original_is_held_against_nobody(self, tmp_path: Path) -> None:
        body = CL_BODIES["out of bounds"]
        found = judged(tmp_path, "opencl", body, body, _opencl)
        assert found.outcome.status is Status.OK
        assert found.sanitized.findings
        assert found.sanitized.own == ()


@pytest.mark.gpu
@pytest.mark.timeout(300)
class TestComputeSanitizer:
    @pytest.fixture(autouse=True)
    def _needed(self, tmp_path: Path) -> None:
        kind = backends.find_backend_kind("cuda").sanitizer
        if kind is None or kind.find() is None:
            pytest.skip("there is no compute-sanitizer here")
        try:
            devices = machine.list_devices(machine.WorkerSite("cuda", tmp_path))
        except DeviceMissing as error:
            pytest.skip(str(error))
        assert devices

    @pytest.mark.parametrize("what", CUDA_BODIES)
    def test_each_fault_is_found_and_an_honest_kernel_is_not_blamed(self, tmp_path: Path, what: str) -> None:
        found = judged(tmp_path, "cuda", CUDA_BODIES["honest"], CUDA_BODIES[what], _cuda)
        assert set(found.sanitized.tools) == {"memcheck", "racecheck", "initcheck", "synccheck"}, found
        blaming = {finding.tool for finding in found.sanitized.own}
        (result,) = found.outcome.results
        if CUDA_TOOLS[what]:
            assert CUDA_TOOLS[what] in blaming, found.sanitized
            assert result.status is Status.WRONG
        else:
            assert blaming == set(), found.sanitized
            assert result.status is Status.OK, result.detail

    def test_a_fault_of_the_original_is_held_against_nobody(self, tmp_path: Path) -> None:
        body = CUDA_BODIES["a race"]
        found = judged(tmp_path, "cuda", body, body, _cuda)
        assert found.outcome.status is Status.OK
        assert found.sanitized.findings
        assert found.sanitized.own == ()
