"""The host's part of a CUDA result in C++: parameters, checks, conditions of the dispatch, and launches.

The same text for two interfaces: NVIDIA's runtime, for programs that nvcc compiles, and its driver, for those
that any C++ compiler does. Kernels are compiled with the program or embedded as machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from tunesmith.deliver.c_code import C_TYPES, c_code, c_text, comment
from tunesmith.deliver.cuda_api import CudaApi
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
from tunesmith.space.expr import Expr, parse
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
        own = self.result.dispatch.original
        named = any(PLACEHOLDER.search(launch.entry) for launch in own.launches)
        return not self.is_tuned and (named or self.entry.when == "1")

    @property
    def own_device(self) -> str:
        """That a device is of its run's kind, in C++; empty where the run does not say."""
        own = self.result.dispatch.capability
        return f"architecture(device) == {own}" if own else ""

    @property
    def about(self) -> str:
        config = ", ".join(f"{k}={v}" for k, v in (self.entry.config or {}).items())
        return f"{self.label or self.entry.file}{f', {config}' if config else ''}"


@dataclass
class _Steps:
    """What the steps of the dispatch have asked for so far."""

    runs: dict[str, str] = field(default_factory=dict)  # what a function runs -> its name
    functions: list[str] = field(default_factory=list)
    # Devices, and whether without an original of their own -> what is loaded there.
    ready: dict[tuple[str, bool], dict[str, None]] = field(default_factory=dict)


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
        own = {a.name for a in self.arguments}
        found: dict[str, list[tuple[DispatchEntry, DispatchArgument]]] = {}
        for line in self.lines:
            for argument in line.entry.workspace if line.address else ():
                if argument.name not in own:
                    found.setdefault(argument.name, []).append((line.entry, argument))
        return found

    @cached_property
    def sizes(self) -> dict[str, str]:
        return {size.name: c_name(size.name, "size") for size in self.dispatch.sizes}

    @cached_property
    def pointers(self) -> dict[str, str]:
        """Every array's name, and an alias's too -> the parameter."""
        own = {a.name: c_name(a.alias or a.name) for a in self.arguments if a.is_array}
        return own | {name: c_name(name, "work") for name in self.workspaces}

    @cached_property
    def parameters(self) -> tuple[HostParameter, ...]:
        own = self.dispatch
        given = [a for a in self.arguments if a in own.arrays or a in own.literals]
        sizes = (HostParameter("long long", self.sizes[rule.name], rule.describe()) for rule in own.sizes)
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
    def _sizes_passed(self) -> str:
        return ", ".join(self.sizes.values())

    def declaration(self, name: str) -> str:
        return f"{self.api.status} {name}({', '.join(f'{p.type} {p.name}' for p in self.parameters)})"

    # -- the text -----------------------------------------------------------------------------------

    def written(self) -> str:
        """Everything but includes and the kernels that are compiled: inside one namespace."""
        steps = _Steps()
        begin = [self._checked(), "    const int device = current_device();\n"]
        begin += [f"    if (device < 0) return {self.api.no_device};\n"] if self.api.no_device else []
        left_out = [line for line in self.lines if not line.address]
        body = [comment([f"Left out: {line.about}, {line.why}"], "    ") for line in left_out]
        if any(line.is_tuned and line.address for line in self.lines):
            body.insert(0, f"    const bool as_tuned = {self._as_tuned()};\n")
        for number, lines in enumerate(self._by_device()):
            needed = " && ".join(filter(None, ["as_tuned", lines[0].own_device]))
            body.append(f"    if ({needed}) {{\n")
            body += [self._step(line, steps, number) for line in lines]
            body.append("    }\n")
        if steps.runs and all(result.dispatch.capability for result in self.artefact.results):
            body.append("    note_untuned(architecture(device));\n")
            steps.functions.append(self._note())
        ending = self._ending(steps)
        images = [image_text(name, data) for data, name in self.images.items()]
        launch = (
            f"{self.declaration('launch')} {{\n{''.join([*begin, *body, *ending])}}}\n"
            "// The kernel as it was before it was tuned, whatever the sizes.\n"
            f"{self.declaration('launch_original')} {{\n{''.join([*begin, *ending])}}}\n"
        )
        prepare = f"// {PREPARES}\nbool prepare() {{\n{self._prepare(steps)}}}\n"
        return "\n".join([self.api.fixed, *images, *steps.functions, launch, prepare])

    def _by_device(self) -> Iterable[list[DispatchLine]]:
        for result in self.artefact.results:
            lines = [line for line in self.lines if line.result is result and line.address]
            if any(line.is_tuned for line in lines):
                tuned = max(i for i, line in enumerate(lines) if line.is_tuned)
                yield lines[: tuned + 1]

    def _ending(self, steps: _Steps) -> list[str]:
        """The original: machine code where it is for the device, else what is for all."""
        own = [line for line in self.lines if line.is_last and line.address]
        first = [replace(line, where="") for line in own if line.result is self.artefact.first]
        others = self.elsewhere or first
        ending = [self._step(line, steps) for line in own if line.where]
        ending += [self._step(line, steps, is_elsewhere=True) for line in others]
        if not any(line.entry.when == "1" and not line.where for line in others):
            ending.append(f"    return {self.api.invalid};\n")
        return ending

    def _step(
        self, line: DispatchLine, steps: _Steps, block: int | None = None, *, is_elsewhere: bool = False
    ) -> str:
        """`block`: the number of the device's whose lines these are; None: a line after all of them.
        `is_elsewhere`: it serves where no original of the device's own does."""
        number, indent = len(steps.functions), "    " if block is None else "        "
        text = self._run("{name}", line)
        if text not in steps.runs:
            steps.runs[text] = f"run_{len(steps.runs)}"
            steps.functions.append(text.replace("{name}", steps.runs[text]))
        own = steps.runs[text]
        needed = [line.where] if line.where and block is None else []
        when = parse(line.entry.when)
        if when.names or not when.holds({}):
            name = f"serves_{'original' if block is None else block}_{number}"
            steps.functions.append(comment([line.entry.when]) + self._condition(name, when))
            needed.append(f"{name}({self._sizes_passed})")
        needed += self._scratch_as_tuned(line.entry, indent) if line.is_tuned else []
        if line.may_fail:
            steps.ready.setdefault((line.where, is_elsewhere), {})[own] = None
            needed += [f"{own}_ready()"] if line.is_tuned else []
        condition = f"if ({' && '.join(needed)}) " if needed else ""
        return f"{comment([line.about], indent)}{indent}{condition}return {own}({self.passed}, device);\n"

    def _prepare(self, steps: _Steps) -> str:
        if not steps.ready:
            return "    return true;\n"
        body = "    const int device = current_device();\n"
        body += "    if (device < 0) return false;\n" if self.api.no_device else ""
        body += "    bool all = true;\n"
        own = [line.where for line in self.lines if line.is_last and line.address and line.where]
        served = f"if ({' || '.join(dict.fromkeys(own))}) {{\n    }} else " if own else ""
        chain = ""  # of what is for devices without an original of their own
        for (where, is_elsewhere), names in steps.ready.items():
            loads = "".join(f"        all = {name}_ready() && all;\n" for name in names)
            if is_elsewhere:
                chain += f"{f'if ({where}) ' if where else ''}{{\n{loads}    }} else "
            else:
                body += f"    {f'if ({where}) ' if where else ''}{{\n{loads}    }}\n"
        body += f"    {served}{chain.removesuffix(' else ')}\n" if chain else ""
        return f"{body}    return all;\n"

    def _note(self) -> str:
        """How to tune, where nothing was; said once."""
        known = [result.dispatch.architecture for result in self.artefact.results]
        own = (line for line in self.lines if line.is_last and line.address)
        serves = self.elsewhere or not all(line.where for line in own)
        words = "its original serves" if serves else "there is no original here"
        note = untuned_note(self.artefact.problem.replace("\0", ""), ", ".join(known), "\0", words)
        before, _, after = note.partition("\0")
        numbers = (0, *(result.dispatch.capability for result in self.artefact.results))
        passed = " || ".join(f"here == {number}" for number in numbers)
        return (
            "static void note_untuned(int here) {\n    static std::atomic<bool> said(false);\n"
            f"    if ({passed} || said.exchange(true)) return;\n"
            f'    std::fprintf(stderr, "%ssm_%d%s\\n", {c_text(before)}, here, {c_text(after)});\n}}\n'
        )

    def _checked(self) -> str:
        """What every expression relies on."""
        beyond = [f"{name} < -limit || {name} > limit" for name in self.sizes.values()]
        return f"    if ({' || '.join(beyond)}) return {self.api.invalid};\n" if beyond else ""

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
        own = entry.workspace
        if not own:
            return []
        others = [b for b in self.dispatch.arrays if b.name not in {a.name for a in own}]
        pairs = [*combinations(own, 2), *((a, b) for a in own for b in others)]
        tests = [*self._aligned(own), *self._apart(pairs)]
        return [*(f"{self.pointers[a.name]} != nullptr" for a in own), self._all_of(tests, indent)]

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

    def _condition(self, name: str, when: Expr) -> str:
        taken = ", ".join(f"long long {size}" for size in self.sizes.values())
        holds = c_code(when, self.sizes)
        return (
            f"static bool {name}({taken}) {{\n{unused_text(self.sizes.values(), holds)}"
            "    bool undefined = false;\n"
            f"    const bool holds = {holds};\n    return holds && !undefined;\n}}\n"
        )

    def _run(self, name: str, line: DispatchLine) -> str:
        """A function that launches the entry, once everything it needs is known to have a value."""
        entry, address = line.entry, line.address
        assert address is not None, "what is left out is not run"
        known = {a.name: a for a in (*self.arguments, *entry.workspace)}
        used = dict.fromkeys(arg for launch in entry.launches for arg in launch.args)
        places = dict(self.pointers)
        body = ["    bool undefined = false;\n"]
        for argument in (known[arg] for arg in used):
            if argument.role == "scalar":
                places[argument.name], made = self._scalar(argument)
                body.append(made)
        body += [shape_text(number, launch, self.sizes) for number, launch in enumerate(entry.launches)]
        body.append(f"    if (undefined) return {self.api.invalid};\n")
        kernels = list(dict.fromkeys(launch.entry for launch in entry.launches))
        finders, ready = [], []
        for k, kernel in enumerate(kernels):
            made = f"    static Kernel own = {{{address(kernel)}, {{}}}};\n    return &own;\n"
            if line.may_fail:
                made = f"    static EmbeddedKernel own;\n    return {address(kernel)};\n"
            finders.append(f"static Kernel* {name}_kernel_{k}() {{\n{made}}}\n")
            ready.append(f"{name}_kernel_{k}() != nullptr")
            body.append(f"    Kernel* const kernel_{k} = {name}_kernel_{k}();\n")
            if line.may_fail:
                body.append(f"    if (kernel_{k} == nullptr) return {self.api.no_image};\n")
        for number, launch in enumerate(entry.launches):
            listed = ", ".join(f"(void*)&{places[arg]}" for arg in launch.args)
            args = f"args_{number}" if listed else "nullptr"
            body.append(f"    void* {args}[] = {{{listed}}};\n" if listed else "")
            kernel = f"*kernel_{kernels.index(launch.entry)}"
            started = f"start({kernel}, shape_{number}, {args}, device, stream)"
            is_last = number == len(entry.launches) - 1
            if is_last and launch.when is None:
                body.append(f"    return {started};\n")
                continue
            body.append(f"    if (launched_{number}) {{\n" if launch.when is not None else "")
            body.append(f"    const {self.api.status} error_{number} = {started};\n")
            body.append(f"    if (error_{number} != {self.api.success}) return error_{number};\n")
            body.append("    }\n" if launch.when is not None else "")
            body.append(f"    return {self.api.success};\n" if is_last else "")
        taken = ", ".join(f"{p.type} {p.name}" for p in self.parameters)
        is_ready = f"static bool {name}_ready() {{ return {' && '.join(ready)}; }}\n" if line.may_fail else ""
        return (
            f"{''.join(finders)}{is_ready}static {self.api.status} {name}({taken}, int device) {{\n"
            f"{unused_text((p.name for p in self.parameters), ''.join(body))}{''.join(body)}}}\n"
        )

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
