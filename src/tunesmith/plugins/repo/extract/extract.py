"""A problem folder from a repository: the kernel found, sliced and compiled, and what its host says of it."""

from __future__ import annotations

import operator
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from tunesmith.backends.cuda.compile import NO_HOST
from tunesmith.base.errors import BadInput, DeviceMissing, KernelWrong
from tunesmith.base.files import explain_disk_errors, write_new, write_whole
from tunesmith.base.text import format_count, one_line
from tunesmith.expert.drafts.bare import KnownWorkload
from tunesmith.expert.drafts.headers import KernelSignature
from tunesmith.expert.drafts.launches import FILL
from tunesmith.expert.drafts.signature import read_with_headers
from tunesmith.plugins.repo.capture.records import Capture, CapturedKernel, read_array, read_capture
from tunesmith.plugins.repo.capture.trace import function_name
from tunesmith.plugins.repo.extract.draft import (
    ONE_BY_ONE,
    Extraction,
    ExtractionWish,
    Kept,
    LaunchDraft,
    draft_extraction,
    fills_of,
    merge_drafts,
    named_kernel,
    origin_of,
    origin_text,
    tensor_identity,
)
from tunesmith.plugins.repo.extract.fill import fill_open_places
from tunesmith.plugins.repo.extract.flatten import FlatKernel, NoFields, flatten_kernel, in_parts
from tunesmith.plugins.repo.extract.host import (
    ChosenEntry,
    ChosenLaunch,
    HostLaunch,
    HostReading,
    chosen_entry,
    host_launches,
    is_alone,
    launches_in,
)
from tunesmith.plugins.repo.extract.items import split_text
from tunesmith.plugins.repo.extract.prove import ProofReply, proof_of
from tunesmith.plugins.repo.extract.seen import (
    captured_kernel,
    instance_of,
    recorded_files,
    with_recorded,
    without_source,
)
from tunesmith.plugins.repo.extract.slice import (
    FRAMEWORK,
    KERNEL_FILE,
    Build,
    BuildAttempt,
    FittedSlice,
    FoundKernel,
    KernelSlice,
    NoSuchKernel,
    Pairs,
    compiled_slice,
    find_kernel,
    slice_builders,
    trim_slice,
)
from tunesmith.plugins.repo.extract.tree import Repository, SourceTree, refuse_odd_name
from tunesmith.run.events import LanguageModel
from tunesmith.session.check import given_defines
from tunesmith.session.problems import PROBLEM_FILE, load_problem
from tunesmith.session.roles import one_model

TRIM_SECONDS = 45.0
_PACK = re.compile(r"^\s*#\s*pragma\s+pack\b|\b_Pragma\s*\(\s*\"pack\b", re.MULTILINE)


Compilers = Callable[[str, Pairs], AbstractContextManager[Sequence[Build]]]


def extract_kernel(
    tree: SourceTree,
    wish: ExtractionWish,
    note: Callable[[str], None] = lambda _words: None,
    compilers: Compilers = slice_builders,
) -> Extraction:
    """`compilers`: for an entry and macros, what compiles slices, the quickest first."""
    note(f"looking for {wish.kernel}")
    found = _find_wished_kernel(tree, wish)
    host = host_launches(tree, found, wish.folders, wish.defines)
    if wish.inside is not None:
        inside = [one for one in host.launches if (one.path, one.site.function) == wish.inside]
        host = replace(host, launches=tuple(inside))
    signature = _signature_of(found)
    asked = wish.kernel
    if wish.seen is not None and "<" not in asked and (ran := instance_of(wish.seen.shown)):
        asked += f"<{', '.join(ran)}>"
    instance = _choose_instance(found, host, asked, signature)
    entry, words = _qualified_entry(found, instance, signature)
    note(f"compiling {entry}")
    fitted = _fit_slice(found, entry, words, wish, compilers)
    flat, said = _flatten_structs(tree, instance, signature, fitted, wish, compilers)
    made = draft_extraction(found, host, instance, entry, fitted, flat, wish, said)
    if flat is not None:  # what is tuned is a kernel of ours, that no launch of the repository calls
        return made
    captured = "" if wish.seen is None else wish.seen.name
    origin = origin_of(tree, found, host, fitted.slice, captured)
    read = made.launch.place if made.launch is not None else ""
    alone = is_alone(instance, host.launches)
    told = replace(origin, read=read, unread=made.unread, alone=alone, include=wish.folders)
    return replace(made, origin=told)


