"""The tuned kernels: one self-contained source per winner, the original, and a dispatch by size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tunesmith import backends
from tunesmith.errors import BadInput
from tunesmith.problem.codec import decode, encode
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Argument, Contract, Launch, Problem
from tunesmith.problem.template import DispatchCase, Variant, original, plain_name
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.racing import Winners
from tunesmith.space.expr import parse
from tunesmith.space.grammar import Arithmetic, Compare, Logic, Node, Num, Variable, unparse
from tunesmith.space.params import Config
from tunesmith.text import plain

NO_LIMIT = (1 << 31) - 1  # a grid larger than this has other troubles
# A header's spelling is whatever a source says: only a name that every disk takes becomes a file's.
_PART_OF_A_NAME = re.compile(r"[A-Za-z0-9_.+ -]{1,100}", re.ASCII)


@dataclass(frozen=True)
class DispatchLaunch:
    entry: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str | None
    args: tuple[str, ...]
    cluster: tuple[str, ...] | None
    cooperative: bool
    pdl: bool


@dataclass(frozen=True)
class DispatchHeaders:
    """The user's own headers, below a folder that a build names with -I."""

    folder: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]  # spellings that a file below the folder cannot have


@dataclass(frozen=True)
class DispatchEntry:
    """The first entry whose condition holds serves the call; conditions are expressions over the sizes."""

    when: str
    file: str
    digest: str
    config: dict[str, int] | None
    flags: tuple[str, ...]
    launches: tuple[DispatchLaunch, ...]
    workspace: tuple[dict[str, str], ...] = ()
    headers: DispatchHeaders | None = None


@dataclass(frozen=True)
class Dispatch:
    problem: str
    language: str
    device: str
    entries: tuple[DispatchEntry, ...]


def tuned_files(
    problem: Problem, template_of: TemplateOf, device: Device, choice: Winners
) -> dict[str, bytes]:
    """Everything below `tuned/`, by name."""
    _, dot, ending = plain_name(problem.kernel.path).rpartition(".")
    suffix = dot and f".{ending}"
    names: dict[tuple[Config, str], str] = {}

    def case(config: Config, called: str, sizes: Mapping[str, int] | None = None) -> DispatchCase:
        """A source that serves more than once is one file, under its first name."""
        variant = template_of(config).render(problem, config, sizes)
        name = f"{plain_name(problem.name)}-{plain_name(called)}"
        while f"{name}{suffix}" in names.values():  # a workload may be called "general"
            name += "_"
        file = names.setdefault((config, variant.digest), f"{name}{suffix}")
        return DispatchCase(_exactly(sizes or {}), file, variant)

    general = None  # unless the general configuration has sizes built in
    if choice.general is not None and not template_of(choice.general).bakes_sizes(choice.general):
        general = case(choice.general, "general")
    served: list[DispatchCase] = []
    for pick in choice.picks:
        sizes = problem.workload(pick.workload).as_dict()
        if pick.config == choice.general and (pick.config is None or general is not None):
            continue  # served by the general entry, or by the original at the end
        if pick.config is not None:
            served.append(case(pick.config, pick.workload, sizes))
        else:
            served.append(DispatchCase(_exactly(sizes), f"original{suffix}", original(problem, sizes)))
    if general is not None:
        # Nothing larger was verified: beyond it the original serves.
        tested = [f"({text}) <= {most}" for text, most in choice.reach]
        domain = _domain(problem.contract, general.variant, device)
        served.append(replace(general, when=" and ".join([domain, *tested])))
    files = {each.file: each.variant.source.encode() for each in served if each.variant.config is not None}
    served.append(DispatchCase("1", f"original{suffix}", original(problem)))
    files[served[-1].file] = served[-1].variant.source.encode()
    headers = _headers(served, files)
    entries = tuple(_entry(each, headers.get(each.variant.headers)) for each in served)
    dispatch = Dispatch(problem.name, problem.kernel.language, device.name, entries)
    files["dispatch.json"] = encode(dispatch) + b"\n"
    own = backends.kind_for(problem.kernel.language)
    if own is not None and own.host_command is not None:
        from tunesmith.deliver.launch_cu import NAME, launch_cu

        command = own.host_command(problem.kernel.flags, device)
        files[NAME] = launch_cu(problem, device, served, command).encode()
    return files


def _exactly(sizes: Mapping[str, int]) -> str:
    return " and ".join(f"{name} == {value}" for name, value in sizes.items())


def _domain(contract: Contract, variant: Variant, device: Device) -> str:
    """Contract and requirements in one condition; device limits are numbers by now."""
    parts = []
    for rule in contract.sizes:
        if rule.one_of:
            parts.append(f"{rule.name} in ({', '.join(map(str, rule.one_of))},)")
            continue
        parts.append(f"{rule.min} <= {rule.name} <= {rule.max}")
        if rule.multiple_of != 1:
            parts.append(f"{rule.name} % {rule.multiple_of} == 0")
    parts += [f"({c.expr.text})" for c in contract.require]
    for condition in variant.domain:
        bound = condition.bind(device.limits.names())
        if any(name.startswith("resources.") for name in bound.names):
            continue  # the build has told, and this one was allowed
        if bound.names or not bound.holds({}):
            parts += [f"({unparse(node)})" for node in _uncertain(bound.tree, contract)]
    return " and ".join(dict.fromkeys(parts + _launchable(variant, device)))


