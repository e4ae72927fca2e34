"""The tuned kernels of an OpenCL file behind its own: new names, and macros that end with each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tunesmith.deliver.c_code import comment
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.file_scope import macros_in, names_declared
from tunesmith.deliver.exports.patch import PatchedFile
from tunesmith.problem.dispatch import DispatchEntry, DispatchLaunch
from tunesmith.problem.template import PLACEHOLDER

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINE = re.compile(r"-D\s*(\w+)(?:=(.*))?", re.DOTALL)
_COMPONENTS = re.compile(r"[xyzwrgba]{1,4}|s[0-9a-fA-F]{1,16}|lo|hi|even|odd")  # of a vector, behind a dot
_LINE_MARKER = re.compile(r"^[ \t]*#[ \t]*line\b.*\n", re.MULTILINE)


class _Clash(Exception):
    """Why a source cannot stand in one file with the others."""


def with_tuned_kernels(artefact: Artefact, text: str) -> PatchedFile:
    notes: list[str] = []
    file = _OpenclFile(text, artefact.first.dispatch.original.flags)
    delivered = 0
    for result in artefact.results:
        sources: dict[str, list[DispatchEntry]] = {}
        for entry in result.dispatch.tuned:
            sources.setdefault(entry.file, []).append(entry)
        for name, entries in sources.items():
            try:
                file.add(result, entries)
                delivered += 1
            except _Clash as error:
                notes.append(f"left out: {name}, {error}")
    return PatchedFile("".join(file.parts), delivered, tuple(notes))


class _OpenclFile:
    """The user's file, and what was added to it so far."""

    def __init__(self, text: str, flags: Iterable[str]) -> None:
        self.parts = [text if text.endswith("\n") or not text else f"{text}\n"]
        self.macros = macros_in(text)
        self.taken = names_declared(text, _more_flags(flags, ())[0])
        # A file may have been patched before: no number that one of its names ends with.
        numbers = re.findall(r"_tuned_(\d{1,9})\b", text)
        self.number = 1 + max(map(int, numbers)) if numbers else 0

    def add(self, result: DeviceResult, entries: list[DispatchEntry]) -> None:
        """Raises _Clash."""
        flags = result.dispatch.original.flags
        defines, others = _more_flags(entries[0].flags, flags)
        if others:
            raise _Clash(f"which is built with {' '.join(others)}")
        source = _LINE_MARKER.sub("", result.source(entries[0]))
        names = names_declared(source, _more_flags(entries[0].flags, ())[0])
        # Whatever it declares gets another name: winners of one template declare the same. A macro renames
        # every use, also behind a dot, so what may be part of a vector keeps its name where it can.
        parts = {name for name in names if _COMPONENTS.fullmatch(name)}
        kernels = {e.entry for entry in entries for e in entry.launches if not PLACEHOLDER.search(e.entry)}
        renamed = sorted(kernels | (names - parts) | (parts & self.taken))
        for name in renamed:
            if _COMPONENTS.fullmatch(name) and re.search(rf"\.\s*{name}\b", source):
                raise _Clash(f"in which {name} is a function and a part of a vector")
        self.parts.append(self._section(result, entries, source, renamed, defines))
        self.taken |= names - set(renamed)
        self.number += 1

    def _section(
        self,
        result: DeviceResult,
        entries: list[DispatchEntry],
        source: str,
        renamed: list[str],
        defines: list[tuple[str, str]],
    ) -> str:
        own = macros_in(source) | {name for name, _ in defines}
        hidden = sorted(self.macros & (set(_WORD.findall(source)) | own))
        lines = [
            f"---- {entries[0].file}, tuned by Tunesmith on {result.dispatch.device} ----",
            *(line for entry in entries for line in _told(entry, self.number)),
        ]
        opened = "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' for name in hidden)
        opened += "".join(f"#define {name} {_renamed(name, self.number)}\n" for name in renamed)
        opened += "".join(f"#define {name} {value}\n" for name, value in defines)
        closed = "".join(f"#undef {name}\n" for name in sorted({*own, *renamed}))
        closed += "".join(f'#pragma pop_macro("{name}")\n' for name in reversed(hidden))
        # Two line ends: the source may close with a backslash.
        return f"\n{comment(lines)}{opened}{source}\n\n{closed}"


def _told(entry: DispatchEntry, number: int) -> list[str]:
    order = ", in this order" if len(entry.launches) > 1 else ""
    lines = [f"It serves where {entry.when}", f"Launch{order}:"]
    lines += [f"  {_launch(launch, number)}" for launch in entry.launches]
    for a in entry.workspace:
        filled = f", filled with {a.init:g} before each call" if a.init is not None else ""
        lines.append(f"  {a.name}: {a.role} memory of {a.type} [{', '.join(a.shape)}]{filled}")
    return lines


def _launch(launch: DispatchLaunch, number: int) -> str:
    groups, items = ", ".join(launch.grid), ", ".join(launch.block)
    name = _renamed(launch.entry, number)
    return f"{name}: ({groups}) work-groups of ({items}) work-items; arguments {', '.join(launch.args)}"


def _renamed(name: str, number: int) -> str:
    return f"{name}_tuned_{number}"


def _more_flags(flags: Iterable[str], known: Iterable[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Macros that the build of a tuned kernel sets beyond the file's own, and other flags that differ."""
    own, defines, others = list(known), [], []
    for flag in flags:
        if flag in own:
            own.remove(flag)
        elif found := _DEFINE.fullmatch(flag):
            defines.append((found[1], "1" if found[2] is None else found[2]))
        else:
            others.append(flag)
    return defines, [*others, *(f"no {flag}" for flag in own)]
