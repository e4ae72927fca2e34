"""What is delivered: the winners, the original, and the conditions under which each serves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import PurePosixPath

import numpy as np

from tunesmith.base.codec import encode_json
from tunesmith.base.text import seed_of, strip_controls
from tunesmith.problem.cases import Case, case_reach
from tunesmith.problem.device import Device, Resources, compute_occupancy
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchBinary,
    DispatchEntry,
    DispatchHeaders,
    DispatchWorkload,
    dispatch_argument,
    dispatch_launch,
)
from tunesmith.problem.domain import Domain, Sizes, always_holds, domain_of, probe_sizes
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Contract, Launch, Problem, Workload
from tunesmith.problem.template import PLACEHOLDER, Variant, bind_launch, original_variant, plain_name
from tunesmith.run import race
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.events import VerifiedBuild
from tunesmith.run.ports import Delivery, SizedCall
from tunesmith.run.state import State
from tunesmith.space.configset import Config
from tunesmith.space.expr import (
    Compare,
    ExprError,
    Logic,
    Node,
    Num,
    Undefined,
    parse_expr,
    tidy_expression,
    unparse,
)
from tunesmith.space.space import Constraint

# -- Builds with sizes in them: at which other sizes they serve, beside their workloads.
#
# A size reaches a build by the template's defines and entries alone, and each leaves a condition in the
# domain
# of what was rendered: wherever that holds, the same text would be rendered. So what was verified over that
# domain, and timed there against the original, may serve there.


@dataclass(frozen=True)
class BakedService:
    """Where a build serves sizes that no workload has; `where` goes with the build's own conditions."""

    config: Config
    variant: Variant
    where: tuple[str, ...]
    rounds: tuple[tuple[race.TimedSize, ...], ...] = ()  # of sizes at which it was called
    shown: str = ""  # what that rests on, in words; empty: nothing was timed yet


def baked_services(
    problem: Problem, state: State, template_of: TemplateOf, choice: race.Winners
) -> tuple[BakedService, ...]:
    """Of every build that wins somewhere, unless it was slower wherever it was called, or little is known."""
    groups: dict[tuple[Config, str], tuple[Variant, list[Workload]]] = {}
    for pick in choice.picks:
        if pick.config is None or not template_of(pick.config).bakes_sizes(pick.config):
            continue
        workload = problem.workload(pick.workload)
        variant = template_of(pick.config).render(problem, pick.config, workload.as_dict())
        groups.setdefault((pick.config, variant.digest), (variant, []))[1].append(workload)
    made = (_baked_service(problem, state, config, *group) for (config, _), group in groups.items())
    return tuple(service for service in made if service is not None)


def _baked_service(
    problem: Problem, state: State, config: Config, variant: Variant, workloads: Sequence[Workload]
) -> BakedService | None:
    domain = domain_of(problem, variant, state.device)
    tested = _tested_bounds(problem, state, config, domain)
    if tested is None:
        return None
    service = BakedService(config, variant, tested, _served_rounds(problem, state, config, domain))
    if not service.rounds:
        return service
    timed = race.timed_workloads(state, config, workloads)
    boundary = race.boundary_over(problem, state.device, service.rounds, timed)
    if boundary is None:
        return None
    fixed = _fixed_sizes(problem, variant)
    free = tuple(text for text in boundary.beside(tested) if not parse_expr(text).names <= fixed)
    return replace(service, where=free, shown=boundary.in_words)


def _fixed_sizes(problem: Problem, variant: Variant) -> frozenset[str]:
    """Sizes that the build itself has one value of."""
    named = (c.text.replace("(", "").replace(")", "").partition(" == ") for c in variant.domain)
    return frozenset(name for name, _, value in named if name in problem.size_names and value.isdecimal())


def _tested_bounds(problem: Problem, state: State, config: Config, domain: Domain) -> tuple[str, ...] | None:
    """How far this very build was verified, as far as the contract promises more; None: nobody says."""
    cases = [case for v in state.verified if v.outcome.trial.config == config for case in v.seen]
    inside = _sizes_in_domain(domain, [case.sizes for case in cases])
    right = [case for case in cases if case.status == Status.OK.value and case.sizes in inside]
    seen = [Case(case.sizes, case.distribution, case.seed, "verify") for case in right]
    if not seen:
        return None
    return race.bounds_below_contract(problem, case_reach(problem, seen))