def _uncertain(node: Node, contract: Contract) -> list[Node]:
    """What of a condition the contract does not promise already, as rows % 1 == 0."""
    match node:
        case Logic("and", operands):
            return [left for operand in operands for left in _uncertain(operand, contract)]
        case Compare(Arithmetic("%", Variable(size), Num(step)), (("==", Num(0)),)) if step > 0:
            rule = next((rule for rule in contract.sizes if rule.name == size), None)
            known = (rule.one_of or (rule.multiple_of,)) if rule is not None else ()
            return [] if known and all(value % step == 0 for value in known) else [node]
    return [node]


def _launchable(variant: Variant, device: Device) -> list[str]:
    """Beyond the workloads a grid may grow past what the device launches: there the original serves."""
    limits = device.limits.names()
    return [
        f"({bound.text}) <= {limit}"
        for launch in variant.launches
        for expr, limit in zip(launch.grid, device.limits.max_grid, strict=False)
        if limit < NO_LIMIT
        and (bound := expr.bind(limits)).names
        and not any(n.startswith("resources.") for n in bound.names)
    ]


def _headers(
    served: Sequence[DispatchCase], files: dict[str, bytes]
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


def _entry(served: DispatchCase, headers: DispatchHeaders | None) -> DispatchEntry:
    variant = served.variant
    return DispatchEntry(
        when=served.when,
        file=served.file,
        digest=variant.digest,
        config=variant.config.as_dict() if variant.config else None,
        flags=variant.flags,
        launches=tuple(_launch(launch) for launch in variant.launches),
        workspace=tuple(_workspace(a) for a in variant.arguments if a.role == "workspace"),
        headers=headers,
    )


def _workspace(argument: Argument) -> dict[str, str]:
    """What the caller must provide, and fill beforehand where `init` says so."""
    entry = {"name": argument.name, "type": argument.type, "shape": ", ".join(e.text for e in argument.shape)}
    more = {"init": argument.init, "align": argument.align}
    return entry | {key: str(value) for key, value in more.items() if value is not None}


def _launch(launch: Launch) -> DispatchLaunch:
    grid, block, cluster = (
        tuple(e.text for e in each) for each in (launch.grid, launch.block, launch.cluster)
    )
    shared = launch.shared.text if launch.shared is not None else None
    how = launch.args, cluster or None, launch.cooperative, launch.pdl
    return DispatchLaunch(launch.entry, grid, block, shared, *how)


# -- for callers in Python ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadyLaunch:
    """A launch with its sizes put in."""

    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[str, ...]  # names, in the kernel's order
    shared: int
    cluster: tuple[int, ...]
    cooperative: bool
    pdl: bool


@dataclass(frozen=True)
class ReadyKernel:
    """The kernel that serves a call."""

    file: str  # beside dispatch.json
    config: dict[str, int] | None  # None: the original
    flags: tuple[str, ...]
    launches: tuple[ReadyLaunch, ...]
    workspace: tuple[dict[str, str], ...]  # what the caller provides beside its own arguments


def kernel_for(data: bytes, sizes: Mapping[str, int]) -> ReadyKernel:
    """What dispatch.json says of a call with these sizes."""
    entry = entry_for(data, sizes)
    launches = tuple(
        ReadyLaunch(
            re.sub(r"\{(\w+)\}", lambda found: str(sizes[found[1]]), launch.entry),
            tuple(_value(text, sizes) for text in launch.grid),
            tuple(_value(text, sizes) for text in launch.block),
            launch.args,
            _value(launch.shared, sizes) if launch.shared else 0,
            tuple(_value(text, sizes) for text in launch.cluster or ()),
            launch.cooperative,
            launch.pdl,
        )
        for launch in entry.launches
    )
    return ReadyKernel(entry.file, entry.config, entry.flags, launches, entry.workspace)


def entry_for(data: bytes, sizes: Mapping[str, int]) -> DispatchEntry:
    """The line of dispatch.json that serves these sizes."""
    entries = decode(data, Dispatch, "dispatch.json").entries
    return next((e for e in entries if _value(e.when, sizes)), entries[-1])


def _value(text: str, sizes: Mapping[str, int]) -> int:
    expression = parse(text)
    if missing := sorted(expression.names - sizes.keys()):
        hint = "name every size of the problem; of device.* and resources.* give the device's values"
        raise BadInput(f"{text!r} needs {missing[0]}, given are {', '.join(sizes) or 'none'}", hint=hint)
    return int(expression.evaluate(sizes))
