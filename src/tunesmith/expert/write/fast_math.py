"""Exact operations behind macros, for a switch of the template to replace by something faster.

Under `fast` functions and quotients of floats come from the special-function unit; under `reciprocal` a
quotient by what is the same for a whole loop becomes a product. Which is right enough is the oracle's to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.expert.read.model import Each, KernelModel, Let, Once, Repeat, all_steps, own_parts
from tunesmith.expert.write.buffers import LoopPlan
from tunesmith.expert.write.given import Names, render_template_part, words_in_texts
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.expert.write.sites import starts_at_zero
from tunesmith.source import tree as c
from tunesmith.source.printing import print_function, print_statements
from tunesmith.source.snippets import Wording, parse_snippet
from tunesmith.source.snippets import parse_snippet_expr as snippet
from tunesmith.source.types import Types, is_integer, type_of
from tunesmith.source.walk import calls_in, declared_in, map_expr, map_nodes, names_in, nodes_in, writes_in

FLOAT, INTEGER = "float", "int"
Inverses = tuple[tuple[str, c.Expr], ...]  # reciprocals: name and divisor
_ANY = c.Parameter(c.Type(FLOAT), "x")


def declared_types(part: Iterable[c.Stmt]) -> dict[str, c.Type | None]:
    """Of every variable declared; None where two of one name differ."""
    found: dict[str, c.Type | None] = {}
    for node in nodes_in(tuple(part)):
        if isinstance(node, c.Declare):
            type_ = c.Type(node.type.base, node.type.pointers + len(node.dims))
            found[node.name] = type_ if found.get(node.name, type_) == type_ else None
    return found


def known_types(kernel: KernelModel) -> dict[str, c.Type | None]:
    """Of everything that steps may name, as far as the model tells; None where two of one name differ."""
    found: dict[str, c.Type | None] = {p.name: p.type for p in kernel.function.parameters}
    found |= {task.name: c.Type(task.type) for task in kernel.tasks}
    found |= {task.count: c.Type("unsigned int") for task in kernel.tasks if task.count}
    found |= {staged.name: c.Type(staged.type.base, 1) for staged in kernel.staged}
    bodies: list[c.Stmt] = []
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Repeat):
            found[step.index] = c.Type(step.type)
        if isinstance(step, Each):
            found |= {total.name: total.type for total in step.totals}
        if isinstance(step, Each | Let | Once):
            bodies += step.body
    return found | declared_types(bodies)


# The function -> its macro, and how the macro reads when fast. `{0}` are the arguments.
_GPU = {
    "expf": ("EXP", "__expf({0})"),
    "logf": ("LOG", "__logf({0})"),
    "log2f": ("LOG2", "__log2f({0})"),
    "log10f": ("LOG10", "__log10f({0})"),
    "sinf": ("SIN", "__sinf({0})"),
    "cosf": ("COS", "__cosf({0})"),
    "powf": ("POW", "__powf({0})"),
    "tanhf": ("TANH", "1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * {0}))"),
}
_GPU |= {name.removesuffix("f"): _GPU[name] for name in ("expf", "logf", "tanhf")}
_CPU = {
    "exp": ("EXP", "fast_exp({0})"),
    "native_exp": ("EXP", "fast_exp({0})"),
    "tanh": ("TANH", "1.0f - 2.0f / (1.0f + fast_exp(2.0f * {0}))"),
}


@dataclass
class FastMath:
    """Rewrites statements, and remembers which macros they now need."""

    language: str
    names: Names
    fast: str = ""  # the macros that decide; "" where there is none
    reciprocal: str = ""
    functions: tuple[c.Function, ...] = ()  # the source's own, as far as their results are known
    aliases: Mapping[str, str] = field(default_factory=dict)  # the source's own names for types
    _macros: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # what -> name, plain, fast
    _over: str = ""
    near: str = ""  # the macro for 1 / divisor, which may name its argument several times

    def statements(
        self,
        body: Iterable[c.Stmt],
        types: Mapping[str, c.Type | None],
        varying: frozenset[str] | None = None,
    ) -> tuple[tuple[c.Stmt, ...], Inverses]:
        """The statements, and the reciprocals they use, to be computed before the loop.

        `varying` are the names that change from turn to turn; None: there is no loop."""
        stmts = tuple(body)
        named = {**types, **declared_types(stmts)}
        known = {name: self._plain(type_) for name, type_ in named.items() if type_ is not None}
        changing = None if varying is None else varying | set(declared_in(stmts))
        inverses: dict[c.Expr, str] = {}

        def rewrite(node: c.Expr) -> c.Expr:
            match node:
                case c.Call(function=function, args=args) if self.fast and function in self._function_table:
                    is_own = any(helper.name == function for helper in self.functions)
                    if not is_own and self._base(node, known) == FLOAT:
                        return c.Call(self._macro_of(function), args)
                case c.Binary(op="/", left=left, right=right):
                    return self._quotient(left, right, node, known, changing, inverses)
                case c.Assign(op="/=", target=target, value=value):
                    plain = c.Binary("/", target, value)
                    quotient = self._quotient(target, value, plain, known, changing, inverses)
                    return node if quotient is plain else c.Assign("=", target, quotient)
            return node

        return map_nodes(stmts, rewrite), tuple((name, divisor) for divisor, name in inverses.items())

    def _plain(self, type_: c.Type) -> c.Type:
        return replace(type_, base=self.aliases.get(type_.base, type_.base))

    def _base(self, expr: c.Expr, known: Types) -> str | None:
        """ "float", "int" for any integer, another type's name; None where it is not known."""
        counts = {
            name: len(_macro_parameters(what).split(",")) for what, (name, _, _) in self._macros.items()
        }
        counts[self._over] = 3
        macros = (c.Function(name, (_ANY,) * count, (), _ANY.type) for name, count in counts.items())
        type_ = type_of(expr, known, (*self.functions, *macros), self.language)
        if type_ is None or type_.is_pointer:
            return None
        return INTEGER if is_integer(type_) else type_.base

    @property
    def _function_table(self) -> Mapping[str, tuple[str, str]]:
        return _CPU if self.language == "opencl" else _GPU

    def _macro_of(self, function: str) -> str:
        macro, fast = self._function_table[function]
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
        known: Types,
        changing: frozenset[str] | None,
        inverses: dict[c.Expr, str],
    ) -> c.Expr:
        bases = [self._base(side, known) for side in (left, right)]
        if _has_effects(left) or _has_effects(right):
            return node
        if FLOAT not in bases or not set(bases) <= {FLOAT, INTEGER}:
            return node
        if isinstance(right, c.Number) and right.value > 0 and math.frexp(right.value)[0] == 0.5:
            return node  # a power of two
        if changing is not None and self.reciprocal and names_in(right).isdisjoint(changing):
            if right not in inverses:
                inverses[right] = self.names.fresh("inverse")
            self._over = self._over or self.names.fresh("OVER")
            self.near = self.near or self.names.fresh("INVERSE")
            return c.Call(self._over, (left, right, c.Name(inverses[right])))
        if not self.fast or self.language == "opencl":
            return node
        if "/" not in self._macros:
            self._macros["/"] = (self.names.fresh("QUOTIENT"), "x / y", "__fdividef(x, y)")
        return c.Call(self._macros["/"][0], (left, right))

    @property
    def all_names(self) -> frozenset[str]:
        """Of the macros asked for so far."""
        return frozenset((*(name for name, _, _ in self._macros.values()), self._over))

    def macros(self, code: Sequence[str]) -> str:
        """What the code may use."""
        fast, plain = (
            [
                c.MacroDefinition(macro[0], snippet(macro[way]), tuple(_macro_parameters(what).split(", ")))
                for what, macro in self._macros.items()
            ]
            for way in (2, 1)
        )
        about = "good to a few units in the last place"
        switch = Wording({}).when(self.fast, fast, plain, about) if fast else ()
        texts = (print_statements(switch), self._over_macros() if self._over in words_in_texts(code) else "")
        return "\n".join(text for text in texts if text)

    def _over_macros(self) -> str:
        on_gpu, file = self.language != "opencl", "divisions.h"
        plain = f"{self._macros['/'][0]}(x, y)" if "/" in self._macros else "((x) / (y))"
        near = (
            render_template_part(file, "inverse", KIND=self.reciprocal, INVERSE=self.near) if on_gpu else ""
        )
        fma = "fmaf" if on_gpu else "fma"
        return near + render_template_part(
            file, "over", KIND=self.reciprocal, OVER=self._over, FMA=fma, PLAIN=plain
        )


