"""The dispatch: what a run delivers, and which of it serves a call.

It is written as `dispatch.json`, holds no name of a device limit or of a build's resources any more, and is
all that an export needs beside the files it names. The runtime that exports ship reads the same text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.base.codec import Malformed, decode_json
from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Argument, Launch, Role, SizeRule, element_type
from tunesmith.problem.template import PLACEHOLDER, Variant, fill_placeholders
from tunesmith.space.expr import Expr, RealExpr, parse_expr, parse_real

DISPATCH_VERSION = 2


@dataclass(frozen=True)
class DispatchArgument:
    """One argument of the operator, or a workspace of an entry. Arrays have a shape, scalars a value."""

    name: str
    type: str
    role: Role
    shape: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()  # in elements; empty: dense, the last axis fastest
    align: int = 1  # bytes; what was verified begins at multiples of it
    alias: str | None = None  # shares the memory of that argument
    init: float | None = None  # what it is filled with before each call
    value: str | float | None = None  # of a scalar: an expression over the sizes, or what it was tuned with

    @property
    def is_array(self) -> bool:
        return self.role not in ("scalar", "local")

    @property
    def follows_sizes(self) -> bool:
        """Whether the sizes decide this scalar; others are the caller's."""
        return isinstance(self.value, str) and bool(value_expr(self).names)


def value_expr(argument: DispatchArgument) -> Expr | RealExpr:
    """Of a scalar whose value is a text."""
    is_float = element_type(argument.type).kind == "float"
    return parse_real(str(argument.value)) if is_float else parse_expr(str(argument.value))


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
    when: str | None = None  # elsewhere it is left out


@dataclass(frozen=True)
class DispatchHeaders:
    """The user's own headers, below a folder that a build names with -I."""

    folder: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]  # spellings that a file below the folder cannot have


@dataclass(frozen=True)
class DispatchBinary:
    """Machine code, to the byte what was verified and timed."""

    file: str
    form: str  # cubin
    code: str  # digest of the code alone: equal where a compiler made the same of the source
    symbols: dict[str, str]  # entry -> the kernel's symbol


@dataclass(frozen=True)
class DispatchEntry:
    """The first entry whose condition holds serves the call; conditions are expressions over the sizes."""

    when: str
    file: str
    digest: str
    config: dict[str, int] | None  # None: the original
    flags: tuple[str, ...]
    launches: tuple[DispatchLaunch, ...]
    workspace: tuple[DispatchArgument, ...] = ()
    headers: DispatchHeaders | None = None
    binary: DispatchBinary | None = None


@dataclass(frozen=True)
class DispatchWorkload:
    name: str
    sizes: dict[str, int]
    speedup: float | None = None  # verified; None: the original serves


@dataclass(frozen=True)
class Dispatch:
    problem: str
    language: str
    device: str
    entries: tuple[DispatchEntry, ...]
    architecture: str = ""  # of the device, as compilers name it: sm_90
    compiler: str = ""
    arguments: tuple[DispatchArgument, ...] = ()
    sizes: tuple[SizeRule, ...] = ()
    require: tuple[str, ...] = ()  # what the contract promises beside the sizes' own rules
    workloads: tuple[DispatchWorkload, ...] = ()
    shown: str = ""  # where the general entry serves, and what that rests on
    left_out: tuple[str, ...] = ()  # a sentence for each tuned kernel that could not be delivered
    version: int = DISPATCH_VERSION

    @property
    def capability(self) -> int:
        """The device's as a number, 90 for sm_90; 0 where the architecture has none."""
        return int(re.sub(r"\D", "", self.architecture) or 0)

    @property
    def arrays(self) -> tuple[DispatchArgument, ...]:
        """Those that a caller gives: none is another's memory."""
        return tuple(a for a in self.arguments if a.is_array and not a.alias)

    @property
    def literals(self) -> tuple[DispatchArgument, ...]:
        """Scalars that no size decides: whoever calls says what they are."""
        return tuple(a for a in self.arguments if a.role == "scalar" and not a.follows_sizes)

    @property
    def original(self) -> DispatchEntry:
        return self.entries[-1]

    @property
    def tuned(self) -> tuple[DispatchEntry, ...]:
        return tuple(entry for entry in self.entries if entry.config is not None)

    @property
    def tuned_files(self) -> tuple[str, ...]:
        """The tuned kernels: one source may serve several entries."""
        return tuple(dict.fromkeys(entry.file for entry in self.tuned))

    @property
    def winners(self) -> int:
        """Tuned kernels, with those that could not be delivered."""
        return len(self.tuned_files) + len(self.left_out)

    def entry_for(self, sizes: Mapping[str, int]) -> DispatchEntry:
        return next((e for e in self.entries if value_of(e.when, sizes)), self.original)


