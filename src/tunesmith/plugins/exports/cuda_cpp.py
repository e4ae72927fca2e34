"""CUDA results for C++ programs: sources by their flags (`cpp`), or embedded machine code (`cubin`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.backends.cuda.flags import architecture_apart
from tunesmith.base.errors import BadInput
from tunesmith.base.text import escape_markdown
from tunesmith.deliver.artefact import Artefact, Export, Target, bytes_of, missing_lines
from tunesmith.deliver.cuda.host import (
    DRIVER,
    RUNTIME,
    CudaApi,
    DispatchLine,
    HostProgram,
    why_not_cpp,
)
from tunesmith.deliver.cuda.launch_cu import SourceUnit, SourceUnits
from tunesmith.deliver.cuda.original_ptx import original_ptx
from tunesmith.deliver.cuda.source import Unfit
from tunesmith.deliver.expr_text import C_TYPES, format_comment
from tunesmith.plugins.exports import export_texts, runtime_text

_WORD = re.compile(r"[\w=,.:+/@%-]+", re.ASCII)  # what CMake and a shell both take as it is


@dataclass(frozen=True)
class CudaUnit:
    """A source. `devices`: those it is built for; none: those that CMAKE_CUDA_ARCHITECTURES names.
    `verified`: the cubin that it is compared with, where there is one; `device`: what that is for."""

    file: str
    options: tuple[str, ...]
    devices: tuple[str, ...]  # as CMake names them: 90, 90a
    verified: str = ""
    device: str = ""


def options_of(flags: Sequence[str], capability: int) -> tuple[tuple[str, ...], str]:
    """Without the architecture, and that by itself, as CMake names it."""
    words, suffix = architecture_apart(flags, capability)
    return tuple(words), f"{capability or ''}{suffix}"


def odd_option(options: Sequence[str]) -> str | None:
    """The first that cannot be written for CMake."""
    return next((option for option in options if not _WORD.fullmatch(option)), None)


def cmake_for_sources(name: str, devices: Sequence[int], units: Sequence[CudaUnit]) -> str:
    built: dict[tuple[str, ...], list[str]] = {(): [f"{name}.cpp"]}
    for unit in units:
        built.setdefault(unit.devices, []).append(unit.file)
    targets = {sms: "_".join([name, "sm", *sms]) if sms else f"{name}_tuned" for sms in built}
    return str(export_texts("cuda_cpp.j2").sources(name, devices, units, built, targets))


@dataclass(frozen=True)
class HostFiles:
    """Header and source of the host's part, the lines it has, and what serves on another device."""

    header: bytes
    source: bytes
    program: HostProgram
    elsewhere: str

    @cached_property
    def missing(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        lines = self.program.lines
        return missing_lines((x.result, x.entry, x.about, "" if x.address else x.why) for x in lines)

    @property
    def left_out(self) -> tuple[str, ...]:
        return self.missing[0]

    def export(self, files: dict[str, bytes]) -> Export:
        return Export(files, self.left_out, notes=self.missing[1])


def embedded_host(artefact: Artefact, about: str = "", api: CudaApi = DRIVER) -> HostFiles:
    """Everything as machine code, for any C++ compiler: `NAME.h` and `NAME.cpp`."""
    program = HostProgram(artefact, api)
    missing = "the run has no machine code of it"
    program.fill(lambda line: program.embedded(line) or replace(line, why=missing))
    if not any(line.address and line.is_tuned for line in program.lines):
        fault = f"the runs of {artefact.problem} have no machine code of a winner"
        hint = "tune again: runs of earlier versions did not store it; or export with --to cpp"
        raise BadInput(fault, hint=hint)
    about = about or "Its kernels are the machine code that was verified. Link with libcuda."
    elsewhere = _with_ptx(program)
    return _host_files(artefact, program, program.written(), about, elsewhere)


def _with_ptx(program: HostProgram) -> str:
    """Gives the program PTX of the original; where that serves, or why there is none, in a sentence."""
    newest = max(program.artefact.results, key=lambda result: result.dispatch.capability)
    sizes = [size.name for size in newest.dispatch.sizes]
    own = [line for line in program.lines if line.is_last and line.result is newest]
    lines = [line for line in own if not why_not_cpp(sizes, line.entry)]
    found, why = original_ptx(newest, [line.entry for line in lines]) if lines else ((), own[-1].why)
    if not found:
        return f"On another device nothing serves: there is no PTX of the original ({why})."
    oldest: dict[str, int] = {}  # driver -> the oldest device that has something for it
    for ptx in found:
        oldest[ptx.driver] = ptx.capability
        where = f"architecture(device) >= {ptx.capability}" if ptx is not found[-1] else ""
        address = program.loaded(ptx.text + b"\0", ptx.symbols, ptx.registers)
        for line in lines:
            label = f"PTX for sm_{ptx.capability} and newer: {line.entry.file}"
            made = replace(line, address=address, why="", label=label, may_fail=True, where=where)
            program.elsewhere.append(made)
    needed = "; ".join(
        f"sm_{device} and newer, with a driver for CUDA {driver} or newer"
        for driver, device in sorted(oldest.items(), key=lambda item: item[1])
    )
    return f"On another device the original serves, as PTX that the driver there compiles: {needed}."


def _host_files(
    artefact: Artefact, program: HostProgram, text: str, about: str, elsewhere: str, declared: str = ""
) -> HostFiles:
    """`text` is what the program writes; `declared` stands before it."""
    name = artefact.name
    outer = f"{name}_tuned"
    devices = ", ".join(result.dispatch.device for result in artefact.results)
    head = program.head(
        [f"{artefact.problem}, tuned by Tunesmith on {devices}.", about, elsewhere],
        [f"Call {outer}::launch or, from C and Python, {name}_launch; both take"],
    )
    source = export_texts("cuda_cpp.j2").source(name, artefact.problem, program, declared, text)
    header = export_texts("cuda_cpp.j2").header(name, program, head, _for_c(program, f"{name}_launch"))
    return HostFiles(str(header).encode(), str(source).encode(), program, elsewhere)


def _for_c(program: HostProgram, name: str) -> str:
    """As C and C++ both take it: the narrow floats are classes, which C knows by pointers alone."""
    declared = program.declaration(name)
    classes = dict.fromkeys(kind for kind, header in C_TYPES.values() if header is not None)
    named = [kind for kind in classes if re.search(rf"\b{kind}\b", declared)]
    for kind in named:
        declared = re.sub(rf"\b{kind}\b", f"struct {kind}", declared)
    return "".join(f"struct {kind};\n" for kind in named) + declared


def _write_cubin(artefact: Artefact) -> Export:
    made, name = embedded_host(artefact), artefact.name
    files = {f"{name}.h": made.header, f"{name}.cpp": made.source}
    files["example.cpp"] = _cuda_example(artefact, made.program, DRIVER).encode()
    files["CMakeLists.txt"] = str(export_texts("cuda_cpp.j2").embedded(name)).encode()
    files["README.md"] = _cuda_readme(artefact, made, is_embedded=True).encode()
    return made.export(files)


def _write_cpp(artefact: Artefact) -> Export:
    name = artefact.name
    outer, units = f"{name}_tuned", SourceUnits(None)
    program = HostProgram(artefact, RUNTIME)
    owners: dict[str, list[DispatchLine]] = {}
    program.fill(lambda line: _compiled_line(units, line, owners))
    text = program.written()  # first: it says which entries the units must name
    declared = "".join(_declare_entries(outer, unit) for unit in units.units.values())
    about = "Its kernels are compiled from their sources, each with its own flags."
    elsewhere = "On another device the original serves, where the build is for it (CMAKE_CUDA_ARCHITECTURES)."
    made = _host_files(artefact, program, text, about, elsewhere, declared)
    files = {f"{name}.h": made.header, f"{name}.cpp": made.source}
    built: list[CudaUnit] = []
    for unit in units.units.values():
        file, first = f"kernels_{unit.namespace}.cu", owners[unit.namespace][0]
        head = format_comment([f"{unit.file}, in a namespace of its own."]) + unit.section.includes
        entry = "const void* {name}() {{ return {address}; }}\n"
        files[file] = unit.written(head, outer, file, entry, names_files=False).encode()
        verified = f"verified/{unit.namespace}.cubin"
        if (data := first.result.binary(first.entry)) is not None:
            files[verified] = data
        built.append(_cmake_unit(file, owners[unit.namespace], verified if data is not None else ""))
    files["check_code.py"] = runtime_text("check_code").encode()
    files["example.cu"] = _cuda_example(artefact, program, RUNTIME).encode()
    devices = sorted({result.dispatch.capability for result in artefact.results} - {0})
    files["CMakeLists.txt"] = cmake_for_sources(name, devices, built).encode()
    is_compared = any(unit.verified for unit in built)
    files["README.md"] = _cuda_readme(artefact, made, is_compared=is_compared).encode()
    return made.export(files)


def _compiled_line(
    units: SourceUnits, line: DispatchLine, owners: dict[str, list[DispatchLine]]
) -> DispatchLine:
    if odd := odd_option(options_of(line.entry.flags, line.result.dispatch.capability)[0]):
        return replace(line, why=f"its flag {odd} cannot be written for CMake: use --to cubin")
    try:
        address, namespace = units.address(line.result, line.entry)
    except Unfit as error:
        return replace(line, why=str(error))
    owners.setdefault(namespace, []).append(line)
    return replace(line, address=lambda name: f"{address(name)}()", label=f"kernels_{namespace}.cu")


def _cmake_unit(file: str, lines: list[DispatchLine], verified: str) -> CudaUnit:
    given = [options_of(line.entry.flags, line.result.dispatch.capability) for line in lines]
    devices = {device for (_, device), line in zip(given, lines, strict=True) if line.is_tuned}
    return CudaUnit(file, given[0][0], tuple(sorted(devices - {""})), verified, given[0][1])


def _declare_entries(outer: str, unit: SourceUnit) -> str:
    functions = " ".join(f"const void* {constant}();" for constant in unit.entries.values())
    return f"namespace {outer} {{ namespace {unit.namespace} {{ {functions} }} }}\n"


def _cuda_example(artefact: Artefact, program: HostProgram, api: CudaApi) -> str:
    """The least that calls it: the first workload, on zeros."""
    workload = artefact.first.dispatch.workloads[0]
    starts, total = _memory_offsets(program, workload.sizes)
    given = []
    for parameter in program.parameters:
        if parameter.name == "stream":
            given.append("nullptr")
        elif parameter.name.startswith("size_"):
            name = next(k for k, v in program.sizes.items() if v == parameter.name)
            given.append(str(workload.sizes[name]))
        elif parameter.type.endswith("*"):
            given.append(f"({parameter.type})(memory + {starts[parameter.name]})")
        else:
            own = next(a for a in program.dispatch.literals if f"arg_{a.name}" == parameter.name)
            given.append(str(own.value))
    about = (artefact.name, workload.name, total, given, api is RUNTIME)
    return str(export_texts("cuda_cpp.j2").example(*about))


def _memory_offsets(program: HostProgram, sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Where each array and workspace begins in one piece of memory, by its parameter, and all its bytes."""
    wanted = [*program.dispatch.arrays, *(a for uses in program.workspaces.values() for _, a in uses)]
    lengths: dict[str, int] = {}
    for argument in wanted:
        name = program.pointers[argument.name]
        lengths[name] = max(lengths.get(name, 1), bytes_of(argument).evaluate(sizes))
    step = max([256, *(argument.align for argument in wanted)])
    starts, total = dict[str, int](), 0
    for name, length in lengths.items():
        starts[name] = total
        total += -(-length // step) * step
    return starts, total


def _cuda_readme(artefact: Artefact, made: HostFiles, **how: bool) -> str:
    devices = ", ".join(escape_markdown(result.dispatch.device) for result in artefact.results)
    winners = sum(result.dispatch.winners for result in artefact.results)
    earlier = (why for result in artefact.results for why in result.dispatch.left_out)
    left_out, notes = made.missing
    told = [*(f"left out: {text}" for text in (*earlier, *left_out)), *notes]
    counts = len(artefact.tuned) - len(left_out), winners
    listed = escape_markdown(made.elsewhere), list(map(escape_markdown, told))
    how = {"is_embedded": False, "is_compared": False} | how
    return str(export_texts("cuda_cpp.j2").readme(artefact.name, devices, *counts, *listed, **how))


CPP = Target("cpp", "C++ sources by their flags, with a CMake target", ("cuda",), _write_cpp)
CUBIN = Target("cubin", "machine code as verified, for any C++ compiler", ("cuda",), _write_cubin)
