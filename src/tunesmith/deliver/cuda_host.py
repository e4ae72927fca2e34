"""The host's part of a CUDA result in C++: parameters, checks, conditions of the dispatch, and launches.

The same text for two interfaces: NVIDIA's runtime, for programs that nvcc compiles, and its driver, for those
that any C++ compiler does. Kernels are compiled with the program or embedded as machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Any

from jinja2 import Environment, StrictUndefined

from tunesmith.deliver.c_code import C_TYPES, c_code, c_text, comment
from tunesmith.deliver.cuda_api import CudaApi, resource
from tunesmith.deliver.cuda_names import (
    HostParameter,
    c_name,
    host_parameter,
    image_text,
    is_as_tuned,
    passed_as,
    scalar_text,
    shape_text,
    unfit,
    unused_text,
    workspace_parameter,
)
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.terms import bytes_of, is_written
from tunesmith.deliver.runtime.operator import untuned_note
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, value_expr
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.space.expr import parse
from tunesmith.space.real import RealExpr

RULE = f"// {'-' * 100}\n"
PREPARES = "Loads what may serve on this device, as before a capture; false where some of it cannot be."


# An entry's kernel by name, as an expression of `CudaApi.handle`; of `EmbeddedKernel own` where it may fail.
Address = Callable[[str], str]


@dataclass(frozen=True)
class DispatchLine:
    """An entry as the program has it; without an address it is left out, and `why` says so."""

    result: DeviceResult
    entry: DispatchEntry
    address: Address | None = None
    why: str = ""
    label: str = ""
    may_fail: bool = False  # it is embedded: its kernel may prove impossible to load
    where: str = ""  # the devices that its code is for, in C++; empty: all that the program is built for

    @property
    def is_tuned(self) -> bool:
        return self.entry.config is not None

    @property
    def is_last(self) -> bool:
        """Whether it serves where nothing else does: the original, or one of it for each size."""
        launches = self.result.dispatch.original.launches
        named = any(PLACEHOLDER.search(launch.entry) for launch in launches)
        return not self.is_tuned and (named or self.entry.when == "1")

    @property
    def own_device(self) -> str:
        """That a device is of its run's kind, in C++; empty where the run does not say."""
        capability = self.result.dispatch.capability
        return f"architecture(device) == {capability}" if capability else ""

    @property
    def about(self) -> str:
        config = ", ".join(f"{k}={v}" for k, v in (self.entry.config or {}).items())
        return f"{self.label or self.entry.file}{f', {config}' if config else ''}"


@dataclass(frozen=True)
class _Step:
    """A line of the dispatch: `function` serves where all that is `needed` holds."""

    line: DispatchLine
    function: str
    needed: tuple[str, ...]


@dataclass
class _HostPlan:
    """What the template writes; functions and what is loaded are collected while steps are added."""

    left_out: list[DispatchLine]
    as_tuned: str = ""  # whether arguments are as they were tuned with; empty: nothing tuned is there
    devices: list[list[_Step]] = field(default_factory=list)  # tuned lines of each
    originals: list[_Step] = field(default_factory=list)
    always_serves: bool = False  # an original without any condition is among them
    tells_untuned: bool = False
    runs: dict[str, str] = field(default_factory=dict)  # what a function runs -> its name
    functions: list[str] = field(default_factory=list)
    # Devices, and whether without an original of their own -> what is loaded there.
    ready: dict[tuple[str, bool], dict[str, None]] = field(default_factory=dict)
    served: list[str] = field(default_factory=list)  # devices with an original of their own


@cache
def _template() -> Any:
    """The macros of `cuda_host.j2`, C++ with holes."""
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.globals |= {"comment": comment, "image_text": image_text, "unused_text": unused_text}
    environment.globals["PREPARES"] = PREPARES
    return environment.from_string(resource("cuda_host.j2")).module


