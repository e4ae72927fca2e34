"""A run's winning template for Kernel Tuner: a script, the kernel, and what the run measured as T4 files.

The script needs NumPy and Kernel Tuner, and nothing of this program. What Kernel Tuner has no words for is
refused here: a script that tuned something else would be worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from pprint import pformat

from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.cuda.toolkit import pre_included, standard_headers
from tunesmith.base.errors import BadInput
from tunesmith.deliver.artefact import Artefact, Target
from tunesmith.deliver.expr_text import HELPERS, python_text
from tunesmith.problem.problem import Argument, Launch, Problem, PythonFunction
from tunesmith.problem.template import PLACEHOLDER, Template, hardware_constraints, plain_name
from tunesmith.run.candidates import Templates
from tunesmith.run.outcome import DISTRUSTED, Result
from tunesmith.run.race import merge_measurements, sound_scores, verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.run.state import State
from tunesmith.run.t4 import t4_metadata, t4_results
from tunesmith.space.configset import Config
from tunesmith.space.expr import Expr, RealExpr, Variable, real_python
from tunesmith.space.space import Constraint

# The part of the script that is the same for every kernel. What differs stands before it, as constants and
# functions of `v`: the sizes of a workload, the limits of the device, the parameters.
BODY = '''\
SIDES = ["block_size_x", "block_size_y", "block_size_z"]


def value(function, v):
    """The integer that an expression has, or None where it has none."""
    try:
        return int(function(v))
    except (ArithmeticError, ValueError):
        return None


def values_at(sizes, p):
    return {**DEVICE, **sizes, **p}


def sides(functions, v):
    return [value(f, v) for f in functions] + [1] * (3 - len(functions))


def can_run(name, p):
    """Whether the template allows the configuration at this workload. Those that failed there in the run are
    left out: Kernel Tuner ends where one of them does not build or gives a wrong result."""
    v = values_at(WORKLOADS[name], p)
    if not all(value(condition, v) for condition in REQUIRE.values()):
        return False
    if any(value(define, v) is None for define in DEFINES.values()):
        return False
    if any(side is None or side < 1 for side in sides(GRID, v) + sides(BLOCK, v)):
        return False
    if SHARED is not None:
        shared = value(SHARED, v)
        if shared is None or not 0 <= shared <= MOST_SHARED:
            return False
    return tuple(p[key] for key in PARAMETERS) not in FAILED[name]


def restrictions_at(name, parameters, best=False):
    """Kernel Tuner calls it with a dictionary, with values in order, or with named values. What the run
    picked may be outside what the template prefers at a workload: it has proved right there."""

    def allowed(*given, **named):
        if given and isinstance(given[0], dict):
            p = given[0]
        else:
            p = {**dict(zip(parameters, given)), **named}
        v = values_at(WORKLOADS[name], p)
        if any(value(side, v) != p[axis] for axis, (_, side) in BLOCK_PARAMETERS.items()):
            return False
        return best or can_run(name, p)

    return allowed


def with_block_parameters(name, parameters):
    """Kernel Tuner reads a block's size from parameters alone: a side that is an expression becomes one,
    whose value the restrictions tie to the others."""
    found = dict(parameters)
    for axis, (used, side) in BLOCK_PARAMETERS.items():
        combinations = itertools.product(*(parameters[key] for key in used))
        each = (values_at(WORKLOADS[name], dict(zip(used, picked))) for picked in combinations)
        found[axis] = sorted({s for s in (value(side, v) for v in each) if s is not None and s > 0})
    return found


# -- arguments ------------------------------------------------------------------------------------------


class Array:
    """An array as the kernel sees it: its memory, and its elements in their shape."""

    def __init__(self, argument, v):
        self.argument = argument
        self.shape = tuple(max(0, int(f(v))) for f in argument["shape"])
        dense = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        self.strides = tuple(int(f(v)) for f in argument["strides"]) or dense
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        self.extent = 1 + reach if math.prod(self.shape) else 0
        self.dtype = dtype_of(argument["type"])

    def empty(self):
        return np.zeros(max(1, self.extent), self.dtype)

    def elements(self, memory):
        # As plain words: NumPy makes no strided view of a type that is not its own.
        words = memory.view(f"u{memory.itemsize}")
        steps = tuple(s * memory.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(words, self.shape, steps)

    def seen_in(self, memory):
        """The elements, by their own type, in memory that came back."""
        flat = np.ascontiguousarray(memory).reshape(-1).view(self.dtype)
        return self.elements(flat).copy().view(self.dtype)

    def drawn(self, rng):
        kind, bounds, count = self.argument["values"], self.argument["range"], max(1, self.extent)
        if kind in ("zeros", "ones"):
            return np.full(count, kind == "ones").astype(self.dtype)
        if self.argument["kind"] != "float":
            limits = np.iinfo(self.dtype)
            low, high = bounds or (0, 100)
            low, high = max(math.ceil(low), limits.min), min(math.floor(high), limits.max)
            return rng.integers(low, high, count, dtype=self.dtype, endpoint=True)
        if kind == "integers":
            low, high = bounds or (0, 100)
            return rng.integers(math.ceil(low), math.floor(high), count, endpoint=True).astype(self.dtype)
        if bounds is not None:
            return rng.uniform(bounds[0], bounds[1], count).astype(self.dtype)
        if kind == "positive":
            return (1 - rng.random(count)).astype(self.dtype)
        if kind == "uniform":
            return rng.uniform(-1, 1, count).astype(self.dtype)
        return rng.standard_normal(count).astype(self.dtype)


def dtype_of(name):
    if name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, {"float8_e4m3": "float8_e4m3fn"}.get(name, name)))
    return np.dtype(name)


def called(place, offered):
    """The user's function, with those of the offered names that it asks for."""
    file, name = place
    function = runpy.run_path(str(HERE / file))[name]
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**offered)
    return function(**{p.name: offered[p.name] for p in parameters if p.name in offered})


