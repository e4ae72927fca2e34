"""Exact operations behind macros, for a switch of the template to replace by something faster.

Under `fast` functions and quotients of floats come from the special-function unit; under `reciprocal` a
quotient by what is the same for a whole loop becomes a product. Which is right enough is the oracle's to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource.nodes import MAX_DEPTH
from tunesmith.csource.printing import print_function
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import calls_in, declared_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, Repeat
from tunesmith.expert.model.step_tree import all_steps, own_parts
from tunesmith.expert.writing.naming import Names

FLOAT, INTEGER = "float", "int"
_FLOAT_CALLS = frozenset(
    """
    expf exp2f exp10f logf log2f log10f log1pf expm1f sqrtf rsqrtf sinf cosf tanf tanhf sinhf coshf erff erfcf
    powf fabsf fmaxf fminf fmaf fmodf floorf ceilf roundf rintf truncf cbrtf rcbrtf copysignf
    __expf __logf __log2f __fdividef __powf __sinf __cosf __fsqrt_rn __frcp_rn __fmaf_rn __fmul_rn __fadd_rn
    __half2float __bfloat162float __low2float __high2float __uint_as_float __int_as_float __int2float_rn
    __frsqrt_rn __saturatef
    """.split()  # noqa: SIM905 - as a text it can be read
)
# Overloaded in C++ and OpenCL: of a float they give a float.
_OF_ARGUMENT = frozenset(
    """
    exp exp2 log log2 sqrt rsqrt sin cos tan tanh erf pow fabs fmax fmin fma mad floor ceil round rint
    native_exp native_log native_sqrt native_rsqrt native_divide native_recip half_exp clamp min max abs
    __shfl_xor_sync __shfl_down_sync __ldg mix
    """.split()  # noqa: SIM905 - as above
)


def declared_types(part: Iterable[c.Stmt]) -> dict[str, c.Type | None]:
    """Of every variable declared; None where two of one name differ."""
    found: dict[str, c.Type | None] = {}
    for node in nodes_in(tuple(part)):
        declares = [node] if isinstance(node, c.Declare) else []
        if isinstance(node, c.For):
            declares = [part for part in node.init if isinstance(part, c.Declare)]
        for declare in declares:
            pointers = declare.type.pointers + len(declare.dims)
            type_ = c.Type(declare.type.base, pointers)
            found[declare.name] = type_ if found.get(declare.name, type_) == type_ else None
    return found


def known_types(kernel: KernelModel) -> dict[str, c.Type | None]:
    """Of everything that steps may name, as far as the model tells; None where two of one name differ."""
    found: dict[str, c.Type | None] = {p.name: p.type for p in kernel.function.parameters}
    found |= {task.name: c.Type(task.type) for task in kernel.tasks}
    found |= {task.count: c.Type("unsigned int") for task in kernel.tasks if task.count}
    found |= {kept.name: c.Type(kept.type.base, 1) for kept in kernel.kept}
    bodies: list[c.Stmt] = []
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Repeat):
            found[step.index] = c.Type(step.type)
        if isinstance(step, Each):
            found |= {total.name: total.type for total in step.totals}
        if isinstance(step, Each | Let | Once):
            bodies += step.body
    return found | declared_types(bodies)


def base_of(
    expr: c.Expr, types: Mapping[str, c.Type | None], results: Mapping[str, c.Type], depth: int = 0
) -> str | None:
    """ "float", "int" for any integer, another type's name; None where it is not known."""
    if depth > MAX_DEPTH:
        return None
    d = depth + 1
    match expr:
        case c.Number(value=int()):
            return INTEGER
        case c.Number(text=text):
            return FLOAT if text[-1:] in "fF" else "double"
        case c.Name(name=name):
            return _named(types.get(name))
        case c.Index(base=base):
            inner = base
            while isinstance(inner, c.Index):
                inner = inner.base
            if isinstance(inner, c.Cast):
                return _named(c.Type(inner.type.base)) if inner.type.pointers == 1 else None
            type_ = types.get(inner.name) if isinstance(inner, c.Name) else None
            return None if type_ is None or not type_.is_pointer else _named(c.Type(type_.base))
        case c.Member(base=base, field=field):
            whole = base_of(base, types, results, d)
            is_vector = whole in ("float2", "float3", "float4") and field in ("x", "y", "z", "w")
            return FLOAT if is_vector else None
        case c.Call(function=function, args=args):
            if function in _FLOAT_CALLS:
                return FLOAT
            if function in results:
                return _named(results[function])
            if function in _OF_ARGUMENT and args:
                return _wider([base_of(arg, types, results, d) for arg in args])
            return None
        case c.Cast(type=type_):
            return _named(type_)
        case c.Unary(op="-" | "+", operand=operand):
            return base_of(operand, types, results, d)
        case c.Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return _wider([base_of(left, types, results, d), base_of(right, types, results, d)])
        case c.Ternary(yes=yes, no=no):
            return _wider([base_of(yes, types, results, d), base_of(no, types, results, d)])
        case _:
            return None


