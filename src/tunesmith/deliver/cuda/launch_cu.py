"""launch.cu: the original and all winners in one file that compiles alone, with a function that dispatches.

Winners are embedded as the machine code that was verified, whatever flags it was built with. The original is
compiled from its source, which stands in a namespace of its own; so is a winner without machine code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.deliver.cuda.host import RULE, RUNTIME, Address, DispatchLine, HostProgram
from tunesmith.deliver.cuda.source import (
    NamespacedSource,
    Unfit,
    namespace_source,
    pop_macro,
    push_macro,
    unnamed_lines,
)
from tunesmith.deliver.expr_text import format_comment
from tunesmith.problem.dispatch import Dispatch, DispatchEntry, headers_of

NAME = "launch.cu"


@dataclass
class SourceUnit:
    """One source in its namespace, with the entries that are launched from it."""

    namespace: str
    file: str
    section: NamespacedSource
    entries: dict[str, str] = field(default_factory=dict)  # as the launch names it -> our constant

    def address(self, entry: str) -> str:
        name = self.entries.setdefault(entry, f"tunesmith_entry_{len(self.entries)}")
        return f"{self.namespace}::{name}"

    def written(self, before: str, outer: str, file: str, entry: str, names_files: bool = True) -> str:
        """What is in the file before it, and the source; `entry` says how an address is given a name.
        `names_files`: whether lines are counted by the names of their files, or as numbers alone."""
        text = before + "".join(f"{push_macro(name)}\n" for name in self.section.macros)
        # Two line ends: the source may close with a backslash.
        text += f"namespace {outer} {{ namespace {self.namespace} {{\n{self.section.text}\n\n"
        text += f'#line {text.count(chr(10)) + 2} "{file}"\n'
        for own, name in self.entries.items():
            # Inside, because an entry may name the source's own types and macros.
            text += entry.format(name=name, address=f"(const void*)&{bare_name(own)}")
        text += "}}\n" + "".join(f"{pop_macro(name)}\n" for name in reversed(self.section.macros))
        return text if names_files else unnamed_lines(text)


@dataclass
class SourceUnits:
    """Sources that are compiled with the program, each once: one original may be launched in several ways."""

    flags: tuple[str, ...] | None  # that all are compiled with; None: each with its own
    units: dict[object, SourceUnit] = field(default_factory=dict)

    def address(self, result: DeviceResult, entry: DispatchEntry) -> tuple[Address, str]:
        """And the namespace. Raises Unfit."""
        if self.flags is not None and entry.flags != self.flags:
            raise Unfit(f"it is built with other flags, {shlex.join(entry.flags)}: compile it by itself")
        headers = headers_of(entry, result.files)
        key = (result.source(entry), headers, entry.flags)
        if key not in self.units:
            tuned = sum(not unit.namespace.startswith("original") for unit in self.units.values())
            others = len(self.units) - tuned
            namespace = f"v{tuned}" if entry.config is not None else f"original{others or ''}"
            names = tuple(bare_name(launch.entry) for launch in entry.launches)
            made = namespace_source(result.source(entry), headers, entry.file, names)
            self.units[key] = SourceUnit(namespace, entry.file, made)
        unit = self.units[key]
        return unit.address, unit.namespace


def launch_cu(dispatch: Dispatch, files: Mapping[str, bytes], command: str) -> str:
    """`command` is how such a file is compiled."""
    result = DeviceResult("", dispatch, files)
    artefact = Artefact((result,))
    units = SourceUnits(dispatch.original.flags)
    program = HostProgram(artefact, RUNTIME)
    program.fill(lambda line: _line(program, units, line))
    outer, name = f"{artefact.name}_tuned", artefact.name
    dispatching = program.written()  # first: it says which entries the units must name
    about = [
        f"{dispatch.problem}, tuned by Tunesmith on {dispatch.device}: the original and every winner in one",
        "file. Needs CUDA 12.8 or newer.",
        "",
        f"  {command} -c {NAME}",
        f"  {command} -shared -Xcompiler -fPIC {NAME} -o lib{name}.so",
    ]
    call = [f"Call {outer}::launch or, from C and Python, {name}_launch; both take"]
    text = program.head(about, call)
    text += "".join(f"#include <{header}>\n" for header in program.headers)
    written = {""}
    for unit in units.units.values():
        if (includes := unit.section.includes) not in written:
            written.add(includes)
            text += "\n" + format_comment([f"The headers of {unit.namespace}, under its macros."]) + includes
    for unit in units.units.values():
        text += f"\n{RULE}" + format_comment([f"{unit.namespace}: {unit.file}"])
        text = unit.written(text, outer, NAME, "static const void* const {name} = {address};\n")
    text += f"\n{RULE}// The dispatch, for the host.\nnamespace {outer} {{\n\n{dispatching}\n"
    text += f"}}  // namespace {outer}\n\n"
    taken = program.declaration(f"{name}_launch")
    text += f'extern "C" {taken} {{\n    return {outer}::launch({program.passed});\n}}\n'
    return text + f'extern "C" int {name}_prepare() {{ return {outer}::prepare(); }}\n'


def _line(program: HostProgram, units: SourceUnits, line: DispatchLine) -> DispatchLine:
    """A winner as it was verified; the original from its source, for whatever device."""
    if line.is_tuned and (made := program.embedded(line)) is not None:
        return made
    try:
        address, namespace = units.address(line.result, line.entry)
        return replace(line, address=address, label=f"{namespace}: {line.entry.file}")
    except Unfit as error:
        return program.embedded(line) or replace(line, why=str(error))


def bare_name(entry: str) -> str:
    return re.sub(r"\s+", " ", entry).strip().removeprefix("::")