def host_values(name):
    """Every argument at a workload, by name: the memory of arrays, scalars of the kernel's own type."""
    sizes, found, arrays = WORKLOADS[name], {}, {}
    v = {**DEVICE, **sizes}
    rng = np.random.default_rng(0)
    made = called(INPUTS, {"rng": np.random.default_rng(0), **sizes}) if INPUTS else {}
    for argument in ARGUMENTS:
        if argument["role"] == "scalar":
            found[argument["name"]] = dtype_of(argument["type"]).type(argument["value"](v))
            continue
        array = arrays[argument["name"]] = Array(argument, v)
        memory = array.empty()
        if argument["name"] in made:
            values = np.asarray(made[argument["name"]]).astype(array.dtype)
            array.elements(memory)[...] = values.view(f"u{memory.itemsize}")
        elif argument["role"] in ("input", "inout"):
            memory = array.drawn(rng)
        elif argument["init"] is not None:
            memory[...] = argument["init"]
        found[argument["name"]] = memory
    return found, arrays


def to_pass(value):
    """Types that NumPy has not are passed as plain words."""
    is_foreign = isinstance(value, np.ndarray) and value.dtype.kind == "V"
    return value.view(f"u{value.itemsize}") if is_foreign else value


def arguments_for(names, name, found, parameters):
    """In the kernel's order; what depends on parameters is scratch alone."""
    made = []
    for argument in names:
        if argument in found:
            made.append(to_pass(found[argument]))
            continue
        scratch = SCRATCH[argument]
        used, count, dtype = scratch["used"], scratch["count"], dtype_of(scratch["type"])
        combinations = itertools.product(*(parameters[each] for each in used))
        each = [value(count, values_at(WORKLOADS[name], dict(zip(used, c)))) for c in combinations]
        counts = sorted({max(1, n) for n in each if n is not None})
        if scratch["role"] == "local":
            made.append(local_memory(name, count, counts, dtype))
        else:
            made.append(to_pass(np.zeros(counts[-1], dtype)))
    return made


def local_memory(name, count, counts, dtype):
    import pyopencl
    from kernel_tuner.accuracy import Tunable

    def chosen(p):
        return max(1, int(count(values_at(WORKLOADS[name], p))))

    return Tunable(chosen, {n: pyopencl.LocalMemory(n * dtype.itemsize) for n in counts})


# -- what is right --------------------------------------------------------------------------------------


