"""The Kernel Tuner script of one kernel: its constants, and its expressions as Python functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pprint import pformat

from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.cuda.toolkit import pre_included, standard_headers
from tunesmith.deliver.exports.kernel_tuner_body import BODY
from tunesmith.deliver.exports.python_text import HELPERS, python_text
from tunesmith.errors import BadInput
from tunesmith.problem.problem import Argument, Launch, Problem, PythonFunction
from tunesmith.problem.template import PLACEHOLDER, Template, hardware_constraints, plain_name
from tunesmith.run.outcome import Result
from tunesmith.run.racing import sound_scores, verified_choice
from tunesmith.run.state import State
from tunesmith.space.expr import Expr
from tunesmith.space.grammar import Variable
from tunesmith.space.params import Config
from tunesmith.space.real import RealExpr, real_python
from tunesmith.space.space import Constraint

INCLUDE = "include"
MOST_SHARED = 48 << 10  # bytes of dynamic shared memory that a CUDA kernel gets without asking for more
LANGUAGES = {"cuda": "NVCUDA", "opencl": "OpenCL"}  # as Kernel Tuner names its backends
HINT = "take the kernels from the run's tuned folder: they are as they were measured"
_SUFFIXES = {"cuda": ".cu", "opencl": ".cl"}
_SIDES = ("block_size_x", "block_size_y", "block_size_z")  # Kernel Tuner's own names for those of a block
_HEAD = '''\
"""Tunes a kernel with Kernel Tuner: pip install kernel_tuner, then python tune.py --help.

Written by Tunesmith from one of its runs. The kernel's parameters, its restrictions and its launch are the
template's; BEST is what the run found. Results are stored in T4 files, which `tunesmith tune --prior-run`
reads.
"""

import argparse
import inspect
import itertools
import math
import runpy
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
'''


def file_names(problem: Problem) -> dict[str, str]:
    """A file's name for each workload, no two alike."""
    found: dict[str, str] = {}
    for workload in problem.workloads:
        name = plain_name(workload.name)
        while name in found.values():
            name += "_"
        found[workload.name] = name
    return found