def _find_wished_kernel(tree: SourceTree, wish: ExtractionWish) -> FoundKernel:
    try:
        return find_kernel(tree, wish.kernel, wish.file, wish.folders, wish.defines)
    except NoSuchKernel as missing:
        if wish.seen is None:
            raise
        raise without_source(wish.seen, missing) from missing


def _signature_of(found: FoundKernel) -> KernelSignature:
    cut = found.slicer.slice(found.item)
    model = read_with_headers(cut.text(), "cuda", found.item.path, (), ())
    return named_kernel(model, found.item.name)


def _choose_instance(
    found: FoundKernel, host: HostReading, asked: str, signature: KernelSignature
) -> ChosenLaunch:
    """The launch and the template arguments that are meant: those that are asked for, or the likeliest."""
    given = _template_arguments(asked)
    known = frozenset(name for item in found.slicer.items for name in item.names)
    types = [parameter.base for parameter in signature.parameters]
    ways = [
        (launch, chosen_entry(launch, signature.template_params, types, known)) for launch in host.launches
    ]
    if given and not signature.template_params and found.item.tokens[0].text != "template":
        fault = f"{found.item.name} is no template: it has no instance {asked}"
        raise BadInput(fault, where=found.item.place, hint="leave the template arguments out")
    if given:
        ways.sort(key=lambda way: -sum(map(operator.eq, way[1].arguments, given)))
        return ChosenLaunch(ways[0][0] if ways else None, ChosenEntry(given, (), ()), len(ways))
    if not signature.template_params:
        return ChosenLaunch(ways[0][0] if ways else None, ChosenEntry((), (), ()), len(ways))
    if not ways:
        return ChosenLaunch(None, ChosenEntry((), signature.template_params, ()), 0)
    best = min(ways, key=lambda way: (len(way[1].open_names), _precision_rank(way[1].arguments)))
    return ChosenLaunch(*best, len(ways))


def _precision_rank(arguments: Sequence[str]) -> int:
    narrow = ("BFloat16", "bfloat16", "Half", "half")
    return 0 if any(word in text for text in arguments for word in narrow) else 1


def _template_arguments(entry: str) -> tuple[str, ...]:
    if "<" not in entry:
        return ()
    inside = entry[entry.index("<") + 1 : entry.rindex(">")]
    parts = (" ".join(part.split()) for part in split_text(inside, opens="<([{", closes=">)]}"))
    return tuple(re.sub(r" (?=\W)|(?<=\W) ", "", part) for part in parts)


def _qualified_entry(
    found: FoundKernel, instance: ChosenLaunch, signature: KernelSignature
) -> tuple[str, tuple[str, ...]]:
    """With its namespaces, and the names that its template arguments have."""
    name = found.item.qualified_name
    arguments = tuple(_as_outside(found, text) for text in instance.chosen.arguments)
    if not arguments and signature.template_params:
        return f"{name}<{FILL}>", ()
    inside = ", ".join(arguments)
    words = dict.fromkeys(re.findall(r"[A-Za-z_][\w:]*", inside))
    named = tuple(word for word in words if word not in ("true", "false", "typename"))
    return (f"{name}<{inside}>" if arguments else name), named


