"""A CUDA file with the tuned kernels in a namespace of its own, and launches that ask whether one serves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import lru_cache

from tunesmith.backends import messages, port
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.backends.cuda.entries import Refused
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.csource.kernel_scopes import kernel_definitions
from tunesmith.csource.lex import blank, directives, first_word, lex
from tunesmith.deliver.c_code import comment
from tunesmith.deliver.cuda_api import resource
from tunesmith.deliver.cuda_names import image_text
from tunesmith.deliver.cuda_source import NamespacedSource, Unfit, pop, push, section
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.launch_sites import PatchedLaunch, launch_sites, macro_sites, place_before
from tunesmith.deliver.exports.patch import PatchedFile
from tunesmith.deliver.exports.patch_dispatch import (
    CannotServe,
    TunedUnit,
    dispatch_code,
    launcher,
    sites_code,
)
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import Dispatch, DispatchEntry, delivered_variant
from tunesmith.problem.reduced import shortened
from tunesmith.problem.template import PLACEHOLDER, Variant

_CAP = re.compile(r"-{1,2}maxrregcount(?:=(\d+))?")
_GLOBAL = re.compile(r"\b__global__\b")
HOST_PARTS = ("arithmetic.cuh", "launch_checks.h", "launch_runtime.cuh", "exports/patch_host.cuh")
_LINE_MARKER = re.compile(r"^#line .*\n", re.MULTILINE)
SameCode = Callable[[Variant, Variant, int], bool]  # two sources, for a compute capability


def with_dispatch(artefact: Artefact, text: str, same_code: SameCode | None = None) -> PatchedFile:
    dispatch, name = artefact.first.dispatch, artefact.name
    namespace = f"{name}_tuned"
    if PLACEHOLDER.search("".join(launch.entry for launch in dispatch.original.launches)):
        raise BadInput("the original is another kernel for each size, which a patch cannot tell apart")
    units, notes = tuned_units(artefact, same_code or same_code_by_nvcc)
    if not units:
        return PatchedFile(text, 0, tuple(notes))
    delivered = len({(unit.result.run, unit.file) for unit in units})
    entries = tuple((unit.result, unit.entry) for unit in units)
    sites, faults = usable_launches(artefact, text)
    notes += faults
    head = sections(macros_in(text), units, namespace)
    shared = "\n".join(map(resource, HOST_PARTS))
    code = f"\nnamespace {namespace} {{\n\n{shared}\n{dispatch_code(artefact, units)}"
    if sites:
        code += f"{sites_code(artefact)}\n}}  // namespace {namespace}\n"
        block = f"{head}{code}{_ending(namespace)}\n"
        place = min(place_before(text, site.start) for site in sites)
        return PatchedFile(
            _rewritten(text, sites, place, block, namespace, artefact), delivered, tuple(notes), entries
        )
    if not faults:
        notes.append(f"the file launches nothing: call {name}_tuned_launch, which is at its end")
    code += f"\n}}  // namespace {namespace}\n\n{launcher(artefact, namespace)}"
    whole = text if text.endswith("\n") else f"{text}\n"
    return PatchedFile(f"{whole}\n{head}{code}{_ending(namespace)}", delivered, tuple(notes), entries)


def _ending(namespace: str) -> str:
    return f"#endif  // {namespace.upper()}\n"


def tuned_units(
    artefact: Artefact, same_code: SameCode, embeds: bool = False
) -> tuple[list[TunedUnit], list[str]]:
    """With `embeds`, what cannot be compiled with the user's own file is there as machine code."""
    units: list[TunedUnit] = []
    notes: list[str] = []
    for result in artefact.results:
        if not result.dispatch.capability:
            raise BadInput(f"{result.run} does not say the architecture of {result.dispatch.device}")
        refused: set[str] = set()
        for entry in result.dispatch.tuned:
            if entry.file in refused:
                continue
            own = f"v{len(units)}", result.dispatch.capability
            if embeds and (twin := twin_of(units, result, entry)) is not None:
                units.append(replace(twin, entry=entry))
                continue
            try:
                units.append(_unit(result, entry, *own, _as_users if embeds else _if_capped, same_code))
            except (CannotServe, Unfit) as error:
                made = embedded_unit(result, entry, *own) if embeds else None
                if made is not None:
                    units.append(made)
                    notes.append(f"as machine code: {entry.file}, {error}")
                    continue
                refused.add(entry.file)
                notes.append(f"left out: {entry.file}, {error}")
    return units, notes


def twin_of(units: Sequence[TunedUnit], result: DeviceResult, entry: DispatchEntry) -> TunedUnit | None:
    """One of the same source, which need not be there twice."""
    names = [launch.entry for launch in entry.launches]
    for unit in units:
        same = [launch.entry for launch in unit.entry.launches] == names
        if unit.result is result and unit.file == entry.file and same:
            return unit
    return None


