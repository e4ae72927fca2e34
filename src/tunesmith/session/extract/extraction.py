"""A problem folder from a repository: the kernel found, sliced and compiled, and what its host says of it."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tunesmith.capture.records import CapturedKernel
from tunesmith.csource.lex import split_at
from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.expert.reading.arguments import draft_arguments, possible_name
from tunesmith.expert.reading.bare import BareReading
from tunesmith.expert.reading.bare_text import BareKernel
from tunesmith.expert.reading.draft import draft_of, read_safely
from tunesmith.expert.reading.included import read_with_headers
from tunesmith.expert.reading.known import KnownFacts, KnownWorkload
from tunesmith.expert.reading.launches import FILL, DraftLaunch, LaunchSite, draft_launch
from tunesmith.expert.reading.source import KernelSignature, SourceModel
from tunesmith.session.extract.building import KERNEL_FILE, slice_builders
from tunesmith.session.extract.dispatching import ChosenEntry, ChosenLaunch, chosen_entry
from tunesmith.session.extract.finding import FoundKernel, NoSuchKernel, Pairs, find_kernel
from tunesmith.session.extract.host import HostLaunch, HostReading, host_launches
from tunesmith.session.extract.host_sizes import HostFacts, host_facts
from tunesmith.session.extract.limits import with_limits
from tunesmith.session.extract.references import REFERENCE_FILE, reference_text
from tunesmith.session.extract.seen import SeenSizes, instance_of, seen_facts
from tunesmith.session.extract.slicing import FRAMEWORK
from tunesmith.session.extract.telling import compared_code, missing_in, report_of
from tunesmith.session.extract.tree import SourceTree
from tunesmith.session.extract.trimming import Build, BuildAttempt, FittedSlice, compiled_slice, trimmed
from tunesmith.session.extract.wanted import without_source

TRIM_SECONDS = 45.0


@dataclass(frozen=True)
class ExtractionWish:
    """What is asked for. `kernel`: a name, with template arguments or without."""

    kernel: str
    file: str | None = None
    folders: tuple[str, ...] = ()
    defines: Pairs = ()
    flags: tuple[str, ...] = ()
    workloads: tuple[KnownWorkload, ...] = ()
    reference: str | None = None
    trim: bool = True
    seen: CapturedKernel | None = None  # what a program launched


@dataclass(frozen=True)
class Extraction:
    """What was made of it. `files`: name -> text, of the folder."""

    place: str  # where the kernel is defined
    entry: str
    files: tuple[tuple[str, str], ...]
    fills: int
    lines: int  # of the kernel's file
    items: int
    attempt: BuildAttempt
    report: tuple[str, ...]  # what was found, in words
    missing: tuple[str, ...] = ()  # why it does not stand alone, where it does not
    seen_sizes: SeenSizes = ()

    @property
    def stands_alone(self) -> bool:
        return self.attempt.ok


Compilers = Callable[[str, Pairs], AbstractContextManager[Sequence[Build]]]


def extract(
    tree: SourceTree,
    wish: ExtractionWish,
    note: Callable[[str], None] = lambda _words: None,
    compilers: Compilers = slice_builders,
) -> Extraction:
    """`compilers`: for an entry and macros, what compiles slices, the quickest first."""
    note(f"looking for {wish.kernel}")
    found = _found(tree, wish)
    host = host_launches(tree, found, wish.folders, wish.defines)
    signature = _signature_of(found)
    asked = wish.kernel
    if wish.seen is not None and "<" not in asked and (ran := instance_of(wish.seen.shown)):
        asked += f"<{', '.join(ran)}>"
    instance = _instance(found, host, asked, signature)
    entry, words = _entry(found, instance, signature)
    note(f"compiling {entry}")
    fitted = _fitted(found, entry, words, wish, compilers)
    return _drafted(found, host, instance, entry, fitted, wish)


def _found(tree: SourceTree, wish: ExtractionWish) -> FoundKernel:
    try:
        return find_kernel(tree, wish.kernel, wish.file, wish.folders, wish.defines)
    except NoSuchKernel as missing:
        if wish.seen is None:
            raise
        raise without_source(wish.seen, missing) from missing


# -- the instance ------------------------------------------------------------------------------------------


def _signature_of(found: FoundKernel) -> KernelSignature:
    cut = found.slicer.slice(found.item)
    model = read_with_headers(cut.text(), "cuda", found.item.path, (), ())
    return _named(model, found.item.name)


def _named(model: SourceModel, name: str) -> KernelSignature:
    found = [kernel for kernel in model.kernels if kernel.name == name]
    if not found:
        raise BadInput(f"the header of {name} could not be read", hint="write it without macros in its name")
    return found[0]


def _instance(found: FoundKernel, host: HostReading, asked: str, signature: KernelSignature) -> ChosenLaunch:
    """The launch and the template arguments that are meant: those that are asked for, or the likeliest."""
    given = _template_arguments(asked)
    known = frozenset(name for item in found.slicer.items for name in item.names)
    types = [parameter.base for parameter in signature.parameters]
    ways = [
        (launch, chosen_entry(launch, signature.template_params, types, known)) for launch in host.launches
    ]
    if given:
        ways.sort(key=lambda way: -_agreeing(way[1].arguments, given))
        return ChosenLaunch(ways[0][0] if ways else None, ChosenEntry(given, (), ()), len(ways))
    if not signature.template_params:
        return ChosenLaunch(ways[0][0] if ways else None, ChosenEntry((), (), ()), len(ways))
    if not ways:
        return ChosenLaunch(None, ChosenEntry((), signature.template_params, ()), 0)
    best = min(ways, key=lambda way: (len(way[1].open_names), _rank(way[1].arguments)))
    return ChosenLaunch(*best, len(ways))


def _agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(one, other, strict=False))


def _rank(arguments: Sequence[str]) -> int:
    narrow = ("BFloat16", "bfloat16", "Half", "half")
    return 0 if any(word in text for text in arguments for word in narrow) else 1


def _template_arguments(entry: str) -> tuple[str, ...]:
    if "<" not in entry:
        return ()
    inside = entry[entry.index("<") + 1 : entry.rindex(">")]
    parts = split_at(",", re.findall(r"\w+|::|[^\w\s]", inside))
    return tuple(
        re.sub(r"(?<=\w) (?=\W)|(?<=\W) (?=\w)|(?<=\W) (?=\W)", "", " ".join(part)) for part in parts
    )


def _entry(
    found: FoundKernel, instance: ChosenLaunch, signature: KernelSignature
) -> tuple[str, tuple[str, ...]]:
    """With its namespaces, and the names that its template arguments have."""
    scope = "::".join(part for part in found.item.scope if part)
    name = f"{scope}::{found.item.name}" if scope else found.item.name
    arguments = instance.chosen.arguments
    if not arguments and signature.template_params:
        return f"{name}<{FILL}>", ()
    inside = ", ".join(arguments)
    words = [
        word for word in re.findall(r"[A-Za-z_][\w:]*", inside) if word not in ("true", "false", "typename")
    ]
    return (f"{name}<{inside}>" if arguments else name), tuple(dict.fromkeys(words))


# -- the slice ---------------------------------------------------------------------------------------------


def _fitted(
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
                fitted = trimmed(found.slicer, fitted, words, build, lambda: time.monotonic() < end)
            return fitted
    except DeviceMissing as missing:
        unbuilt = BuildAttempt("", f"nothing was compiled: {missing.message}")
        return FittedSlice(found.slicer.slice(found.item, words), wish.flags, unbuilt)


def _with_any(
    found: FoundKernel, words: Sequence[str], wish: ExtractionWish, builders: Sequence[Build]
) -> tuple[FittedSlice, Build]:
    """By the first compiler that takes it."""
    first: tuple[FittedSlice, Build] | None = None
    for build in builders:
        fitted = compiled_slice(found.slicer, found.item, words, wish.flags, build)
        if fitted.attempt.ok:
            return fitted, build
        first = first or (fitted, build)
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


# -- the problem file ---------------------------------------------------------------------------------------


def _drafted(
    found: FoundKernel,
    host: HostReading,
    instance: ChosenLaunch,
    entry: str,
    fitted: FittedSlice,
    wish: ExtractionWish,
) -> Extraction:
    cut = fitted.slice
    text = cut.text(f"{found.item.name}, taken from {found.item.place}")
    headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
    bare, facts = _bare(found, instance, entry, text, headers, wish)
    known = _known(found, instance, facts, fitted, wish)
    reading = read_safely(bare)
    report = report_of(found, host, instance, facts, fitted, entry)
    sizes: SeenSizes = ()
    if wish.seen is not None:
        shapes = reading.shapes if isinstance(reading, BareReading) else {}
        extents = {name: known.renamed(shape.extents) for name, shape in shapes.items()}
        seen = seen_facts(wish.seen, bare.arguments, known, bare.launch, extents)
        known, bare = seen.known, replace(bare, launch=seen.launch)
        report = (*report, *seen.notes, *compared_code(wish.seen, fitted.attempt))
        sizes = seen.sizes
    known = with_limits(known, "given" if wish.seen is None or wish.workloads else "seen")
    draft = draft_of(bare, reading, (), replace(known, reference=None))
    files = ((KERNEL_FILE, text), *headers, *draft.files.items())
    if wish.reference is not None:
        name = possible_name(found.item.name)
        own = _reference(wish.reference, name, bare, draft.files["problem.toml"])
        known = replace(known, reference=f"{REFERENCE_FILE}:{name}")
        draft = draft_of(bare, reading, (), known)
        files = ((KERNEL_FILE, text), *headers, *draft.files.items(), (REFERENCE_FILE, own))
    missing = () if fitted.attempt.ok else missing_in(found, fitted)
    measured = (len(text.splitlines()), len(cut.items))
    place, attempt = found.item.place, fitted.attempt
    return Extraction(place, entry, files, draft.fills, *measured, attempt, report, missing, sizes)


def _reference(said: str, name: str, bare: BareKernel, problem: str) -> str:
    read = tomllib.loads(problem)
    arrays = [a["name"] for a in read["argument"] if a.get("role") in ("input", "inout")]
    scalars = [a.name for a in bare.arguments if not a.parameter.pointer and not a.is_integer]
    return reference_text(
        said, name, arrays, scalars, [size for size in read["contract"] if size != "require"]
    )


def _bare(
    found: FoundKernel,
    instance: ChosenLaunch,
    entry: str,
    text: str,
    headers: Pairs,
    wish: ExtractionWish,
) -> tuple[BareKernel, HostFacts | None]:
    model = read_with_headers(text, "cuda", KERNEL_FILE, wish.defines, headers)
    kernel = _named(model, found.item.name)
    bound = tuple(zip(kernel.template_params, instance.chosen.arguments, strict=False))
    arguments = draft_arguments(kernel, "cuda", dict(bound))
    facts: HostFacts | None = None
    launch = draft_launch(kernel, arguments, model, "cuda")
    if instance.launch is not None:
        facts = host_facts(instance.launch, arguments, comments_of(found), dict(instance.chosen.decided))
        site = _named_site(instance.launch.site, facts)
        own = dict((*instance.launch.constants, *model.constants))
        model = replace(model, launches=(site,), constants=tuple(own.items()))
        launch = _placed(draft_launch(kernel, arguments, model, "cuda"), instance.launch)
    said = (entry, kernel, arguments, model, launch, bound, wish.defines, headers)
    return BareKernel(text, KERNEL_FILE, "cuda", *said), facts


def _named_site(site: LaunchSite, facts: HostFacts) -> LaunchSite:
    """With the sizes that the host asks its tensors for under their own names, and no values behind them."""
    decided = dict(facts.decided)
    kept = tuple((n, decided.get(n, value)) for n, value in site.settled if n not in facts.leaves)
    grid, block = (tuple(_in_names(text, facts) for text in part) for part in (site.grid, site.block))
    shared = None if site.shared is None else _in_names(site.shared, facts)
    return replace(site, settled=kept, grid=grid, block=block, shared=shared)


def _in_names(text: str, facts: HostFacts) -> str:
    for words, name in sorted(facts.leaves.items(), key=lambda pair: -len(pair[0])):
        if text == words:
            return name
        if not words.isidentifier():
            text = text.replace(words, name)
    return text


def _placed(launch: DraftLaunch, host: HostLaunch) -> DraftLaunch:
    """Lines are those of the host's file."""
    where = f"as launched in {host.place}"
    return replace(launch, about=where)