def expected_at(name, found, arrays, where):
    """Every output as it should be, by name: from the problem's reference, else from the original kernel."""
    outputs = [argument["name"] for argument in ARGUMENTS if argument["role"] in ("output", "inout")]
    if REFERENCE:
        offered = dict(WORKLOADS[name])
        for argument in ARGUMENTS:
            seen = found[argument["name"]]
            if argument["role"] == "scalar":
                offered.setdefault(argument["name"], seen.item())
            elif argument["role"] in ("input", "inout"):
                seen = arrays[argument["name"]].seen_in(seen)
                offered[argument["name"]] = seen.astype(np.float64) if argument["kind"] == "float" else seen
        answer = called(REFERENCE, offered)
        if not isinstance(answer, dict):
            answer = dict(zip(outputs, answer if isinstance(answer, tuple) else (answer,)))
        return {output: np.asarray(answer[output]) for output in outputs}
    if ORIGINAL is None:
        return {}
    from kernel_tuner import tune_kernel

    v, order, seen = {**DEVICE, **WORKLOADS[name]}, ORIGINAL["args"], {}
    shared = {} if ORIGINAL["shared"] is None else {"smem_args": {"size": int(ORIGINAL["shared"](v))}}

    def keep(answer, results, atol=None):
        seen.update({key: np.array(got) for key, got in zip(order, results) if key in outputs})
        return True

    # As the only configuration there is; run_kernel would not take local memory.
    passed = arguments_for(order, name, found, {})
    tune_kernel(
        entry_at(ORIGINAL["entry"], name),
        str(HERE / ORIGINAL["file"]),
        tuple(sides(ORIGINAL["grid"], v)),
        passed,
        {side: [n] for side, n in zip(SIDES, sides(ORIGINAL["block"], v))},
        block_size_names=list(SIDES),
        defines={key: (lambda p, text=text: text) for key, text in ORIGINAL["defines"].items()},
        compiler_options=options_at(ORIGINAL["options"]),
        answer=[argument if key in outputs else None for key, argument in zip(order, passed)],
        verify=keep,
        iterations=1,
        quiet=True,
        **no_divisors(),
        **shared,
        **where,
    )
    return {output: arrays[output].seen_in(seen[output]) for output in outputs}


def is_right(argument, got, expected):
    """By the problem's own tolerance for this output."""
    if argument["compare"] == "exact":
        return bool(np.array_equal(got, expected))
    with np.errstate(all="ignore"):
        g, e = got.astype(np.float64), expected.astype(np.float64)
        near = argument["atol"] + argument["rtol"] * np.abs(e)
        if argument["compare"] == "codes":
            e = np.clip(e, *argument["bounds"])
            error, near = np.abs(g - e), argument["atol"] + argument["rtol"] * np.abs(e)
            steps = np.abs(g - np.rint(e)) if argument["kind"] != "float" else np.zeros_like(e)
            right = (steps <= 1) & (error <= 0.5 * step_of(argument, e) + near)
            return bool(np.all(right | (np.isnan(g) & np.isnan(e))))
        rounded = e.astype(got.dtype).astype(np.float64)
        finite = np.isfinite(rounded)
        close = np.abs(g - e) <= np.maximum(near, 0.5 * step_of(argument, e))
        same = (g == rounded) | (np.isnan(g) & np.isnan(rounded))
        return bool(np.all(np.where(finite, close, same)))


def step_of(argument, values):
    """The distance of neighbouring numbers of a type."""
    if argument["kind"] != "float":
        return np.ones_like(values)
    _, exponent = np.frexp(np.abs(values))
    least = argument["min_exponent"]
    floor = np.where(values == 0, least, np.maximum(exponent - 1, least))
    return np.ldexp(1.0, floor - argument["mantissa"])


# -- tuning ---------------------------------------------------------------------------------------------


def no_divisors():
    """The grid is given as it is launched."""
    return {"grid_div_x": [], "grid_div_y": [], "grid_div_z": []}


def entry_at(entry, name):
    for size, number in WORKLOADS[name].items():
        entry = entry.replace("{" + size + "}", str(number))
    return entry


def options_at(options):
    return [*options, *(f"-I{HERE / folder}" for folder in INCLUDE)]


