"""A result's names and values in C++: parameters, literals, comments, machine code as words."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.deliver.c_code import C_TYPES, c_code, identifier
from tunesmith.deliver.exports.terms import about
from tunesmith.problem.dispatch import DispatchArgument, DispatchEntry, DispatchLaunch, value_expr
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.space.expr import LIMIT, ExprError, Undefined, parse
from tunesmith.space.grammar import Num
from tunesmith.space.real import RealExpr, real_code

MOST = (1 << 31) - 1  # of blocks or threads along an axis, and of bytes


@dataclass(frozen=True)
class HostParameter:
    type: str
    name: str
    about: str


def unfit(dispatch_sizes: Iterable[str], entry: DispatchEntry) -> str | None:
    """Why an entry cannot be written in C++ at all."""
    names = set(dispatch_sizes)
    try:
        parse(entry.when)
    except ExprError as error:  # it may be joined from parts that were each short enough
        return str(error)
    for launch in entry.launches:
        if left := set(PLACEHOLDER.findall(launch.entry)) & names:
            return f"{launch.entry} is another kernel for each {', '.join(sorted(left))}"
        exprs = (
            *launch.grid,
            *launch.block,
            *(launch.cluster or ()),
            launch.shared or "0",
            launch.when or "1",
        )
        if unknown := sorted({n for text in exprs for n in parse(text).names} - names):
            return f"its launch depends on {unknown[0]}, which the caller does not say"
    return None


def image_text(name: str, data: bytes) -> str:
    """Machine code as words; it lies aligned, as the loader wants it."""
    words = struct.unpack(f"<{(len(data) + 7) // 8}Q", data + bytes(-len(data) % 8))
    rows = (", ".join(f"{word:#x}" for word in words[i : i + 6]) for i in range(0, len(words), 6))
    body = ",\n".join(rows)
    return f"alignas(16) static const unsigned long long {name}[] = {{  // {len(data)} bytes\n{body}}};\n"


def c_name(name: str, prefix: str = "arg") -> str:
    """Every name of the user's has a prefix: it can be neither a word of C++ nor a name of ours."""
    return f"{prefix}_{identifier(name)}"


def is_as_tuned(argument: DispatchArgument) -> str:
    """Compared as the kernel would get them: what a narrow type makes of both is what decides."""
    kind, passed, given = C_TYPES[argument.type][0], passed_as(argument), c_name(argument.name)
    value = argument.value
    try:
        literal = c_code(parse(parse(value).evaluate({})), {}) if isinstance(value, str) else repr(value)
    except Undefined:
        return "false"  # nothing equals it
    literal = f"static_cast<{passed}>({literal})"
    if kind == passed:
        return f"{given} == {literal}"
    back = f"static_cast<{passed}>(static_cast<{kind}>"
    return f"{back}({given})) == {back}({literal}))"


def within_text(text: str, low: int, high: int, sizes: Mapping[str, str]) -> str:
    """The expression's value in C++, which is undefined outside these bounds too."""
    expr = parse(text)
    value = c_code(expr, sizes)
    if isinstance(expr.tree, Num) and low <= expr.tree.value <= high:
        return value
    if low <= -LIMIT and high >= LIMIT:
        return value
    return f"within({value}, {low}LL, {min(high, LIMIT)}LL, undefined)"


def scalar_text(argument: DispatchArgument, sizes: Mapping[str, str]) -> str:
    """The value of a scalar that follows the sizes; an integer's is one that its type has."""
    element = element_type(argument.type)
    expr = value_expr(argument)
    if isinstance(expr, RealExpr):  # one that is not finite minus itself is not 0
        value = f"const double value = {real_code(expr, sizes)};"
        return f"[&]() -> double {{ {value} if (!(value - value == 0.0)) undefined = true; return value; }}()"
    return within_text(str(argument.value), *element.bounds, sizes)


def shape_text(number: int, launch: DispatchLaunch, sizes: Mapping[str, str]) -> str:
    """The definition of `shape_NUMBER`."""

    def extents(texts: Sequence[str]) -> str:
        return f"dim3({', '.join(within_text(text, 1, MOST, sizes) for text in texts)})"

    fields = {"grid": extents(launch.grid), "block": extents(launch.block)}
    if launch.shared is not None:
        fields["shared"] = within_text(launch.shared, 0, MOST, sizes)
    if launch.cluster:
        fields |= {"cluster": extents(launch.cluster), "clustered": "true"}
    fields |= {name: "true" for name in ("cooperative", "pdl") if getattr(launch, name)}
    lines = "".join(f"    shape_{number}.{name} = {value};\n" for name, value in fields.items())
    made = f"    Shape shape_{number} = {{}};\n"
    if launch.when is None:
        return f"{made}{lines}"
    condition = f"    const bool launched_{number} = ({c_code(parse(launch.when), sizes)}) != 0;\n"
    return f"{made}{condition}    if (launched_{number}) {{\n{lines}    }}\n"


def unused_text(names: Iterable[str], body: str) -> str:
    """Lines that keep a compiler from warning of parameters that the body has no use for."""
    used = set(re.findall(r"\w+", body))
    return "".join(f"    (void){name};\n" for name in names if name not in used)


def passed_as(argument: DispatchArgument) -> str:
    """The narrow floats are classes, which neither C nor Python could pass."""
    element = element_type(argument.type)
    return "float" if element.kind == "float" and element.bytes < 4 else C_TYPES[argument.type][0]


def host_parameter(argument: DispatchArgument) -> HostParameter:
    kind = _pointer(argument) if argument.is_array else passed_as(argument)
    return HostParameter(kind, c_name(argument.name), about(argument, caller_fills=True))


def workspace_parameter(name: str, uses: Sequence[tuple[DispatchEntry, DispatchArgument]]) -> HostParameter:
    found: Mapping[str, DispatchArgument] = {
        ", ".join(f"{k}={v}" for k, v in (entry.config or {}).items()): argument for entry, argument in uses
    }
    words = "; ".join(f"{about(a, caller_fills=True)} for {config}" for config, a in found.items())
    return HostParameter(_pointer(uses[0][1]), c_name(name, "work"), words)


def _pointer(argument: DispatchArgument) -> str:
    kind = C_TYPES.get(argument.type, ("void", None))[0]
    return f"const {kind}*" if argument.role == "input" else f"{kind}*"
