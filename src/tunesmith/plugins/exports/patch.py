"""Target `patch`: a unified diff of the user's own kernel file that adds the tuned kernels.

In CUDA every launch of the kernel asks first whether a tuned one serves; in OpenCL, where a file has no
launches, the tuned kernels stand behind the others, with comments that say when each serves.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath

from tunesmith.backends import messages, port
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.cuda.cubin import Cubin, Refused
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.base.errors import BadInput
from tunesmith.base.text import strip_controls
from tunesmith.deliver.artefact import Artefact, DeviceResult, Export, Target
from tunesmith.deliver.cuda.host import image_text, read_cuda_resource
from tunesmith.deliver.cuda.source import NamespacedSource, Unfit, namespace_source, pop_macro, push_macro
from tunesmith.deliver.expr_text import format_comment
from tunesmith.plugins.exports import runtime_text
from tunesmith.plugins.exports.launch_sites import (
    PatchedLaunch,
    launch_sites,
    macro_sites,
    place_before,
    place_behind_includes,
)
from tunesmith.plugins.exports.patch_dispatch import (
    CannotServe,
    TunedUnit,
    dispatch_code,
    format_launcher,
    sites_code,
)
from tunesmith.plugins.exports.readmes import patch_readme
from tunesmith.problem.device import CUDA, OPENCL
from tunesmith.problem.dispatch import Dispatch, DispatchEntry, delivered_variant
from tunesmith.problem.reduced import shorten_source
from tunesmith.problem.template import PLACEHOLDER, Variant
from tunesmith.source.lex import Token, lex
from tunesmith.source.preprocess import Preprocessor
from tunesmith.source.reader.templates import kernel_definitions
from tunesmith.source.text import blank_elements, find_directives, first_word
from tunesmith.source.tree import Unreadable

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BARE_END = re.compile(r"(?<!\r)\n")  # of a line, without the carriage return that Windows writes


LEFT_OUT = "left out: "
EACH_SIZE = "the original is another kernel for each size, which a patch cannot tell apart"


@dataclass(frozen=True)
class PatchedFile:
    """The user's file with the tuned kernels in it."""

    text: str
    delivered: int  # of the tuned kernels
    notes: tuple[str, ...]  # what is not in it, or not where one would expect it, and why
    entries: tuple[tuple[DeviceResult, DispatchEntry], ...] = ()  # what it has, where a compiler can tell

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(note.removeprefix(LEFT_OUT) for note in self.notes if note.startswith(LEFT_OUT))


def patch_of(artefact: Artefact, path: str, text: str, made: PatchedFile | None = None) -> str:
    """The diff against the file at `path` with this text, for `patch -p1` or `git apply`.

    Raises BadInput where no tuned kernel can be added to it.
    """
    made = made or patched_file(artefact, text)
    devices = ", ".join(result.dispatch.device for result in artefact.results)
    told = [f"{artefact.problem}, tuned by Tunesmith on {devices}.", *_summary_lines(artefact, made)]
    head = "".join(f"# {line}\n" for line in strip_controls("\n".join(told)).split("\n"))
    return head + diff_text(_relative_path(path), text, made.text)


def _summary_lines(artefact: Artefact, made: PatchedFile) -> list[str]:
    tuned = len(artefact.tuned)
    counted = f"delivered: {made.delivered} of {tuned} tuned kernels; the original serves everything else."
    return [counted, *made.notes]


def patched_file(artefact: Artefact, text: str) -> PatchedFile:
    """Raises BadInput where nothing can be added."""
    if not any(result.dispatch.tuned for result in artefact.results):
        raise BadInput("the run has no tuned kernel: there is nothing to add to the file")
    if artefact.first.dispatch.language == OPENCL.name:
        made = with_tuned_kernels(artefact, text)
    else:
        made = with_dispatch(artefact, text)
    if not made.delivered:
        raise BadInput("no tuned kernel can be added to the file: " + "; ".join(made.notes))
    if "\r\n" in text and not _BARE_END.search(text):
        made = replace(made, text=_with_returns(made.text))
    return made


def _with_returns(text: str) -> str:
    return _BARE_END.sub("\r\n", text)


def _relative_path(path: str) -> str:
    """A path that a patch may name."""
    found = PurePosixPath(path.replace("\\", "/"))
    if found.is_absolute() or ".." in found.parts or not found.name:
        found = PurePosixPath(found.name or "kernel")
    return re.sub(r"[\x00-\x1f]", "_", str(found))