def _as_outside(found: FoundKernel, text: str) -> str:
    """A template argument as it is called from outside of the kernel's namespaces."""
    scope = found.item.spaces

    def named(word: re.Match[str]) -> str:
        spaces = {item.spaces for item in found.slicer.named(word[0])}
        seen = [space for space in spaces if space and scope[: len(space)] == space]
        return "::".join((*max(seen, key=len), word[0])) if seen and () not in spaces else word[0]

    return re.sub(r"(?<![\w:])[A-Za-z_]\w*(?!\w|\s*::)", named, text) if scope else text


def _fit_slice(
    found: FoundKernel, entry: str, words: Sequence[str], wish: ExtractionWish, compilers: Compilers
) -> FittedSlice:
    if FILL in entry:
        nothing = BuildAttempt("", "its template arguments are not known, so nothing was compiled")
        return FittedSlice(found.slicer.slice(found.item, words), wish.flags, nothing)
    try:
        with compilers(entry, wish.defines) as builders:
            fitted, build = _with_any(found, words, wish, builders)
            fitted, build = _as_it_ran(fitted, build, wish, builders)
            end = time.monotonic() + TRIM_SECONDS
            if wish.trim:
                fitted = trim_slice(found.slicer, fitted, words, build, lambda: time.monotonic() < end)
            return fitted
    except DeviceMissing as missing:
        unbuilt = BuildAttempt("", f"nothing was compiled: {missing.message}")
        return FittedSlice(found.slicer.slice(found.item, words), wish.flags, unbuilt)


def _with_any(
    found: FoundKernel, words: Sequence[str], wish: ExtractionWish, builders: Sequence[Build]
) -> tuple[FittedSlice, Build]:
    """By the first compiler that takes it; where none does, what the first says that could have."""
    first: tuple[FittedSlice, Build] | None = None
    for build in builders:
        fitted = compiled_slice(found.slicer, found.item, words, wish.flags, build)
        if fitted.attempt.ok:
            return fitted, build
        if first is None or NO_HOST in first[0].attempt.log:
            first = (fitted, build)
    assert first is not None
    return first


def _as_it_ran(
    fitted: FittedSlice, build: Build, wish: ExtractionWish, builders: Sequence[Build]
) -> tuple[FittedSlice, Build]:
    """By the compiler whose machine code is the code that ran, where there is one here."""
    ran = wish.seen.code if wish.seen is not None else ""
    if not ran or not fitted.attempt.ok or fitted.attempt.code == ran:
        return fitted, build
    for other in builders:
        attempt = other(fitted.slice, fitted.flags) if other is not build else fitted.attempt
        if attempt.ok and attempt.code == ran:
            return replace(fitted, attempt=attempt), other
    return fitted, build


def _flatten_structs(
    tree: SourceTree,
    instance: ChosenLaunch,
    signature: KernelSignature,
    fitted: FittedSlice,
    wish: ExtractionWish,
    compilers: Compilers,
) -> tuple[FlatKernel | None, tuple[str, ...]]:
    """Where it takes structs by value: with their fields as parameters, compiled by the same compiler; else
    why not."""
    if not fitted.attempt.ok:
        return None, ()
    try:
        flat = flatten_kernel(fitted.slice, signature.template_params, instance.chosen.arguments)
    except NoFields as why:
        return None, (f"a parameter is passed by value that problem files do not have: {why}",)
    if flat is None:
        return None, ()
    files = {item.path for item in fitted.slice.items if item.kind == "record" and item.path != FRAMEWORK}
    if packed := [path for path in sorted(files) if _PACK.search(tree.read(path))]:
        return None, (f"it takes a struct by value, and {packed[0]} packs structs by a pragma: not read",)
    with compilers(flat.entry, wish.defines) as builders:
        attempts = [build(flat.slice, fitted.flags) for build in builders]
    same = next(one for one in attempts if one.compiler == fitted.attempt.compiler)
    if not same.ok:
        log = one_line(same.log)
        return None, (f"with the fields of what it takes by value as parameters it does not compile: {log}",)
    return flat, (flat.report_line,)


