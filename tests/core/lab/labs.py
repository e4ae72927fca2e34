"""Problems and templates written in a few lines, and a lab around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.core.lab.in_process import Log, spawner
from tunesmith import backends
from tunesmith.backends.fake import FAULTS
from tunesmith.backends.messages import RunCase
from tunesmith.backends.port import Backend
from tunesmith.lab.judge.sanitize import Beside, SanitizerTools
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template, original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.run.outcome import Effort, Outcome, Purpose, Result, Trial
from tunesmith.run.ports import ResultCache
from tunesmith.session import place
from tunesmith.space.configset import Config

SCALE = """
name = "scale"

[kernel]
source = "kernel.fake"
entry = "scale"

[[argument]]
name = "out"
type = "float32*"
shape = ["rows", "d"]
role = "output"
[[argument]]
name = "x"
type = "float32*"
shape = ["rows", "d"]
role = "input"
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int32"
value = "d"

[launch]
grid = ["rows"]
block = ["64"]

[contract]
rows = { min = 1, max = 64 }
d = { min = 8, max = 64, multiple_of = 8 }

[workloads]
small = { rows = 16, d = 32 }

[accuracy]
reference = "reference.py:scale"
rtol = 1e-6
atol = 1e-6
"""
REFERENCE = "def scale(x):\n    return 2.0 * x\n"


def fake_kernel(
    *, args: str = "out, x, rows, d", op: str = "scale", time: str = "20000 + rows * d", fault: str = "0"
) -> str:
    names = ", ".join(f'"{name.strip()}"' for name in args.split(","))
    lines = [f"args = [{names}]", f'op = "{op}"', f'time = "{time}"', f'fault = "{fault}"']
    return "\n".join(["// /// fake", *(f"// {line}" for line in lines), "// ///", ""])


def template_text(declaration: str, code: str) -> str:
    """A template from its TOML and its code."""
    block = ["// /// tunesmith", *(f"// {line}" for line in declaration.strip().splitlines()), "// ///"]
    return "\n".join([*block, code])


def fault_template(
    faults: str = "KIND", *, time: str = "10000 + rows * d", extra: str = "", launch: str = "", **kernel: str
) -> str:
    """A template whose parameter KIND chooses among misbehaviours: `faults` is an expression over it."""
    declaration = f"""
[params]
KIND = {list(range(len(FAULTS)))}
[default]
KIND = 0
{extra}
[launch]
grid = ["rows"]
block = ["64"]
{launch}
"""
    code = "int kind[KIND + 1];\n" + fake_kernel(fault=faults, time=time, **kernel)
    return template_text(declaration, code)


def read_problem(text: str, files: Mapping[str, str]) -> Problem:
    return parse_problem(text, path="problem.toml", read=lambda name: files[name])


def scale_problem(
    *changes: tuple[str, str],
    kernel: str | None = None,
    reference: str | None = REFERENCE,
    inputs: str | None = None,
    checks: str = "",
    more: Mapping[str, str] | None = None,
) -> Problem:
    """The problem above with pieces of its text replaced; `more`: further files beside it."""
    text = SCALE
    if reference is None:
        text = text.replace('reference = "reference.py:scale"\n', "")
    if inputs is not None:
        text = 'inputs = "inputs.py:make"\n' + text
    for old, new in changes:
        assert old in text, f"{old!r} is not in the problem"
        text = text.replace(old, new)
    files = {
        "kernel.fake": kernel or fake_kernel(),
        "reference.py": reference or "",
        "inputs.py": inputs or "",
        "checks.py": checks,
        **(more or {}),
    }
    return read_problem(text, files)


@dataclass
class Harness:
    """A lab, what its workers were asked, and short ways to ask it."""

    lab: LocalLab
    problem: Problem
    log: Log
    template: Template | None = None
    trials: int = field(default=0)

    def trial(
        self,
        effort: Effort = "short",
        purpose: Purpose = "search",
        workloads: tuple[str, ...] | None = None,
        **values: int,
    ) -> Trial:
        self.trials += 1
        names = workloads or tuple(w.name for w in self.problem.workloads)
        config = Config.of({**self.template.default.as_dict(), **values})
        return Trial(self.trials, config, names, effort, purpose, self.template.digest)

    def outcome(self, effort: Effort = "short", **values: Any) -> Outcome:
        self.lab.submit(self.trial(effort, **values))
        return self.lab.collect()

    def result(self, effort: Effort = "short", **values: Any) -> Result:
        return self.outcome(effort, **values).results[0]

    def sizes_run(self) -> list[dict[str, int]]:
        return [dict(s.request.plan.sizes) for s in self.log.of(RunCase)]


def device_of(spec: str, scratch: Path | None = None) -> Device:
    if scratch is not None:
        return place.pick_device(place.list_devices(place.WorkerSite(spec, scratch)), None)
    return place.pick_device(backends.make_backend(spec).devices(), None)


def plan_at(problem: Problem, **sizes: int) -> Plan:
    """Of the original, on the simulated device; at its first workload where no sizes are given."""
    chosen = sizes or problem.workloads[0].as_dict()
    found = plan_launch(problem, original_variant(problem), chosen, device_of("fake"), None)
    assert isinstance(found, Plan), found
    return found


@contextmanager
def lab(
    problem: Problem,
    template: str | None = None,
    *,
    spec: str = "fake",
    backend: Callable[[], Backend] | None = None,
    scratch: Path | None = None,
    device: Device | None = None,
    cache: ResultCache | None = None,
    baseline: bool = True,
    seed: int = 0,
    verify_seed: int = 1,
    salt: int = 0,
    progress: Callable[[str], None] = lambda _: None,
    sanitizers: SanitizerTools | str = "no sanitizer in this test",
    is_foreign: bool = False,
    beside: Beside | None = None,
    candidate: str = "",
) -> Iterator[Harness]:
    """A lab that has timed the original; its workers live in this process unless it has a scratch folder."""
    log = Log()
    own = LocalLab(
        problem,
        device or device_of(spec),
        spawner(spec, log, scratch, backend),  # type: ignore[arg-type]
        LabSettings(seed, 1, salt=salt),
        cache=cache,
        progress=progress,
        draw_seed=lambda: verify_seed,
        sanitizers=sanitizers,
        beside=beside,
    )
    try:
        harness = Harness(own, problem, log)
        if template is not None:
            read = parse_template(template, path="template.fake", problem=problem)
            harness.template = replace(read.of_candidate(candidate), is_foreign=is_foreign)
            own.admit(harness.template)
        if baseline:
            own.baseline()
        yield harness
    finally:
        own.close()