def read_dispatch(data: bytes, where: str = "dispatch.json") -> Dispatch:
    try:
        found = decode_json(data, Dispatch, "dispatch.json")
    except Malformed as error:
        raise BadInput(str(error), where=where, hint="use the file that the run wrote") from error
    if found.version != DISPATCH_VERSION:
        fault = f"this dispatch has version {found.version}, known is version {DISPATCH_VERSION}"
        raise BadInput(fault, where=where, hint="use the version of Tunesmith that wrote it, or tune again")
    if not found.entries:
        raise BadInput("this dispatch has no entries", where=where, hint="use the file that the run wrote")
    return found


def dispatch_argument(argument: Argument) -> DispatchArgument:
    value = argument.value
    return DispatchArgument(
        name=argument.name,
        type=argument.type,
        role=argument.role,
        shape=tuple(e.text for e in argument.shape),
        strides=tuple(e.text for e in argument.strides),
        align=(argument.align or argument.element.bytes) if argument.is_array else 1,
        alias=argument.alias,
        init=argument.init,
        value=value.text if isinstance(value, Expr | RealExpr) else value,
    )


def dispatch_launch(launch: Launch) -> DispatchLaunch:
    axes = (launch.grid, launch.block, launch.cluster)
    grid, block, cluster = (tuple(e.text for e in each) for each in axes)
    shared = launch.shared.text if launch.shared is not None else None
    when = launch.when.text if launch.when is not None else None
    how = launch.args, cluster or None, launch.cooperative, bool(launch.pdl), when
    return DispatchLaunch(launch.entry, grid, block, shared, *how)


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
    workspace: tuple[DispatchArgument, ...]  # what the caller provides beside its own arguments


def kernel_for(dispatch: Dispatch, sizes: Mapping[str, int]) -> ReadyKernel:
    """What serves a call with these sizes."""
    entry = dispatch.entry_for(sizes)
    launches = tuple(
        ReadyLaunch(
            PLACEHOLDER.sub(lambda found: str(sizes[found[1]]), launch.entry),
            tuple(value_of(text, sizes) for text in launch.grid),
            tuple(value_of(text, sizes) for text in launch.block),
            launch.args,
            value_of(launch.shared, sizes) if launch.shared else 0,
            tuple(value_of(text, sizes) for text in launch.cluster or ()),
            launch.cooperative,
            launch.pdl,
        )
        for launch in entry.launches
        if launch.when is None or value_of(launch.when, sizes)
    )
    return ReadyKernel(entry.file, entry.config, entry.flags, launches, entry.workspace)


def value_of(text: str, sizes: Mapping[str, int]) -> int:
    expression = parse_expr(text)
    if missing := sorted(expression.names - sizes.keys()):
        hint = "name every size of the problem"
        raise BadInput(f"{text!r} needs {missing[0]}, given are {', '.join(sizes) or 'none'}", hint=hint)
    return int(expression.evaluate(sizes))


def headers_of(entry: DispatchEntry, files: Mapping[str, bytes]) -> tuple[tuple[str, str], ...]:
    """The user's own headers as the source includes them, and their texts."""
    if entry.headers is None:
        return ()
    start, names = f"{entry.headers.folder}/", entry.headers.files
    return tuple((name.removeprefix(start), files[name].decode(errors="surrogatepass")) for name in names)


def delivered_variant(
    dispatch: Dispatch, entry: DispatchEntry, files: Mapping[str, bytes], sizes: Mapping[str, int]
) -> Variant:
    """What the entry and its files give back, as it serves these sizes: a variant to be built or launched."""
    insert = {name: str(value) for name, value in sizes.items()}
    return Variant(
        path=entry.file,
        source=files[entry.file].decode(),
        language=dispatch.language,
        flags=entry.flags,
        launches=tuple(_parse_launch(launch, insert) for launch in entry.launches),
        arguments=tuple(_parse_argument(a) for a in (*dispatch.arguments, *entry.workspace)),
        headers=headers_of(entry, files),
    )


def _parse_launch(launch: DispatchLaunch, insert: Mapping[str, str]) -> Launch:
    def parsed(texts: Sequence[str]) -> tuple[Expr, ...]:
        return tuple(parse_expr(text) for text in texts)

    return Launch(
        entry=fill_placeholders(launch.entry, insert),
        grid=parsed(launch.grid),
        block=parsed(launch.block),
        args=launch.args,
        shared=parse_expr(launch.shared) if launch.shared is not None else None,
        cluster=parsed(launch.cluster or ()),
        cooperative=launch.cooperative,
        pdl=launch.pdl,
        when=parse_expr(launch.when) if launch.when is not None else None,
    )


def _parse_argument(argument: DispatchArgument) -> Argument:
    value = value_expr(argument) if isinstance(argument.value, str) else argument.value
    return Argument(
        name=argument.name,
        type=argument.type,
        role=argument.role,
        shape=tuple(parse_expr(text) for text in argument.shape),
        strides=tuple(parse_expr(text) for text in argument.strides),
        value=value,
        init=argument.init,
        align=argument.align if argument.is_array else None,
        alias=argument.alias,
    )