# -- All kernels that one call launches, as one problem: each is extracted, and the drafts are put together.


MAX_LAUNCHES = 8
SeenOf = Callable[[str], CapturedKernel | None]


def extract_call(
    tree: SourceTree,
    wish: ExtractionWish,
    note: Callable[[str], None] = lambda _words: None,
    compilers: Compilers = slice_builders,
    seen_of: SeenOf = lambda _name: None,
) -> Extraction:
    """The kernel that is named, and those that its host function launches with it; `seen_of`: what a program
    launched, by a kernel's name."""
    main = extract_kernel(tree, wish, note, compilers)
    if main.launch is None:
        fault = f"no launch of {wish.kernel} was found, so nobody knows what a call launches with it"
        raise BadInput(fault, hint="leave --call out")
    listed = _of_call(tree, wish, main.launch)
    if len(listed) < 2:
        said = f"its host function, {main.launch.site.function}, launches no other kernel with it"
        return replace(main, report=(*main.report, said))
    parts: list[Extraction] = []
    for site in listed:
        if site.site.kernel == main.launch.site.kernel:
            parts.append(main)
            continue
        name = site.site.kernel
        inside = (site.path, site.site.function)
        other = replace(wish, kernel=name, reference=None, seen=seen_of(name), inside=inside)
        parts.append(extract_kernel(tree, other, note, compilers))
    return _combine_parts(tree, wish, main, listed, parts, compilers)


def _of_call(tree: SourceTree, wish: ExtractionWish, main: HostLaunch) -> list[HostLaunch]:
    """Launches of the same function on the same way through it, each kernel once, in their order."""
    found = find_kernel(tree, wish.kernel, wish.file, wish.folders, wish.defines)
    everyone = launches_in(tree, main.path, found, wish.folders, wish.defines)
    way = main.site.conditions
    listed: dict[str, HostLaunch] = {}
    for one in everyone:
        same = one.site.function == main.site.function
        on_way = way[: len(one.site.conditions)] == one.site.conditions or one.site.conditions == way
        if same and (on_way or one.site.line == main.site.line):
            listed.setdefault(one.site.kernel, one)
    return list(listed.values())[:MAX_LAUNCHES]


def _combine_parts(
    tree: SourceTree,
    wish: ExtractionWish,
    main: Extraction,
    listed: Sequence[HostLaunch],
    parts: Sequence[Extraction],
    compilers: Compilers,
) -> Extraction:
    for part in parts:
        if part.parts or part.cut is None or not part.stands_alone:
            why = "takes a struct by value" if part.parts else "does not stand alone"
            raise BadInput(f"{part.entry}, which the call launches too, {why}", hint=ONE_BY_ONE)
        if part.cut.kernel.path != parts[0].cut.kernel.path:  # type: ignore[union-attr]
            raise BadInput(
                f"{part.entry} is defined in {part.cut.kernel.path}, another file", hint=ONE_BY_ONE
            )
    cut = _union_slices([part.cut for part in parts if part.cut is not None])
    text = tree.read(main.launch.path) if main.launch is not None else ""
    drafts = [
        LaunchDraft(
            site.site.kernel,
            part.entry,
            dict(part.files)[PROBLEM_FILE],
            dict(part.passed),
            _internal_buffers(site, text),
        )
        for site, part in zip(listed, parts, strict=True)
    ]
    missing = tuple(_build_failures(cut, parts, wish, compilers))
    attempt = main.attempt if not missing else replace(main.attempt, digest="", log=missing[0])
    names = ", ".join(part.entry for part in parts)
    notes = [f"Drafted by `tunesmith extract --call`: {names}"]
    notes += [f"{one.site.kernel}: launched in {one.place}" for one in listed]
    toml = merge_drafts(drafts, notes)
    kernel = cut.text(f"{', '.join(one.site.kernel for one in listed)}, taken from {main.place}")
    headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
    files = ((KERNEL_FILE, kernel), *headers, (PROBLEM_FILE, toml))
    said = f"a call launches {format_count(len(parts), 'kernel')}: {names}"
    return replace(
        main, files=files, fills=fills_of(toml), lines=len(kernel.splitlines()), items=len(cut.items),
        attempt=attempt, report=(*main.report, said), missing=missing, members=tuple(parts), cut=cut,
    )  # fmt: skip


