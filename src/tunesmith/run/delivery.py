"""What is delivered: the winners, the original, and the conditions under which each serves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import PurePosixPath

from tunesmith.problem.codec import encode
from tunesmith.problem.device import Device, Resources, occupancy
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchBinary,
    DispatchEntry,
    DispatchHeaders,
    DispatchWorkload,
    dispatch_argument,
    dispatch_launch,
)
from tunesmith.problem.domain import always_holds
from tunesmith.problem.problem import Contract, Launch, Problem
from tunesmith.problem.template import (
    PLACEHOLDER,
    Variant,
    bind_launch,
    original,
    plain_name,
)
from tunesmith.run.baked import BakedService
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.events import VerifiedBuild
from tunesmith.run.ports import Delivery
from tunesmith.run.racing import NOT_TIMED, Winners
from tunesmith.run.state import State
from tunesmith.space.expr import Undefined, parse
from tunesmith.space.grammar import Compare, ExprError, Logic, Node, Num, tidy, unparse
from tunesmith.space.params import Config
from tunesmith.space.space import Constraint
from tunesmith.text import plain

NO_LIMIT = (1 << 31) - 1  # a grid larger than this has other troubles
MOST_INSTANCES = 64  # of an original whose entry names sizes
# A header's spelling is whatever a source says: only a name that every disk takes becomes a file's.
_PART_OF_A_NAME = re.compile(r"[A-Za-z0-9_.+ -]{1,100}", re.ASCII)


@dataclass(frozen=True)
class _ServedCase:
    """One line of the dispatch: under this condition this variant, which is in this file."""

    when: str
    file: str
    variant: Variant
    digest: str  # of the variant as it was built


class _Undeliverable(Exception):
    """Why a winner cannot be written down for whoever calls it."""


def delivery(
    problem: Problem,
    template_of: TemplateOf,
    device: Device,
    choice: Winners,
    builds: Iterable[VerifiedBuild] = (),
    compiler: str = "",
    services: Iterable[BakedService] = (),
) -> Delivery:
    """`services` are those of builds with sizes in them, which otherwise serve their workloads alone."""
    _, dot, ending = plain_name(problem.kernel.path).rpartition(".")
    suffix = dot and f".{ending}"
    known = {build.source_digest: build for build in builds if build.code_digest}
    names: dict[tuple[Config, str], str] = {}
    obstacles: dict[tuple[Config, str], str] = {}

    def case(config: Config, called: str, sizes: Mapping[str, int] | None = None) -> _ServedCase | None:
        """A source that serves more than once is one file, under its first name."""
        variant = template_of(config).render(problem, config, sizes)
        name = f"{plain_name(problem.name)}-{plain_name(called)}"
        while f"{name}{suffix}" in names.values():  # a workload may be called "general"
            name += "_"
        try:
            settled = _settled(variant, device, known.get(variant.digest), sizes)
        except _Undeliverable as error:
            where = f" at {called}" if sizes is not None else ""
            obstacles.setdefault((config, variant.digest), f"{config.label}{where}: {error}")
            return None
        file = names.setdefault((config, variant.digest), f"{name}{suffix}")
        return _ServedCase(_exactly(sizes or {}), file, settled, variant.digest)

    here = problem.on(device.limits.names())
    general = None  # unless the general configuration has sizes built in
    if choice.general is not None and not template_of(choice.general).bakes_sizes(choice.general):
        general = case(choice.general, "general")
        try:
            if general is not None:
                when = _condition(_domain(here.contract, general.variant, device), choice.where)
                general = replace(general, when=when)
        except _Undeliverable as error:  # it serves the workloads that it is best at
            obstacles[choice.general, ""] = f"{choice.general.label}: {error}"
            general = None
    served: list[_ServedCase] = []
    for pick in choice.picks:
        sizes = problem.workload(pick.workload).as_dict()
        if pick.config == choice.general and (pick.config is None or (general and choice.serves(sizes))):
            continue  # served by the general entry, or by the original at the end
        if pick.config is None:
            served += _originals(problem, f"original{suffix}", _exactly(sizes), sizes)
        elif (made := case(pick.config, pick.workload, sizes)) is not None:
            served.append(made)
    if general is not None:
        served.append(general)
    said = [choice.shown] if choice.shown and general is not None else []
    for service in services:
        file = names.get((service.config, service.variant.digest))
        try:
            settled = _settled(service.variant, device, known.get(service.variant.digest), None)
            when = _condition(_domain(here.contract, settled, device), service.where)
        except _Undeliverable:
            continue  # its launch is known at its workloads alone, or where it serves cannot be said
        if file is not None:
            served.append(_ServedCase(when, file, settled, service.variant.digest))
            said.append(f"{file}, where {when}: {service.shown or NOT_TIMED}")
    served += _originals(problem, f"original{suffix}", "1")
    served = [
        case if case.variant.config is not None else replace(case, variant=_bound(case.variant, device))
        for case in served
    ]
    files = {each.file: each.variant.source.encode() for each in served}
    headers = _headers(served, files)
    binaries: dict[str, str] = {}
    entries = [_entry(each, headers.get(each.variant.headers), known, binaries) for each in served]
    speedups = {pick.workload: pick.speedup.value for pick in choice.picks if pick.config is not None}
    dispatch = Dispatch(
        problem=problem.name,
        language=problem.kernel.language,
        device=device.name,
        entries=tuple(entries),
        architecture=device.architecture,
        compiler=compiler,
        arguments=tuple(dispatch_argument(a) for a in here.arguments),
        sizes=here.contract.sizes,
        require=tuple(c.expr.text for c in here.contract.require),
        workloads=tuple(
            DispatchWorkload(w.name, w.as_dict(), speedups.get(w.name)) for w in problem.workloads
        ),
        shown="; ".join(said),
        left_out=tuple(why for source, why in obstacles.items() if source not in names),
    )
    files["dispatch.json"] = encode(dispatch) + b"\n"
    configs = {each.digest: each.variant.config for each in served if each.variant.config is not None}
    made_from = {each.digest: each.variant.made_from for each in served}
    return Delivery(dispatch, files, binaries, known, configs, choice.general, made_from)


def general_condition(
    problem: Problem, dispatch: Dispatch, config: Mapping[str, int] | None = None
) -> str | None:
    """Where the general entry, of this configuration, serves beyond what the contract promises anyway; None:
    there is none."""
    require = tuple(Constraint(text, parse(text), "require") for text in dispatch.require)
    promised = " and ".join(_promised(replace(problem.contract, require=require)))
    tuned = [entry for entry in dispatch.tuned if config is None or entry.config == config]
    general = [entry.when for entry in tuned if promised and entry.when.startswith(promised)]
    return general[-1].removeprefix(promised).removeprefix(" and ") if general else None


def builds_known(state: State) -> tuple[VerifiedBuild, ...]:
    """The original's, and those of what was verified."""
    own = state.baseline.builds if state.baseline is not None else ()
    return (*own, *(build for v in state.verified for build in v.builds))