def diff_text(path: str, before: str | None, after: str) -> str:
    """`before` is None where there is no such file yet."""
    end = "\t" if re.search(r"\s", path) else ""  # a name with a blank ends where a tab stands
    old = "/dev/null" if before is None else f"a/{path}{end}"
    texts = _LINES.findall(before or ""), _LINES.findall(after)
    lines = difflib.unified_diff(*texts, old, f"b/{path}{end}", lineterm="\n")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _export_patch(artefact: Artefact) -> Export:
    first = artefact.first
    if not first.kernel_path or not first.kernel_text:
        raise BadInput("the user's own kernel file is not known, so there is nothing to make a patch of")
    made = patched_file(artefact, first.kernel_text)
    texts = {f"{artefact.name}.patch": patch_of(artefact, first.kernel_path, first.kernel_text, made)}
    if "\r\n" not in first.kernel_text:
        # A run keeps its kernel with plain line ends, so nobody knows here which ones the file has.
        own, windows = _with_returns(first.kernel_text), replace(made, text=_with_returns(made.text))
        texts[f"{artefact.name}.crlf.patch"] = patch_of(artefact, first.kernel_path, own, windows)
    verified = _verified_code(made)
    texts |= {"check_code.py": runtime_text("check_code")} if verified else {}
    path, written = _relative_path(first.kernel_path), (*texts, *verified)
    texts["README.md"] = patch_readme(artefact, path, written, _summary_lines(artefact, made))
    files = {name: text.encode(errors="surrogatepass") for name, text in texts.items()}
    return Export(files | verified, made.left_out, made.delivered)


def _verified_code(made: PatchedFile) -> dict[str, bytes]:
    """The machine code of each kernel in the patched file, in a folder for each architecture."""
    return {
        f"verified/{result.dispatch.architecture}/{PurePosixPath(entry.file).stem}.cubin": data
        for result, entry in made.entries
        if (data := result.binary(entry)) is not None
    }


TARGET = Target(
    name="patch",
    about="a unified diff of your own kernel file: tuned kernels added, the original kept for the rest",
    languages=(CUDA.name, OPENCL.name),
    write=_export_patch,
    from_journal=True,
)


# A CUDA file with the tuned kernels in a namespace of its own, and launches that ask whether one serves.
_CAP = re.compile(r"-{1,2}maxrregcount(?:=(\d+))?")
_GLOBAL = re.compile(r"\b__global__\b")
HOST_PARTS = ("arithmetic.cuh", "launch_checks.h", "launch_runtime.cuh", "patch_host.cuh")
_LINE_MARKER = re.compile(r"^#line .*\n", re.MULTILINE)
SameCode = Callable[[Variant, Variant, int], bool]  # two sources, for a compute capability


def with_dispatch(artefact: Artefact, text: str, same_code: SameCode | None = None) -> PatchedFile:
    dispatch, name = artefact.first.dispatch, artefact.name
    namespace = f"{name}_tuned"
    if PLACEHOLDER.search("".join(launch.entry for launch in dispatch.original.launches)):
        raise BadInput(EACH_SIZE)
    units, notes = tuned_units(artefact, same_code or same_code_by_nvcc)
    if not units:
        return PatchedFile(text, 0, tuple(notes))
    delivered = len({(unit.result.run, unit.file) for unit in units})
    entries = tuple((unit.result, unit.entry) for unit in units)
    sites, faults = usable_launches(artefact, text)
    notes += faults
    head = format_sections(macros_in(text), units, namespace)
    shared = "\n".join(map(read_cuda_resource, HOST_PARTS))
    code = f"\nnamespace {namespace} {{\n\n{shared}\n{dispatch_code(artefact, units)}"
    if sites:
        code += f"{sites_code(artefact)}\n}}  // namespace {namespace}\n"
        block = f"{head}{code}{_guard_end(namespace)}\n"
        place = min(place_before(text, site.start) for site in sites)
        changed = f"{text[:place]}{block}{redirect_launches(text, sites, place, namespace, artefact)}"
        return PatchedFile(changed, delivered, tuple(notes), entries)
    if not faults:
        notes.append(f"the file launches nothing: call {name}_tuned_launch, which is at its end")
    code += f"\n}}  // namespace {namespace}\n\n{format_launcher(artefact, namespace)}"
    whole = text if text.endswith("\n") else f"{text}\n"
    return PatchedFile(f"{whole}\n{head}{code}{_guard_end(namespace)}", delivered, tuple(notes), entries)


