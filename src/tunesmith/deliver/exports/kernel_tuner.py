"""A run's winning template for Kernel Tuner: a script, the kernel, and what the run measured as T4 files.

The script needs NumPy and Kernel Tuner, and nothing of this program. What Kernel Tuner has no words for is
refused here: a script that tuned something else would be worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import PurePosixPath

from tunesmith.deliver.exports.artefact import Artefact, Target
from tunesmith.deliver.exports.kernel_tuner_script import (
    HINT,
    INCLUDE,
    LANGUAGES,
    MOST_SHARED,
    KernelTunerScript,
    file_names,
    unlaunchable,
)
from tunesmith.errors import BadInput
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.run.candidates import Templates
from tunesmith.run.outcome import DISTRUSTED, Result
from tunesmith.run.racing import merged, verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.run.state import State
from tunesmith.run.t4 import t4_metadata, t4_results
from tunesmith.space.params import Config

SCRIPT, METADATA = "tune.py", "t4-metadata.json"
_FORBIDDEN = ("grid_size_x", "grid_size_y", "grid_size_z", "time")  # as names of parameters


def kernel_tuner_files(templates: Templates, state: State) -> dict[str, bytes]:
    """Everything of the export, by name, for the template of the run's general winner."""
    problem = templates.problem
    if state.stopped is None or state.started is None:
        raise BadInput("this run has not finished, so nothing has won in it yet", hint="finish it first")
    names = delivered_templates(problem, state, verified_choice(problem, state))
    if not names:
        raise BadInput("this run has no template, and a kernel alone has nothing to tune", hint=HINT)
    candidate = next(iter(names))
    template = templates.of(state.candidate(candidate))
    results = {w.name: results_at(state, candidate, w.name) for w in problem.workloads}
    script = KernelTunerScript(problem, template, state, candidate, results)
    _refuse(script)
    files = _sources(script)
    tool = f"tunesmith {dict(state.started.versions).get('tunesmith', '')}".strip()
    for workload in problem.workloads:
        about = {
            "tool": tool,
            "problem": problem.name,
            "device": state.device.name,
            "workload": workload.name,
            "problem_size": workload.as_dict(),
        }
        files[t4_name(problem, workload.name)] = t4_results(results[workload.name], about)
    files[METADATA] = _metadata(state)
    return files


def t4_name(problem: Problem, workload: str) -> str:
    return f"t4-results-{file_names(problem)[workload]}.json"


def results_at(state: State, candidate: str, workload: str) -> list[tuple[Config, Result]]:
    """What became of each configuration of a candidate at a workload: its alternating measurements where it
    has raced, else the last of the others. What was wrong in a race, or failed its verification, is believed
    at no workload."""
    raced = merged(state)
    found: dict[Config, Result] = {}
    for outcome in state.outcomes:
        config = outcome.trial.config
        if config is None or config.candidate != candidate:
            continue
        result = raced.get(config, {}).get(workload) or outcome.result(workload)
        if result is not None:
            found[config] = result
    bad = [(c, r) for c, own in raced.items() for r in own.values() if r.status in DISTRUSTED]
    looked = [v.outcome for v in state.verified]
    bad += [(o.trial.config, r) for o in looked for r in o.results if o.trial.config and not r.ok]
    for config, result in bad:
        if config in found:
            found[config] = Result(workload, result.status, detail=result.detail)
    return list(found.items())


def _metadata(state: State) -> bytes:
    assert state.started is not None
    device, versions = state.device, dict(state.started.versions)
    system = versions.pop("system", "")
    limits = {f.name: v for f in fields(device.limits) if type(v := getattr(device.limits, f.name)) is int}
    hardware = {"name": device.name, "kind": device.kind, "limits": limits}
    query = {"name": device.name, "platform": device.platform, "driver": device.driver}
    query["compiler"] = state.compiler
    return t4_metadata(system, hardware, query, [f"{name}=={number}" for name, number in versions.items()])