def _named(type_: c.Type | None) -> str | None:
    if type_ is None or type_.is_pointer:
        return None
    return INTEGER if is_integer(type_) else type_.base


def _wider(bases: list[str | None]) -> str | None:
    """By the usual conversions between integers, float and double."""
    if any(base not in (INTEGER, FLOAT, "double") for base in bases):
        return None
    return "double" if "double" in bases else FLOAT if FLOAT in bases else INTEGER


# The function -> its macro, and how the macro reads when fast. `{0}` are the arguments.
_GPU = {
    "expf": ("EXP", "__expf({0})"),
    "exp": ("EXP", "__expf({0})"),
    "logf": ("LOG", "__logf({0})"),
    "log": ("LOG", "__logf({0})"),
    "log2f": ("LOG2", "__log2f({0})"),
    "log10f": ("LOG10", "__log10f({0})"),
    "sinf": ("SIN", "__sinf({0})"),
    "cosf": ("COS", "__cosf({0})"),
    "powf": ("POW", "__powf({0})"),
    "tanhf": ("TANH", "(1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * ({0}))))"),
    "tanh": ("TANH", "(1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * ({0}))))"),
}
_CPU = {
    "exp": ("EXP", "fast_exp({0})"),
    "native_exp": ("EXP", "fast_exp({0})"),
    "tanh": ("TANH", "(1.0f - 2.0f / (1.0f + fast_exp(2.0f * ({0}))))"),
}


