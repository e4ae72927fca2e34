"""launch.cu: the original and all winners in one file that compiles alone, with a function that dispatches.

Every source stands in a namespace of its own, in which it is what it was: same text, same macros. Behind
them comes the host's part: functions that tell which line of the dispatch serves, and functions that run it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import islice, product

from tunesmith.deliver.cuda_source import NamespacedSource, Unfit, pop, push, section
from tunesmith.deliver.host_code import HELPERS, Host, declaration, identifier
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import PLACEHOLDER, DispatchCase, Variant, bind_launch, original
from tunesmith.space.expr import Expr, ExprError, parse
from tunesmith.text import plain

NAME = "launch.cu"
_RULE = f"// {'-' * 100}\n"
MOST_INSTANCES = 64  # of an original whose entry names sizes


@dataclass
class _SourceUnit:
    """One source in its namespace, with the entries that are launched from it."""

    namespace: str
    file: str
    section: NamespacedSource
    entries: dict[str, str] = field(default_factory=dict)  # as the launch names it -> our constant

    def address(self, entry: str) -> str:
        name = self.entries.setdefault(entry, f"tunesmith_entry_{len(self.entries)}")
        return f"{self.namespace}::{name}"

    def written(self, outer: str, lines_before: int) -> str:
        text = f"\n{_RULE}" + _comment([f"{self.namespace}: {self.file}"])
        text += "".join(f"{push(name)}\n" for name in self.section.macros)
        # Two line ends: the source may close with a backslash.
        text += f"namespace {outer} {{ namespace {self.namespace} {{\n{self.section.text}\n\n"
        here = lines_before + text.count("\n") + 2
        text += f'#line {here} "{NAME}"\n'
        for entry, constant in self.entries.items():
            # Inside, because an entry may name the source's own types and macros.
            text += f"static const void* const {constant} = (const void*)&{_name(entry)};\n"
        return text + "}}\n" + "".join(f"{pop(name)}\n" for name in reversed(self.section.macros))


@dataclass(frozen=True)
class _DispatchLine:
    """A line of the dispatch as the file has it; without a unit it is left out, and `why` says so."""

    served: DispatchCase
    variant: Variant
    when: Expr
    unit: _SourceUnit | None = None
    why: str = ""

    @property
    def label(self) -> str:
        config = f", {self.variant.config}" if self.variant.config else ""
        return f"{self.unit.namespace}: {self.served.file}{config}" if self.unit else "left out, see launch()"


Units = dict[tuple[str, object], _SourceUnit]  # by source and headers


def launch_cu(problem: Problem, device: Device, dispatch: Sequence[DispatchCase], command: str) -> str:
    """`command` is how such a file is compiled."""
    units: Units = {}
    lines = [_line(problem, device, served, units) for served in _instances(problem, dispatch)]
    host = Host.of(problem, [line.variant for line in lines if line.unit])
    outer = f"{identifier(problem.name)}_tuned"
    dispatching = _dispatch(host, lines)  # first: it says which entries the units must name
    text = (
        _comment(_head(problem, device, host, lines, command))
        + "#include <cuda_runtime.h>\n#include <mutex>\n"
    )
    text += "".join(f"#include <{name}>\n" for name in host.headers)
    written = {""}
    for unit in units.values():
        if (includes := unit.section.includes) not in written:
            written.add(includes)
            text += "\n" + _comment([f"The headers of {unit.namespace}, under its macros."]) + includes
    for unit in units.values():
        text += unit.written(outer, text.count("\n"))
    fixed = resources.files("tunesmith.deliver").joinpath("launch_host.cuh").read_text(encoding="utf-8")
    text += f"\n{_RULE}// The dispatch, for the host.\nnamespace {outer} {{\n\n{HELPERS}\n{fixed}\n"
    text += f"{dispatching}\n}}  // namespace {outer}\n\n"
    wrapper = declaration(f"{identifier(problem.name)}_launch", host.parameters)
    return text + f'extern "C" {wrapper} {{\n    return {outer}::launch({host.passed});\n}}\n'


def _line(problem: Problem, device: Device, served: DispatchCase, units: Units) -> _DispatchLine:
    variant = _bound(served.variant, device)
    line = _DispatchLine(served, variant, parse(0))
    if obstacle := _obstacle(problem, variant):
        return replace(line, why=obstacle)
    try:
        return replace(line, when=parse(served.when), unit=_unit(units, served, variant))
    except (ExprError, Unfit) as error:  # a condition may be joined from parts that were each short enough
        return replace(line, why=str(error))


def _unit(units: Units, served: DispatchCase, variant: Variant) -> _SourceUnit:
    """The unit of this text: one original may be launched in several ways."""
    key = (variant.source, variant.headers)
    if key not in units:
        tuned = sum(unit.namespace != "original" for unit in units.values())
        namespace = f"v{tuned}" if variant.config is not None else "original"
        entries = tuple(_name(entry) for entry in variant.entries)
        made = section(variant.source, variant.headers, served.file, entries)
        units[key] = _SourceUnit(namespace, served.file, made)
    return units[key]


def _instances(problem: Problem, dispatch: Sequence[DispatchCase]) -> Iterator[DispatchCase]:
    """An original whose entry names a size is as many kernels as that size has values."""
    for served in dispatch:
        inserted = {n for entry in served.variant.entries for n in PLACEHOLDER.findall(entry)}
        names = [name for name in problem.size_names if name in inserted]
        if not names or served.variant.config is not None:
            yield served
            continue
        rules = {rule.name: rule.one_of for rule in problem.contract.sizes}
        used = {name: dict.fromkeys(w.as_dict()[name] for w in problem.workloads) for name in names}
        values = [rules[name] or tuple(used[name]) for name in names]
        for chosen in islice(product(*values), MOST_INSTANCES):
            sizes = dict(zip(names, chosen, strict=True))
            parts = [f"{name} == {value}" for name, value in sizes.items()]
            when = " and ".join(parts if served.when == "1" else [f"({served.when})", *parts])
            yield DispatchCase(when, served.file, original(problem, sizes))
        yield served  # for the sizes left over; it says why there is none


def _bound(variant: Variant, device: Device) -> Variant:
    limits = device.limits.names()
    return replace(variant, launches=tuple(bind_launch(launch, limits, {}) for launch in variant.launches))


def _obstacle(problem: Problem, variant: Variant) -> str | None:
    """Why this variant cannot be in the file; whatever comes next in the dispatch then serves."""
    if variant.flags != problem.kernel.flags:
        return f"it is built with other flags, {shlex.join(variant.flags)}: compile it by itself"
    for launch in variant.launches:
        exprs = (*launch.grid, *launch.block, *launch.cluster, *((launch.shared,) if launch.shared else ()))
        unknown = {n for expr in exprs for n in expr.names if n.startswith("resources.")}
        if unknown:
            return f"its launch depends on {', '.join(sorted(unknown))}, which only a build tells"
        if left := set(PLACEHOLDER.findall(launch.entry)) & set(problem.size_names):
            return f"{launch.entry} is another kernel for each {', '.join(sorted(left))}"
    return None


def _dispatch(host: Host, lines: Sequence[_DispatchLine]) -> str:
    """The functions that run each variant, those that tell whether it serves, and `launch` over them."""
    runs: dict[tuple[str, str], str] = {}  # (namespace, digest) -> function
    functions: list[str] = []
    body = [host.checked()]
    as_tuned = host.as_tuned()
    if as_tuned and _tuned(lines):
        body.append(f"    const bool as_tuned = {as_tuned};\n")
    for number, line in enumerate(lines):
        if line.unit is None:
            body.append(_comment([f"Left out: {line.served.file}, {line.why}"], "    "))
            continue
        key = (line.unit.namespace, line.variant.digest)
        if key not in runs:
            runs[key] = f"run_{len(runs)}"
            functions.append(host.run(runs[key], line.variant, line.unit.address))
        body.append(_comment([line.label], "    "))
        call = f"return {runs[key]}({host.passed});\n"
        needed = ["as_tuned"] if as_tuned and line.variant.config is not None else []
        if line.when.names or not line.when.holds({}):
            functions.append(_comment([line.served.when]) + host.condition(f"serves_{number}", line.when))
            needed.append(f"serves_{number}({host.sizes_passed})")
        if not needed:
            body.append(f"    {call}")
            break
        body.append(f"    if ({' && '.join(needed)}) {call}")
    else:
        body.append("    return cudaErrorInvalidValue;\n")
    return "\n".join([*functions, f"{declaration('launch', host.parameters)} {{\n{''.join(body)}}}\n"])


def _head(
    problem: Problem, device: Device, host: Host, lines: Sequence[_DispatchLine], command: str
) -> list[str]:
    name = identifier(problem.name)
    conditions = ["otherwise" if line.served.when == "1" else line.served.when for line in lines]
    table = [f"  {when}  ->  {line.label}" for when, line in zip(conditions, lines, strict=True)]
    workspace = "A workspace that the serving line does not need may be null." if host.workspaces else ""
    return [
        f"{problem.name}, tuned by Tunesmith on {device.name}: the original and every winner in one file.",
        "",
        f"  {command} -c {NAME}",
        f"  {command} -shared -Xcompiler -fPIC {NAME} -o lib{name}.so",
        "",
        f"Call {name}_tuned::launch or, from C and Python, {name}_launch; both take",
        "",
        *(f"  {parameter.type} {parameter.name}: {parameter.about}" for parameter in host.parameters),
        "",
        "It returns at once, with the error of the launch, or cudaErrorInvalidValue where nothing serves or",
        f"an expression has no value. Arrays are in device memory. {workspace}",
        *_fixed(host, lines),
        "The first line that holds serves:",
        "",
        *table,
    ]


def _tuned(lines: Sequence[_DispatchLine]) -> bool:
    return any(line.unit is not None and line.variant.config is not None for line in lines)


def _fixed(host: Host, lines: Sequence[_DispatchLine]) -> list[str]:
    """A template may have such a value in its code, and no other one was ever checked."""
    if not host.literals or not _tuned(lines):
        return []
    return [
        "A tuned line serves only where every scalar has the value said above: the kernel may have it in its",
        "code, and no other one was verified. With other values the original serves.",
    ]


def _comment(lines: Sequence[str], indent: str = "") -> str:
    """Line comments, whatever the text: no line of it ends, or goes on, where the compiler would notice."""
    shown = (" ".join(plain(line).split("\n")).rstrip("\\/? \t") for line in lines)
    return "".join(f"{indent}//{' ' if line else ''}{line}\n" for line in shown)


def _name(entry: str) -> str:
    return re.sub(r"\s+", " ", entry).strip().removeprefix("::")