def _guard_end(namespace: str) -> str:
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
            place = f"v{len(units)}", result.dispatch.capability
            if embeds and (twin := twin_of(units, result, entry)) is not None:
                units.append(replace(twin, entry=entry))
                continue
            as_users = _as_users if embeds else _if_capped
            try:
                units.append(_make_tuned_unit(result, entry, *place, as_users, same_code))
            except (CannotServe, Unfit) as error:
                made = embedded_unit(result, entry, *place) if embeds else None
                if made is not None:
                    units.append(made)
                    notes.append(f"as machine code: {entry.file}, {error}")
                    continue
                refused.add(entry.file)
                notes.append(f"left out: {entry.file}, {error}")
    return units, notes


def twin_of(units: Sequence[TunedUnit], result: DeviceResult, entry: DispatchEntry) -> TunedUnit | None:
    """One of the same source, which need not be there twice."""

    def launched(entry: DispatchEntry) -> list[str]:
        return [launch.entry for launch in entry.launches]

    same = (unit for unit in units if unit.result is result and unit.file == entry.file)
    return next((unit for unit in same if launched(unit.entry) == launched(entry)), None)


def unserved_reason(dispatch: Dispatch, entry: DispatchEntry) -> str:
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
    if data is None or binary is None or unserved_reason(result.dispatch, entry):
        return None
    if not all(launch.entry in binary.symbols for launch in entry.launches):
        return None
    nothing = NamespacedSource("", "", ())
    return TunedUnit(result, entry, namespace, nothing, capability, image=data)


def _make_tuned_unit(
    result: DeviceResult,
    entry: DispatchEntry,
    namespace: str,
    capability: int,
    as_users: Callable[[Variant, tuple[str, ...], int, SameCode], Variant],
    same_code: SameCode,
) -> TunedUnit:
    dispatch = result.dispatch
    if why := unserved_reason(dispatch, entry):
        raise CannotServe(why)
    variant = delivered_variant(dispatch, entry, result.files, {})
    variant = as_users(variant, dispatch.original.flags, capability, same_code)
    names = tuple(launch.entry for launch in entry.launches)
    made = namespace_source(variant.source, variant.headers, entry.file, names)
    made = replace(made, text=_LINE_MARKER.sub("", made.text))
    return TunedUnit(result, entry, namespace, made, capability)


