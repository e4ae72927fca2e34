"""What is computed for one element: expressions with a bound on their values, and statements made of them.

Numbers stay small and whole (or multiples of a small power of two), so that sums are exact in any order and a
result is wrong where one bit of it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

EXACT = 1 << 13  # what is summed up stays below this, in units of its last binary place


@dataclass(frozen=True)
class Value:
    """`text` is an expression of C type `kind`, at most `bound` in magnitude, a multiple of 2**-grain."""

    text: str
    kind: str  # float or int
    bound: float
    grain: int = 0

    def small(self) -> Value:
        """Folded into few values where sums of it would not be exact."""
        if self.bound * 2**self.grain <= EXACT:
            return self
        if self.kind == "int":
            return Value(f"({self.text} & 63)", "int", 63)
        return Value(f"(float)((int)({self.text}) & 31)", "float", 31)

    def as_kind(self, kind: str) -> Value:
        if kind == self.kind:
            return self
        return Value(f"({kind})({self.text})", kind, self.bound, 0 if kind == "int" else self.grain)


@dataclass
class Scope:
    """What an expression may mention: values by name, and loads, each made anew from a place."""

    values: list[Value] = field(default_factory=list)
    loads: list[Callable[[], Value]] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)  # one float in, one float out
    col: str = ""  # the element's column

    def with_value(self, value: Value) -> None:
        self.values.append(value)


class Elements:
    """Draws expressions and statements; names are never used twice."""

    def __init__(self, rng: random.Random, language: str = "cuda") -> None:
        self.rng, self.language = rng, language
        self.count = 0
        self.tags: set[str] = set()

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # -- expressions

    def expression(self, scope: Scope, kind: str, depth: int = 2) -> Value:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self.leaf(scope, kind)
        made = self._float(scope, depth) if kind == "float" else self._int(scope, depth)
        if made.bound > 1 << 20 or made.grain > 6:
            return made.small()
        return made

    def leaf(self, scope: Scope, kind: str) -> Value:
        rng = self.rng
        if scope.loads and rng.random() < 0.5:
            return rng.choice(scope.loads)().as_kind(kind)
        known = [v for v in scope.values if v.bound * 2**v.grain < 1 << 24]
        if known and rng.random() < 0.75:
            return rng.choice(known[-4:] if rng.random() < 0.6 else known).as_kind(kind)
        if kind == "float":
            text, bound, grain = rng.choice(
                [
                    ("1.0f", 1, 0),
                    ("2.0f", 2, 0),
                    ("0.5f", 1, 1),
                    ("-3.0f", 3, 0),
                    ("0.25f", 1, 2),
                    ("7.0f", 7, 0),
                ]
            )
            return Value(text, "float", bound, grain)
        number = rng.choice((1, 2, 3, 5, 7, 12, 31))
        return Value(str(number), "int", number)

    def _float(self, scope: Scope, depth: int) -> Value:
        rng = self.rng
        a = self.expression(scope, "float", depth - 1)
        b = self.expression(scope, "float", depth - 1)
        most, grain = max(a.bound, b.bound), max(a.grain, b.grain)
        match rng.choice(["+", "-", "*", "min", "max", "?", "abs", "call", "half", "neg", "round"]):
            case ("+" | "-") as sign:
                return Value(f"({a.text} {sign} {b.text})", "float", a.bound + b.bound, grain)
            case "*":
                return Value(f"({a.text} * {b.text})", "float", a.bound * b.bound, a.grain + b.grain)
            case ("min" | "max") as word:
                return Value(f"f{word}f({a.text}, {b.text})", "float", most, grain)
            case "?":
                test = self.condition(scope, depth - 1)
                return Value(f"({test} ? {a.text} : {b.text})", "float", most, grain)
            case "abs":
                return Value(f"fabsf({a.text})", "float", a.bound, a.grain)
            case "call" if scope.helpers:
                self.tags.add("helper")
                small = a.small()
                return Value(
                    f"{rng.choice(scope.helpers)}({small.text})",
                    "float",
                    small.bound * 4 + 16,
                    small.grain + 1,
                )
            case "half":
                return Value(f"({a.text} / {rng.choice(('2.0f', '4.0f'))})", "float", a.bound, a.grain + 2)
            case "round":
                return Value(f"floorf({a.text})", "float", a.bound + 1, 0)
        return Value(f"(- {a.text})", "float", a.bound, a.grain)

    def _int(self, scope: Scope, depth: int) -> Value:
        rng = self.rng
        a = self.expression(scope, "int", depth - 1)
        b = self.expression(scope, "int", depth - 1)
        most = max(a.bound, b.bound)
        match rng.choice(["+", "-", "*", "&", "^", ">>", "<<", "/", "%", "?", "narrow", "unsigned"]):
            case ("+" | "-") as sign:
                return Value(f"({a.text} {sign} {b.text})", "int", a.bound + b.bound)
            case "*":
                return Value(f"({a.text} * {b.text})", "int", a.bound * b.bound)
            case ("&" | "^") as sign:
                return Value(f"({a.text} {sign} {b.text})", "int", 2 * most + 1)
            case ">>":
                return Value(f"({a.text} >> {rng.choice((1, 2, 3))})", "int", a.bound)
            case "<<":
                return Value(f"(({a.text}) * {rng.choice((2, 4))})", "int", a.bound * 4)
            case ("/" | "%") as sign:
                return Value(f"({a.text} {sign} {rng.choice((2, 3, 4, 7))})", "int", a.bound)
            case "?":
                return Value(f"({self.condition(scope, depth - 1)} ? {a.text} : {b.text})", "int", most)
            case "narrow":
                self.tags.add("narrow")
                word = rng.choice(("signed char", "unsigned char", "short"))
                return Value(f"(int)({word})({a.text})", "int", min(a.bound, 1 << 15) + 256)
        self.tags.add("unsigned wrap")
        return Value(f"(int)(((unsigned)({a.text}) * 2654435761u) >> 26)", "int", 63)

    def condition(self, scope: Scope, depth: int = 1) -> str:
        rng = self.rng
        kind = rng.choice(("float", "int"))
        a, b = (self.expression(scope, kind, min(depth, 1)) for _ in range(2))
        test = f"{a.text} {rng.choice(('<', '>', '<=', '>=', '==', '!='))} {b.text}"
        if depth > 0 and rng.random() < 0.2:
            return f"({test} {rng.choice(('&&', '||'))} {self.condition(scope, 0)})"
        return test

    # -- statements: each leaves a new value in the scope

    def statements(self, scope: Scope, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            lines += self.rng.choice(self.kinds())(scope)
        return lines

    def kinds(self) -> list[Callable[[Scope], list[str]]]:
        return [self._plain, self._plain, self._branch, self._taps, self._array, self._while, self._struct,
                self._short_circuit, self._compound, self._block]  # fmt: skip

    def _plain(self, scope: Scope) -> list[str]:
        kind = self.rng.choice(("float", "float", "int"))
        value = self.expression(scope, kind, 2)
        name = self.name("v")
        const = self.rng.choice(("const ", ""))
        scope.with_value(Value(name, kind, value.bound, value.grain))
        return [f"{const}{kind} {name} = {value.text};"]

    def _branch(self, scope: Scope) -> list[str]:
        self.tags.add("branch")
        kind = self.rng.choice(("float", "int"))
        first, then, other = (self.expression(scope, kind, 1) for _ in range(3))
        name = self.name("v")
        test = self.condition(scope)
        lines = [f"{kind} {name} = {first.text};", f"if ({test}) {{", f"    {name} = {then.text};", "}"]
        if self.rng.random() < 0.5:
            lines[-1:] = ["} else {", f"    {name} = {other.text};", "}"]
        bounds = (first, then, other)
        scope.with_value(Value(name, kind, max(v.bound for v in bounds), max(v.grain for v in bounds)))
        return lines

    def _taps(self, scope: Scope) -> list[str]:
        if not scope.loads:
            return self._plain(scope)
        self.tags.add("taps")
        name, k = self.name("v"), self.name("k")
        turns = self.rng.choice((2, 3, 5, 20))
        inner = Scope([*scope.values, Value(k, "int", turns)], scope.loads, scope.helpers)
        term = self.expression(inner, "float", 1).small()
        lines = [f"float {name} = 0.0f;"]
        if self.rng.random() < 0.3:
            lines.append("#pragma unroll")
        lines += [f"for (int {k} = 0; {k} < {turns}; {k}++) {{", f"    {name} += {term.text};", "}"]
        scope.with_value(Value(name, "float", term.bound * turns, term.grain))
        return lines

    def _array(self, scope: Scope) -> list[str]:
        self.tags.add("local array")
        name, k = self.name("a"), self.name("k")
        inner = Scope([*scope.values, Value(k, "int", 4)], scope.loads, scope.helpers)
        term = self.expression(inner, "float", 1)
        place = self.expression(scope, "int", 1)
        scope.with_value(Value(f"{name}[{self.rng.randrange(4)}]", "float", term.bound, term.grain))
        scope.with_value(Value(f"{name}[({place.text}) & 3]", "float", term.bound, term.grain))
        return [
            f"float {name}[4];",
            f"for (int {k} = 0; {k} < 4; {k}++) {{",
            f"    {name}[{k}] = {term.text};",
            "}",
        ]

    def _while(self, scope: Scope) -> list[str]:
        self.tags.add("while")
        left, count = self.name("q"), self.name("c")
        start = self.expression(scope, "int", 1)
        scope.with_value(Value(count, "int", 8))
        body = [f"    {left} >>= 1;", f"    {count}++;"]
        if self.rng.random() < 0.4:
            body.append(f"    if ({count} == 3) break;")
        return [
            f"int {left} = ({start.text}) & 31;",
            f"int {count} = 0;",
            f"while ({left} > 0) {{",
            *body,
            "}",
        ]

    def _struct(self, scope: Scope) -> list[str]:
        self.tags.add("float2")
        name = self.name("p")
        a, b = (self.expression(scope, "float", 1) for _ in range(2))
        lines = [f"float2 {name} = make_float2({a.text}, {b.text});"]
        if self.rng.random() < 0.4:
            lines.append(f"{name} = make_float2({name}.y, {name}.x);")
        for part in "xy":
            scope.with_value(Value(f"{name}.{part}", "float", max(a.bound, b.bound), max(a.grain, b.grain)))
        return lines

    def _short_circuit(self, scope: Scope) -> list[str]:
        flag = self.name("f")
        sign = self.rng.choice(("&&", "||"))
        line = f"const bool {flag} = {self.condition(scope)} {sign} {self.condition(scope)};"
        scope.with_value(Value(flag, "int", 1))
        return [line]

    def _compound(self, scope: Scope) -> list[str]:
        kind = self.rng.choice(("float", "int"))
        name = self.name("v")
        first, more = (self.expression(scope, kind, 1) for _ in range(2))
        sign = self.rng.choice(("+=", "-=", "*="))
        bound = first.bound * more.bound + first.bound + more.bound
        scope.with_value(Value(name, kind, bound, first.grain + more.grain))
        lines = [f"{kind} {name} = {first.text};", f"{name} {sign} {more.text};"]
        if kind == "int" and self.rng.random() < 0.3:
            lines.append(f"{name}++;")
            scope.values[-1] = Value(name, kind, bound + 1)
        return lines

    def _block(self, scope: Scope) -> list[str]:
        """A name of an inner block that hides one outside."""
        self.tags.add("hidden name")
        name, out = self.name("h"), self.name("v")
        a, b = (self.expression(scope, "float", 1) for _ in range(2))
        scope.with_value(Value(out, "float", a.bound + b.bound, max(a.grain, b.grain)))
        scope.with_value(Value(name, "float", a.bound, a.grain))
        return [
            f"float {out} = {a.text};", f"const float {name} = {out};", "{",
            f"    const float {name} = {b.text};", f"    {out} += {name};", "}",
        ]  # fmt: skip