def _union_slices(slices: Sequence[KernelSlice]) -> KernelSlice:
    items = {item.order: item for cut in slices for item in cut.items}
    headers = dict.fromkeys(header for cut in slices for header in cut.headers)
    return KernelSlice(tuple(items[order] for order in sorted(items)), tuple(headers), slices[0].kernel)


def _build_failures(
    cut: KernelSlice, parts: Sequence[Extraction], wish: ExtractionWish, compilers: Compilers
) -> list[str]:
    """What the compiler says against the file with all of them; nothing where it takes every one."""
    said = []
    for part in parts:
        with compilers(part.entry, wish.defines) as builders:
            attempts = [build(cut, wish.flags) for build in builders]
        if not any(attempt.ok for attempt in attempts):
            said.append(f"{part.entry}: {attempts[0].log.strip()[:500]}")
    return said


def _internal_buffers(launch: HostLaunch, text: str) -> dict[str, Kept]:
    """Buffers that the host makes for itself: not among its parameters, and not given back."""
    found: dict[str, Kept] = {}
    for name, value in launch.site.settled:
        made = re.search(r"\b(?:new_)?(empty|zeros|ones|full)(?:_like|_strided)?\s*\(", value)
        returned = re.search(rf"\breturn\b[^;]*\b{re.escape(name)}\b", text)
        if made and not returned:
            found[tensor_identity(name)] = "zeroed" if made[1] == "zeros" else "made"
    return found


def followed_by(capture: Capture, kernel: CapturedKernel) -> list[str]:
    """Kernels that came next on the same stream each time, one after the other."""
    owners = {launch.number: one for one in capture.kernels for launch in one.launches}
    found: list[str] = []
    at = kernel
    for _ in range(MAX_LAUNCHES):
        numbers = {launch.number for launch in at.launches}
        after = [s for s in capture.successions if s.before in numbers and s.after in owners]
        others = {owners[s.after].name: owners[s.after] for s in after}
        count = sum(s.count for s in after)
        if len(others) != 1 or count < max(2, at.count - 1):
            break
        (at,) = others.values()
        name = function_name(at.shown)
        if at is kernel or name in found:
            break
        found.append(name)
    return found


# -- `tunesmith extract`: a repository in, a problem folder out, read back by the reader of problems.


_SIZE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*", re.ASCII)
_UNFILLED = 'what says "FILL" must be filled in first'
_KERNEL = re.compile(r"(?:::)?\s*[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*(?:<.+>)?\s*", re.DOTALL)
NOT_PROVEN = "# Lines marked `by` were filled in by a model and are not proven: `tunesmith check` decides."
_PROVEN = {
    "same": "as captured",
    "within": "as captured",
    "unknown": "not proven",
    "differs": "another result",
}
_NAMED = re.compile(r"\s*([A-Za-z_][\w-]*)\s*:(.*)", re.ASCII | re.DOTALL)


class WishedExtraction(TypedDict, total=False):
    """Options, as the command and the Python interface have them."""

    file: str | None
    entry: str | None
    defines: Sequence[str]
    include: Sequence[str]
    flags: Sequence[str]
    workloads: Sequence[str]
    trim: bool
    reference: str | None
    capture: str | os.PathLike[str] | None
    symbol: str | None
    model: str | None
    wait: bool
    call: bool


