"""All kernels that one call launches, as one problem: each is extracted, and the drafts are put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tunesmith.capture.demangle import function_name
from tunesmith.capture.records import Capture, CapturedKernel
from tunesmith.errors import BadInput
from tunesmith.session.extract.building import KERNEL_FILE, slice_builders
from tunesmith.session.extract.extraction import Compilers, extract
from tunesmith.session.extract.finding import find_kernel
from tunesmith.session.extract.host import HostLaunch, launches_in
from tunesmith.session.extract.merging import Kept, LaunchDraft, fills_of, identity, merged
from tunesmith.session.extract.slicing import FRAMEWORK, KernelSlice
from tunesmith.session.extract.tree import SourceTree
from tunesmith.session.extract.wishes import Extraction, ExtractionWish
from tunesmith.text import counted

MOST_LAUNCHES = 8
_PROBLEM = "problem.toml"
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
    main = extract(tree, wish, note, compilers)
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
        parts.append(extract(tree, other, note, compilers))
    return _together(tree, wish, main, listed, parts, compilers)


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
    return list(listed.values())[:MOST_LAUNCHES]


def _together(
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
            fault = f"{part.entry}, which the call launches too, {why}"
            raise BadInput(fault, hint="leave --call out, and extract the kernels one by one")
        if part.cut.kernel.path != parts[0].cut.kernel.path:  # type: ignore[union-attr]
            fault = f"{part.entry} is defined in {part.cut.kernel.path}, another file"
            raise BadInput(fault, hint="leave --call out, and extract the kernels one by one")
    cut = _union([part.cut for part in parts if part.cut is not None])
    text = tree.read(main.launch.path) if main.launch is not None else ""
    drafts = [
        LaunchDraft(
            site.site.kernel, part.entry, dict(part.files)[_PROBLEM], dict(part.passed), _kept(site, text)
        )
        for site, part in zip(listed, parts, strict=True)
    ]
    missing = tuple(_unbuilt(cut, parts, wish, compilers))
    attempt = main.attempt if not missing else replace(main.attempt, digest="", log=missing[0])
    names = ", ".join(part.entry for part in parts)
    notes = [f"Drafted by `tunesmith extract --call`: {names}", *_about(listed)]
    toml = merged(drafts, notes)
    kernel = cut.text(f"{', '.join(one.site.kernel for one in listed)}, taken from {main.place}")
    headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
    files = ((KERNEL_FILE, kernel), *headers, (_PROBLEM, toml))
    said = f"a call launches {counted(len(parts), 'kernel')}: {names}"
    report = (*main.report, said)
    sizes = (fills_of(toml), len(kernel.splitlines()), len(cut.items))
    return replace(
        main, files=files, fills=sizes[0], lines=sizes[1], items=sizes[2], attempt=attempt, report=report,
        missing=missing, members=tuple(parts), cut=cut,
    )  # fmt: skip


def _about(listed: Sequence[HostLaunch]) -> list[str]:
    return [f"{one.site.kernel}: launched in {one.place}" for one in listed]


def _union(slices: Sequence[KernelSlice]) -> KernelSlice:
    items = {item.order: item for cut in slices for item in cut.items}
    headers = dict.fromkeys(header for cut in slices for header in cut.headers)
    return KernelSlice(tuple(items[order] for order in sorted(items)), tuple(headers), slices[0].kernel)


def _unbuilt(
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


def _kept(launch: HostLaunch, text: str) -> dict[str, Kept]:
    """Buffers that the host makes for itself: not among its parameters, and not given back."""
    found: dict[str, Kept] = {}
    for name, value in launch.site.settled:
        made = re.search(r"\b(?:new_)?(empty|zeros|ones|full)(?:_like|_strided)?\s*\(", value)
        returned = re.search(rf"\breturn\b[^;]*\b{re.escape(name)}\b", text)
        if made and not returned:
            found[identity(name)] = "zeroed" if made[1] == "zeros" else "made"
    return found


def followed_by(capture: Capture, kernel: CapturedKernel) -> list[str]:
    """Kernels that came next on the same stream each time, one after the other."""
    owners = {launch.number: one for one in capture.kernels for launch in one.launches}
    found: list[str] = []
    at = kernel
    for _ in range(MOST_LAUNCHES):
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