def unserved(dispatch: Dispatch, entry: DispatchEntry) -> str:
    """Why no launch of the original can be served by it; empty: one can."""
    if entry.workspace:
        return "it needs memory beside the kernel's own arguments"
    known = {a for launch in dispatch.original.launches for a in launch.args}
    missing = {a for launch in entry.launches for a in launch.args} - known
    return f"it takes {min(missing)}, which the original does not" if missing else ""


def embedded_unit(
    result: DeviceResult, entry: DispatchEntry, namespace: str, capability: int
) -> TunedUnit | None:
    data, binary = result.binary(entry), entry.binary
    if data is None or binary is None or unserved(result.dispatch, entry):
        return None
    if not all(launch.entry in binary.symbols for launch in entry.launches):
        return None
    nothing = NamespacedSource("", "", ())
    return TunedUnit(result, entry, namespace, nothing, capability, image=data)


def _unit(
    result: DeviceResult,
    entry: DispatchEntry,
    namespace: str,
    capability: int,
    as_users: Callable[[Variant, tuple[str, ...], int, SameCode], Variant],
    same_code: SameCode,
) -> TunedUnit:
    dispatch = result.dispatch
    if why := unserved(dispatch, entry):
        raise CannotServe(why)
    variant = delivered_variant(dispatch, entry, result.files, {})
    variant = as_users(variant, dispatch.original.flags, capability, same_code)
    names = tuple(launch.entry for launch in entry.launches)
    made = section(variant.source, variant.headers, entry.file, names)
    made = replace(made, text=_LINE_MARKER.sub("", made.text))
    return TunedUnit(result, entry, namespace, made, capability)