def tune(name, chosen):
    from kernel_tuner import tune_kernel
    from kernel_tuner.file_utils import store_output_file

    sizes, where = WORKLOADS[name], {"lang": chosen.language, "device": chosen.device}
    if LANGUAGE == "OpenCL":
        where["platform"] = chosen.platform
    tried = {key: [best] for key, best in BEST[name].items()} if chosen.best else PARAMETERS
    parameters = with_block_parameters(name, tried)
    found, arrays = host_values(name)
    expected = {} if chosen.no_verify else expected_at(name, found, arrays, where)
    if not expected:
        print(f"{name}: outputs are not checked{'' if chosen.no_verify else ': ' + UNCHECKED}")
    judged = {argument["name"]: argument for argument in ARGUMENTS}

    def verify(answer, results, atol=None):
        for argument, wanted, got in zip(ARGUMENT_ORDER, answer, results):
            if wanted is not None:
                if not is_right(judged[argument], arrays[argument].seen_in(got), wanted):
                    print(f"{name}: {argument} is wrong")
                    return False
        return True

    checks = {}
    if expected:
        checks = {"answer": [expected.get(argument) for argument in ARGUMENT_ORDER], "verify": verify}
    if SHARED is not None:
        checks["smem_args"] = {"size": lambda p: int(SHARED(values_at(sizes, p)))}
    defines = {key: (lambda p, text=text: text) for key, text in KERNEL_DEFINES.items()}
    defines |= {key: (lambda p, key=key: p[key]) for key in PARAMETERS}
    defines |= {
        key: (lambda p, define=define: int(define(values_at(sizes, p)))) for key, define in DEFINES.items()
    }
    options = {"max_fevals": chosen.evals} if chosen.evals else {}
    results, env = tune_kernel(
        entry_at(ENTRY, name),
        str(HERE / KERNEL),
        lambda p: tuple(sides(GRID, values_at(sizes, p))),
        arguments_for(ARGUMENT_ORDER, name, found, tried),
        parameters,
        restrictions=restrictions_at(name, list(parameters), chosen.best),
        block_size_names=list(BLOCK_NAMES),
        defines=defines,
        compiler_options=options_at(OPTIONS),
        strategy=chosen.strategy,
        strategy_options=options,
        **no_divisors(),
        **checks,
        **where,
    )
    # Sides of the block that were added for Kernel Tuner are no part of the configuration.
    store_output_file(f"kernel-tuner-{FILE_NAMES[name]}", results, PARAMETERS)
    many = "" if len(results) == 1 else "s"
    print(f"{name}: {len(results)} configuration{many}, written to kernel-tuner-{FILE_NAMES[name]}.json")
    print(f"{name}: the run's best is {BEST[name]}")
    return results, env


def main():
    parser = argparse.ArgumentParser(description=f"Tune {PROBLEM} with Kernel Tuner.")
    known = ", ".join(WORKLOADS)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {known}; default: all")
    parser.add_argument("--best", action="store_true", help="time the run's best configuration alone")
    parser.add_argument("--strategy", default="brute_force", help="how Kernel Tuner searches")
    parser.add_argument("--evals", type=int, help="configurations at most")
    parser.add_argument("--no-verify", action="store_true", help="check no outputs")
    parser.add_argument("--language", default=LANGUAGE, help="as Kernel Tuner calls it: its backend")
    parser.add_argument("--device", type=int, default=0)
    if LANGUAGE == "OpenCL":
        parser.add_argument("--platform", type=int, default=PLATFORM)
    chosen = parser.parse_args()
    for name in chosen.workloads:
        if name not in WORKLOADS:
            parser.error(f"there is no workload {name!r}, only {known}")
    for name in chosen.workloads or WORKLOADS:
        tune(name, chosen)


if __name__ == "__main__":
    main()