@dataclass(frozen=True)
class ExtractedFolder:
    """A problem folder that was written. `stands_alone`: its kernel compiles; `faults`: what the reader of
    problems has against it, besides what is still to be filled in."""

    folder: Path
    kernel: str  # its entry, with namespaces and template arguments
    place: str  # file and line in the repository
    files: tuple[str, ...]
    stands_alone: bool
    compiler: str
    lines: int
    fills: int
    report: tuple[str, ...]
    missing: tuple[str, ...]
    faults: tuple[str, ...]
    proof: tuple[str, ...] = ()  # of captured launches that were made again; empty: none was


def extract_folder(
    repository: str | os.PathLike[str],
    kernel: str,
    out: Path | None,
    note: Callable[[str], None],
    **wish: Unpack[WishedExtraction],
) -> ExtractedFolder:
    """Write the folder; never over anything that is there."""
    capture = wish.get("capture")
    if capture is not None:
        refuse_odd_name(Path(capture))
    wished = wish_of(kernel, **wish)
    tree = Repository(Path(repository))
    if gone := [name for name in wished.folders if not (tree.root / name).is_dir()]:
        fault = f"-I {gone[0]}: the repository has no such folder"
        raise BadInput(fault, where=str(tree.root), hint="folders of headers count from the repository's top")
    found = _extract_wished(tree, wished, note, **wish)
    name = found.entry.split("<")[0].split("::")[-1]
    folder = out or Path(name)
    by_model = ""
    if (model := wish.get("model")) is not None and found.fills and found.stands_alone:
        asked = one_model(model, folder, wish.get("wait", True), note)
        found = _fill_with_model(found, asked, note)
        by_model = "" if found.fills else asked.name
    found = with_origin(found, Path(repository), None if capture is None else Path(capture))
    write_folder(folder, found.files)
    files = tuple(file for file, _ in found.files)
    faults = tuple(read_back(folder, found))
    proof, holds = tuple[str, ...](), False
    if capture is not None and wished.seen is not None and found.stands_alone:
        if found.fills or faults:
            proof = (f"not proven on what was captured: {_UNFILLED if found.fills else faults[0]}",)
        else:
            note("making captured launches again")
            added, proof, holds = _prove_folder(folder, found, wished, Path(capture), wished.seen.name)
            files = (*files, *added)
    if by_model and holds:
        _as_proven(folder)
    elif by_model:
        words = f"what {by_model} filled in is not proven by a captured launch: problem.toml says so too"
        found = replace(found, report=(*found.report, words))
    return ExtractedFolder(
        folder, found.entry, found.place, files, found.stands_alone, found.attempt.compiler, found.lines,
        found.fills, found.report, found.missing, faults, proof,
    )  # fmt: skip


def _prove_folder(
    folder: Path, found: Extraction, wished: ExtractionWish, capture: Path, kernel: str
) -> tuple[list[str], tuple[str, ...], bool]:
    """Files of cases that were kept, what was proven in words, and whether the problem holds."""
    proof, holds = _prove_extraction(folder, found, capture, kernel)
    if wished.reference is not None or found.members:
        return [], proof, holds
    added, said = record_cases(folder, capture, kernel, found)
    return added, (*proof, *said), holds


def _extract_wished(
    tree: Repository, wished: ExtractionWish, note: Callable[[str], None], **wish: Unpack[WishedExtraction]
) -> Extraction:
    given = wish.get("capture")
    if given is None:
        return extract_call(tree, wished, note) if wish.get("call") else extract_kernel(tree, wished, note)
    capture = read_capture(Path(given))
    if wish.get("call"):
        return extract_call(tree, wished, note, seen_of=lambda name: _captured_or_none(capture, name))
    found = extract_kernel(tree, wished, note)
    after = followed_by(capture, wished.seen) if wished.seen is not None else []
    words = f"where it was launched, {', '.join(after)} came next each time: --call takes them together"
    return replace(found, report=(*found.report, words)) if after else found


def _captured_or_none(capture: Capture, name: str) -> CapturedKernel | None:
    try:
        return captured_kernel(capture, name)
    except BadInput:
        return None


