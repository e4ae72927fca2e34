"""A problem folder from a repository: the kernel found, sliced and compiled, and what its host says of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from tunesmith.backends.cuda.compile import NO_HOST
from tunesmith.csource.lex import split_at
from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.expert.reading.headers import KernelSignature
from tunesmith.expert.reading.included import read_with_headers
from tunesmith.expert.reading.launches import FILL
from tunesmith.session.extract.building import slice_builders
from tunesmith.session.extract.dispatching import ChosenEntry, ChosenLaunch, chosen_entry
from tunesmith.session.extract.drafting import drafted, named_kernel
from tunesmith.session.extract.finding import FoundKernel, NoSuchKernel, Pairs, find_kernel
from tunesmith.session.extract.flattening import FlatKernel, flattened
from tunesmith.session.extract.host import HostReading, host_launches
from tunesmith.session.extract.instances import is_alone
from tunesmith.session.extract.provenance import origin_of
from tunesmith.session.extract.records import NoFields
from tunesmith.session.extract.seen import instance_of
from tunesmith.session.extract.slicing import FRAMEWORK
from tunesmith.session.extract.tree import SourceTree
from tunesmith.session.extract.trimming import Build, BuildAttempt, FittedSlice, compiled_slice, trimmed
from tunesmith.session.extract.wanted import without_source
from tunesmith.session.extract.wishes import Extraction as Extraction
from tunesmith.session.extract.wishes import ExtractionWish as ExtractionWish
from tunesmith.text import one_line

TRIM_SECONDS = 45.0
_PACK = re.compile(r"^\s*#\s*pragma\s+pack\b|\b_Pragma\s*\(\s*\"pack\b", re.MULTILINE)


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
    if wish.inside is not None:
        own = [one for one in host.launches if (one.path, one.site.function) == wish.inside]
        host = replace(host, launches=tuple(own))
    signature = _signature_of(found)
    asked = wish.kernel
    if wish.seen is not None and "<" not in asked and (ran := instance_of(wish.seen.shown)):
        asked += f"<{', '.join(ran)}>"
    instance = _instance(found, host, asked, signature)
    entry, words = _entry(found, instance, signature)
    note(f"compiling {entry}")
    fitted = _fitted(found, entry, words, wish, compilers)
    flat, said = _flat(tree, instance, signature, fitted, wish, compilers)
    made = drafted(found, host, instance, entry, fitted, flat, wish, said)
    if flat is not None:  # what is tuned is a kernel of ours, that no launch of the repository calls
        return made
    captured = "" if wish.seen is None else wish.seen.name
    origin = origin_of(tree, found, host, fitted.slice, captured)
    read = made.launch.place if made.launch is not None else ""
    alone = is_alone(instance, host.launches)
    told = replace(origin, read=read, unread=made.unread, alone=alone, include=wish.folders)
    return replace(made, origin=told)


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
    return named_kernel(model, found.item.name)


def _instance(found: FoundKernel, host: HostReading, asked: str, signature: KernelSignature) -> ChosenLaunch:
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
    arguments = tuple(_as_outside(found, text) for text in instance.chosen.arguments)
    if not arguments and signature.template_params:
        return f"{name}<{FILL}>", ()
    inside = ", ".join(arguments)
    words = [
        word for word in re.findall(r"[A-Za-z_][\w:]*", inside) if word not in ("true", "false", "typename")
    ]
    return (f"{name}<{inside}>" if arguments else name), tuple(dict.fromkeys(words))


def _as_outside(found: FoundKernel, text: str) -> str:
    """A template argument as it is called from outside of the kernel's namespaces."""
    scope = tuple(part for part in found.item.scope if part)

    def named(word: re.Match[str]) -> str:
        spaces = {tuple(p for p in item.scope if p) for item in found.slicer.named(word[0])}
        seen = [space for space in spaces if space and scope[: len(space)] == space]
        return "::".join((*max(seen, key=len), word[0])) if seen and () not in spaces else word[0]

    return re.sub(r"(?<![\w:])[A-Za-z_]\w*(?!\w|\s*::)", named, text) if scope else text


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


def _flat(
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
        flat = flattened(fitted.slice, signature.template_params, instance.chosen.arguments)
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
    return flat, (flat.said,)
