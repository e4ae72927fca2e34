"""The host's part of launch.cu: parameters, conditions of the dispatch, launches, and expressions as C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import resources
from typing import assert_never

from tunesmith.problem.problem import Argument, Launch, Problem, SizeRule
from tunesmith.problem.template import Variant
from tunesmith.space import grammar as n
from tunesmith.space.expr import LIMIT, Expr, Undefined, parse
from tunesmith.space.grammar import ArithmeticOp, CompareOp, Function, Node, Num

MOST = (1 << 31) - 1  # of blocks or threads along an axis, and of bytes

# Each type, and the header that has it.
C_TYPES: dict[str, tuple[str, str | None]] = {
    "float16": ("__half", "cuda_fp16.h"), "bfloat16": ("__nv_bfloat16", "cuda_bf16.h"),
    "float8_e4m3": ("__nv_fp8_e4m3", "cuda_fp8.h"), "float8_e5m2": ("__nv_fp8_e5m2", "cuda_fp8.h"),
    "float32": ("float", None), "float64": ("double", None),
    "int8": ("signed char", None), "int16": ("short", None),
    "int32": ("int", None), "int64": ("long long", None),
    "uint8": ("unsigned char", None), "uint16": ("unsigned short", None),
    "uint32": ("unsigned int", None), "uint64": ("unsigned long long", None),
    "int4": ("unsigned char", None), "uint4": ("unsigned char", None),  # two in a byte
}  # fmt: skip


@dataclass(frozen=True)
class HostParameter:
    type: str
    name: str
    about: str


@dataclass(frozen=True)
class Host:
    """What `launch` takes, and how it is named; every name of the user's has a prefix, so that it can be
    neither a word of C++ nor a name of ours."""

    arguments: tuple[HostParameter, ...]
    pointers: Mapping[str, str]  # every array's name, and an alias's too -> the parameter
    rules: tuple[SizeRule, ...]
    workspaces: tuple[HostParameter, ...]
    headers: tuple[str, ...]
    literals: tuple[Argument, ...] = ()

    @classmethod
    def of(cls, problem: Problem, variants: Sequence[Variant]) -> Host:
        # A scalar that no size decides is a literal: whoever calls says what it is.
        by_size = {a.name for a in problem.arguments if isinstance(a.value, Expr) and a.value.names}
        literals = [a for a in problem.arguments if a.role == "scalar" and a.name not in by_size]
        given = [a for a in problem.arguments if (a.is_array and not a.alias) or a in literals]
        own = {a.name for a in problem.arguments}
        scratch = dict.fromkeys(a.name for v in variants for a in v.arguments if a.name not in own)
        pointers = {a.name: _c_name(a.alias or a.name) for a in problem.arguments if a.is_array}
        types = [C_TYPES.get(a.type, ("", None))[1] for v in variants for a in v.arguments]
        return cls(
            arguments=tuple(_parameter(argument) for argument in given),
            pointers=pointers | {name: _c_name(name, "work") for name in scratch},
            rules=problem.contract.sizes,
            workspaces=tuple(_workspace(name, variants) for name in scratch),
            headers=tuple(sorted({header for header in types if header is not None})),
            literals=tuple(literals),
        )

    @cached_property
    def sizes(self) -> dict[str, str]:
        return {rule.name: _c_name(rule.name, "size") for rule in self.rules}

    @property
    def parameters(self) -> tuple[HostParameter, ...]:
        sizes = (HostParameter("long long", self.sizes[rule.name], rule.describe()) for rule in self.rules)
        stream = HostParameter("cudaStream_t", "stream", "0 for the default")
        return (*self.arguments, *sizes, *self.workspaces, stream)

    @property
    def passed(self) -> str:
        return ", ".join(parameter.name for parameter in self.parameters)

    @property
    def sizes_passed(self) -> str:
        return ", ".join(self.sizes.values())

    def checked(self) -> str:
        """What every expression relies on."""
        beyond = [f"{name} < -limit || {name} > limit" for name in self.sizes.values()]
        return f"    if ({' || '.join(beyond)}) return cudaErrorInvalidValue;\n" if beyond else ""

    def as_tuned(self) -> str:
        """That every literal is what it was while tuning; empty where there is none."""
        return " && ".join(_is_as_tuned(argument) for argument in self.literals)

    def condition(self, name: str, when: Expr) -> str:
        taken = ", ".join(f"long long {size}" for size in self.sizes.values())
        return (
            f"static bool {name}({taken}) {{\n    bool undefined = false;\n"
            f"    const bool holds = {c_code(when, self.sizes)};\n    return holds && !undefined;\n}}\n"
        )

    def run(self, name: str, variant: Variant, address: Callable[[str], str]) -> str:
        """A function that launches the variant, once everything it needs is known to have a value."""
        used = dict.fromkeys(arg for launch in variant.launches for arg in launch.args)
        places = dict(self.pointers)
        body = ["    bool undefined = false;\n"]
        for argument in (variant.argument(arg) for arg in used):
            if argument.role == "scalar":
                places[argument.name], made = self.scalar(argument)
                body.append(made)
        body += [self.shape(number, launch) for number, launch in enumerate(variant.launches)]
        body.append("    if (undefined) return cudaErrorInvalidValue;\n")
        for number, launch in enumerate(variant.launches):
            listed = ", ".join(f"(void*)&{places[arg]}" for arg in launch.args)
            args = f"args_{number}" if listed else "nullptr"
            body.append(f"    void* {args}[] = {{{listed}}};\n" if listed else "")
            started = f"start({address(launch.entry)}, shape_{number}, {args}, stream)"
            if number < len(variant.launches) - 1:
                body.append(f"    const cudaError_t error_{number} = {started};\n")
                body.append(f"    if (error_{number} != cudaSuccess) return error_{number};\n")
            else:
                body.append(f"    return {started};\n")
        return f"static {declaration(name, self.parameters)} {{\n{''.join(body)}}}\n"

    def scalar(self, argument: Argument) -> tuple[str, str]:
        """The variable whose address the launch takes, of the type the kernel takes, and its definition."""
        kind, given = C_TYPES[argument.type][0], _c_name(argument.name)
        if isinstance(argument.value, Expr) and argument.value.names:
            given = self.within(argument.value, *argument.element.bounds)
        elif kind == _passed_as(argument):
            return given, ""
        name = _c_name(argument.name, "value")
        return name, f"    const {kind} {name} = static_cast<{kind}>({given});\n"

    def shape(self, number: int, launch: Launch) -> str:
        def extents(exprs: tuple[Expr, ...]) -> str:
            return f"dim3({', '.join(self.within(expr, 1, MOST) for expr in exprs)})"

        fields = {"grid": extents(launch.grid), "block": extents(launch.block)}
        if launch.shared is not None:
            fields["shared"] = self.within(launch.shared, 0, MOST)
        if launch.cluster:
            fields |= {"cluster": extents(launch.cluster), "clustered": "true"}
        fields |= {name: "true" for name in ("cooperative", "pdl") if getattr(launch, name)}
        lines = (f"    shape_{number}.{name} = {value};\n" for name, value in fields.items())
        return f"    Shape shape_{number} = {{}};\n{''.join(lines)}"

    def within(self, expr: Expr, low: int, high: int) -> str:
        """Its value, which is undefined outside these bounds too."""
        value = c_code(expr, self.sizes)
        if isinstance(expr.tree, Num) and low <= expr.tree.value <= high:
            return value
        if low <= -LIMIT and high >= LIMIT:
            return value
        return f"within({value}, {low}LL, {min(high, LIMIT)}LL, undefined)"


def declaration(name: str, parameters: Sequence[HostParameter]) -> str:
    return f"cudaError_t {name}({', '.join(f'{p.type} {p.name}' for p in parameters)})"


def identifier(text: str) -> str:
    """The text as (part of) a C name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"k{name}" if name[:1].isdigit() else name