@dataclass
class FastMath:
    """Rewrites statements, and remembers which macros they now need."""

    language: str
    names: Names
    fast: str = ""  # the macros that decide; "" where there is none
    reciprocal: str = ""
    results: Mapping[str, c.Type] = field(default_factory=dict)  # of the source's own functions
    aliases: Mapping[str, str] = field(default_factory=dict)  # the source's own names for types
    _macros: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # what -> name, plain, fast
    _over: str = ""
    _near: str = ""

    def statements(
        self,
        body: Iterable[c.Stmt],
        types: Mapping[str, c.Type | None],
        varying: frozenset[str] | None = None,
    ) -> tuple[tuple[c.Stmt, ...], tuple[tuple[str, c.Expr], ...]]:
        """The statements, and the reciprocals they use: name and divisor, to be computed before the loop.

        `varying` are the names that change from turn to turn; None: there is no loop.
        """
        stmts = tuple(body)
        known = {name: self._plain(type_) for name, type_ in {**types, **declared_types(stmts)}.items()}
        changing = None if varying is None else varying | set(declared_in(stmts))
        inverses: dict[c.Expr, str] = {}

        def rewrite(node: c.Expr) -> c.Expr:
            match node:
                case c.Call(function=function, args=args) if self.fast and function in self._table:
                    if function not in self.results and base_of(node, known, self._results) == FLOAT:
                        return c.Call(self._function(function), args)
                case c.Binary(op="/", left=left, right=right):
                    return self._quotient(left, right, node, known, changing, inverses)
                case c.Assign(op="/=", target=target, value=value):
                    plain = c.Binary("/", target, value)
                    quotient = self._quotient(target, value, plain, known, changing, inverses)
                    return node if quotient is plain else c.Assign("=", target, quotient)
            return node

        done = map_statements(stmts, lambda expr: map_expr(expr, rewrite))
        return done, tuple((name, divisor) for divisor, name in inverses.items())

    def _plain(self, type_: c.Type | None) -> c.Type | None:
        if type_ is None or type_.base not in self.aliases:
            return type_
        return replace(type_, base=self.aliases[type_.base])

    @property
    def _results(self) -> dict[str, c.Type]:
        """Of calls: the source's functions, and our macros for floats."""
        own = {name: c.Type("float") for name, _, _ in self._macros.values()}
        return {**self.results, **own, self._over: c.Type("float")}

    @property
    def _table(self) -> Mapping[str, tuple[str, str]]:
        return _CPU if self.language == "opencl" else _GPU

    def _function(self, function: str) -> str:
        macro, fast = self._table[function]
        if function not in self._macros:
            for name, _, same in self._macros.values():
                if same == fast and function in ("exp", "expf", "log", "logf", "tanh", "tanhf"):
                    return name
            arguments = "x, y" if macro == "POW" else "x"
            name = self.names.fresh(macro)
            self._macros[function] = (name, f"{function}({arguments})", fast.format(arguments))
        return self._macros[function][0]

    def _quotient(
        self,
        left: c.Expr,
        right: c.Expr,
        node: c.Expr,
        known: Mapping[str, c.Type | None],
        changing: frozenset[str] | None,
        inverses: dict[c.Expr, str],
    ) -> c.Expr:
        bases = [base_of(side, known, self._results) for side in (left, right)]
        if _has_effects(left) or _has_effects(right):
            return node
        if FLOAT not in bases or not set(bases) <= {FLOAT, INTEGER} or _is_power_of_two(right):
            return node
        if changing is not None and self.reciprocal and names_in(right).isdisjoint(changing):
            if right not in inverses:
                inverses[right] = self.names.fresh("inverse")
            self._over = self._over or self.names.fresh("OVER")
            self._near = self._near or self.names.fresh("INVERSE")
            return c.Call(self._over, (left, right, c.Name(inverses[right])))
        if not self.fast or self.language == "opencl":
            return node
        if "/" not in self._macros:
            self._macros["/"] = (self.names.fresh("QUOTIENT"), "((x) / (y))", "__fdividef(x, y)")
        return c.Call(self._macros["/"][0], (left, right))

    def inverse(self, divisor: str) -> str:
        """What stands for 1 / divisor, where a loop divides by it; `divisor` may be named several times."""
        return f"{self._near}({divisor})"

    @property
    def all_names(self) -> frozenset[str]:
        """Of the macros asked for so far."""
        return frozenset((*(name for name, _, _ in self._macros.values()), self._over))

    def macros(self, code: str) -> list[str]:
        """Lines of the preprocessor that define what the code uses."""
        words = set(re.findall(r"\w+", code))
        lines: list[str] = []
        if self._over in words:
            lines = self._over_macros()
            words |= set(re.findall(r"\w+", "\n".join(lines)))
        used = {what: macro for what, macro in self._macros.items() if macro[0] in words}
        if not used:
            return lines
        top = [f"#if {self.fast}  // good to a few units in the last place"]
        top += [f"#define {name}({_parameters(what)}) {fast}" for what, (name, _, fast) in used.items()]
        top.append("#else")
        top += [f"#define {name}({_parameters(what)}) {plain}" for what, (name, plain, _) in used.items()]
        return [*top, "#endif", *([""] if lines else []), *lines]

    def _over_macros(self) -> list[str]:
        over, reciprocal = self._over, self.reciprocal
        plain = f"{self._macros['/'][0]}(x, y)" if "/" in self._macros else "((x) / (y))"
        fma = "fma" if self.language == "opencl" else "fmaf"
        near, rough = self._near, "__fdividef(1.0f, y)"
        inverses = [
            f"#if {reciprocal} == 2  // nearly the nearest float, which is near enough to be set right",
            f"#define {near}(y) fmaf(fmaf(-(y), {rough}, 1.0f), {rough}, {rough})",
            "#else",
            f"#define {near}(y) (1.0f / (y))",
            "#endif",
        ]
        return [
            *(inverses if self.language != "opencl" else ()),
            "// x / y where 1 / y is at hand: a product, a product set right by its remainder, the division.",
            f"#if {reciprocal} == 1",
            f"#define {over}(x, y, inverse) ((x) * (inverse))",
            f"#elif {reciprocal} == 2",
            f"#define {over}(x, y, inverse) {fma}({fma}(-((x) * (inverse)), y, x), inverse, (x) * (inverse))",
            "#else",
            f"#define {over}(x, y, inverse) {plain}",
            "#endif",
        ]


