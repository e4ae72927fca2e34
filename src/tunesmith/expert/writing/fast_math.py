"""Exact operations behind macros: what a switch of the template may replace by something faster.

Under `fast` functions and quotients of floats come from the special-function unit; under `reciprocal` a
quotient by what is the same for a whole loop becomes a product. Which is right enough is the oracle's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tunesmith.csource.nodes import Assign, Binary, Call, Expr, Name, Number, Stmt, Type, Unary
from tunesmith.csource.walk import declared_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.writing.float_types import FLOAT, INTEGER, base_of, declared_types
from tunesmith.expert.writing.naming import Names

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
    results: Mapping[str, Type] = field(default_factory=dict)  # of the source's own functions
    aliases: Mapping[str, str] = field(default_factory=dict)  # the source's own names for types
    _macros: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # what -> name, plain, fast
    _over: str = ""
    _near: str = ""

    def statements(
        self, body: Iterable[Stmt], types: Mapping[str, Type | None], varying: frozenset[str] | None = None
    ) -> tuple[tuple[Stmt, ...], tuple[tuple[str, Expr], ...]]:
        """The statements, and the reciprocals they use: name and divisor, to be computed before the loop.

        `varying` are the names that change from turn to turn; None: there is no loop.
        """
        stmts = tuple(body)
        known = {name: self._plain(type_) for name, type_ in {**types, **declared_types(stmts)}.items()}
        changing = None if varying is None else varying | set(declared_in(stmts))
        inverses: dict[Expr, str] = {}

        def rewrite(node: Expr) -> Expr:
            match node:
                case Call(function=function, args=args) if self.fast and function in self._table:
                    if function not in self.results and base_of(node, known, self._results) == FLOAT:
                        return Call(self._function(function), args)
                case Binary(op="/", left=left, right=right):
                    return self._quotient(left, right, node, known, changing, inverses)
                case Assign(op="/=", target=target, value=value):
                    plain = Binary("/", target, value)
                    quotient = self._quotient(target, value, plain, known, changing, inverses)
                    return node if quotient is plain else Assign("=", target, quotient)
            return node

        done = map_statements(stmts, lambda expr: map_expr(expr, rewrite))
        return done, tuple((name, divisor) for divisor, name in inverses.items())

    def _plain(self, type_: Type | None) -> Type | None:
        if type_ is None or type_.base not in self.aliases:
            return type_
        return replace(type_, base=self.aliases[type_.base])

    @property
    def _results(self) -> dict[str, Type]:
        """Of calls: the source's functions, and our macros for floats."""
        own = {name: Type("float") for name, _, _ in self._macros.values()}
        return {**self.results, **own, self._over: Type("float")}

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
        left: Expr,
        right: Expr,
        node: Expr,
        known: Mapping[str, Type | None],
        changing: frozenset[str] | None,
        inverses: dict[Expr, str],
    ) -> Expr:
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
            return Call(self._over, (left, right, Name(inverses[right])))
        if not self.fast or self.language == "opencl":
            return node
        if "/" not in self._macros:
            self._macros["/"] = (self.names.fresh("QUOTIENT"), "((x) / (y))", "__fdividef(x, y)")
        return Call(self._macros["/"][0], (left, right))

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
        plain = "((x) / (y))"
        if "/" in self._macros:
            plain = f"{self._macros['/'][0]}(x, y)"
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


def _has_effects(expr: Expr) -> bool:
    """A macro may evaluate its argument more than once."""
    return any(
        isinstance(n, Assign) or (isinstance(n, Unary) and n.op in ("++", "--")) for n in nodes_in(expr)
    )


def _is_power_of_two(expr: Expr) -> bool:
    if not isinstance(expr, Number) or expr.value <= 0:
        return False
    mantissa = float(expr.value)
    while mantissa < 1:
        mantissa *= 2
    while mantissa >= 2:
        mantissa /= 2
    return mantissa == 1