'''


# The Kernel Tuner script of one kernel: its constants, and its expressions as Python functions.
INCLUDE = "include"
MAX_SHARED = 48 << 10  # bytes of dynamic shared memory that a CUDA kernel gets without asking for more
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


_DEVICE = "\n# The limits of the device that the run was made on; on another they differ.\nDEVICE = "


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
        return None if has_reference or unlaunchable_reason(launches) else launches[0]

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        given = tuple({**dict(self.problem.kernel.headers), **dict(self.template.headers)}.items())
        if self.problem.kernel.language != "cuda":
            return given
        both = f"{self.template.source}\n{self.problem.kernel.text}"
        return (*given, *standard_headers(both, given))

    def _constants(self, block_names: list[str]) -> dict[str, object]:
        problem, template, launch = self.problem, self.template, self.template.launches[0]
        return {
            "PROBLEM": problem.name,
            "LANGUAGE": LANGUAGES[problem.kernel.language],
            "PLATFORM": self._platform_index(),
            "KERNEL": self.kernel,
            "ENTRY": _tuner_entry_name(launch.entry, [p.name for p in template.space.params]),
            "OPTIONS": self._build_options(template.source, (*problem.kernel.flags, *template.flags)),
            "INCLUDE": [INCLUDE] if self.headers else [],
            "KERNEL_DEFINES": self._kernel_defines(),
            "WORKLOADS": {w.name: w.as_dict() for w in problem.workloads},
            "FILE_NAMES": file_names(problem),
            "PARAMETERS": {p.name: list(p.values) for p in template.space.params},
            "BEST": self.best(),
            "FAILED": self._failed(),
            "MOST_SHARED": MAX_SHARED,
            "BLOCK_NAMES": block_names,
            "ARGUMENT_ORDER": list(launch.args),
            "REFERENCE": _function_location("user_reference.py", problem.accuracy.reference),
            "INPUTS": _function_location("user_inputs.py", problem.inputs),
            "UNCHECKED": "the problem has no reference, and Kernel Tuner cannot launch the original",
        }

    def text(self) -> str:
        launch, (names, derived) = self.template.launches[0], self._block()
        defines = {name: self._function(expr) for name, expr in self.template.defines}
        found = {name: _format_literal(value) for name, value in self._constants(names).items()}
        found |= {"REQUIRE": self._constraint_table(), "DEFINES": _format_dict(defines)}
        found |= {"GRID": self._functions(launch.grid), "BLOCK": self._functions(launch.block)}
        found |= {"BLOCK_PARAMETERS": _format_dict(derived), "SHARED": self._function(launch.shared)}
        found |= {
            "ARGUMENTS": self._arguments(),
            "SCRATCH": self._scratch(),
            "ORIGINAL": self._original_table(),
        }
        lines = "\n".join(f"{name} = {text}" for name, text in found.items())
        limits = _format_literal(self.state.device.limits.names())
        return f"{_HEAD}\n{HELPERS}\n{_DEVICE}{limits}\n{lines}\n\n\n{BODY}"

    def known(self, workload: str) -> dict[str, int]:
        return {**self.state.device.limits.names(), **self.problem.workload(workload).as_dict()}

    @property
    def _largest_values(self) -> dict[str, int]:
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
        return f"lambda v: {python_text(expr, self._largest_values)}"

    def _functions(self, exprs: Sequence[Expr]) -> str:
        return "[" + "".join(f"{self._function(e)}, " for e in exprs).rstrip() + "]"

    def _constraint_table(self) -> str:
        """Of both kinds, and what the device demands, under names that tell them apart."""
        limits = hardware_constraints(self.template, self.state.device.limits)
        every = (*self.template.space.constraints, *limits)
        return _format_dict({_constraint_name(c): self._function(c.expr) for c in every})

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
            won = (picked.get(workload.name), choice.general)
            chosen = [config for config in won if config and config.candidate == self.candidate]
            here = ((t.at[place] if place < len(t.at) else None, t.config) for t in scored)
            at = [(score, config) for score, config in here if score is not None]
            chosen += [max(at, key=lambda pair: pair[0])[1]] if at else [self.template.default]
            found[workload.name] = chosen[0].as_dict()
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

    def _platform_index(self) -> int:
        first = self.state.device.id.partition(":")[0]
        return int(first) if first.isdecimal() else 0

    def _build_options(self, source: str, flags: Sequence[str]) -> list[str]:
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
            return _format_dict({key: repr(text) for key, text in head.items()} | {"value": own}, "")
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
        return _format_dict({key: repr(text) for key, text in head.items()} | shapes, "")

    def _scratch(self) -> str:
        """Arrays that hold nothing: of the problem, and of the template, shaped by its parameters."""
        scratch = [a for a in self.problem.arguments if a.role in ("workspace", "local")]
        rows: dict[str, str] = {}
        for a in (*scratch, *self.template.workspace):
            used = [p.name for p in self.template.space.params if any(p.name in e.names for e in a.shape)]
            sides = " * ".join(f"max(0, {python_text(e, self._largest_values)})" for e in a.shape) or "1"
            row = {"role": repr(a.role), "type": repr(a.type), "used": repr(used)}
            rows[a.name] = _format_dict(row | {"count": f"lambda v: {sides}"}, "")
        return _format_dict(rows)

    def _original_table(self) -> str:
        launch = self.original
        if launch is None:
            return "None"
        options = self._build_options(self.problem.kernel.text, self.problem.kernel.flags)
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
        return _format_dict(rows)


def unlaunchable_reason(launches: Sequence[Launch]) -> str:
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


def _tuner_entry_name(entry: str, params: Sequence[str]) -> str:
    """Kernel Tuner puts a parameter's value in place of its name."""
    for name in PLACEHOLDER.findall(entry):
        if name not in params:
            fault = f"the entry {entry!r} names {name}, and Kernel Tuner inserts parameters alone"
            raise BadInput(fault, hint=HINT)
    return PLACEHOLDER.sub(lambda m: m.group(1), entry)


def _function_location(file: str, function: PythonFunction | None) -> tuple[str, str] | None:
    return (file, function.function) if function is not None else None


def _constraint_name(constraint: Constraint) -> str:
    return constraint.name if constraint.kind == "require" else f"prefer {constraint.name}"


def _format_literal(value: object) -> str:
    return pformat(value, width=100, sort_dicts=False)


def _format_dict(rows: Mapping[str, str], indent: str | None = None) -> str:
    """A dictionary whose values are Python text; with an `indent` on one line."""
    if indent is not None:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in rows.items()) + "}"
    return "{\n" + "".join(f"    {key!r}: {text},\n" for key, text in rows.items()) + "}"


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
    _refuse_unsupported(script)
    files = _exported_files(script)
    tool = f"tunesmith {dict(state.started.versions).get('tunesmith', '')}".strip()
    for workload in problem.workloads:
        about: dict[str, object] = {"tool": tool, "problem": problem.name, "device": state.device.name}
        about |= {"workload": workload.name, "problem_size": workload.as_dict()}
        name = f"t4-results-{file_names(problem)[workload.name]}.json"
        files[name] = t4_results(results[workload.name], about)
    files[METADATA] = _run_metadata(state)
    return files


def results_at(state: State, candidate: str, workload: str) -> list[tuple[Config, Result]]:
    """What became of each configuration of a candidate at a workload: its alternating measurements where it
    has raced, else the last of the others. What was wrong in a race, or failed its verification, is believed
    at no workload."""
    raced = merge_measurements(state)
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


def _run_metadata(state: State) -> bytes:
    assert state.started is not None
    device, versions = state.device, dict(state.started.versions)
    system = versions.pop("system", "")
    limits = {f.name: v for f in fields(device.limits) if type(v := getattr(device.limits, f.name)) is int}
    hardware = {"name": device.name, "kind": device.kind, "limits": limits}
    query = {"name": device.name, "platform": device.platform, "driver": device.driver}
    query["compiler"] = state.compiler
    return t4_metadata(system, hardware, query, [f"{name}=={number}" for name, number in versions.items()])


def _exported_files(script: KernelTunerScript) -> dict[str, bytes]:
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


def _refuse_unsupported(script: KernelTunerScript) -> None:
    if fault := _unsupported_reason(script):
        raise BadInput(fault, hint=HINT)
    for param in script.template.space.params:
        if param.name in _FORBIDDEN or "nvml_" in param.name:
            fault = f"Kernel Tuner has another meaning for a parameter called {param.name}"
            raise BadInput(fault, hint="rename it in the template, and tune again")


def _unsupported_reason(script: KernelTunerScript) -> str:
    problem, template, compiler = script.problem, script.template, script.state.compiler
    if problem.kernel.language not in LANGUAGES:
        return f"the export for Kernel Tuner is for CUDA and OpenCL, this kernel is {problem.kernel.language}"
    if template.is_concrete:
        return "the winner has no parameters, so Kernel Tuner has nothing to tune"
    if compiler.startswith("nvcc"):
        return f"Kernel Tuner compiles with NVRTC, this run compiled with {compiler}"
    if why := unlaunchable_reason(template.launches):
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
        if needed > MAX_SHARED:
            fault = f"the best configuration at {name} takes {needed} bytes of dynamic shared memory"
            return f"{fault}, Kernel Tuner launches with at most {MAX_SHARED}"
    return ""


def _export_kernel_tuner(artefact: Artefact) -> dict[str, bytes]:
    found = artefact.first
    if len(artefact.results) > 1:
        raise BadInput("an export for Kernel Tuner is of one run", hint="name one run")
    if found.templates is None or found.state is None:
        raise BadInput("the run's journal is not here", hint="export from the run's own folder")
    return kernel_tuner_files(found.templates, found.state)


TARGET = Target(
    "kernel-tuner", "a Kernel Tuner script and T4 results", tuple(LANGUAGES), _export_kernel_tuner, True
)