def _as_users(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    """The same, as short as a build shows that it is the same, for the user's own flags: a parameter may say
    in a flag what a compiler does anyway."""
    names = {word for entry in variant.entries for word in re.findall(r"\w+", entry)}
    headers = (text for _, text in variant.headers)
    short = shortened(variant.source, variant.language, names, headers)
    sources = (variant.source,) if short is None else (short, variant.source)
    more = variant.flags[len(flags) :]
    caps = tuple(flag for flag in more if _CAP.fullmatch(flag) and "=" in flag)
    for source in sources:
        plain = replace(variant, source=source, flags=flags)
        if plain == variant or same_code(variant, plain, capability):
            return plain
        if not caps:
            continue
        alone = replace(plain, flags=(*flags, *caps))
        if alone == variant or same_code(variant, alone, capability):
            return _capped(alone, flags, capability, same_code)
    raise CannotServe(f"it is built with flags of its own, {' '.join(more or variant.flags)}")


def _if_capped(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    return variant if variant.flags == flags else _capped(variant, flags, capability, same_code)


def _capped(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    """The same with a cap on registers in its text instead of its flags, where a build shows that it is."""
    more = list(variant.flags[len(flags) :])
    spelled = " ".join(variant.flags)
    cap = _CAP.fullmatch(more[0]) if more and variant.flags[: len(flags)] == flags else None
    number = (cap[1] or (more[1] if len(more) == 2 else None)) if cap else None
    if number is None or len(more) != (1 if cap and cap[1] else 2):
        raise CannotServe(f"it is built with flags of its own, {spelled}")
    shown = blank(variant.source, ("comment", "string"))
    if "__launch_bounds__" in shown:
        raise CannotServe(f"{more[0]} and its __launch_bounds__ cannot both be said in the text")
    pieces, done = [], 0
    for found in _GLOBAL.finditer(shown):
        pieces.append(f"{variant.source[done : found.end()]} __maxnreg__({number})")
        done = found.end()
    made = replace(variant, flags=flags, source="".join([*pieces, variant.source[done:]]))
    if not same_code(variant, made, capability):
        raise CannotServe(f"no build here shows that __maxnreg__({number}) gives the same code as {more[0]}")
    return made


def same_code_by_nvcc(one: Variant, other: Variant, capability: int) -> bool:
    """Whether nvcc, which will build the patched file, makes the same machine code of both."""
    digests = []
    for variant in (one, other):
        how = variant.flags, variant.entries, variant.headers, "nvcc"
        digests.append(_code(messages.Unit(variant.path, variant.source, variant.language, *how), capability))
    return digests[0] is not None and digests[0] == digests[1]


@lru_cache(maxsize=16)
def _code(unit: messages.Unit, capability: int) -> str | None:
    """The digest of its machine code; None where nvcc does not take it, or is not here."""
    try:
        compiled = COMPILERS["nvcc"](unit, read_flags(unit.flags, capability))
    except (port.BuildFailed, port.Unsupported, Refused):
        return None
    return Cubin(compiled.cubin).code_digest([compiled.symbols[entry] for entry in unit.entries])


def macros_in(text: str) -> set[str]:
    return {first_word(d.rest)[0] for d in directives(text) if d.word == "define"} - {""}


def sections(users: Set[str], units: Sequence[TunedUnit], namespace: str, hides: bool = False) -> str:
    """Every tuned source in its namespace; `users`, macros of the user's files, mean nothing there.

    With `hides` it may stand in a header: nothing of it is seen by linkers, nor are macros of headers that
    are not the user's."""
    outer, end = ("namespace { ", "}") if hides else ("", "")
    rule = f"// {'-' * 100}\n"
    parts = [
        rule,
        comment(
            [f"Tuned by Tunesmith on {', '.join(dict.fromkeys(u.result.dispatch.device for u in units))}."]
        ),
        f"#ifndef {namespace.upper()}\n#define {namespace.upper()}\n#include <atomic>\n#include <cstdint>\n"
        "#include <cstring>\n#include <cuda_runtime.h>\n#include <mutex>\n",
    ]
    for unit in {unit.namespace: unit for unit in units}.values():
        words = set(re.findall(r"[^\W\d]\w*", unit.section.text + unit.section.includes))
        hidden = [*dict.fromkeys([*unit.section.macros, *sorted(users & words)])]
        parts += [f"{push(macro)}\n" for macro in hidden]
        given = " ".join(unit.entry.flags)
        gone = [macro for macro in hidden if macro in users or (hides and f"-D{macro}" not in given)]
        parts += [f"#undef {macro}\n" for macro in gone]
        parts.append(unit.section.includes)
        opened = f"namespace {namespace} {{ {outer}namespace {unit.namespace} {{\n"
        own = unit.addresses() if unit.image is None else image_text("image", unit.image)
        body = f"\n{comment([unit.file])}{opened}{unit.section.text}\n\n{own}"
        parts.append(f"{body}}}{end}}}\n")
        parts += [f"{pop(macro)}\n" for macro in reversed(hidden)]
    return "".join(parts)


def usable_launches(
    artefact: Artefact, text: str, macros: bool = False
) -> tuple[list[PatchedLaunch], list[str]]:
    """The launches that may ask first, also those in `macros`, and why others, or all, may not."""
    launches = artefact.first.dispatch.original.launches
    base, templated = base_name(launches[0].entry)
    found = [*launch_sites(text, base), *(macro_sites(text, base) if macros else ())]
    if not found:
        return [], []
    where = f"the launch of {base} in line"
    if len(launches) > 1:
        return [], [f"{where} {found[0].line} stays as it is: the operator takes {len(launches)} launches"]
    try:
        sites_code(artefact)
    except CannotServe as error:
        return [], [f"{where} {found[0].line} stays as it is: {error}"]
    usable, notes = [], []
    own = tuple(kernel_path(launches[0].entry).split("::")[:-1])
    is_defined = own in kernel_definitions(lex(text), base)
    for site in found:
        fault = site.fault
        if not fault and is_defined and site.means is not None and site.means != own:
            fault = f"it launches another kernel, {'::'.join((*site.means, base))}"
        if not fault and len(site.args) != len(launches[0].args):
            fault = f"it passes {len(site.args)} arguments, the problem has {len(launches[0].args)}"
        if not fault and templated and not site.template:
            fault = "it does not name its template arguments"
        if fault:
            notes.append(f"{where} {site.line} stays as it is: {fault}")
        else:
            usable.append(site)
    return usable, notes


def base_name(entry: str) -> tuple[str, str]:
    """The name of a kernel without qualifiers, and its template arguments."""
    name, angle, rest = entry.partition("<")
    return name.strip().rpartition("::")[2].strip(), f"{angle}{rest}"


def kernel_path(entry: str) -> str:
    """The name of a kernel with its namespaces, from the top."""
    return "".join(entry.partition("<")[0].split()).removeprefix("::")


def _rewritten(
    text: str, sites: Sequence[PatchedLaunch], place: int, block: str, namespace: str, artefact: Artefact
) -> str:
    return f"{text[:place]}{block}{asking(text, sites, place, namespace, artefact)}"


def asking(text: str, sites: Sequence[PatchedLaunch], start: int, namespace: str, artefact: Artefact) -> str:
    """The text from `start` on, with launches that ask first."""
    entry = artefact.first.dispatch.original.launches[0].entry
    _, template = base_name(entry)
    pieces, done = [""], start
    for site in sorted(sites, key=lambda site: site.start):
        # The same expressions in the same places, in a call instead of a launch: each is evaluated once.
        # What is tuned is spelled from the top: the same name may be another kernel there.
        wanted = f"(const void*)&::{kernel_path(entry)}{template if site.template else ''}"
        opened, closed = site.inside
        pieces.append(
            f"{text[done : site.start]}::{namespace}::launch({wanted}, {site.name}{site.template}, "
        )
        pieces.append(text[opened:closed].rstrip(" \t") + ", 0" * (4 - len(site.config)))
        pieces.append(", " if site.args else "")
        done = site.passed
    return "".join([*pieces, text[done:]])