def _prove_extraction(
    folder: Path, found: Extraction, capture: Path, kernel: str
) -> tuple[tuple[str, ...], bool]:
    """Of the kernel, in words, and whether what the problem says is proven too. Where a call launches
    several, of each by itself, in a folder that goes again: that says nothing of the whole's own file."""
    if not found.members:
        reply = proof_of(folder, capture, kernel, found.parts, found.seen_sizes)
        return check_proof(folder, found, reply), reply.holds
    known = read_capture(capture)
    said: list[str] = []
    for part in found.members:
        seen = _captured_or_none(known, part.entry)
        if seen is None or part.fills:
            said.append(f"{part.entry}: not proven on what was captured")
            continue
        with tempfile.TemporaryDirectory(prefix="tunesmith-extract-") as scratch:
            write_folder(Path(scratch), part.files)
            reply = proof_of(Path(scratch), capture, seen.name, part.parts, part.seen_sizes)
        lines = check_proof(folder, replace(part, files=found.files), reply)
        said += [f"{part.entry}: {line}" for line in lines]
    return tuple(said), False


def _fill_with_model(found: Extraction, model: LanguageModel, note: Callable[[str], None]) -> Extraction:
    """What is filled in is marked as not proven until it is."""
    done = fill_open_places(found, model, note)
    files = dict(done.found.files)
    if not done.found.fills:
        files[PROBLEM_FILE] = f"{NOT_PROVEN}\n{files[PROBLEM_FILE]}"
    return replace(done.found, files=tuple(files.items()), report=(*done.found.report, *done.said))


def _as_proven(folder: Path) -> None:
    place = folder / PROBLEM_FILE
    with explain_disk_errors("write the problem", folder):
        write_whole(place, place.read_bytes().removeprefix(f"{NOT_PROVEN}\n".encode()))


def wish_of(kernel: str, **wish: Unpack[WishedExtraction]) -> ExtractionWish:
    entry = wish.get("entry")
    if entry is not None and entry.split("<")[0].split("::")[-1].strip() != kernel.split("::")[-1]:
        fault = f"--entry is an instance of --kernel {kernel}; got {entry!r}"
        raise BadInput(fault, hint=f"for example: --entry '{kernel}<float>'")
    instance = entry[entry.index("<") :] if entry is not None and "<" in entry else ""
    if not _KERNEL.fullmatch(kernel + instance):
        got = kernel + instance
        fault = f"--kernel is a name and --entry an instance of it, with all its brackets; got {got!r}"
        raise BadInput(fault, hint="for example: --kernel space::scale --entry 'scale<float, 4>'")
    capture, symbol = wish.get("capture"), wish.get("symbol")
    if symbol is not None and capture is None:
        raise BadInput("--symbol names a kernel of a capture", hint="add --capture FOLDER")
    seen = None
    if capture is not None:
        seen = captured_kernel(read_capture(Path(capture)), kernel + instance, symbol)
    return ExtractionWish(
        kernel + instance,
        file=wish.get("file"),
        folders=tuple(wish.get("include", ())),
        defines=given_defines(wish.get("defines", ())),
        flags=tuple(wish.get("flags", ())),
        workloads=given_workloads(wish.get("workloads", ())),
        reference=wish.get("reference"),
        trim=wish.get("trim", True),
        seen=seen,
    )


def with_origin(found: Extraction, repository: Path, capture: Path | None) -> Extraction:
    """Where it comes from, in the problem file too."""
    if found.origin is None:
        return found
    seen = "" if capture is None else str(capture.resolve())
    origin = replace(found.origin, repository=str(repository.resolve()), capture=seen)
    files = dict(found.files)
    files[PROBLEM_FILE] = f"{files[PROBLEM_FILE].rstrip()}\n\n{origin_text(origin)}"
    return replace(found, files=tuple(files.items()), origin=origin)


