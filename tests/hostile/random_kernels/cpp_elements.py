"""Statements of an element, and helpers, as C++ has them: namespaces, overloads, pointers, narrow numbers."""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile.random_kernels.elements import Elements, Scope, Value

# Each is called with one float and gives at most four times it and 16. `{call}` is what calls are written as.
CPP_HELPERS = (
    "namespace n_{name} {{ __device__ float {name}(float a) {{ return a + 1.0f; }} }}\n"
    "namespace m_{name} {{ __device__ float {name}(float a) {{ return a * 2.0f; }}\n"
    "__device__ float other(float a) {{ return {name}(a) - n_{name}::{name}(a); }} }}",
    "namespace n_{name} {{ __device__ float max(float a) {{ return a * 2.0f; }}\n"
    "__device__ float {name}(float a) {{ return max(a) - ::fmaxf(a, 1.0f); }} }}",
    "__device__ float {name}(float a, float b = 2.0f, int c = 1) {{ return a * b - c; }}",
    "__device__ float {name}(int a) {{ return a * 3.0f; }}\n"
    "__device__ float {name}(float a) {{ return a + 2.0f; }}",
    "__device__ void {name}_to(float &a) {{ a = a * 2.0f - 1.0f; }}\n"
    "__device__ float {name}(float a) {{ {name}_to(a); return a; }}",
    "__device__ float {name}_sum(const float *v, int n) {{ float s = 0.0f; "
    "for (int j = 0; j < n; j++) s += v[j]; return s; }}\n"
    "__device__ float {name}(float a) {{ float b[2] = {{a, 1.0f}}; const float *p = b; "
    "return {name}_sum(p, 2); }}",
    "__device__ float {name}(float a) {{ int n = 0; float r = a; "
    "do {{ if (r < 0.0f) return r; r -= 4.0f; n++; }} while (n < 3); return r + n; }}",
    "__device__ unsigned char {name}_cut(int a) {{ return a; }}\n"
    "__device__ float {name}(float a) {{ return {name}_cut((int)a) & 15; }}",
)


def call_of(text: str, name: str) -> str:
    return f"n_{name}::{name}" if text.startswith("namespace") else name


class CppElements(Elements):
    def kinds(self) -> list[Callable[[Scope], list[str]]]:
        own = [self._narrow, self._unsigned, self._do_while, self._skipping, self._pointer, self._guards]
        return [*super().kinds(), *own] if self.language == "cuda" else super().kinds()

    def _narrow(self, scope: Scope) -> list[str]:
        self.tags.add("narrow compound")
        word, name = (
            self.rng.choice(("unsigned char", "signed char", "short", "unsigned short")),
            self.name("n"),
        )
        first, more = (self.expression(scope, "int", 1).small() for _ in range(2))
        lines = [f"{word} {name} = ({word})({first.text});"]
        for _ in range(self.rng.choice((1, 2, 3))):
            sign = self.rng.choice(("+=", "-=", "*=", "^=", "&=", "|="))
            lines.append(self.rng.choice((f"{name} {sign} {more.text};", f"{name}++;", f"{name} >>= 1;")))
        scope.with_value(Value(name, "int", 1 << 16))
        return lines

    def _unsigned(self, scope: Scope) -> list[str]:
        self.tags.add("unsigned below zero")
        name, out = self.name("u"), self.name("v")
        first = self.expression(scope, "int", 1).small()
        scope.with_value(Value(out, "int", 116))
        return [
            f"const unsigned {name} = (unsigned)({first.text}) - {self.rng.choice((1, 3, 9))}u;",
            f"const int {out} = {name} > 100u ? (int)({name} >> 28) : (int){name};",
        ]

    def _do_while(self, scope: Scope) -> list[str]:
        self.tags.add("do while")
        left, count = self.name("q"), self.name("c")
        start = self.expression(scope, "int", 1)
        scope.with_value(Value(count, "int", 8))
        body = [f"    {left} -= {self.rng.choice((2, 3))};", f"    {count}++;"]
        if self.rng.random() < 0.4:
            body.insert(1, f"    if ({left} == 1) break;")
        return [
            f"int {left} = ({start.text}) & 15;", f"int {count} = 0;",
            "do {", *body, f"}} while ({left} > 0);",
        ]  # fmt: skip

    def _skipping(self, scope: Scope) -> list[str]:
        self.tags.add("continue")
        name, k = self.name("v"), self.name("k")
        inner = Scope([*scope.values, Value(k, "int", 5)], scope.loads, scope.helpers)
        term = self.expression(inner, "float", 1).small()
        test = self.condition(inner, 0)
        scope.with_value(Value(name, "float", term.bound * 5, term.grain))
        return [
            f"float {name} = 0.0f;", f"for (int {k} = 0; {k} < 5; {k}++) {{",
            f"    if ({test}) continue;", f"    {name} += {term.text};", "}",
        ]  # fmt: skip

    def _pointer(self, scope: Scope) -> list[str]:
        self.tags.add("local pointer")
        array, pointer, k = self.name("a"), self.name("p"), self.name("k")
        inner = Scope([*scope.values, Value(k, "int", 4)], scope.loads, scope.helpers)
        term = self.expression(inner, "float", 1)
        place = self.expression(scope, "int", 1)
        start = self.rng.choice((f"{array} + 1", f"&{array}[2]", array))
        scope.with_value(Value(f"{pointer}[({place.text}) & 1]", "float", term.bound, term.grain))
        scope.with_value(Value(f"*{pointer}", "float", term.bound, term.grain))
        return [
            f"float {array}[4];", f"for (int {k} = 0; {k} < 4; {k}++) {array}[{k}] = {term.text};",
            f"float *{pointer} = {start};", f"{pointer}[1] = {pointer}[0];",
        ]  # fmt: skip

    def _guards(self, scope: Scope) -> list[str]:
        self.tags.add("nested guards")
        name = self.name("v")
        values = [self.expression(scope, "float", 1) for _ in range(3)]
        tests = [self.condition(scope, 1) for _ in range(3)]
        scope.with_value(Value(name, "float", max(v.bound for v in values), max(v.grain for v in values)))
        return [
            f"float {name} = {values[0].text};", f"if ({tests[0]}) {{", f"    if ({tests[1]})",
            f"        {name} = {values[1].text};", f"    else if ({tests[2]})",
            f"        {name} = {values[2].text};", "}",
        ]  # fmt: skip
