"""The host's part of a CUDA result in C++: parameters, checks, conditions of the dispatch, and launches.

The same text for two interfaces: NVIDIA's runtime, for programs that nvcc compiles, and its driver, for those
that any C++ compiler does. Kernels are compiled with the program or embedded as machine code.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from itertools import combinations
from typing import Any, ClassVar

from tunesmith.deliver.artefact import (
    Artefact,
    DeviceResult,
    bytes_of,
    describe_argument,
    is_written,
)
from tunesmith.deliver.expr_text import C_TYPES, c_code, c_identifier, c_text, format_comment, template_macros
from tunesmith.deliver.runtime.operator import untuned_note
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, DispatchLaunch, value_expr
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.space.expr import LIMIT, ExprError, Num, RealExpr, Undefined, parse_expr, real_code

# A result's names and values in C++: parameters, literals, comments, machine code as words.
MAX = (1 << 31) - 1  # of blocks or threads along an axis, and of bytes


@dataclass(frozen=True)
class HostParameter:
    type: str
    name: str
    about: str


def why_not_cpp(dispatch_sizes: Iterable[str], entry: DispatchEntry) -> str | None:
    """Why an entry cannot be written in C++ at all."""
    names = set(dispatch_sizes)
    try:
        parse_expr(entry.when)
    except ExprError as error:  # it may be joined from parts that were each short enough
        return str(error)
    for launch in entry.launches:
        if left := set(PLACEHOLDER.findall(launch.entry)) & names:
            return f"{launch.entry} is another kernel for each {', '.join(sorted(left))}"
        exprs = (
            *launch.grid,
            *launch.block,
            *(launch.cluster or ()),
            launch.shared or "0",
            launch.when or "1",
        )
        if unknown := sorted({n for text in exprs for n in parse_expr(text).names} - names):
            return f"its launch depends on {unknown[0]}, which the caller does not say"
    return None


def image_text(name: str, data: bytes) -> str:
    """Machine code as words; it lies aligned, as the loader wants it."""
    words = struct.unpack(f"<{(len(data) + 7) // 8}Q", data + bytes(-len(data) % 8))
    rows = (", ".join(f"{word:#x}" for word in words[i : i + 6]) for i in range(0, len(words), 6))
    body = ",\n".join(rows)
    return f"alignas(16) static const unsigned long long {name}[] = {{  // {len(data)} bytes\n{body}}};\n"


def c_name(name: str, prefix: str = "arg") -> str:
    """Every name of the user's has a prefix: it can be neither a word of C++ nor a name of ours."""
    return f"{prefix}_{c_identifier(name)}"


def is_as_tuned(argument: DispatchArgument) -> str:
    """Compared as the kernel would get them: what a narrow type makes of both is what decides."""
    kind, passed, given = C_TYPES[argument.type][0], passed_as(argument), c_name(argument.name)
    literal = repr(argument.value)
    if isinstance(argument.value, str):
        try:
            literal = c_code(parse_expr(parse_expr(argument.value).evaluate({})), {})
        except Undefined:
            return "false"  # nothing equals it
    literal = f"static_cast<{passed}>({literal})"
    if kind == passed:
        return f"{given} == {literal}"
    back = f"static_cast<{passed}>(static_cast<{kind}>"
    return f"{back}({given})) == {back}({literal}))"


def within_text(text: str, low: int, high: int, sizes: Mapping[str, str]) -> str:
    """The expression's value in C++, which is undefined outside these bounds too."""
    expr = parse_expr(text)
    value = c_code(expr, sizes)
    if isinstance(expr.tree, Num) and low <= expr.tree.value <= high:
        return value
    if low <= -LIMIT and high >= LIMIT:
        return value
    return f"within({value}, {low}LL, {min(high, LIMIT)}LL, undefined)"


def scalar_text(argument: DispatchArgument, sizes: Mapping[str, str]) -> str:
    """The value of a scalar that follows the sizes; an integer's is one that its type has."""
    element = element_type(argument.type)
    expr = value_expr(argument)
    if isinstance(expr, RealExpr):  # one that is not finite minus itself is not 0
        value = f"const double value = {real_code(expr, sizes)};"
        return f"[&]() -> double {{ {value} if (!(value - value == 0.0)) undefined = true; return value; }}()"
    return within_text(str(argument.value), *element.bounds, sizes)


def shape_text(number: int, launch: DispatchLaunch, sizes: Mapping[str, str]) -> str:
    """The definition of `shape_NUMBER`."""

    def extents(texts: Sequence[str]) -> str:
        return f"dim3({', '.join(within_text(text, 1, MAX, sizes) for text in texts)})"

    fields = {"grid": extents(launch.grid), "block": extents(launch.block)}
    if launch.shared is not None:
        fields["shared"] = within_text(launch.shared, 0, MAX, sizes)
    if launch.cluster:
        fields |= {"cluster": extents(launch.cluster), "clustered": "true"}
    fields |= {name: "true" for name in ("cooperative", "pdl") if getattr(launch, name)}
    lines = "".join(f"    shape_{number}.{name} = {value};\n" for name, value in fields.items())
    made = f"    Shape shape_{number} = {{}};\n"
    if launch.when is None:
        return f"{made}{lines}"
    condition = f"    const bool launched_{number} = ({c_code(parse_expr(launch.when), sizes)}) != 0;\n"
    return f"{made}{condition}    if (launched_{number}) {{\n{lines}    }}\n"


