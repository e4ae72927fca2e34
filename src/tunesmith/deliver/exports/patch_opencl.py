"""The tuned kernels of an OpenCL file behind its own: new names, and macros that end with each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tunesmith.csource.lex import blank, directives, first_word
from tunesmith.deliver.c_code import comment
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.patch import PatchedFile
from tunesmith.problem.dispatch import DispatchEntry, DispatchLaunch
from tunesmith.problem.template import PLACEHOLDER

_HIDDEN = ("comment", "string", "directive")
_WORD = re.compile(r"[^\W\d]\w*")
_BRACKET = re.compile(r"[(){}\[\]]")
_DECLARED = re.compile(r"\b([^\W\d]\w*)\s*(?=[(\[=;,{])")
_DEFINE = re.compile(r"-D\s*(\w+)(?:=(.*))?", re.DOTALL)
_NOT_NAMES = {"struct", "union", "enum", "void", "kernel", "global", "local", "constant", "const", "static"}
_LINE_MARKER = re.compile(r"^[ \t]*#[ \t]*line\b.*\n", re.MULTILINE)


def with_tuned_kernels(artefact: Artefact, text: str) -> PatchedFile:
    notes: list[str] = []
    taken = _declared(text)
    macros = _macros(text)
    parts = [text if text.endswith("\n") or not text else f"{text}\n"]
    number = 0
    for result in artefact.results:
        sources: dict[str, list[DispatchEntry]] = {}
        for entry in result.dispatch.tuned:
            sources.setdefault(entry.file, []).append(entry)
        for file, entries in sources.items():
            defines, others = _more_flags(entries[0].flags, result.dispatch.original.flags)
            if others:
                notes.append(f"left out: {file}, which is built with {' '.join(others)}")
                continue
            source = _LINE_MARKER.sub("", result.source(entries[0]))
            parts.append(_section(result, entries, source, number, taken, macros, defines))
            number += 1
    return PatchedFile("".join(parts), number, tuple(notes))


def _section(
    result: DeviceResult,
    entries: list[DispatchEntry],
    source: str,
    number: int,
    taken: set[str],
    macros: set[str],
    defines: list[tuple[str, str]],
) -> str:
    kernels = dict.fromkeys(PLACEHOLDER.sub("", launch.entry) for e in entries for launch in e.launches)
    own = _macros(source) | {name for name, _ in defines}
    words = set(_WORD.findall(source))
    # What both declare gets another name here; a macro renames every use, whatever stands around it.
    renamed = dict.fromkeys([*kernels, *sorted((_declared(source) & taken & words) - own)])
    hidden = sorted(macros & (words | own))
    lines = [
        f"---- {entries[0].file}, tuned by Tunesmith on {result.dispatch.device} ----",
        *(line for entry in entries for line in _told(entry, number)),
    ]
    opened = "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' for name in hidden)
    opened += "".join(f"#define {name} {_renamed(name, number)}\n" for name in renamed)
    opened += "".join(f"#define {name} {value}\n" for name, value in defines)
    closed = "".join(f"#undef {name}\n" for name in sorted({*own, *renamed}))
    closed += "".join(f'#pragma pop_macro("{name}")\n' for name in reversed(hidden))
    # Two line ends: the source may close with a backslash.
    return f"\n{comment(lines)}{opened}{source}\n\n{closed}"


def _told(entry: DispatchEntry, number: int) -> list[str]:
    lines = [f"It serves where {entry.when}", "Launch, in this order:"]
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


def _macros(text: str) -> set[str]:
    return {first_word(d.rest)[0] for d in directives(text) if d.word == "define"} - {""}


def _declared(text: str) -> set[str]:
    """What the text declares outside every bracket; rather too many than too few."""
    shown = blank(text, _HIDDEN)
    pieces: list[str] = []
    depth, done = 0, 0
    for found in _BRACKET.finditer(shown):
        if depth == 0:
            pieces.append(shown[done : found.end()])
        depth = max(0, depth + (1 if found[0] in "({[" else -1))
        done = found.end()
    pieces.append(shown[done:] if depth == 0 else "")
    outside = " ".join(pieces)
    return {name for name in _DECLARED.findall(outside) if not name.startswith("__")} - _NOT_NAMES