def _originals(
    problem: Problem, file: str, when: str, sizes: Mapping[str, int] | None = None
) -> list[_ServedCase]:
    """One whose entry names a size is as many kernels as that size has values; the last serves the rest, for
    whoever can still compile it."""

    def case(when: str, variant: Variant) -> _ServedCase:
        return _ServedCase(when, file, variant, variant.digest)

    if sizes is not None:
        return [case(when, original(problem, sizes))]
    plain_one = original(problem)
    inserted = {n for entry in plain_one.entries for n in PLACEHOLDER.findall(entry)}
    names = [name for name in problem.size_names if name in inserted]
    found = []
    if names:
        rules = {rule.name: rule.one_of for rule in problem.contract.sizes}
        used = {name: dict.fromkeys(w.as_dict()[name] for w in problem.workloads) for name in names}
        for chosen in islice(product(*(rules[n] or tuple(used[n]) for n in names)), MOST_INSTANCES):
            here = dict(zip(names, chosen, strict=True))
            found.append(case(_exactly(here), original(problem, here)))
    return [*found, case(when, plain_one)]


def _bound(variant: Variant, device: Device) -> Variant:
    limits = device.limits.names()
    launches = tuple(bind_launch(launch, limits, {}) for launch in variant.launches)
    return replace(variant, launches=launches, arguments=tuple(a.bind(limits) for a in variant.arguments))