def _sources(script: KernelTunerScript) -> dict[str, bytes]:
    problem = script.problem
    files = {script.kernel: script.template.as_delivered(problem).encode(), SCRIPT: script.text().encode()}
    functions = {"user_reference.py": problem.accuracy.reference, "user_inputs.py": problem.inputs}
    files |= {name: function.text.encode() for name, function in functions.items() if function is not None}
    if script.original is not None:
        files[script.original_file] = problem.kernel.text.encode()
    headers: dict[str, str] = {}
    for spelling, text in script.headers:
        path = PurePosixPath(spelling)
        plain = not path.is_absolute() and ".." not in path.parts and spelling.isprintable()
        if not plain or headers.get(str(path), text) != text:
            raise BadInput(f"the header {spelling!r} cannot be a file of the export", hint=HINT)
        headers[str(path)] = text
    return files | {f"{INCLUDE}/{name}": text.encode() for name, text in headers.items()}


# -- what cannot be said --------------------------------------------------------------------------------


def _refuse(script: KernelTunerScript) -> None:
    if fault := _fault(script):
        raise BadInput(fault, hint=HINT)
    for param in script.template.space.params:
        if param.name in _FORBIDDEN or "nvml_" in param.name:
            fault = f"Kernel Tuner has another meaning for a parameter called {param.name}"
            raise BadInput(fault, hint="rename it in the template, and tune again")


def _fault(script: KernelTunerScript) -> str:
    problem, template, compiler = script.problem, script.template, script.state.compiler
    if problem.kernel.language not in LANGUAGES:
        return f"the export for Kernel Tuner is for CUDA and OpenCL, this kernel is {problem.kernel.language}"
    if template.is_concrete:
        return "the winner has no parameters, so Kernel Tuner has nothing to tune"
    if compiler.startswith("nvcc"):
        return f"Kernel Tuner compiles with NVRTC, this run compiled with {compiler}"
    if why := unlaunchable(template.launches):
        return f"Kernel Tuner {why}"
    for constraint in template.space.constraints:
        if constraint.needs_build:
            fault = f"the template requires {constraint.expr.text!r}, which only a build can tell"
            return f"{fault}; Kernel Tuner restricts parameters alone"
    if any(PLACEHOLDER.search(flag) for flag in template.flags):
        flags = " ".join(template.flags)
        return f"Kernel Tuner builds all configurations with the same flags, these depend on it: {flags}"
    return _argument_fault((*problem.arguments, *template.workspace)) or _shared_fault(script)


def _argument_fault(arguments: Sequence[Argument]) -> str:
    for a in arguments:
        if a.alias:
            return f"argument {a.name} shares the memory of {a.alias}, Kernel Tuner gives each its own"
        if a.element.packed > 1:
            return f"argument {a.name} has packed elements, {a.type}, which NumPy has not"
        if a.order or a.keys or a.checker:
            return f"argument {a.name} is not compared element by element, as Kernel Tuner would"
        if a.formula is not None:
            return f"argument {a.name} holds what {a.formula.text!r} says, which this export does not write"
        if a.role == "workspace" and a.init is not None:
            return f"workspace {a.name} is filled before every call, which Kernel Tuner does not do"
    return ""


def _shared_fault(script: KernelTunerScript) -> str:
    shared = script.template.launches[0].shared
    for name, values in script.best().items() if shared is not None else ():
        needed = shared.evaluate({**script.known(name), **values}) if shared is not None else 0
        if needed > MOST_SHARED:
            fault = f"the best configuration at {name} takes {needed} bytes of dynamic shared memory"
            return f"{fault}, Kernel Tuner launches with at most {MOST_SHARED}"
    return ""


def _write(artefact: Artefact) -> dict[str, bytes]:
    found = artefact.first
    if len(artefact.results) > 1:
        raise BadInput("an export for Kernel Tuner is of one run", hint="name one run")
    if found.templates is None or found.state is None:
        raise BadInput("the run's journal is not here", hint="export from the run's own folder")
    return kernel_tuner_files(found.templates, found.state)


TARGET = Target("kernel-tuner", "a Kernel Tuner script and T4 results", tuple(LANGUAGES), _write, True)