def _served_rounds(
    problem: Problem, state: State, config: Config, domain: Domain
) -> tuple[tuple[race.TimedSize, ...], ...]:
    """Calls that this build served, at sizes of no workload: cold or warm, at their worst."""
    found = []
    for served in state.served:
        inside = _sizes_in_domain(domain, [call.sizes for call in served.calls])
        calls = (call for call in served.calls if call.config == config and call.sizes in inside)
        found.append(race.worst_by_size(problem, calls))
    return tuple(timed for timed in found if timed)


def _sizes_in_domain(domain: Domain, some: Sequence[Sizes]) -> frozenset[Sizes]:
    rows = [[dict(sizes)[name] for name in domain.names] for sizes in some]
    points = np.array(rows, dtype=np.int64).reshape(-1, len(domain.names))
    return frozenset(domain.named(domain.allowed(points)))


NO_LIMIT = (1 << 31) - 1  # a grid larger than this has other troubles
MAX_INSTANCES = 64  # of an original whose entry names sizes
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


def assemble_delivery(
    problem: Problem,
    template_of: TemplateOf,
    device: Device,
    choice: race.Winners,
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
            settled = _resolve_launches(variant, device, known.get(variant.digest), sizes)
        except _Undeliverable as error:
            where = f" at {called}" if sizes is not None else ""
            obstacles.setdefault((config, variant.digest), f"{config.label}{where}: {error}")
            return None
        file = names.setdefault((config, variant.digest), f"{name}{suffix}")
        return _ServedCase(_equality_condition(sizes or {}), file, settled, variant.digest)

    here = problem.on(device.limits.names())
    general = None  # unless the general configuration has sizes built in
    if choice.general is not None and not template_of(choice.general).bakes_sizes(choice.general):
        general = case(choice.general, "general")
        try:
            if general is not None:
                domain = _domain_condition(here.contract, general.variant, device)
                general = replace(general, when=_combine_conditions(domain, choice.where))
        except _Undeliverable as error:  # it serves the workloads that it is best at
            obstacles[choice.general, ""] = f"{choice.general.label}: {error}"
            general = None
    served: list[_ServedCase] = []
    for pick in choice.picks:
        sizes = problem.workload(pick.workload).as_dict()
        if pick.config == choice.general and (pick.config is None or (general and choice.serves(sizes))):
            continue  # served by the general entry, or by the original at the end
        if pick.config is None:
            served += _original_cases(problem, f"original{suffix}", _equality_condition(sizes), sizes)
        elif (made := case(pick.config, pick.workload, sizes)) is not None:
            served.append(made)
    if general is not None:
        served.append(general)
    said = [choice.shown] if choice.shown and general is not None else []
    for service in services:
        file = names.get((service.config, service.variant.digest))
        try:
            settled = _resolve_launches(service.variant, device, known.get(service.variant.digest), None)
            when = _combine_conditions(_domain_condition(here.contract, settled, device), service.where)
        except _Undeliverable:
            continue  # its launch is known at its workloads alone, or where it serves cannot be said
        if file is not None:
            served.append(_ServedCase(when, file, settled, service.variant.digest))
            said.append(f"{file}, where {when}: {service.shown or race.NOT_TIMED}")
    served += _original_cases(problem, f"original{suffix}", "1")
    served = [
        case if case.variant.config is not None else replace(case, variant=_bind_limits(case.variant, device))
        for case in served
    ]
    files = {each.file: each.variant.source.encode() for each in served}
    headers = _place_headers(served, files)
    binaries: dict[str, str] = {}
    entries = [_dispatch_entry(each, headers.get(each.variant.headers), known, binaries) for each in served]
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
    files["dispatch.json"] = encode_json(dispatch) + b"\n"
    configs = {each.digest: each.variant.config for each in served if each.variant.config is not None}
    made_from = {each.digest: each.variant.made_from for each in served}
    return Delivery(dispatch, files, binaries, known, configs, choice.general, made_from)


def general_condition(
    problem: Problem, dispatch: Dispatch, config: Mapping[str, int] | None = None
) -> str | None:
    """Where the general entry, of this configuration, serves beyond what the contract promises anyway; None:
    there is none."""
    require = tuple(Constraint(text, parse_expr(text), "require") for text in dispatch.require)
    promised = " and ".join(_contract_conditions(replace(problem.contract, require=require)))
    tuned = [entry for entry in dispatch.tuned if config is None or entry.config == config]
    general = [entry.when for entry in tuned if promised and entry.when.startswith(promised)]
    return general[-1].removeprefix(promised).removeprefix(" and ") if general else None


def builds_known(state: State) -> tuple[VerifiedBuild, ...]:
    originals = state.baseline.builds if state.baseline is not None else ()
    return (*originals, *(build for v in state.verified for build in v.builds))


def _original_cases(
    problem: Problem, file: str, when: str, sizes: Mapping[str, int] | None = None
) -> list[_ServedCase]:
    """One whose entry names a size is as many kernels as that size has values; the last serves the rest, for
    whoever can still compile it."""

    def case(when: str, variant: Variant) -> _ServedCase:
        return _ServedCase(when, file, variant, variant.digest)

    if sizes is not None:
        return [case(when, original_variant(problem, sizes))]
    plain_one = original_variant(problem)
    inserted = {n for entry in plain_one.entries for n in PLACEHOLDER.findall(entry)}
    names = [name for name in problem.size_names if name in inserted]
    found = []
    if names:
        rules = {rule.name: rule.one_of for rule in problem.contract.sizes}
        used = {name: dict.fromkeys(w.as_dict()[name] for w in problem.workloads) for name in names}
        for chosen in islice(product(*(rules[n] or tuple(used[n]) for n in names)), MAX_INSTANCES):
            here = dict(zip(names, chosen, strict=True))
            found.append(case(_equality_condition(here), original_variant(problem, here)))
    return [*found, case(when, plain_one)]


def _bind_limits(variant: Variant, device: Device) -> Variant:
    limits = device.limits.names()
    launches = tuple(bind_launch(launch, limits, {}) for launch in variant.launches)
    return replace(variant, launches=launches, arguments=tuple(a.bind(limits) for a in variant.arguments))


def _resolve_launches(
    variant: Variant, device: Device, build: VerifiedBuild | None, sizes: Mapping[str, int] | None
) -> Variant:
    """Its launches over sizes alone: what the device and the build say is numbers by now."""
    resources = (build.resources if build is not None else None) or Resources()
    names = {**device.limits.names(), **resources.names()}
    names = {k: v for k, v in names.items() if k not in ("resources.blocks_per_sm", "resources.occupancy")}
    variant = replace(variant, arguments=tuple(a.bind(device.limits.names()) for a in variant.arguments))
    launches = tuple(
        _resolve_launch(one, variant, device, resources, names, sizes) for one in variant.launches
    )
    return replace(variant, launches=launches)


def _resolve_launch(
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
                argument = variant.argument(name)
                if argument.role == "local":
                    count = math.prod(max(0, e.evaluate(sizes or {})) for e in argument.shape)
                    shared += argument.element.nbytes(count)
        except Undefined as error:
            words = f"its grid asks for {left[0]}, which depends on the sizes through its block"
            raise _Undeliverable(words) from error
        held = compute_occupancy(device.limits, resources.of(launch.entry), block, shared)
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


def _equality_condition(sizes: Mapping[str, int]) -> str:
    return " and ".join(f"{name} == {value}" for name, value in sizes.items())


def _domain_condition(contract: Contract, variant: Variant, device: Device) -> str:
    """Contract and requirements in one condition; device limits are numbers by now."""
    parts = _contract_conditions(contract)
    for condition in variant.domain:
        bound = condition.bind(device.limits.names())
        if any(name.startswith("resources.") for name in bound.names):
            continue  # the build has told, and this one was allowed
        if bound.names or not bound.holds({}):
            parts += [f"({unparse(node)})" for node in _unproven_parts(bound.tree, contract)]
    return " and ".join(dict.fromkeys(parts + _grid_conditions(variant, device, contract)))


def _combine_conditions(domain: str, where: Sequence[str]) -> str:
    try:
        return tidy_expression(" and ".join([domain, *where]))
    except ExprError as error:
        raise _Undeliverable("the condition under which it serves is too long to be written down") from error


def _contract_conditions(contract: Contract) -> list[str]:
    parts = []
    for rule in contract.sizes:
        if rule.one_of:
            parts.append(f"{rule.name} in ({', '.join(map(str, rule.one_of))},)")
            continue
        parts.append(f"{rule.min} <= {rule.name} <= {rule.max}")
        if rule.multiple_of != 1:
            parts.append(f"{rule.name} % {rule.multiple_of} == 0")
    return list(dict.fromkeys([*parts, *(f"({c.expr.text})" for c in contract.require)]))


def _unproven_parts(node: Node, contract: Contract) -> list[Node]:
    """What of a condition the contract does not promise already, as rows % 1 == 0."""
    if isinstance(node, Logic) and node.op == "and":
        return [left for operand in node.operands for left in _unproven_parts(operand, contract)]
    return [] if always_holds(node, contract) else [node]


def _grid_conditions(variant: Variant, device: Device, contract: Contract) -> list[str]:
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


def _place_headers(
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
                left_out.append(strip_controls(spelling))
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


def _dispatch_entry(
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


# -- What is delivered, called through its own dispatch: at which sizes, and until when.


ON_GPU, ON_HOST = 32, 10  # sizes of a round: on a host each takes longer
BAKED_ON_GPU, BAKED_ON_HOST = 12, 5  # of each build that has sizes in it, which are fewer dimensions
SLOWER_ONES, WEAKEST = 6, 3  # beside which others are tried
MAX_BYTES = 192 << 20  # on a GPU, beyond what the largest workload takes


def next_calls(
    problem: Problem,
    state: State,
    choice: race.Winners,
    made: Delivery,
    general: Variant | None,
    services: Sequence[BakedService] = (),
) -> tuple[SizedCall, ...]:
    """Calls to be made; none when enough was seen.

    The general configuration at sizes over its whole domain, then at fresh ones inside the boundary that
    these gave, until a round has none that is slower: cold and, where a cache can hold the arrays, warm. And
    with the dispatch that is delivered in the end, every workload that a winner serves. Builds with sizes in
    them are tried in the same way, where nobody before them serves.
    """
    probes = _probe_calls(problem, state, choice, general)
    for service in services:
        probes += baked_probes(problem, state, made, service)
    if probes and not (choice.general is not None and race.rounds_of(state, choice.general)):
        return tuple(probes)
    is_confirmed = bool(state.served) and state.served[-1].dispatch == made.entries_digest
    if is_confirmed and not probes:
        return ()
    picked = (problem.workload(pick.workload) for pick in choice.picks if pick.config is not None)
    return (*(SizedCall(w.sizes, w.name, w.cache) for w in picked), *probes)


def _probe_calls(
    problem: Problem, state: State, choice: race.Winners, general: Variant | None
) -> tuple[SizedCall, ...]:
    if choice.general is None or general is None:
        return ()
    rounds = [
        found
        for served in race.rounds_of(state, choice.general)
        if (found := race.probes_of(problem, served))
    ]
    count = ON_HOST if state.device.is_host else ON_GPU
    domain, sizes = _next_probe_sizes(problem, state, general, choice.where, rounds, count)
    return tuple(call for one in sizes for call in _cold_and_warm_calls(domain, one, state.device))


def baked_probes(
    problem: Problem, state: State, made: Delivery, service: BakedService
) -> tuple[SizedCall, ...]:
    """Those of its sizes at which the dispatch comes to it."""
    count = BAKED_ON_HOST if state.device.is_host else BAKED_ON_GPU
    parts = (service.variant, service.where, service.rounds, count)
    domain, sizes = _next_probe_sizes(problem, state, *parts)
    reached = [one for one in sizes if made.dispatch.entry_for(dict(one)).digest == service.variant.digest]
    return tuple(call for one in reached for call in _cold_and_warm_calls(domain, one, state.device))


def _next_probe_sizes(
    problem: Problem,
    state: State,
    variant: Variant,
    where: Sequence[str],
    rounds: Sequence[Sequence[race.TimedSize]],
    count: int,
) -> tuple[Domain, tuple[Sizes, ...]]:
    device = state.device
    domain = domain_of(problem, variant, device)
    if len(rounds) >= race.most_rounds(device) or (len(rounds) > 1 and all(p.is_good for p in rounds[-1])):
        return domain, ()
    most = domain.byte_limit() if device.is_host else max(domain.byte_limit(), MAX_BYTES)
    inside = [parse_expr(text) for text in where]
    timed = [p for found in rounds for p in found]
    known = {w.sizes for w in problem.workloads} | {p.sizes for p in timed}
    good = [p for p in timed if p.is_good and all(c.holds(dict(p.sizes)) for c in inside)]
    weak = [p for p in reversed(timed) if p.ratio is not None and not p.is_good][:SLOWER_ONES]
    weak += sorted(good, key=lambda p: (p.ratio or 0.0, p.sizes))[:WEAKEST]
    seed = seed_of(state.settings.seed, "served", len(rounds))
    served = [p.sizes for p in good]
    sizes = probe_sizes(domain, seed, count, most, inside, known, served, [p.sizes for p in weak])
    return domain, sizes


def _cold_and_warm_calls(domain: Domain, sizes: Sizes, device: Device) -> tuple[SizedCall, ...]:
    """What the last-level cache of a GPU can hold, the kernel before may have left there."""
    nbytes = domain.bytes(np.array([[value for _, value in sizes]], dtype=np.int64))[0]
    if device.is_host or nbytes > device.limits.llc:
        return (SizedCall(sizes),)
    return SizedCall(sizes), SizedCall(sizes, cache="warm")