def check_proof(folder: Path, found: Extraction, reply: ProofReply) -> tuple[str, ...]:
    """What was proven, in words; a kernel that does not do what was captured is refused, its files go."""
    wrong = [one.words for one in reply.launches if one.verdict == "differs"]
    if wrong or reply.fault:
        for name, _ in found.files:
            (folder / name).unlink(missing_ok=True)
        fault = f"{found.entry} does not do what was captured: {reply.fault or wrong[0]}"
        hint = "are these the sources that ran, and built so? --define, --flag and --entry say how; what a "
        hint += "model filled in may be wrong: without --model it is left to you"
        raise KernelWrong(fault, hint=hint, where=found.place)
    if reply.trouble:
        return (f"not proven on what was captured: {reply.trouble}",)
    return tuple(f"launch {one.launch}: {_PROVEN[one.verdict]} ({one.words})" for one in reply.launches)


def record_cases(folder: Path, capture: Path, kernel: str, found: Extraction) -> tuple[list[str], list[str]]:
    """Launches whose memory was kept become cases of the problem, in files of their own; and what is said."""
    problem = load_problem(folder)
    sizes = {number: dict(seen) for number, seen in found.seen_sizes}
    seen = in_parts(read_capture(capture), kernel, found.parts)
    files, notes = recorded_files(
        problem.definition, seen, kernel, sizes, lambda digest: read_array(capture, digest)
    )
    said = list(notes)
    if files:
        write_folder(folder, tuple(files.items()))
        with explain_disk_errors("write the problem", folder):
            write_whole(folder / PROBLEM_FILE, with_recorded(problem.toml, list(files)).encode())
        words = format_count(len(files), "launch is kept as a case", "launches are kept as cases")
        said.append(f"{words}: {', '.join(files)}, since there is no reference")
    return list(files), said


def write_folder(folder: Path, files: Sequence[tuple[str, str]]) -> None:
    there = [name for name, _ in files if os.path.lexists(folder / name)]
    if there:
        hint = "choose another folder with --out DIR"
        raise BadInput(f"{', '.join(there)} would be overwritten", where=str(folder), hint=hint)
    try:
        encoded = [(name, text.encode()) for name, text in files]
    except UnicodeEncodeError as error:  # a file of the repository is named so
        around = error.object[max(error.start - 40, 0) : error.end + 40]
        odd = around.encode("utf-8", "backslashreplace").decode()
        raise BadInput(f"a name in the repository is not UTF-8: {one_line(odd)}", hint="rename it") from error
    with explain_disk_errors("write the problem", folder, instead="another folder with --out DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        try:
            for name, data in encoded:
                write_new(folder / name, data)
                written.append(folder / name)
        except OSError:
            for path in written:
                path.unlink(missing_ok=True)
            raise


def read_back(folder: Path, found: Extraction) -> list[str]:
    """What the reader of problems says of it, but for places to be filled in."""
    try:
        load_problem(folder)
    except BadInput as refused:
        lines = [line for line in refused.message.splitlines() if "FILL" not in line]
        return lines if not found.fills or len(lines) > 1 else []
    return []


def given_workloads(options: Sequence[str]) -> tuple[KnownWorkload, ...]:
    """`--workload "decode: rows=16, hidden=4096"`; without a name they are numbered."""
    found: list[KnownWorkload] = []
    for number, option in enumerate(options, 1):
        named = _NAMED.fullmatch(option)
        name, text = (named[1], named[2]) if named else (f"workload_{number}", option)
        sizes = [_SIZE.fullmatch(part) for part in text.split(",")]
        if not all(sizes) or any(workload.name == name for workload in found):
            fault = f"--workload lists sizes, and its name comes once; got {option!r}"
            raise BadInput(fault, hint='for example: --workload "decode: rows=16, hidden=4096"')
        found.append(KnownWorkload(name, tuple((size[1], int(size[2])) for size in sizes if size)))
    return tuple(found)