def _c_name(name: str, prefix: str = "arg") -> str:
    return f"{prefix}_{identifier(name)}"


def _is_as_tuned(argument: Argument) -> str:
    """Compared as the kernel would get them: what a narrow type makes of both is what decides."""
    kind, passed, given = C_TYPES[argument.type][0], _passed_as(argument), _c_name(argument.name)
    value = argument.value
    try:
        literal = c_code(parse(value.evaluate({})), {}) if isinstance(value, Expr) else repr(value)
    except Undefined:
        return "false"  # nothing equals it
    literal = f"static_cast<{passed}>({literal})"
    if kind == passed:
        return f"{given} == {literal}"
    back = f"static_cast<{passed}>(static_cast<{kind}>"
    return f"{back}({given})) == {back}({literal}))"


def _passed_as(argument: Argument) -> str:
    """The narrow floats are classes, which neither C nor Python could pass."""
    element = argument.element
    return "float" if element.kind == "float" and element.bytes < 4 else C_TYPES[argument.type][0]


def _parameter(argument: Argument) -> HostParameter:
    name = _c_name(argument.name)
    if not argument.is_array:
        return HostParameter(_passed_as(argument), name, f"{argument.type}, tuned with {argument.value}")
    return HostParameter(_pointer(argument), name, _about(argument))


