"""CUDA results for C++ programs: sources by their flags (`cpp`), or embedded machine code (`cubin`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib import resources

from tunesmith.backends.cuda.flags import host_flags
from tunesmith.deliver.c_code import C_TYPES, comment
from tunesmith.deliver.cuda_api import DRIVER, RUNTIME, CudaApi
from tunesmith.deliver.cuda_host import PREPARES, DispatchLine, HostProgram
from tunesmith.deliver.cuda_names import unfit
from tunesmith.deliver.cuda_source import Unfit
from tunesmith.deliver.exports.artefact import Artefact, Export, Target, missing_lines
from tunesmith.deliver.launch_cu import SourceUnit, SourceUnits
from tunesmith.deliver.original_ptx import original_ptx
from tunesmith.errors import BadInput
from tunesmith.text import markdown

_FLAG = re.compile(r"[\w=,.:+/@%-]+", re.ASCII)  # what CMake and a shell both take as it is


@dataclass(frozen=True)
class HostFiles:
    """Header and source of the host's part, the lines it has, and what serves on another device."""

    header: bytes
    source: bytes
    program: HostProgram
    elsewhere: str

    @property
    def left_out(self) -> tuple[str, ...]:
        return self._missing[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return self._missing[1]

    @property
    def _missing(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        lines = self.program.lines
        return missing_lines((x.result, x.entry, x.about, "" if x.address else x.why) for x in lines)


def embedded_host(artefact: Artefact, about: str = "", api: CudaApi = DRIVER) -> HostFiles:
    """Everything as machine code, for any C++ compiler: `NAME.h` and `NAME.cpp`."""
    program = HostProgram(artefact, api)
    missing = "the run has no machine code of it"
    program.fill(lambda line: program.embedded(line) or replace(line, why=missing))
    if not any(line.address and line.is_tuned for line in program.lines):
        raise BadInput(
            f"the runs of {artefact.problem} have no machine code of a winner",
            hint="tune again: runs of earlier versions did not store it; or export with --to cpp",
        )
    lines = about or "Its kernels are the machine code that was verified. Link with libcuda."
    elsewhere = _with_ptx(program)
    return _host(artefact, program, program.written(), lines, elsewhere)


def _with_ptx(program: HostProgram) -> str:
    """Gives the program PTX of the original; where that serves, or why there is none, in a sentence."""
    newest = max(program.artefact.results, key=lambda result: result.dispatch.capability)
    sizes = [size.name for size in newest.dispatch.sizes]
    own = [line for line in program.lines if line.is_last and line.result is newest]
    lines = [line for line in own if not unfit(sizes, line.entry)]
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


def _host(
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
    source = comment([f"The host's part of {artefact.problem}: see {name}.h."])
    source += f'#include "{name}.h"\n'
    source += "".join(f"#include <{header}>\n" for header in program.headers)
    source += f"\n{declared}namespace {outer} {{\n\n{text}\n}}  // namespace {outer}\n\n"
    taken = program.declaration(f"{name}_launch")
    source += f'extern "C" {taken} {{\n    return {outer}::launch({program.passed});\n}}\n'
    source += f'extern "C" int {name}_prepare() {{ return {outer}::prepare(); }}\n'
    included = [h for h in program.headers if h.startswith("cuda")]
    header = head + "#pragma once\n" + "".join(f"#include <{h}>\n" for h in included)
    header += f"\n#ifdef __cplusplus\nnamespace {outer} {{\n{program.declaration('launch')};\n"
    header += f"// The kernel as it was before it was tuned.\n{program.declaration('launch_original')};\n"
    header += f"// {PREPARES}\nbool prepare();\n}}\n"
    header += f'\nextern "C" {{\n#endif\n{_for_c(program, f"{name}_launch")};\n'
    header += f"int {name}_prepare(void);\n#ifdef __cplusplus\n}}\n#endif\n"
    return HostFiles(header.encode(), source.encode(), program, elsewhere)


def _for_c(program: HostProgram, name: str) -> str:
    """As C and C++ both take it: the narrow floats are classes, which C knows by pointers alone."""
    declared = program.declaration(name)
    classes = dict.fromkeys(kind for kind, header in C_TYPES.values() if header is not None)
    named = [kind for kind in classes if re.search(rf"\b{kind}\b", declared)]
    for kind in named:
        declared = re.sub(rf"\b{kind}\b", f"struct {kind}", declared)
    return "".join(f"struct {kind};\n" for kind in named) + declared


# -- cubin --------------------------------------------------------------------------------------------------


def _write_cubin(artefact: Artefact) -> Export:
    made, name = embedded_host(artefact), artefact.name
    files = {f"{name}.h": made.header, f"{name}.cpp": made.source}
    files["example.cpp"] = _example(artefact, made.program, DRIVER).encode()
    files["CMakeLists.txt"] = _cmake_embedded(name).encode()
    files["README.md"] = _readme(
        artefact, made, "g++ -O2 -c {name}.cpp -I CUDA/include; link with -lcuda"
    ).encode()
    return Export(files, made.left_out, notes=made.notes)


def _cmake_embedded(name: str) -> str:
    return (
        "cmake_minimum_required(VERSION 3.18)\n"
        f"project({name}_tuned CXX)\n"
        "find_package(CUDAToolkit REQUIRED)\n"
        f"add_library({name}_tuned STATIC {name}.cpp)\n"
        f"target_include_directories({name}_tuned PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
        f"target_compile_features({name}_tuned PUBLIC cxx_std_14)\n"
        f"target_link_libraries({name}_tuned PUBLIC CUDA::cuda_driver CUDA::toolkit)\n"
        f"add_executable(example EXCLUDE_FROM_ALL example.cpp)\n"
        f"target_link_libraries(example PRIVATE {name}_tuned)\n"
    )


# -- cpp ----------------------------------------------------------------------------------------------------


def _write_cpp(artefact: Artefact) -> Export:
    name = artefact.name
    outer, units = f"{name}_tuned", SourceUnits(None)
    program = HostProgram(artefact, RUNTIME)
    owners: dict[str, list[DispatchLine]] = {}
    program.fill(lambda line: _compiled_line(units, line, owners))
    text = program.written()  # first: it says which entries the units must name
    declared = "".join(_declared(outer, unit) for unit in units.units.values())
    about = "Its kernels are compiled from their sources, each with its own flags."
    elsewhere = "On another device the original serves, where the build is for it (CMAKE_CUDA_ARCHITECTURES)."
    made = _host(artefact, program, text, about, elsewhere, declared)
    files = {f"{name}.h": made.header, f"{name}.cpp": made.source}
    for unit in units.units.values():
        file, first = f"kernels_{unit.namespace}.cu", owners[unit.namespace][0]
        head = comment([f"{unit.file}, in a namespace of its own."]) + unit.section.includes
        entry = "const void* {name}() {{ return {address}; }}\n"
        files[file] = unit.written(head, outer, file, entry).encode()
        if (data := first.result.binary(first.entry)) is not None:
            files[f"verified/{unit.namespace}.cubin"] = data
    files["check_code.py"] = (
        resources.files("tunesmith.deliver.runtime").joinpath("check_code.py").read_bytes()
    )
    files["example.cu"] = _example(artefact, program, RUNTIME).encode()
    is_checked = any(file.startswith("verified/") for file in files)
    files["CMakeLists.txt"] = _cmake_sources(artefact, owners, is_checked).encode()
    build = "cmake -B build && cmake --build build"
    files["README.md"] = _readme(artefact, made, build).encode()
    return Export(files, made.left_out, notes=made.notes)


def _compiled_line(
    units: SourceUnits, line: DispatchLine, owners: dict[str, list[DispatchLine]]
) -> DispatchLine:
    if odd := next((flag for flag in line.entry.flags if not _FLAG.fullmatch(flag)), None):
        return replace(line, why=f"its flag {odd} cannot be written for CMake: use --to cubin")
    try:
        address, namespace = units.address(line.result, line.entry)
    except Unfit as error:
        return replace(line, why=str(error))
    owners.setdefault(namespace, []).append(line)
    return replace(line, address=lambda name: f"{address(name)}()", label=f"kernels_{namespace}.cu")


def _declared(outer: str, unit: SourceUnit) -> str:
    functions = " ".join(f"const void* {constant}();" for constant in unit.entries.values())
    return f"namespace {outer} {{ namespace {unit.namespace} {{ {functions} }} }}\n"


def _cmake_sources(artefact: Artefact, owners: dict[str, list[DispatchLine]], is_checked: bool) -> str:
    """A winner is built for its own device alone: it serves no other, and need not compile for one."""
    name = artefact.name
    default = sorted({r.dispatch.capability for r in artefact.results} - {0})
    # Architectures, none where they are as asked for -> sources.
    built: dict[tuple[int, ...], list[str]] = {(): [f"{name}.cpp"]}
    for namespace, lines in owners.items():
        own = {line.result.dispatch.capability for line in lines if line.is_tuned}
        built.setdefault(tuple(sorted(own - {0})), []).append(f"kernels_{namespace}.cu")
    text = (
        "cmake_minimum_required(VERSION 3.20)\n"
        f"project({name}_tuned CXX CUDA)\n"
        "find_package(CUDAToolkit REQUIRED)\n"
        '# Name other devices to have the original there: -DCMAKE_CUDA_ARCHITECTURES="80;90"\n'
        "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES OR CMAKE_CUDA_ARCHITECTURES_DEFAULT)\n"
        f'  set(CMAKE_CUDA_ARCHITECTURES "{";".join(map(str, default)) or "native"}")\n'
        "endif()\n"
    )
    objects = []
    for architectures, sources in built.items():
        if architectures:
            part = "_".join([name, "sm", *map(str, architectures)])
            objects.append(f"$<TARGET_OBJECTS:{part}>")
            numbers = ";".join(map(str, architectures))
            text += (
                f"add_library({part} OBJECT {' '.join(sources)})\n"
                f'set_target_properties({part} PROPERTIES CUDA_ARCHITECTURES "{numbers}")\n'
                f"target_compile_features({part} PUBLIC cuda_std_17)\n"
            )
    text += (
        f"add_library({name}_tuned STATIC {' '.join([*built[()], *objects])})\n"
        f"target_include_directories({name}_tuned PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
        f"target_compile_features({name}_tuned PUBLIC cxx_std_17 cuda_std_17)\n"
        f"target_link_libraries({name}_tuned PUBLIC CUDA::cudart)\n"
        "# Each winner is built with the flags it was verified with.\n"
    )
    for namespace, lines in owners.items():
        if options := ";".join(host_flags(lines[0].entry.flags)):
            file = f"kernels_{namespace}.cu"
            text += f'set_source_files_properties({file} PROPERTIES COMPILE_OPTIONS "{options}")\n'
    text += (
        "add_executable(example EXCLUDE_FROM_ALL example.cu)\n"
        f"target_link_libraries(example PRIVATE {name}_tuned)\n"
    )
    if is_checked:
        text += (
            "# Says where this compiler makes other machine code of a kernel than was verified.\n"
            "find_package(Python3 COMPONENTS Interpreter)\n"
            "if(Python3_FOUND)\n"
            f"  add_custom_command(TARGET {name}_tuned POST_BUILD COMMAND ${{Python3_EXECUTABLE}}\n"
            f"    ${{CMAKE_CURRENT_SOURCE_DIR}}/check_code.py $<TARGET_FILE:{name}_tuned>\n"
            "    ${CMAKE_CURRENT_SOURCE_DIR}/verified)\n"
            "endif()\n"
        )
    return text


# -- what both have -----------------------------------------------------------------------------------------


def _example(artefact: Artefact, program: HostProgram, api: CudaApi) -> str:
    """The least that calls it: the first workload, on memory that nobody has filled."""
    workload = artefact.first.dispatch.workloads[0]
    given = []
    for parameter in program.parameters:
        if parameter.name == "stream":
            given.append("nullptr")
        elif parameter.name.startswith("size_"):
            name = next(k for k, v in program.sizes.items() if v == parameter.name)
            given.append(str(workload.sizes[name]))
        elif parameter.type.endswith("*"):
            given.append(f"({parameter.type})memory")
        else:
            own = next(a for a in program.dispatch.literals if f"arg_{a.name}" == parameter.name)
            given.append(str(own.value))
    call = f"{artefact.name}_tuned::launch({', '.join(given)})"
    if api is RUNTIME:
        setup = "void* memory; cudaMalloc(&memory, size_t(1) << 30);"
        end = "cudaDeviceSynchronize()"
    else:
        setup = (
            "CUdevice device; CUcontext context; CUdeviceptr memory;\n"
            "    cuInit(0); cuDeviceGet(&device, 0); cuDevicePrimaryCtxRetain(&context, device);\n"
            "    cuCtxSetCurrent(context); cuMemAlloc(&memory, size_t(1) << 30);"
        )
        end = "cuCtxSynchronize()"
    return (
        f'#include "{artefact.name}.h"\n\n'
        + comment([f"Calls it at {workload.name}. One piece of memory stands for all arrays: they overlap,"])
        + comment(["so the original serves. Give each its own, and the tuned kernel does."])
        + f"int main() {{\n    {setup}\n    return (int){call} + (int){end};\n}}\n"
    )


def _readme(artefact: Artefact, made: HostFiles, build: str) -> str:
    name = artefact.name
    tuned = [line for line in made.program.lines if line.is_tuned]
    have = sum(line.address is not None for line in tuned)
    lines = [
        f"# {name}",
        "",
        f"Tuned by Tunesmith on {', '.join(markdown(r.dispatch.device) for r in artefact.results)}.",
        f"Winners delivered: {have} of {len(tuned)}.",
        "",
        "Build it:",
        "",
        f"    {build.format(name=name)}",
        "",
        f"Call `{name}_tuned::launch` ({name}.h says what it takes), or `{name}_launch` from C.",
        "It checks sizes, scalars, alignment and overlaps; where the tuned kernel was not verified the",
        "original serves.",
        "",
        f"{markdown(made.elsewhere)} Words on stderr say once how to tune there.",
    ]
    told = [*(f"left out: {text}" for text in made.left_out), *made.notes]
    lines += ["", *(f"- {markdown(text)}" for text in told)] if told else []
    return "\n".join(lines) + "\n"


CPP = Target("cpp", "C++ sources by their flags, with a CMake target", ("cuda",), _write_cpp)
CUBIN = Target("cubin", "machine code as verified, for any C++ compiler", ("cuda",), _write_cubin)
