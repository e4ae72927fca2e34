"""The problem file and the other texts of an extraction, from what is known of the kernel."""

from __future__ import annotations

import tomllib
from dataclasses import replace

from tunesmith.errors import BadInput
from tunesmith.expert.reading.arguments import draft_arguments, possible_name
from tunesmith.expert.reading.bare import BareReading
from tunesmith.expert.reading.bare_text import BareKernel
from tunesmith.expert.reading.draft import draft_of, read_safely
from tunesmith.expert.reading.headers import KernelSignature, LaunchSite, SourceModel
from tunesmith.expert.reading.included import read_with_headers
from tunesmith.expert.reading.known import KnownFacts
from tunesmith.expert.reading.launches import FILL, DraftLaunch, draft_launch
from tunesmith.session.extract.building import KERNEL_FILE
from tunesmith.session.extract.dispatching import ChosenLaunch
from tunesmith.session.extract.finding import FoundKernel, Pairs
from tunesmith.session.extract.flattening import FlatKernel, kernel_in_parts
from tunesmith.session.extract.host import HostLaunch, HostReading
from tunesmith.session.extract.host_sizes import HostFacts, host_facts
from tunesmith.session.extract.limits import with_limits
from tunesmith.session.extract.references import REFERENCE_FILE, reference_text
from tunesmith.session.extract.seen import SeenSizes, seen_facts
from tunesmith.session.extract.slicing import FRAMEWORK
from tunesmith.session.extract.telling import compared_code, missing_in, report_of
from tunesmith.session.extract.trimming import FittedSlice
from tunesmith.session.extract.wishes import Extraction, ExtractionWish


def named_kernel(model: SourceModel, name: str) -> KernelSignature:
    found = [kernel for kernel in model.kernels if kernel.name == name]
    if not found:
        raise BadInput(f"the header of {name} could not be read", hint="write it without macros in its name")
    return found[0]


def drafted(
    found: FoundKernel,
    host: HostReading,
    instance: ChosenLaunch,
    entry: str,
    fitted: FittedSlice,
    flat: FlatKernel | None,
    wish: ExtractionWish,
    said: tuple[str, ...] = (),
) -> Extraction:
    """`flat`: the kernel that takes fields, where the own one takes structs; `said`: reported besides."""
    cut = flat.slice if flat else fitted.slice
    text = cut.text(f"{found.item.name}, taken from {found.item.place}")
    headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
    bare, facts = _bare(found, instance, flat.entry if flat else entry, text, headers, wish, flat)
    known = _known(found, instance, facts, fitted, wish)
    known = flat.known(known) if flat else known
    reading = read_safely(bare)
    report = (*report_of(found, host, instance, facts, fitted, entry), *said)
    sizes: SeenSizes = ()
    if wish.seen is not None:
        shapes = reading.shapes if isinstance(reading, BareReading) else {}
        extents = {name: known.renamed(shape.extents) for name, shape in shapes.items()}
        own = kernel_in_parts(wish.seen, flat.parts) if flat else wish.seen
        seen = seen_facts(own, bare.arguments, known, bare.launch, extents)
        known, bare = seen.known, replace(bare, launch=seen.launch)
        report = (*report, *seen.notes, *compared_code(wish.seen, fitted.attempt))
        sizes = seen.sizes
    known = with_limits(known, "given" if wish.seen is None or wish.workloads else "seen")
    draft = draft_of(bare, reading, (), replace(known, reference=None))
    files = ((KERNEL_FILE, text), *headers, *draft.files.items())
    if wish.reference is not None:
        name = possible_name(found.item.name)
        called = _reference(wish.reference, name, bare, draft.files["problem.toml"])
        known = replace(known, reference=f"{REFERENCE_FILE}:{name}")
        draft = draft_of(bare, reading, (), known)
        files = ((KERNEL_FILE, text), *headers, *draft.files.items(), (REFERENCE_FILE, called))
    report = (*report, *_strange_sizes(wish, draft.files["problem.toml"]))
    missing = () if fitted.attempt.ok else missing_in(found, fitted)
    measured = (len(text.splitlines()), len(cut.items))
    place, attempt = found.item.place, fitted.attempt
    parts = flat.parts if flat else ()
    entry = flat.entry if flat else entry
    passed = tuple(facts.passed.items()) if facts is not None else ()
    return Extraction(
        place, entry, files, draft.fills, *measured, attempt, report, missing, sizes, parts, passed,
        instance.launch, cut, unread=facts.unread if facts is not None else (),
    )  # fmt: skip


def _strange_sizes(wish: ExtractionWish, problem: str) -> list[str]:
    """Sizes of the workloads that were given which the problem does not have."""
    sizes = [name for name in tomllib.loads(problem).get("contract", {}) if name not in ("require", FILL)]
    given = dict.fromkeys(name for workload in wish.workloads for name, _ in workload.sizes)
    known = ", ".join(sizes) or "none yet"
    strange = (name for name in given if name not in sizes)
    return [f"--workload says {name}, which is no size of the problem ({known})" for name in strange]


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
    flat: FlatKernel | None,
) -> tuple[BareKernel, HostFacts | None]:
    model = read_with_headers(text, "cuda", KERNEL_FILE, wish.defines, headers)
    kernel = named_kernel(model, flat.slice.kernel.name if flat else found.item.name)
    bound = tuple(zip(kernel.template_params, instance.chosen.arguments, strict=False))
    arguments = draft_arguments(kernel, "cuda", dict(bound))
    facts: HostFacts | None = None
    launch = draft_launch(kernel, arguments, model, "cuda")
    host = instance.launch
    if host is not None:
        host = replace(host, site=flat.site(host.site)) if flat else host
        facts = host_facts(host, arguments, comments_of(found), dict(instance.chosen.decided))
        site = _named_site(host.site, facts)
        own = dict((*host.constants, *model.constants))
        model = replace(model, launches=(site,), constants=tuple(own.items()))
        launch = _placed(draft_launch(kernel, arguments, model, "cuda"), host)
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