@dataclass
class HostProgram:
    """`lines` in the order in which they are tried; of several devices one after the other. Originals come
    last again; `elsewhere`, the newest PTX first, serves on devices that no line is for."""

    artefact: Artefact
    api: CudaApi
    lines: list[DispatchLine] = field(default_factory=list)
    elsewhere: list[DispatchLine] = field(default_factory=list)
    images: dict[bytes, str] = field(default_factory=dict)

    @property
    def dispatch(self) -> Dispatch:
        """The first result's: what is called is the same for all."""
        return self.artefact.first.dispatch

    @property
    def arguments(self) -> tuple[DispatchArgument, ...]:
        return self.dispatch.arguments

    @cached_property
    def workspaces(self) -> dict[str, list[tuple[DispatchEntry, DispatchArgument]]]:
        named = {a.name for a in self.arguments}
        found: dict[str, list[tuple[DispatchEntry, DispatchArgument]]] = {}
        for line in self.lines:
            for argument in line.entry.workspace if line.address else ():
                if argument.name not in named:
                    found.setdefault(argument.name, []).append((line.entry, argument))
        return found

    @cached_property
    def sizes(self) -> dict[str, str]:
        return {size.name: c_name(size.name, "size") for size in self.dispatch.sizes}

    @cached_property
    def pointers(self) -> dict[str, str]:
        """Every array's name, and an alias's too -> the parameter."""
        arrays = {a.name: c_name(a.alias or a.name) for a in self.arguments if a.is_array}
        return arrays | {name: c_name(name, "work") for name in self.workspaces}

    @cached_property
    def parameters(self) -> tuple[HostParameter, ...]:
        dispatch = self.dispatch
        given = [a for a in self.arguments if a in dispatch.arrays or a in dispatch.literals]
        sizes = (
            HostParameter("long long", self.sizes[rule.name], rule.describe()) for rule in dispatch.sizes
        )
        scratch = (workspace_parameter(name, uses) for name, uses in self.workspaces.items())
        stream = HostParameter(self.api.stream, "stream", "0 for the default")
        return (*map(host_parameter, given), *sizes, *scratch, stream)

    @property
    def headers(self) -> tuple[str, ...]:
        arguments = (*self.arguments, *(a for line in self.lines for a in line.entry.workspace))
        found = {C_TYPES.get(a.type, ("", None))[1] for a in arguments}
        values = (value_expr(a) for a in self.arguments if a.role == "scalar" and a.follows_sizes)
        roots = ["cmath"] if any(isinstance(v, RealExpr) and v.has_root for v in values) else []
        return (*self.api.includes, *sorted(header for header in found if header), *roots)

    @property
    def passed(self) -> str:
        return ", ".join(parameter.name for parameter in self.parameters)

    @property
    def taken(self) -> str:
        return ", ".join(f"{parameter.type} {parameter.name}" for parameter in self.parameters)

    def declaration(self, name: str) -> str:
        return f"{self.api.status} {name}({self.taken})"

    # -- the text -----------------------------------------------------------------------------------

    def written(self) -> str:
        """Everything but includes and the kernels that are compiled: inside one namespace."""
        return str(_template().program(self, self._plan()))

    def _plan(self) -> _HostPlan:
        plan = _HostPlan([line for line in self.lines if not line.address])
        if any(line.is_tuned and line.address for line in self.lines):
            plan.as_tuned = self._as_tuned()
        for number, lines in enumerate(self._by_device()):
            plan.devices.append([self._step(line, plan, number) for line in lines])
        if plan.runs and all(result.dispatch.capability for result in self.artefact.results):
            plan.tells_untuned = True
            plan.functions.append(self._note())
        # The original: machine code where it is for the device, else what is for all.
        originals = [line for line in self.lines if line.is_last and line.address]
        first = [replace(line, where="") for line in originals if line.result is self.artefact.first]
        others = self.elsewhere or first
        plan.originals = [self._step(line, plan) for line in originals if line.where]
        plan.originals += [self._step(line, plan, is_elsewhere=True) for line in others]
        plan.always_serves = any(line.entry.when == "1" and not line.where for line in others)
        plan.served = list(dict.fromkeys(line.where for line in originals if line.where))
        return plan

    def _by_device(self) -> Iterable[list[DispatchLine]]:
        for result in self.artefact.results:
            lines = [line for line in self.lines if line.result is result and line.address]
            if any(line.is_tuned for line in lines):
                tuned = max(i for i, line in enumerate(lines) if line.is_tuned)
                yield lines[: tuned + 1]

    def _step(
        self, line: DispatchLine, plan: _HostPlan, block: int | None = None, *, is_elsewhere: bool = False
    ) -> _Step:
        """`block`: the number of the device's whose lines these are; None: a line after all of them.
        `is_elsewhere`: it serves where no original of the device's own does."""
        number, indent = len(plan.functions), "    " if block is None else "        "
        text = self._run("{name}", line)
        if text not in plan.runs:
            plan.runs[text] = f"run_{len(plan.runs)}"
            plan.functions.append(text.replace("{name}", plan.runs[text]))
        function = plan.runs[text]
        needed = [line.where] if line.where and block is None else []
        when = parse(line.entry.when)
        if when.names or not when.holds({}):
            name = f"serves_{'original' if block is None else block}_{number}"
            holds = c_code(when, self.sizes)
            plan.functions.append(str(_template().condition(self, name, line.entry.when, holds)))
            needed.append(f"{name}({', '.join(self.sizes.values())})")
        needed += self._scratch_as_tuned(line.entry, indent) if line.is_tuned else []
        if line.may_fail:
            plan.ready.setdefault((line.where, is_elsewhere), {})[function] = None
            needed += [f"{function}_ready()"] if line.is_tuned else []
        return _Step(line, function, tuple(needed))

    def _note(self) -> str:
        """How to tune, where nothing was; said once."""
        results = [result.dispatch for result in self.artefact.results]
        originals = (line for line in self.lines if line.is_last and line.address)
        serves = self.elsewhere or not all(line.where for line in originals)
        words = "its original serves" if serves else "there is no original here"
        known = ", ".join(dispatch.architecture for dispatch in results)
        note = untuned_note(self.artefact.problem.replace("\0", ""), known, "\0", words)
        before, _, after = note.partition("\0")
        numbers = (0, *(dispatch.capability for dispatch in results))
        return str(_template().note(numbers, c_text(before), c_text(after)))

    def _as_tuned(self) -> str:
        """Whether scalars, alignment and memory are as they were when it was verified."""
        arrays = self.dispatch.arrays
        tests = [is_as_tuned(argument) for argument in self.dispatch.literals]
        return self._all_of([*tests, *self._aligned(arrays), *self._apart(combinations(arrays, 2))], "    ")

    def _aligned(self, arrays: Iterable[DispatchArgument]) -> list[str]:
        return [f"is_aligned({self.pointers[a.name]}, {a.align})" for a in arrays if a.align > 1]

    def _apart(self, pairs: Iterable[tuple[DispatchArgument, DispatchArgument]]) -> list[str]:
        tests = []
        for a, b in pairs:
            if is_written(a) or is_written(b):
                sides = (f"{self.pointers[x.name]}, {self.bytes_of(x)}" for x in (a, b))
                tests.append(f"!overlap({', '.join(sides)})")
        return tests

    def _scratch_as_tuned(self, entry: DispatchEntry, indent: str) -> list[str]:
        """Whether the workspaces of a winner's own are there, and lie as they did when it was verified."""
        scratch = entry.workspace
        if not scratch:
            return []
        others = [b for b in self.dispatch.arrays if b.name not in {a.name for a in scratch}]
        pairs = [*combinations(scratch, 2), *((a, b) for a in scratch for b in others)]
        tests = [*self._aligned(scratch), *self._apart(pairs)]
        return [*(f"{self.pointers[a.name]} != nullptr" for a in scratch), self._all_of(tests, indent)]

    @staticmethod
    def _all_of(tests: Sequence[str], indent: str) -> str:
        """That each holds, and that all have a value."""
        if not tests:
            return "true"
        inner = f"{indent}    "
        joined = f"\n{inner}&& ".join([*tests, "!undefined"])
        return f"[&]() -> bool {{\n{inner}bool undefined = false;\n{inner}return {joined};\n{indent}}}()"

    def bytes_of(self, argument: DispatchArgument) -> str:
        """From the first byte of an array to its last, in C++."""
        return c_code(bytes_of(argument), self.sizes)

    def _run(self, name: str, line: DispatchLine) -> str:
        """A function that launches the entry."""
        entry, address = line.entry, line.address
        assert address is not None, "what is left out is not run"
        known = {a.name: a for a in (*self.arguments, *entry.workspace)}
        places, scalars = dict(self.pointers), []
        for argument in (known[arg] for arg in dict.fromkeys(a for one in entry.launches for a in one.args)):
            if argument.role == "scalar":
                places[argument.name], definition = self._scalar(argument)
                scalars.append(definition)
        kernels = list(dict.fromkeys(launch.entry for launch in entry.launches))
        launches = [
            {
                "shape": shape_text(number, launch, self.sizes),
                "kernel": kernels.index(launch.entry),
                "args": ", ".join(f"(void*)&{places[arg]}" for arg in launch.args),
                "is_conditional": launch.when is not None,
            }
            for number, launch in enumerate(entry.launches)
        ]
        return str(_template().run(self, name, line, list(map(address, kernels)), scalars, launches))

    def _scalar(self, argument: DispatchArgument) -> tuple[str, str]:
        """The variable whose address the launch takes, of the type the kernel takes, and its definition."""
        kind, given = C_TYPES[argument.type][0], c_name(argument.name)
        if argument.follows_sizes:
            given = scalar_text(argument, self.sizes)
        elif kind == passed_as(argument):
            return given, ""
        name = c_name(argument.name, "value")
        return name, f"    const {kind} {name} = static_cast<{kind}>({given});\n"

    # -- where kernels come from --------------------------------------------------------------------

    def fill(self, complete: Callable[[DispatchLine], DispatchLine]) -> None:
        """Lines for all that the runs delivered, each as it is completed."""
        for result in self.artefact.results:
            for entry in result.dispatch.entries:
                why = unfit((size.name for size in result.dispatch.sizes), entry)
                line = DispatchLine(result, entry, why=why or "")
                self.lines.append(line if why else complete(line))

    def embedded(self, line: DispatchLine) -> DispatchLine | None:
        """With machine code that the program carries; None where the run has none."""
        data, binary = line.result.binary(line.entry), line.entry.binary
        if data is None or binary is None:
            return None
        if not all(launch.entry in binary.symbols for launch in line.entry.launches):
            return None
        address, label = self.loaded(data, binary.symbols), f"embedded: {line.entry.file}"
        return replace(line, address=address, label=label, may_fail=True, where=line.own_device)

    def loaded(self, data: bytes, symbols: Mapping[str, str], registers: int = 0) -> Address:
        """A kernel from what the program carries: machine code, or PTX, which may have a cap on registers."""
        image = self.images.setdefault(data, f"image_{len(self.images)}")
        cap = f", {registers}" if registers else ""
        return lambda name: f"embedded_kernel(own, {image}, {c_text(symbols[name])}{cap})"

    def head(self, about: Sequence[str], call: Sequence[str]) -> str:
        """The comment that a file begins with."""
        lines = (*self.lines, *self.elsewhere)
        conditions = ["otherwise" if line.entry.when == "1" else line.entry.when for line in lines]
        targets = [line.about if line.address else "left out, see launch()" for line in lines]
        devices = [line.result.dispatch.architecture for line in self.lines]
        devices += ["another device"] * len(self.elsewhere)
        rows = zip(devices, conditions, targets, strict=True)
        table = [f"  {device + ': ' if device else ''}{when}  ->  {target}" for device, when, target in rows]
        workspace = "A workspace that the serving line does not need may be null." if self.workspaces else ""
        no_device = self.api.no_device
        context = [f"A CUDA context must be current, else it returns {no_device}."] if no_device else []
        return comment([
            *about,
            "",
            *call,
            "",
            *(f"  {parameter.type} {parameter.name}: {parameter.about}" for parameter in self.parameters),
            "",
            f"It returns at once, with the error of the launch, or {self.api.invalid} where nothing serves",
            f"or an expression has no value. Arrays are in device memory. {workspace}",
            *context,
            *self._fixed(),
            "The first line that holds serves:",
            "",
            *table,
        ])  # fmt: skip

    def _fixed(self) -> list[str]:
        """A template may have such a value in its code, and no other one was ever checked."""
        if not any(line.is_tuned and line.address for line in self.lines):
            return []
        scalars = "every scalar has the value said above, " if self.dispatch.literals else ""
        arrays = "arrays and workspaces" if self.workspaces else "arrays"
        return [
            f"A tuned line serves only where {scalars}{arrays} are aligned as said,",
            "nothing that is written overlaps another, and the device is one it was verified on.",
            "Elsewhere the original serves.",
        ]