def _macro_parameters(what: str) -> str:
    return "x, y" if what in ("/", "powf") else "x"


def _has_effects(expr: c.Expr) -> bool:
    """A macro may evaluate its argument more than once."""
    return any(writes_in(expr))


def used_functions(kernel: KernelModel) -> tuple[c.Function, ...]:
    """Helpers that the steps call, and those that these call, in the order of the file."""
    by_name: dict[str, list[c.Function]] = {}
    for function in kernel.source.functions:
        if not function.is_kernel:
            by_name.setdefault(function.name, []).append(function)
    wanted: set[str] = set()
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    pending = [word for part in parts for word in _collect_words(part)]
    while pending:
        name = pending.pop()
        if name in by_name and name not in wanted:
            wanted.add(name)
            for function in by_name[name]:
                pending += _collect_words(function.body)
                pending += re.findall(r"[A-Za-z_]\w*", function.text)
    return tuple(f for f in kernel.source.functions if f.name in wanted and not f.is_kernel)


def _collect_words(part: c.Expr | tuple[c.Stmt, ...]) -> list[str]:
    found = list(names_in(part))
    for call in calls_in(part):
        found += [call.function, *re.findall(r"[A-Za-z_]\w*", " ".join(call.template_args))]
    return found


def helper_text(
    function: c.Function, fast: FastMath, language: str, hardware: str = "", switch: str = ""
) -> str:
    """The function as it stands, or with fast forms behind macros where its body has any.

    `hardware`: the statement that does the same on the device's own unit, taken where `switch` is set."""
    types = {parameter.name: parameter.type for parameter in function.parameters}
    body, _ = fast.statements(function.body, dict(types))
    text = function.text.strip() or print_function(function, language).strip()
    if body == function.body and function.commented and not (hardware and switch):
        return f"{function.commented}\n"
    if body != function.body:
        head = text.partition("{")[0].rstrip()
        text = print_function(c.Function(function.name, function.parameters, body, function.result), language)
        text = f"{head}\n{text[text.index('{') :]}".strip()
    if hardware and switch:
        opening = text.index("{") + 1
        inner = text[opening : text.rindex("}")].strip("\n")
        text = f"{text[:opening]}\n#if {switch}\n    {hardware}\n#else\n{inner}\n#endif\n}}"
    return "".join(f"// {line}\n" for said in function.comments for line in said.lines) + text + "\n"