def _workspace(name: str, variants: Sequence[Variant]) -> HostParameter:
    found = {v.config: a for v in variants for a in v.arguments if a.name == name}
    about = "; ".join(f"{_about(argument)} for {config}" for config, argument in found.items())
    return HostParameter(_pointer(next(iter(found.values()))), _c_name(name, "work"), about)


def _about(argument: Argument) -> str:
    parts = [f"{argument.role} of {argument.type} [{', '.join(e.text for e in argument.shape)}]"]
    parts += [f"aligned to {argument.align} bytes"] if argument.align else []
    parts += [f"filled with {argument.init:g} before each call"] if argument.init is not None else []
    return ", ".join(parts)


def _pointer(argument: Argument) -> str:
    kind = C_TYPES.get(argument.type, ("void", None))[0]
    return f"const {kind}*" if argument.role == "input" else f"{kind}*"


# -- expressions in C++ -------------------------------------------------------------------------------------


HELPERS = resources.files("tunesmith.deliver").joinpath("arithmetic.cuh").read_text("utf-8")
_ARITHMETIC: dict[ArithmeticOp, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "//": "divide", "%": "remainder_of",
}  # fmt: skip
_FUNCTIONS: dict[Function, str] = {"min": "smaller", "max": "larger"}
_TOTAL: tuple[Function, ...] = ("min", "max", "is_pow2")  # with a value whatever the arguments


def c_code(expr: Expr, names: Mapping[str, str]) -> str:
    """The expression as C++ over `long long`, with the value our own evaluation gives; each name is written
    as `names` says, and one that is not there has no value.

    What has no value sets the flag `undefined` and goes on with 0: whatever is computed afterwards is defined
    arithmetic, and the caller looks at the flag before it looks at the value. C++ skips the same operands of
    `and`, `or`, `if` and a chain that we skip, so nothing that is not looked at can set the flag.

    The names' values must lie within ±2**62; the text needs `HELPERS` before it and a `bool undefined` in
    scope.
    """
    return _CodeWriter(names).of(expr.tree)


class _CodeWriter:
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def of(self, node: Node) -> str:
        """Text that may stand as an operand or an argument anywhere."""
        match node:
            case n.Num(value):
                return f"{value}LL" if value >= 0 else f"({value}LL)"
            case n.Variable(id):
                return self.names.get(id, "no_value(undefined)")
            case n.Arithmetic(op, left, right):
                return f"{_ARITHMETIC[op]}({self.of(left)}, {self.of(right)}, undefined)"
            case n.Compare(left, links):
                return self.chain(left, links)
            case n.Logic(op, operands):
                joint = " && " if op == "and" else " || "
                return f"({joint.join(self.of(operand) for operand in operands)})"
            case n.Conditional(test, then, other):
                return f"({self.of(test)} ? {self.of(then)} : {self.of(other)})"
            case n.FunctionCall(function, args):
                return self.call(function, [self.of(arg) for arg in args])
            case n.Not(operand):
                return f"(!{self.of(operand)})"
            case n.Neg(operand):
                return f"(-{self.of(operand)})"
            case n.OneOf(item, options, negated):
                listed = ", ".join(f"{option}LL" for option in options)
                return f"({'!' if negated else ''}is_in({self.of(item)}, {{{listed}}}))"
        assert_never(node)

    def call(self, function: Function, args: list[str]) -> str:
        name = _FUNCTIONS.get(function, function)
        if function in ("min", "max"):
            return reduce(lambda left, right: f"{name}({left}, {right})", args)
        return f"{name}({', '.join(args if function in _TOTAL else [*args, 'undefined'])})"

    def chain(self, left: Node, links: tuple[tuple[CompareOp, Node], ...]) -> str:
        texts = [self.of(left), *(self.of(right) for _, right in links)]
        if all(isinstance(right, n.Num | n.Variable) for _, right in links[:-1]):
            pairs = zip(texts, links, texts[1:], strict=False)
            parts = [f"{a} {op} {b}" for a, (op, _), b in pairs]
            return f"({' && '.join(parts)})"
        # What stands between two comparisons is written once: written twice, chains within chains would
        # double the text at every level.
        steps = [f"const long long link0 = {texts[0]};"]
        for number, (op, _) in enumerate(links, 1):
            steps.append(f"const long long link{number} = {texts[number]};")
            steps.append(f"if (!(link{number - 1} {op} link{number})) return false;")
        return f"[&]() -> bool {{ {' '.join(steps)} return true; }}()"