def _settled(
    variant: Variant, device: Device, build: VerifiedBuild | None, sizes: Mapping[str, int] | None
) -> Variant:
    """Its launches over sizes alone: what the device and the build say is numbers by now."""
    resources = (build.resources if build is not None else None) or Resources()
    names = {**device.limits.names(), **resources.names()}
    names = {k: v for k, v in names.items() if k not in ("resources.blocks_per_sm", "resources.occupancy")}
    variant = replace(variant, arguments=tuple(a.bind(device.limits.names()) for a in variant.arguments))
    launches = tuple(_settle(one, variant, device, resources, names, sizes) for one in variant.launches)
    return replace(variant, launches=launches)


def _settle(
    launch: Launch,
    variant: Variant,
    device: Device,
    resources: Resources,
    names: Mapping[str, int],
    sizes: Mapping[str, int] | None,
) -> Launch:
    bound = bind_launch(launch, names, {})
    if left := _of_builds(bound):
        try:
            block = math.prod(e.evaluate(sizes or {}) for e in bound.block)
            shared = bound.shared.evaluate(sizes or {}) if bound.shared is not None else 0
            for name in bound.args:
                own = variant.argument(name)
                if own.role == "local":
                    count = math.prod(max(0, e.evaluate(sizes or {})) for e in own.shape)
                    shared += own.element.nbytes(count)
        except Undefined as error:
            words = f"its grid asks for {left[0]}, which depends on the sizes through its block"
            raise _Undeliverable(words) from error
        held = occupancy(device.limits, resources.of(launch.entry), block, shared)
        if held is not None:
            more = {"resources.blocks_per_sm": held.blocks_per_sm, "resources.occupancy": held.percent}
            bound = bind_launch(bound, more, {})
    if left := _of_builds(bound):
        raise _Undeliverable(f"its launch asks for {left[0]}, which nobody knows of this build")
    return bound


def _of_builds(launch: Launch) -> list[str]:
    exprs = [*launch.grid, *launch.block, *launch.cluster]
    exprs += [expr for expr in (launch.shared, launch.when) if expr is not None]
    return sorted({n for expr in exprs for n in expr.names if "." in n})


def _exactly(sizes: Mapping[str, int]) -> str:
    return " and ".join(f"{name} == {value}" for name, value in sizes.items())


def _domain(contract: Contract, variant: Variant, device: Device) -> str:
    """Contract and requirements in one condition; device limits are numbers by now."""
    parts = _promised(contract)
    for condition in variant.domain:
        bound = condition.bind(device.limits.names())
        if any(name.startswith("resources.") for name in bound.names):
            continue  # the build has told, and this one was allowed
        if bound.names or not bound.holds({}):
            parts += [f"({unparse(node)})" for node in _uncertain(bound.tree, contract)]
    return " and ".join(dict.fromkeys(parts + _launchable(variant, device, contract)))


def _condition(domain: str, where: Sequence[str]) -> str:
    try:
        return tidy(" and ".join([domain, *where]))
    except ExprError as error:
        raise _Undeliverable("the condition under which it serves is too long to be written down") from error


def _promised(contract: Contract) -> list[str]:
    parts = []
    for rule in contract.sizes:
        if rule.one_of:
            parts.append(f"{rule.name} in ({', '.join(map(str, rule.one_of))},)")
            continue
        parts.append(f"{rule.min} <= {rule.name} <= {rule.max}")
        if rule.multiple_of != 1:
            parts.append(f"{rule.name} % {rule.multiple_of} == 0")
    return list(dict.fromkeys([*parts, *(f"({c.expr.text})" for c in contract.require)]))