def preamble_lines(source: c.Source) -> list[str]:
    below = ["", *(text.rstrip() for text in source.preamble)] if source.preamble else []
    return [*(f"#include {include}" for include in source.includes), *below]


# -- Cheaper divisions of a loop's index by what is the same for the whole launch: shifts, or products.
#
# i / d, i % d        d a power of two: i >> shift, i & d - 1
#                     i * d below 2^32: the high half of i * ceil(2^32 / d), which is exactly the quotient


_WORDS = 4294967296  # 2^32
_OF_ONE_WORD = frozenset(("int", "unsigned int", "unsigned"))


def find_index_divisors(plan: WritingPlan) -> Iterator[tuple[LoopPlan, c.Expr]]:
    """Loops with divisors of their index that only the call knows; of indices in one word.

    None where the schedule has no other forms of such quotients."""
    if not plan.knobs.divide.is_parameter or plan.language == "opencl":
        return
    known = {p.name for p in plan.kernel.function.parameters if is_integer(p.type)}
    for loop in plan.all_loops:
        in_one_word = starts_at_zero(loop.each) and loop.each.type in _OF_ONE_WORD
        if not in_one_word or plan.sizes.node(loop.extent) is None:
            continue
        for node in nodes_in(loop.each.body):
            match node:
                case c.Binary(op="/" | "%", left=left, right=by) if _strip_index_casts(left) == c.Name(
                    loop.each.index
                ):
                    if names_in(by) and names_in(by) <= known and plan.sizes.node(by) is not None:
                        yield loop, by