def unused_text(names: Iterable[str], body: str) -> str:
    """Lines that keep a compiler from warning of parameters that the body has no use for."""
    used = set(re.findall(r"\w+", body))
    return "".join(f"    (void){name};\n" for name in names if name not in used)


def passed_as(argument: DispatchArgument) -> str:
    """The narrow floats are classes, which neither C nor Python could pass."""
    element = element_type(argument.type)
    return "float" if element.kind == "float" and element.bytes < 4 else C_TYPES[argument.type][0]


def host_parameter(argument: DispatchArgument) -> HostParameter:
    kind = _cpp_pointer_type(argument) if argument.is_array else passed_as(argument)
    return HostParameter(kind, c_name(argument.name), describe_argument(argument, caller_fills=True))


def workspace_parameter(name: str, uses: Sequence[tuple[DispatchEntry, DispatchArgument]]) -> HostParameter:
    found: Mapping[str, DispatchArgument] = {
        ", ".join(f"{k}={v}" for k, v in (entry.config or {}).items()): argument for entry, argument in uses
    }
    words = "; ".join(
        f"{describe_argument(a, caller_fills=True)} for {config}" for config, a in found.items()
    )
    return HostParameter(_cpp_pointer_type(uses[0][1]), c_name(name, "work"), words)


def _cpp_pointer_type(argument: DispatchArgument) -> str:
    kind = C_TYPES.get(argument.type, ("void", None))[0]
    return f"const {kind}*" if argument.role == "input" else f"{kind}*"


# The two interfaces to a CUDA device that delivered C++ is written for, and the code that each needs.


def read_cuda_resource(name: str) -> str:
    return resources.files("tunesmith.deliver.cuda").joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class CudaApi:
    status: str
    success: str
    invalid: str
    no_image: str
    stream: str
    handle: str  # what a kernel is known by
    no_device: str  # the error where no device is current; empty: it can do without
    includes: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def fixed(self) -> str:
        """What every program needs that launches through it."""
        return "\n".join(map(read_cuda_resource, ("arithmetic.cuh", "launch_checks.h", *self.files)))


_STANDARD = ("atomic", "cstdint", "cstdio", "mutex")
RUNTIME = CudaApi(
    "cudaError_t", "cudaSuccess", "cudaErrorInvalidValue", "cudaErrorNoKernelImageForDevice",
    "cudaStream_t", "const void*", "",
    ("cuda_runtime.h", *_STANDARD), ("launch_runtime.cuh", "embedded_runtime.cuh", "embedded_kernel.h"),
)  # fmt: skip
DRIVER = CudaApi(
    "CUresult", "CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUstream", "CUkernel", "CUDA_ERROR_INVALID_CONTEXT",
    ("cuda.h", *_STANDARD), ("driver_linked.h", "launch_driver.h", "embedded_kernel.h"),
)  # fmt: skip
# The same, for programs that must load where there is no driver: it is looked for at the first call.
DRIVER_AT_RUN_TIME = replace(
    DRIVER,
    includes=(*DRIVER.includes, "dlfcn.h"),
    files=("driver_at_run_time.h", "launch_driver.h", "embedded_kernel.h"),
)

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


def _host_macros() -> Any:
    known = {"image_text": image_text, "unused_text": unused_text, "PREPARES": PREPARES}
    return template_macros("tunesmith.deliver.cuda", "cuda_host.j2", **known)


@dataclass
class HostProgram:
    """`lines` in the order in which they are tried; of several devices one after the other. Originals come
    last again; `elsewhere`, the newest PTX first, serves on devices that no line is for."""

    prepares: ClassVar = PREPARES
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

    def written(self) -> str:
        """Everything but includes and the kernels that are compiled: inside one namespace."""
        return str(_host_macros().program(self, self._plan()))

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
        when = parse_expr(line.entry.when)
        if when.names or not when.holds({}):
            name = f"serves_{'original' if block is None else block}_{number}"
            holds = c_code(when, self.sizes)
            plan.functions.append(str(_host_macros().condition(self, name, line.entry.when, holds)))
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
        return str(_host_macros().note(numbers, c_text(before), c_text(after)))

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
        return str(_host_macros().run(self, name, line, list(map(address, kernels)), scalars, launches))

    def _scalar(self, argument: DispatchArgument) -> tuple[str, str]:
        """The variable whose address the launch takes, of the type the kernel takes, and its definition."""
        kind, given = C_TYPES[argument.type][0], c_name(argument.name)
        if argument.follows_sizes:
            given = scalar_text(argument, self.sizes)
        elif kind == passed_as(argument):
            return given, ""
        name = c_name(argument.name, "value")
        return name, f"    const {kind} {name} = static_cast<{kind}>({given});\n"

    def fill(self, complete: Callable[[DispatchLine], DispatchLine]) -> None:
        """Lines for all that the runs delivered, each as it is completed."""
        for result in self.artefact.results:
            for entry in result.dispatch.entries:
                why = why_not_cpp((size.name for size in result.dispatch.sizes), entry)
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
        return format_comment([
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