def _as_users(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    """The same, as short as a build shows that it is the same, for the user's own flags: a parameter may say
    in a flag what a compiler does anyway."""
    names = {word for entry in variant.entries for word in re.findall(r"\w+", entry)}
    headers = (text for _, text in variant.headers)
    short = shorten_source(variant.source, variant.language, names, headers)
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
            return _cap_registers(alone, flags, capability, same_code)
    raise CannotServe(f"it is built with flags of its own, {' '.join(more or variant.flags)}")


def _if_capped(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    return variant if variant.flags == flags else _cap_registers(variant, flags, capability, same_code)


def _cap_registers(variant: Variant, flags: tuple[str, ...], capability: int, same_code: SameCode) -> Variant:
    """The same with a cap on registers in its text instead of its flags, where a build shows that it is."""
    more = list(variant.flags[len(flags) :])
    spelled = " ".join(variant.flags)
    cap = _CAP.fullmatch(more[0]) if more and variant.flags[: len(flags)] == flags else None
    number = (cap[1] or (more[1] if len(more) == 2 else None)) if cap else None
    if number is None or len(more) != (1 if cap and cap[1] else 2):
        raise CannotServe(f"it is built with flags of its own, {spelled}")
    shown = blank_elements(variant.source, ("comment", "string"))
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
    for own in (one, other):
        unit = messages.Unit(own.path, own.source, own.language, own.flags, own.entries, own.headers, "nvcc")
        digests.append(_machine_code_digest(unit, capability))
    return digests[0] is not None and digests[0] == digests[1]


@lru_cache(maxsize=16)
def _machine_code_digest(unit: messages.Unit, capability: int) -> str | None:
    """The digest of its machine code; None where nvcc does not take it, or is not here."""
    try:
        compiled = COMPILERS["nvcc"](unit, read_flags(unit.flags, capability))
    except (port.BuildFailed, port.Unsupported, Refused):
        return None
    return Cubin(compiled.cubin).code_digest([compiled.symbols[entry] for entry in unit.entries])


def macros_in(text: str) -> set[str]:
    return {first_word(d.rest)[0] for d in find_directives(text) if d.word == "define"} - {""}


def format_sections(users: Set[str], units: Sequence[TunedUnit], namespace: str, hides: bool = False) -> str:
    """Every tuned source in its namespace; `users`, macros of the user's files, mean nothing there.

    With `hides` it may stand in a header: nothing of it is seen by linkers, nor are macros of headers that
    are not the user's."""
    outer, end = ("namespace { ", "}") if hides else ("", "")
    devices = ", ".join(dict.fromkeys(unit.result.dispatch.device for unit in units))
    parts = [
        f"// {'-' * 100}\n",
        format_comment([f"Tuned by Tunesmith on {devices}."]),
        f"#ifndef {namespace.upper()}\n#define {namespace.upper()}\n#include <atomic>\n#include <cstdint>\n"
        "#include <cstring>\n#include <cuda_runtime.h>\n#include <mutex>\n",
    ]
    for unit in {unit.namespace: unit for unit in units}.values():
        words = set(re.findall(r"[^\W\d]\w*", unit.section.text + unit.section.includes))
        hidden = [*dict.fromkeys([*unit.section.macros, *sorted(users & words)])]
        parts += [f"{push_macro(macro)}\n" for macro in hidden]
        given = " ".join(unit.entry.flags)
        gone = [macro for macro in hidden if macro in users or (hides and f"-D{macro}" not in given)]
        parts += [f"#undef {macro}\n" for macro in gone]
        parts.append(unit.section.includes)
        opened = f"namespace {namespace} {{ {outer}namespace {unit.namespace} {{\n"
        own = unit.addresses() if unit.image is None else image_text("image", unit.image)
        body = f"\n{format_comment([unit.file])}{opened}{unit.section.text}\n\n{own}"
        parts.append(f"{body}}}{end}}}\n")
        parts += [f"{pop_macro(macro)}\n" for macro in reversed(hidden)]
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


def redirect_launches(
    text: str, sites: Sequence[PatchedLaunch], start: int, namespace: str, artefact: Artefact
) -> str:
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


# The names that a file in OpenCL C declares outside its functions.
_OPENS, _CLOSES = ("(", "[", "{"), (")", "]", "}")
_TAGS = ("struct", "union", "enum")
_ATTRIBUTES = ("__attribute__", "__attribute")
_COMPILERS = ("_", "cl_", "CL_")
_SAYS_ERROR = "the file says #error"
_MAX_READ = 64
_NO_NAME = re.compile(
    r"__\w*|struct|union|enum|void|(?:u(?=[cils]))?(?:char|short|int|long)\d*|(?:float|double|half)\d*|bool"
    r"|unsigned|signed|const|static|inline|typedef|volatile|kernel|global|local|constant|private|typeof"
    r"|_Static_assert"
)


def names_declared(text: str, defines: Iterable[tuple[str, str]] = ()) -> set[str]:
    """With macros expanded, whatever the compiler says of itself in an #if; where the preprocessor's lines
    cannot be followed, as the text stands."""
    tokens = lex(text)
    found: set[str] = set()
    waiting: list[dict[str, bool]] = [{}]
    try:
        for count, answers in enumerate(waiting):
            work = _Reading(answers, defines)
            try:
                found |= _declared_names(work.read(tokens))
            except _AskedMacros as question:
                waiting += [{**answers, str(question): holds} for holds in (True, False)]
            if count >= _MAX_READ:
                raise Unreadable("its conditions leave too many ways to read it")
    except Unreadable:
        return _declared_names(tokens) - macros_in(text)
    return found


class _AskedMacros(Exception):
    """A condition that only the compiler can decide."""


class _Reading(Preprocessor):
    def __init__(self, answers: Mapping[str, bool], defines: Iterable[tuple[str, str]]) -> None:
        super().__init__(knows_headers=False)
        self._answers = answers
        for name, value in defines:
            self.define(f"{name} {value}", 0)

    def read(self, tokens: Iterable[Token]) -> Sequence[Token]:
        for token in tokens:
            self.take(token)
        self.flush()
        if self.open_conditions or any(_SAYS_ERROR not in words for words in self.problems):
            raise Unreadable("its conditions cannot be followed")
        return self.done

    def _holds(self, word: str, rest: str, line: int) -> bool:
        asked = rest if word == "if" else f"defined({first_word(rest)[0]})"
        names = self._asked_for(lex(rest)).keys() - self._macros.keys()
        if not any(name.startswith(_COMPILERS) for name in names):
            return super()._holds(word, rest, line)
        if asked not in self._answers:
            raise _AskedMacros(asked)
        return self._answers[asked] == (word != "ifndef")


def _declared_names(tokens: Sequence[Token]) -> set[str]:
    found: set[str] = set()
    depth = 0
    initial = enumerates = False  # within what a variable is set to; whether a list of an enum is next
    before = ""
    shown = _without_attributes(tokens)
    for at, token in enumerate(shown):
        following = shown[at + 1].text if at + 1 < len(shown) else ""
        is_name = token.kind == "word" and not _NO_NAME.fullmatch(token.text)
        if depth == 0:
            if token.text in (";", ","):
                initial = False
            elif token.text == "=":
                initial = True
            elif token.text == "enum":
                enumerates = True
            elif is_name and not initial and (before in _TAGS or following in ("(", "[", "=", ";", ",", "{")):
                found.add(token.text)
            elif token.text == "(" and following == "*" and not initial:  # a pointer to an array
                end = next((k for k in range(at, len(shown)) if shown[k].text == ")"), at)
                found |= {word.text for word in shown[end - 1 : end] if word.kind == "word"}
        elif depth == 1 and enumerates and is_name and before in ("{", ","):
            found.add(token.text)
        depth = max(0, depth + (token.text in _OPENS) - (token.text in _CLOSES))
        enumerates = enumerates and not (depth == 0 and token.text in (";", "}", ")"))
        before = token.text
    return found


def _without_attributes(tokens: Iterable[Token]) -> list[Token]:
    kept: list[Token] = []
    depth = -1  # -1: outside; 0: before the brackets of an attribute
    for token in tokens:
        if depth < 0 and token.text in _ATTRIBUTES:
            depth = 0
        elif depth >= 0:
            depth += (token.text == "(") - (token.text == ")")
            depth = -1 if depth <= 0 else depth
        elif token.kind != "directive":
            kept.append(token)
    return kept


# The tuned kernels of an OpenCL file behind its own: new names, and macros that end with each kernel.
_WORD = re.compile(r"[^\W\d]\w*")
_DEFINE = re.compile(r"-D\s*(\w+)(?:=(.*))?", re.DOTALL)
_COMPONENTS = re.compile(r"[xyzwrgba]{1,4}|s[0-9a-fA-F]{1,16}|lo|hi|even|odd")  # of a vector, behind a dot
_OPENCL_LINE_MARKER = re.compile(r"^[ \t]*#[ \t]*line\b.*\n", re.MULTILINE)


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
        source = _OPENCL_LINE_MARKER.sub("", result.source(entries[0]))
        names = names_declared(source, _more_flags(entries[0].flags, ())[0])
        # Whatever it declares gets another name: winners of one template declare the same. A macro renames
        # every use, also behind a dot, so what may be part of a vector keeps its name where it can.
        parts = {name for name in names if _COMPONENTS.fullmatch(name)}
        kernels = {e.entry for entry in entries for e in entry.launches if not PLACEHOLDER.search(e.entry)}
        renamed = sorted(kernels | (names - parts) | (parts & self.taken))
        for name in renamed:
            if _COMPONENTS.fullmatch(name) and re.search(rf"\.\s*{name}\b", source):
                raise _Clash(f"in which {name} is a function and a part of a vector")
        self.parts.append(self._opencl_section(result, entries, source, renamed, defines))
        self.taken |= names - set(renamed)
        self.number += 1

    def _opencl_section(
        self,
        result: DeviceResult,
        entries: list[DispatchEntry],
        source: str,
        renamed: list[str],
        defines: list[tuple[str, str]],
    ) -> str:
        defined = macros_in(source) | {name for name, _ in defines}
        hidden = sorted(self.macros & (set(_WORD.findall(source)) | defined))
        lines = [
            f"---- {entries[0].file}, tuned by Tunesmith on {result.dispatch.device} ----",
            *(line for entry in entries for line in _serving_lines(entry, self.number)),
        ]
        opened = "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' for name in hidden)
        opened += "".join(f"#define {name} {_tuned_name(name, self.number)}\n" for name in renamed)
        opened += "".join(f"#define {name} {value}\n" for name, value in defines)
        closed = "".join(f"#undef {name}\n" for name in sorted(defined.union(renamed)))
        closed += "".join(f'#pragma pop_macro("{name}")\n' for name in reversed(hidden))
        # Two line ends: the source may close with a backslash.
        return f"\n{format_comment(lines)}{opened}{source}\n\n{closed}"


def _serving_lines(entry: DispatchEntry, number: int) -> list[str]:
    order = ", in this order" if len(entry.launches) > 1 else ""
    lines = [f"It serves where {entry.when}", f"Launch{order}:"]
    for launch in entry.launches:
        sizes = f"({', '.join(launch.grid)}) work-groups of ({', '.join(launch.block)}) work-items"
        name = _tuned_name(launch.entry, number)
        lines.append(f"  {name}: {sizes}; arguments {', '.join(launch.args)}")
    for a in entry.workspace:
        filled = f", filled with {a.init:g} before each call" if a.init is not None else ""
        lines.append(f"  {a.name}: {a.role} memory of {a.type} [{', '.join(a.shape)}]{filled}")
    return lines


def _tuned_name(name: str, number: int) -> str:
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


# A repository with the tuned kernels in it: a header beside the original, and launches that ask it first.
#
# The original stays what it is, and serves wherever a launch is not as it was verified. No build has to be
# changed for the header: files that launch the kernel include it.
HEADER_MARK = "// Tuned kernels, written by `tunesmith apply`"


@dataclass(frozen=True)
class LaunchingFile:
    """A file of the repository that may launch the kernel. `macros`: names that files it includes define."""

    path: str
    text: str
    macros: frozenset[str] = frozenset()
    other: str = ""  # a file with a kernel of this name that is not the one that was tuned


@dataclass(frozen=True)
class PromisedAt:
    """The launch that alone may change, "file:line", where no dispatch can check what it promises."""

    place: str
    why: str

    def holds(self, path: str, line: int) -> bool:
        return self.place == f"{path}:{line}"


@dataclass(frozen=True)
class FileChange:
    path: str
    before: str | None  # None: there was no such file
    after: str


@dataclass(frozen=True)
class RepositoryPatch:
    changes: tuple[FileChange, ...]
    delivered: int  # of the tuned kernels
    launches: tuple[str, ...]  # "file:line", of those that ask first
    notes: tuple[str, ...]  # what is not in it, and why
    entries: tuple[tuple[DeviceResult, DispatchEntry], ...] = ()

    @property
    def diff(self) -> str:
        """For `git apply` and `patch -p1`."""
        return "".join(diff_text(change.path, change.before, change.after) for change in self.changes)


def patched_repository(
    artefact: Artefact,
    files: Sequence[LaunchingFile],
    folder: str,
    same_code: SameCode | None = None,
    promised: PromisedAt | None = None,
) -> RepositoryPatch:
    """`folder`: where the header goes, from the repository's top; `promised`: the one launch that may change.
    Raises BadInput where nothing changes."""
    namespace = f"{artefact.name}_tuned"
    header = posixpath.join(folder, f"{namespace}.cuh")
    _refuse_unaskable(artefact)
    units, notes = tuned_units(artefact, same_code or same_code_by_nvcc, embeds=True)
    if not units:
        raise BadInput("no tuned kernel can be part of a patch: " + "; ".join(notes), hint=_EXPORT)
    changes, launches = [], []
    macros: set[str] = set()
    for file in files:
        sites, faults = usable_launches(artefact, file.text, macros=True)
        kept = [site for site in sites if promised is None or promised.holds(file.path, site.line)]
        if promised is not None:
            left = [site.line for site in sites if site not in kept and not file.other]
            notes += [f"{file.path}:{line} stays as it is: {promised.why}" for line in left]
        chosen = [number for number, site in enumerate(sites) if site in kept]
        notes += [f"{file.path}: {fault}" for fault in faults]
        if sites and file.other:
            where = "the file" if file.other == file.path else file.other
            why = f"{where} defines a kernel of this name itself"
            notes += [f"{file.path}:{site.line} stays as it is: {why}" for site in sites]
        elif kept:
            macros |= file.macros | macros_in(file.text)
            after = _with_header(file, min(site.start for site in sites), header)
            moved = usable_launches(artefact, after, macros=True)[0]
            asking = [moved[number] for number in chosen]
            after = redirect_launches(after, asking, 0, namespace, artefact)
            changes.append(FileChange(file.path, file.text, after))
            launches += [f"{file.path}:{site.line}" for site in kept]
    if not changes:
        raise _no_launch(artefact, files, notes, namespace)
    text = _header_text(artefact, units, macros, namespace)
    delivered = len({(unit.result.run, unit.file) for unit in units})
    entries = tuple((unit.result, unit.entry) for unit in units)
    every = (FileChange(header, None, text), *changes)
    return RepositoryPatch(every, delivered, tuple(launches), tuple(notes), entries)


# A host's compiler, which has no launches either, passes over it.
_DEVICE_ONLY = "#if defined(__CUDACC__) || defined(__HIPCC__)\n"
_EMBEDDED = ("embedded_runtime.cuh", "embedded_kernel.h")
_EXPORT = "take what was delivered in another form: tunesmith export RUN --to cpp"


def _refuse_unaskable(artefact: Artefact) -> None:
    """Where no launch of the original could ask for a tuned kernel."""
    original = artefact.first.dispatch.original
    if not any(result.dispatch.tuned for result in artefact.results):
        hint = "tune it again, with more time or another model: tunesmith tune"
        raise BadInput("the run has no tuned kernel: there is nothing to apply", hint=hint)
    if (taken := len(original.launches)) > 1:
        raise BadInput(f"the operator takes {taken} launches, and a patch changes one", hint=_EXPORT)
    if PLACEHOLDER.search(original.launches[0].entry):
        raise BadInput(EACH_SIZE, hint=_EXPORT)
    try:
        sites_code(artefact)
    except CannotServe as error:
        raise BadInput(f"no launch can ask for the tuned kernel: {error}", hint=_EXPORT) from error


def _header_text(artefact: Artefact, units: Sequence[TunedUnit], macros: Set[str], namespace: str) -> str:
    embedded = _EMBEDDED if any(unit.image is not None for unit in units) else ()
    shared = "\n".join(map(read_cuda_resource, (*HOST_PARTS, *embedded)))
    lines = [
        f"of {artefact.problem}, tuned on {', '.join(r.dispatch.device for r in artefact.results)}.",
        "A launch is served by one of them where its sizes, arguments and device are as they were verified,",
        "else by the original. Take it out again with: tunesmith apply --undo RUN",
    ]
    return (
        f"{HEADER_MARK}\n{format_comment(lines)}#pragma once\n{_DEVICE_ONLY}"
        f"{format_sections(macros, units, namespace, hides=True)}"
        f"\nnamespace {namespace} {{ namespace {{\n\n{shared}\n{dispatch_code(artefact, units)}"
        f"{sites_code(artefact)}\n}}}}  // namespace {namespace}\n#endif  // {namespace.upper()}\n"
        "#endif  // __CUDACC__\n"
    )


def _with_header(file: LaunchingFile, first: int, header: str) -> str:
    name = posixpath.relpath(header, posixpath.dirname(file.path) or ".")
    place = place_behind_includes(file.text, first)
    end = "\r\n" if "\r\n" in file.text else "\n"
    before = "" if not place or file.text[place - 1] == "\n" else end
    return f'{file.text[:place]}{before}#include "{name}"{end}{file.text[place:]}'


def _no_launch(
    artefact: Artefact, files: Sequence[LaunchingFile], notes: Sequence[str], namespace: str
) -> BadInput:
    base, _ = base_name(artefact.first.dispatch.original.launches[0].entry)
    served = [file.path for file in files if f"::{namespace}::launch(" in file.text]
    if served:
        fault = f"a tuned kernel serves launches of {base} in {served[0]} already"
        return BadInput(fault, hint="undo that first: tunesmith apply --undo RUN, with the run it came from")
    listed = ", ".join(file.path for file in files) or "no file"
    why = "; ".join(notes) or f"nothing in {listed} launches it by {base}<<<...>>>"
    return BadInput(f"no launch of {base} can be changed: {why}", hint=_EXPORT)