@dataclass(frozen=True)
class KernelTunerScript:
    """`results`: what became of the candidate's configurations, by workload."""

    problem: Problem
    template: Template
    state: State
    candidate: str
    results: Mapping[str, Sequence[tuple[Config, Result]]]

    @property
    def kernel(self) -> str:
        return f"kernel{_SUFFIXES[self.problem.kernel.language]}"

    @property
    def original_file(self) -> str:
        return f"original{_SUFFIXES[self.problem.kernel.language]}"

    @property
    def original(self) -> Launch | None:
        """The original's launch, where its results are needed and Kernel Tuner can make it."""
        launches, has_reference = self.problem.launches, self.problem.accuracy.reference is not None
        return None if has_reference or unlaunchable(launches) else launches[0]

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        given = tuple({**dict(self.problem.kernel.headers), **dict(self.template.headers)}.items())
        if self.problem.kernel.language != "cuda":
            return given
        both = f"{self.template.source}\n{self.problem.kernel.text}"
        return (*given, *standard_headers(both, given))

    def text(self) -> str:
        problem, template, launch = self.problem, self.template, self.template.launches[0]
        names, derived = self._block()
        options = self._options(template.source, (*problem.kernel.flags, *template.flags))
        reference = problem.accuracy.reference
        constants: dict[str, object] = {
            "PROBLEM": problem.name,
            "LANGUAGE": LANGUAGES[problem.kernel.language],
            "PLATFORM": self._platform(),
            "KERNEL": self.kernel,
            "ENTRY": _entry(launch.entry, [p.name for p in template.space.params]),
            "OPTIONS": options,
            "INCLUDE": [INCLUDE] if self.headers else [],
            "KERNEL_DEFINES": self._kernel_defines(),
            "WORKLOADS": {w.name: w.as_dict() for w in problem.workloads},
            "FILE_NAMES": file_names(problem),
            "PARAMETERS": {p.name: list(p.values) for p in template.space.params},
            "BEST": self.best(),
            "FAILED": self._failed(),
            "MOST_SHARED": MOST_SHARED,
            "BLOCK_NAMES": names,
            "ARGUMENT_ORDER": list(launch.args),
            "REFERENCE": _place("user_reference.py", reference),
            "INPUTS": _place("user_inputs.py", problem.inputs),
            "UNCHECKED": "the problem has no reference, and Kernel Tuner cannot launch the original",
        }
        parts = [
            _HEAD,
            HELPERS,
            "\n# The limits of the device that the run was made on; on another they differ.",
        ]
        parts.append(f"DEVICE = {_literal(self.state.device.limits.names())}")
        parts += [f"{name} = {_literal(value)}" for name, value in constants.items()]
        parts.append(f"REQUIRE = {self._require()}")
        parts.append(f"DEFINES = {_table({name: self._function(e) for name, e in template.defines})}")
        parts.append(f"GRID = {self._functions(launch.grid)}")
        parts.append(f"BLOCK = {self._functions(launch.block)}")
        parts.append(f"BLOCK_PARAMETERS = {_table(derived)}")
        parts.append(f"SHARED = {self._function(launch.shared)}")
        parts.append(f"ARGUMENTS = {self._arguments()}")
        parts.append(f"SCRATCH = {self._scratch()}")
        parts.append(f"ORIGINAL = {self._original_table()}")
        return "\n".join(parts) + "\n\n\n" + BODY

    def known(self, workload: str) -> dict[str, int]:
        return {**self.state.device.limits.names(), **self.problem.workload(workload).as_dict()}

    @property
    def _largest(self) -> dict[str, int]:
        found = {name: abs(value) for name, value in self.state.device.limits.names().items()}
        for workload in self.problem.workloads:
            for name, value in workload.sizes:
                found[name] = max(found.get(name, 0), abs(value))
        return found | {p.name: max(map(abs, p.values)) for p in self.template.space.params}

    def _function(self, expr: Expr | None) -> str:
        if expr is None:
            return "None"
        if any(name.startswith("resources.") for name in expr.names):
            fault = f"the launch asks for {expr.text!r}, which only a build can tell; Kernel Tuner does not"
            raise BadInput(fault, hint=HINT)
        return f"lambda v: {python_text(expr, self._largest)}"

    def _functions(self, exprs: Sequence[Expr]) -> str:
        return "[" + "".join(f"{self._function(e)}, " for e in exprs).rstrip() + "]"

    def _require(self) -> str:
        """Of both kinds, and what the device demands, under names that tell them apart."""
        limits = hardware_constraints(self.template, self.state.device.limits)
        every = (*self.template.space.constraints, *limits)
        return _table({_constraint_name(c): self._function(c.expr) for c in every})

    def _block(self) -> tuple[list[str], dict[str, str]]:
        """The parameters that Kernel Tuner takes the sides of a block from, and those of them that are added:
        a side that is an expression, or 1 where a parameter of another meaning has Kernel Tuner's name."""
        own = [p.name for p in self.template.space.params]
        names: list[str] = []
        derived: dict[str, str] = {}
        block = self.template.launches[0].block
        for axis, name in enumerate(_SIDES):
            side = block[axis].tree if axis < len(block) else None
            if isinstance(side, Variable) and side.id in own and side.id not in names:
                names.append(side.id)
                continue
            while name in own:
                name = f"launch_{name}"
            names.append(name)
            if side is None:
                derived[name] = "([], lambda v: 1)"
                continue
            used = [param for param in own if param in block[axis].names]
            derived[name] = f"({used!r}, {self._function(block[axis])})"
        return names, derived

    def best(self) -> dict[str, dict[str, int]]:
        """For each workload what was picked there, else the general winner, else the fastest there."""
        choice = verified_choice(self.problem, self.state)
        picked = {p.workload: p.config for p in choice.picks}
        scored = [t for t in sound_scores(self.problem, self.state) if t.config.candidate == self.candidate]
        found = {}
        for place, workload in enumerate(self.problem.workloads):
            own = [
                c for c in (picked.get(workload.name), choice.general) if c and c.candidate == self.candidate
            ]
            at = [
                (s, t.config) for t in scored if (s := t.at[place] if place < len(t.at) else None) is not None
            ]
            own += [max(at, key=lambda pair: pair[0])[1]] if at else [self.template.default]
            found[workload.name] = own[0].as_dict()
        return found

    def _failed(self) -> dict[str, list[tuple[int, ...]]]:
        names = [p.name for p in self.template.space.params]
        return {
            workload: [tuple(config[n] for n in names) for config, result in found if not result.ok]
            for workload, found in self.results.items()
        }

    def _kernel_defines(self) -> dict[str, str]:
        """Those that neither a parameter nor a define of the template takes over."""
        taken = {p.name for p in self.template.space.params} | {name for name, _ in self.template.defines}
        return {name: str(text) for name, text in self.problem.kernel.defines if name not in taken}

    def _platform(self) -> int:
        first = self.state.device.id.partition(":")[0]
        return int(first) if first.isdecimal() else 0

    def _options(self, source: str, flags: Sequence[str]) -> list[str]:
        """Build options as Kernel Tuner passes them on."""
        if self.problem.kernel.language != "cuda":
            return list(flags)
        read = read_flags(flags, self.state.device.limits.capability)
        dropped = ["--ptxas-options=-v"]
        if read.architecture[-1:].isdecimal():  # then Kernel Tuner finds it by itself
            dropped.append(f"--gpu-architecture={read.architecture}")
        headers = {**dict(self.problem.kernel.headers), **dict(self.template.headers)}
        first = [f"--pre-include={name}" for name in pre_included(source, tuple(headers.items()))]
        return [o for o in read.nvrtc if o not in dropped] + first

    def _arguments(self) -> str:
        return "[\n" + "".join(f"    {self._argument(a)},\n" for a in self._passed()) + "]"

    def _passed(self) -> list[Argument]:
        return [a for a in self.problem.arguments if a.role not in ("workspace", "local")]

    def _argument(self, a: Argument) -> str:
        element = a.element
        head: dict[str, object] = {"name": a.name, "type": a.type, "role": a.role, "kind": element.kind}
        if a.role == "scalar":
            own = self._function(a.value) if isinstance(a.value, Expr) else f"lambda v: {a.value!r}"
            if isinstance(a.value, RealExpr):
                own = f"lambda v: {real_python(a.value, lambda size: f'v[{size!r}]')}"
            return _table({key: repr(text) for key, text in head.items()} | {"value": own}, "")
        accuracy = self.problem.accuracy
        bounds = (-element.largest, element.largest) if element.kind == "float" else element.bounds
        head |= {
            "values": a.values,
            "range": a.range,
            "init": a.init,
            "rtol": accuracy.rtol if a.rtol is None else a.rtol,
            "atol": accuracy.atol if a.atol is None else a.atol,
            "compare": a.compare or ("close" if element.kind == "float" else "exact"),
            "bounds": bounds,
            "mantissa": element.mantissa,
            "min_exponent": element.min_exponent,
        }
        shapes = {"shape": self._functions(a.shape), "strides": self._functions(a.strides)}
        return _table({key: repr(text) for key, text in head.items()} | shapes, "")

    def _scratch(self) -> str:
        """Arrays that hold nothing: of the problem, and of the template, shaped by its parameters."""
        own = [a for a in self.problem.arguments if a.role in ("workspace", "local")]
        rows: dict[str, str] = {}
        for a in (*own, *self.template.workspace):
            used = [p.name for p in self.template.space.params if any(p.name in e.names for e in a.shape)]
            sides = " * ".join(f"max(0, {python_text(e, self._largest)})" for e in a.shape) or "1"
            row = {
                "role": repr(a.role),
                "type": repr(a.type),
                "used": repr(used),
                "count": f"lambda v: {sides}",
            }
            rows[a.name] = _table(row, "")
        return _table(rows)

    def _original_table(self) -> str:
        launch = self.original
        if launch is None:
            return "None"
        options = self._options(self.problem.kernel.text, self.problem.kernel.flags)
        rows = {
            "file": repr(self.original_file),
            "entry": repr(launch.entry),
            "grid": self._functions(launch.grid),
            "block": self._functions(launch.block),
            "shared": self._function(launch.shared),
            "args": repr(list(launch.args)),
            "defines": repr({name: str(text) for name, text in self.problem.kernel.defines}),
            "options": repr(options),
        }
        return _table(rows)