def _parameters(what: str) -> str:
    return "x, y" if what in ("/", "powf") else "x"


def _has_effects(expr: c.Expr) -> bool:
    """A macro may evaluate its argument more than once."""
    return any(
        isinstance(n, c.Assign) or (isinstance(n, c.Unary) and n.op in ("++", "--")) for n in nodes_in(expr)
    )


def _is_power_of_two(expr: c.Expr) -> bool:
    if not isinstance(expr, c.Number) or expr.value <= 0:
        return False
    return math.frexp(expr.value)[0] == 0.5


# -- what of the user's file the template needs beside its kernel: includes, declarations, helper functions


def used_functions(kernel: KernelModel) -> tuple[c.Function, ...]:
    """Helpers that the steps call, and those that these call, in the order of the file."""
    by_name: dict[str, list[c.Function]] = {}
    for function in kernel.source.functions:
        if not function.is_kernel:
            by_name.setdefault(function.name, []).append(function)
    wanted: set[str] = set()
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    pending = [word for part in parts for word in _words(part)]
    while pending:
        name = pending.pop()
        if name in by_name and name not in wanted:
            wanted.add(name)
            for function in by_name[name]:
                pending += _words(function.body)
                pending += re.findall(r"[A-Za-z_]\w*", function.text)
    return tuple(f for f in kernel.source.functions if f.name in wanted and not f.is_kernel)


def _words(part: c.Expr | tuple[c.Stmt, ...]) -> list[str]:
    found = list(names_in(part))
    for call in calls_in(part):
        found += [call.function, *re.findall(r"[A-Za-z_]\w*", " ".join(call.template_args))]
    return found


def helper_text(
    function: c.Function, fast: FastMath, language: str, hardware: str = "", switch: str = ""
) -> str:
    """The function as it stands, or with fast forms behind macros where its body has any.

    `hardware`: the statement that does the same on the device's own unit, taken where `switch` is set.
    """
    types = {parameter.name: parameter.type for parameter in function.parameters}
    body, _ = fast.statements(function.body, dict(types))
    text = function.text.strip() or print_function(function, language).strip()
    if body != function.body:
        head = text.partition("{")[0].rstrip()
        text = print_function(c.Function(function.name, function.parameters, body, function.result), language)
        text = f"{head}\n{text[text.index('{') :]}".strip()
    if hardware and switch:
        opening = text.index("{") + 1
        inner = text[opening : text.rindex("}")].strip("\n")
        text = f"{text[:opening]}\n#if {switch}\n    {hardware}\n#else\n{inner}\n#endif\n}}"
    return text + "\n"


def preamble(source: c.Source) -> list[str]:
    lines = [f"#include {include}" for include in source.includes]
    if source.preamble:
        lines.append("")
        lines += [text.rstrip() for text in source.preamble]
    return lines