def _uncertain(node: Node, contract: Contract) -> list[Node]:
    """What of a condition the contract does not promise already, as rows % 1 == 0."""
    if isinstance(node, Logic) and node.op == "and":
        return [left for operand in node.operands for left in _uncertain(operand, contract)]
    return [] if always_holds(node, contract) else [node]


def _launchable(variant: Variant, device: Device, contract: Contract) -> list[str]:
    """Beyond the workloads a grid may grow past what the device launches: there the original serves."""
    limits = device.limits.names()
    return [
        f"(not ({launch.when.bind(limits).text}) or ({bound.text}) <= {limit})"
        if launch.when
        else f"({bound.text}) <= {limit}"
        for launch in variant.launches
        for expr, limit in zip(launch.grid, device.limits.max_grid, strict=False)
        if limit < NO_LIMIT
        and (bound := expr.bind(limits)).names
        and not always_holds(Compare(bound.tree, (("<=", Num(limit)),)), contract)
        and not any(n.startswith("resources.") for n in bound.names)
    ]


def _headers(
    served: Sequence[_ServedCase], files: dict[str, bytes]
) -> dict[tuple[tuple[str, str], ...], DispatchHeaders]:
    """Puts the headers of every source among the files, each set in a folder of its own.

    The template's differ from the original's where it has more, or others under the same spelling: in one
    folder they would also hide the toolkit's from a source that means those.
    """
    found: dict[tuple[tuple[str, str], ...], DispatchHeaders] = {}
    for variant in (each.variant for each in reversed(served)):  # the original, which is last, comes first
        if not variant.headers or variant.headers in found:
            continue
        folder = "include" if not found else f"include-tuned{len(found) if len(found) > 1 else ''}"
        written: dict[PurePosixPath, str] = {}
        left_out: list[str] = []
        for spelling, text in variant.headers:
            path = PurePosixPath(spelling)
            if _may_be_written(path, text, written):
                written[path] = text
            else:
                left_out.append(plain(spelling))
        names = {f"{folder}/{path}": text for path, text in written.items()}
        files.update({name: text.encode(errors="surrogatepass") for name, text in names.items()})
        found[variant.headers] = DispatchHeaders(folder, tuple(names), tuple(left_out))
    return found


def _may_be_written(path: PurePosixPath, text: str, written: dict[PurePosixPath, str]) -> bool:
    """Whether it stays in its folder, and is neither another file there nor a folder of one."""
    if path.is_absolute() or not path.name or ".." in path.parts:
        return False
    if not all(_PART_OF_A_NAME.fullmatch(part) for part in path.parts):
        return False
    if any(parent in written for parent in path.parents) or any(path in other.parents for other in written):
        return False
    return written.get(path, text) == text


def _entry(
    served: _ServedCase,
    headers: DispatchHeaders | None,
    known: Mapping[str, VerifiedBuild],
    binaries: dict[str, str],
) -> DispatchEntry:
    """Its binary is named after the source, and numbered where one source was built in several ways."""
    variant, binary = served.variant, None
    build = known.get(served.digest)
    if build is not None and build.binary is not None:
        stem, number = served.file.rpartition(".")[0] or served.file, 1
        file = f"{stem}.{build.binary.form}"
        while binaries.get(file, build.binary.digest) != build.binary.digest:
            number += 1
            file = f"{stem}-{number}.{build.binary.form}"
        binaries[file] = build.binary.digest
        symbols = dict(build.binary.symbols)
        binary = DispatchBinary(file, build.binary.form, build.code_digest, symbols)
    return DispatchEntry(
        when=served.when,
        file=served.file,
        digest=served.digest,
        config=variant.config.as_dict() if variant.config else None,
        flags=variant.flags,
        launches=tuple(dispatch_launch(launch) for launch in variant.launches),
        workspace=tuple(dispatch_argument(a) for a in variant.arguments if a.role == "workspace"),
        headers=headers,
        binary=binary,
    )