def unlaunchable(launches: Sequence[Launch]) -> str:
    """What of these launches Kernel Tuner does not do; empty: it does all."""
    if len(launches) != 1:
        return f"tunes one launch, this has {len(launches)}"
    launch = launches[0]
    if launch.cluster:
        return "has no launches in clusters"
    if launch.cooperative:
        return "has no cooperative launches"
    if launch.when is not None:
        return "has no launches that sizes decide on"
    if any(name.startswith("resources.") for e in (*launch.grid, *launch.block) for name in e.names):
        return "does not know what a build uses when it launches one, and this launch asks for it"
    return ""


def _entry(entry: str, params: Sequence[str]) -> str:
    """Kernel Tuner puts a parameter's value in place of its name."""
    for name in PLACEHOLDER.findall(entry):
        if name not in params:
            fault = f"the entry {entry!r} names {name}, and Kernel Tuner inserts parameters alone"
            raise BadInput(fault, hint=HINT)
    return PLACEHOLDER.sub(lambda m: m.group(1), entry)


def _place(file: str, function: PythonFunction | None) -> tuple[str, str] | None:
    return (file, function.function) if function is not None else None


def _constraint_name(constraint: Constraint) -> str:
    return constraint.name if constraint.kind == "require" else f"prefer {constraint.name}"


def _literal(value: object) -> str:
    return pformat(value, width=100, sort_dicts=False)


def _table(rows: Mapping[str, str], indent: str | None = None) -> str:
    """A dictionary whose values are Python text; with an `indent` on one line."""
    if indent is not None:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in rows.items()) + "}"
    return "{\n" + "".join(f"    {key!r}: {text},\n" for key, text in rows.items()) + "}"