def comments_of(found: FoundKernel) -> dict[str, str]:
    """What stands behind each parameter of the kernel's header, at the end of its line."""
    tokens = found.item.tokens
    start = next((at for at, token in enumerate(tokens) if token.text == found.item.name), 0)
    said: dict[str, str] = {}
    last = ""
    depth = 0
    for token in tokens[start + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "word":
            last = token.text
        for comment in token.comments:
            if comment.behind and last:
                said[last] = comment.text
        if depth == 0:
            break
    return said


def _known(
    found: FoundKernel,
    instance: ChosenLaunch,
    facts: HostFacts | None,
    fitted: FittedSlice,
    wish: ExtractionWish,
) -> KnownFacts:
    notes = [f"{found.item.name} of {found.item.place}"]
    if instance.launch is not None:
        notes[0] += f", launched in {instance.launch.place}"
    notes += [f"{name} may also be {', '.join(values)}" for name, values in instance.chosen.offered]
    compiler = "nvcc" if fitted.attempt.compiler == "nvcc" and fitted.attempt.ok else ""
    plain = KnownFacts(
        head="Drafted by `tunesmith extract`.",
        notes=tuple(notes),
        workloads=wish.workloads,
        flags=fitted.flags,
        compiler=compiler,
    )
    if facts is None:
        return plain
    return replace(
        plain,
        notes=(*plain.notes, *(f"the host also asks for: {text}" for text in facts.unread[:6])),
        values=facts.values,
        shapes=facts.shapes,
        shapes_from=facts.shapes_from,
        nulls=facts.nulls,
        passed=facts.passed,
        multiples=facts.multiples,
        requires=facts.requires,
    )
