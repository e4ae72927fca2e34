"""CMakeLists.txt of the exports for C++: each translation unit with its own flags, for its own device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.backends.cuda.flags import architecture_apart

_WORD = re.compile(r"[\w=,.:+/@%-]+", re.ASCII)  # what CMake and a shell both take as it is

# Before project(), which leaves it empty: nothing would be optimised.
_RELEASE = """\
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
"""
_ASSERTS = "$<$<COMPILE_LANGUAGE:CUDA>:-UNDEBUG>"


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


def cmake_for_embedded(name: str) -> str:
    return (
        "cmake_minimum_required(VERSION 3.18)\n"
        f"{_RELEASE}"
        f"project({name}_tuned CXX)\n"
        "find_package(CUDAToolkit REQUIRED)\n"
        f"add_library({name}_tuned STATIC {name}.cpp)\n"
        f"target_include_directories({name}_tuned PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
        f"target_compile_features({name}_tuned PUBLIC cxx_std_14)\n"
        f"target_link_libraries({name}_tuned PUBLIC CUDA::cuda_driver CUDA::toolkit)\n"
        "add_executable(example EXCLUDE_FROM_ALL example.cpp)\n"
        f"target_link_libraries(example PRIVATE {name}_tuned)\n"
    )


def cmake_for_sources(name: str, devices: Sequence[int], units: Sequence[CudaUnit]) -> str:
    """A winner is built for its own device alone: it serves no other, and need not compile for one."""
    built: dict[tuple[str, ...], list[str]] = {(): [f"{name}.cpp"]}
    for unit in units:
        built.setdefault(unit.devices, []).append(unit.file)
    targets = {sources: _target(name, sources) for sources in built}
    text = (
        "cmake_minimum_required(VERSION 3.20)\n"
        '# Name other devices to have the original there: -DCMAKE_CUDA_ARCHITECTURES="80;90"\n'
        "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})\n"
        f'  set(CMAKE_CUDA_ARCHITECTURES "{";".join(map(str, devices)) or "native"}")\n'
        "endif()\n"
        f"{_RELEASE}"
        f"project({name}_tuned CXX CUDA)\n"
        "find_package(CUDAToolkit REQUIRED)\n"
    )
    for architectures, sources in built.items():
        if architectures:
            part = targets[architectures]
            text += (
                f"add_library({part} OBJECT {' '.join(sources)})\n"
                f'set_target_properties({part} PROPERTIES CUDA_ARCHITECTURES "{";".join(architectures)}")\n'
                f"target_compile_features({part} PUBLIC cuda_std_17)\n"
                f"target_compile_options({part} PRIVATE {_ASSERTS})\n"
            )
    objects = [f"$<TARGET_OBJECTS:{target}>" for own, target in targets.items() if own]
    text += (
        f"add_library({name}_tuned STATIC {' '.join([*built[()], *objects])})\n"
        f"target_include_directories({name}_tuned PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
        f"target_compile_features({name}_tuned PUBLIC cxx_std_17 cuda_std_17)\n"
        f"target_compile_options({name}_tuned PRIVATE {_ASSERTS})\n"
        f"target_link_libraries({name}_tuned PUBLIC CUDA::cudart)\n"
        "# Each kernel is built with the flags it was verified with; a Release must not take its asserts.\n"
    )
    for unit in units:
        if options := ";".join(unit.options):
            text += f'set_source_files_properties({unit.file} PROPERTIES COMPILE_OPTIONS "{options}")\n'
    text += (
        "add_executable(example EXCLUDE_FROM_ALL example.cu)\n"
        f"target_link_libraries(example PRIVATE {name}_tuned)\n"
    )
    return text + _checks(name, units, targets)


def _target(name: str, architectures: Sequence[str]) -> str:
    return "_".join([name, "sm", *architectures]) if architectures else f"{name}_tuned"


def _checks(name: str, units: Sequence[CudaUnit], targets: Mapping[tuple[str, ...], str]) -> str:
    checked = [unit for unit in units if unit.verified]
    if not checked:
        return ""
    here = "${CMAKE_CURRENT_SOURCE_DIR}"
    text = (
        "# Says of each kernel whether this compiler makes the machine code of it that was verified.\n"
        "find_package(Python3 COMPONENTS Interpreter)\n"
        "if(Python3_FOUND)\n"
        f"  add_custom_command(TARGET {name}_tuned POST_BUILD\n"
    )
    for unit in checked:
        pattern = unit.file.replace(".", "[.]")
        built = f"$<FILTER:$<TARGET_OBJECTS:{targets[unit.devices]}>,INCLUDE,{pattern}>"
        options = " ".join([f"-arch=sm_{unit.device}", *unit.options])
        text += (
            f"    COMMAND ${{Python3_EXECUTABLE}} {here}/check_code.py --nvcc ${{CMAKE_CUDA_COMPILER}}\n"
            f'      --object "{built}"\n'
            f"      {here}/{unit.file} {here}/{unit.verified} {options}\n"
        )
    return f"{text}    VERBATIM)\nendif()\n"