def _strip_index_casts(expr: c.Expr) -> c.Expr:
    while isinstance(expr, c.Cast) and is_integer(expr.type) and expr.type.base in _OF_ONE_WORD:
        expr = expr.value
    return expr


class IndexDivision:
    """Nothing where the schedule has no such choice."""

    def __init__(self, plan: WritingPlan) -> None:
        self._kind, self._names = plan.knobs.divide, dict[c.Expr, str]()
        self._quotient, self._rest = plan.word("DIVIDED"), plan.word("REMAINDER")
        for _, by in find_index_divisors(plan):
            if by not in self._names:
                self._names[by] = plan.names.fresh("divisor")

    def in_expr(self, expr: c.Expr, index: c.Expr) -> c.Expr:
        """With the quotients and remainders of this index by known divisors in their cheaper forms."""
        if not self._names:
            return expr

        def visit(node: c.Expr) -> c.Expr:
            match node:
                case c.Binary(op="/" | "%" as op, left=left, right=by) if by in self._names:
                    if _strip_index_casts(left) == index:
                        function = self._quotient if op == "/" else self._rest
                        return c.Call(function, (left, by, c.Name(self._names[by])))
            return node

        return map_expr(expr, visit)

    @property
    def functions(self) -> dict[str, str]:
        """Its macros, with the operators that they are."""
        return {self._quotient: "/", self._rest: "%"} if self._names else {}

    def macros(self) -> str:
        words = {"KIND": self._kind.name, "QUOTIENT": self._quotient, "REST": self._rest}
        return render_template_part("divisions.h", "of an index", **words) if self._names else ""

    def declare(self) -> tuple[c.Stmt, ...]:
        """At the top of the kernel."""
        if not self._names:
            return ()

        def made(text: str) -> tuple[c.Stmt, ...]:
            return tuple(s for by, name in self._names.items() for s in parse_snippet(text, own=name, by=by))

        w = Wording({"KIND": self._kind.name})
        products = w.when("KIND == 2", made("const unsigned own = 0xffffffffu / (unsigned)by + 1u;"))
        return w.when("KIND == 1", made("const int own = 31 - __clz(by);"), products)


def division_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What the forms rely on, as the template's `require`."""
    kind = plan.knobs.divide.name
    powers: dict[str, None] = {}
    extents: dict[str, dict[str, None]] = {}  # divisor -> lengths of loops that divide by it
    for loop, divisor in find_index_divisors(plan):
        by, extent = plan.sizes.text(divisor), plan.sizes.text(loop.extent)
        powers[f"is_pow2({by})"] = None
        extents.setdefault(str(by), {})[str(extent)] = None
    if not powers:
        return []
    longest = {by: next(iter(t)) if len(t) == 1 else f"max({', '.join(t)})" for by, t in extents.items()}
    products = [f"{by} > 1 and ({extent}) * ({by}) < {_WORDS}" for by, extent in longest.items()]
    return [
        ("shifts", f"{kind} != 1 or {' and '.join(powers)}"),
        ("products", f"{kind} != 2 or {' and '.join(products)}"),
    ]
