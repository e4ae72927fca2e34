"""A random kernel from a seed: how work is shared, loops and totals, and what is done to an element."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.hostile.random_kernels import quirks, vectors
from tests.hostile.random_kernels.arrays import ELEMENT_TYPES, Reached, Reaching, declared, drawn, stored
from tests.hostile.random_kernels.cpp_elements import CPP_HELPERS, CppElements, call_of
from tests.hostile.random_kernels.elements import Elements, Scope, Value
from tests.hostile.random_kernels.opencl import translated
from tests.hostile.random_kernels.program import Operand, Program
from tests.hostile.random_kernels.teams import Team, flat_team, row_team
from tests.hostile.random_kernels.tiles import generate_tile

TILES = 9  # one kernel of so many has a tile

_HELPERS = (
    "__device__ {inline}float {name}(float a) {{ return a * 2.0f - 1.0f; }}",
    "__device__ {inline}float {name}(float a) {{ if (a > 3.0f) return 3.0f; return a < -3.0f ? -3.0f : a; }}",
    "__device__ {inline}float {name}(const float a) {{\n    float r = a;\n"
    "    for (int j = 0; j < 2; j++) r += 1.0f;\n"
    "    return r;\n}}",
    "template <typename T> __device__ {inline}T {name}(T a) {{ return a > T(0) ? a : -a; }}",
    "#define {name}(a) ((a) * 0.5f)",
    "__device__ {inline}float {name}(float a) {{ const int q = (int)a; return (float)(q ^ (q >> 1)); }}",
)


@dataclass
class Drawing:
    """A kernel under way."""

    rng: random.Random
    elements: Elements
    team: Team
    inputs: list[Reached]
    outputs: list[Reached]
    row_output: Operand | None
    helpers: list[str] = field(default_factory=list)
    top: list[str] = field(default_factory=list)  # before the kernel
    uniform: list[Value] = field(default_factory=list)  # the same for all threads of a team
    staged: str = ""  # a row in shared memory
    wild: bool = True  # loads beside the element
    width: int = 1  # elements that are taken at once

    def element_scope(self, col: str) -> Scope:
        scope = Scope(helpers=self.helpers, col=col)
        scope.values = [
            *self.uniform,
            Value(f"({col} & 7)", "int", 7),
            Value(f"({self.team.row} % 5)", "int", 5),
        ]
        reaching = Reaching(self.elements, self.team.row, col, self.wild)
        scope.loads = [reaching.load(reached, scope) for reached in self.inputs]
        if self.staged:
            scope.values += [Value(f"{self.staged}[{col}]", "float", 64)] * 2
        return scope

    def store(self, reached: Reached, col: str, scope: Scope) -> str:
        value = self.elements.expression(scope, "float", 2)
        if reached.operand.type not in ("float32", "float16", "bfloat16"):
            value = self.elements.expression(scope, "int", 2)
        return stored(reached.operand, f"{self.team.row} * d + {col}", value)


def language_of(seed: int) -> str:
    if seed % TILES == TILES - 1:
        return "cuda"
    return "opencl" if random.Random(f"language {seed}").random() < 0.12 else "cuda"


def generate(seed: int) -> Program:
    if seed % TILES == TILES - 1:
        return generate_tile(seed)
    rng = random.Random(f"kernel {seed}")
    language = language_of(seed)
    elements = CppElements(rng, language)
    promise = rng.choice(("any", "any", "multiple", "few"))
    aligned = rng.random() < 0.8
    width = rng.choice((1, 1, 1, 2, 4)) if aligned and promise != "any" else 1
    columns = "d" if width == 1 else f"(d / {width})"
    team = flat_team(rng, elements, columns) if rng.random() < 0.4 else row_team(rng, elements)
    team.columns = columns
    outputs = [
        Reached(
            Operand(
                f"out{n}", rng.choice(ELEMENT_TYPES), ("rows", "d"), "output", align=16 if aligned else 0
            ),
            "both",
        )
        for n in range(rng.choice((1, 1, 2)))
    ]
    row_output = (
        Operand("per_row", rng.choice(("float32", "int32")), ("rows",), "output") if team.cooperates else None
    )
    inputs = drawn(rng, aligned)
    if language == "opencl":  # PoCL has no halves
        inputs, outputs = ([_widened(one) for one in some] for some in (inputs, outputs))
    drawing = Drawing(rng, elements, team, inputs, outputs, row_output, width=width)
    drawing.wild = rng.random() < 0.6
    for _ in range(rng.choice((0, 0, 1, 2))):
        name = elements.name("g")
        inline = rng.choice(("__forceinline__ ", "", "static "))
        plain = [h for h in _HELPERS if "template" not in h]
        text = rng.choice((*_HELPERS, *CPP_HELPERS) if language == "cuda" else plain)
        drawing.top.append(text.format(name=name, inline=inline))
        drawing.helpers.append(call_of(text, name))
    extra: list[Operand] = []
    body = _flat_body(drawing, extra) if team.is_flat else _row_body(drawing, extra)
    return _program(seed, drawing, body, extra, promise)


def _widened(reached: Reached) -> Reached:
    halves = reached.operand.type in ("float16", "bfloat16")
    return replace(reached, operand=replace(reached.operand, type="float32")) if halves else reached


def _flat_body(drawing: Drawing, extra: list[Operand]) -> list[str]:
    rng, lines = drawing.rng, _row_pointers(drawing)
    if drawing.width > 1:
        return drawing.team.around_element([*lines, *_several(drawing, "i", drawing.outputs, extra)])
    scope = drawing.element_scope("i")
    lines += drawing.elements.statements(scope, rng.choice((0, 1, 2, 3)))
    lines += quirks.in_element(drawing.rng, drawing.elements, drawing.team, scope, extra)
    for reached in drawing.outputs:
        store = drawing.store(reached, "i", scope)
        lines += quirks.guarded_store(rng, drawing.elements, reached, store, scope)
    return drawing.team.around_element(lines)


def _several(drawing: Drawing, col: str, outputs: list[Reached], extra: list[Operand]) -> list[str]:
    """What is done to elements that are taken at once."""
    rng, elements, row, width = drawing.rng, drawing.elements, drawing.team.row, drawing.width
    lines, parts = vectors.loaded(elements, drawing.inputs, row, col, width)
    values: list[list[Value]] = [[] for _ in outputs]
    for part, known in enumerate(parts):
        scope = drawing.element_scope(f"({col} * {width} + {part})")
        scope.values += known * 2
        lines += elements.statements(scope, rng.choice((0, 0, 1)))
        if part == 0:
            lines += quirks.in_element(rng, elements, drawing.team, scope, extra)
        for reached, own in zip(outputs, values, strict=True):
            is_float = reached.operand.type in ("float32", "float16", "bfloat16")
            own.append(elements.expression(scope, "float" if is_float else "int", 2))
    for reached, own in zip(outputs, values, strict=True):
        whole = vectors.stored(elements, reached.operand, row, col, width, own)
        lines += [whole] if whole else [
            stored(reached.operand, f"{row} * d + {col} * {width} + {part}", value)
            for part, value in enumerate(own)
        ]  # fmt: skip
    return lines


def _row_pointers(drawing: Drawing) -> list[str]:
    return [
        f"const {declared(r.operand, False).split('*')[0].replace('const ', '')}*{r.operand.name}_row = "
        f"{r.operand.name} + {drawing.team.row} * d;"
        for r in drawing.inputs
        if r.is_row_pointer
    ]


def _row_body(drawing: Drawing, extra: list[Operand]) -> list[str]:
    rng = drawing.rng
    lines = _row_pointers(drawing)
    left = list(drawing.outputs)
    for _ in range(rng.choice((0, 1, 1, 2))):
        lines += _totals(drawing, extra)
        if rng.random() < 0.4:
            name = drawing.elements.name("u")
            value = drawing.elements.expression(
                Scope(list(drawing.uniform), [], drawing.helpers), "float", 2
            ).small()
            lines.append(f"const float {name} = {value.text};")
            drawing.uniform.append(Value(name, "float", value.bound, value.grain))
    if drawing.row_output is not None:
        if drawing.uniform and rng.random() < 0.8:
            value = drawing.elements.expression(Scope(list(drawing.uniform), [], drawing.helpers), "float", 1)
            store = stored(drawing.row_output, drawing.team.row, value)
            lines += drawing.team.once([store])
        else:
            drawing.row_output = None
    while left:
        taken, left = (left[:1], left[1:]) if rng.random() < 0.5 else (left, [])
        maps = _map(drawing, taken, extra)
        if drawing.uniform and rng.random() < 0.15:
            drawing.elements.tags.add("uniform branch")
            test = drawing.elements.condition(Scope(list(drawing.uniform)), 0)
            other = _map(drawing, taken, extra)
            maps = [f"if ({test}) {{", *_indented(maps), "} else {", *_indented(other), "}"]
        lines += maps
    return drawing.team.around_row(lines)


def _map(drawing: Drawing, outputs: list[Reached], extra: list[Operand]) -> list[str]:
    col = drawing.elements.name("i")
    if drawing.width > 1:
        return drawing.team.loop(col, _several(drawing, col, outputs, extra))
    scope = drawing.element_scope(col)
    lines = drawing.elements.statements(scope, drawing.rng.choice((0, 1, 1, 2)))
    lines += quirks.in_element(drawing.rng, drawing.elements, drawing.team, scope, extra)
    before: list[str] = []
    if drawing.team.is_serial:
        before, inside = quirks.carried(drawing.rng, drawing.elements, scope)
        lines += inside
    for reached in outputs:
        lines += quirks.guarded_store(
            drawing.rng, drawing.elements, reached, drawing.store(reached, col, scope), scope
        )
    return before + drawing.team.loop(col, lines)


def _totals(drawing: Drawing, extra: list[Operand]) -> list[str]:
    """A loop with one or two totals, and what makes them known to the whole team."""
    rng, elements = drawing.rng, drawing.elements
    col = elements.name("i")
    width = drawing.width
    body, parts = vectors.loaded(elements, drawing.inputs, drawing.team.row, col, width)
    places = [f"({col} * {width} + {part})" for part in range(width)] if width > 1 else [col]
    scopes = [drawing.element_scope(place) for place in places]
    for one, known in zip(scopes, parts, strict=True):
        one.values += known * 2
    scope = scopes[0]
    body += elements.statements(scope, rng.choice((0, 0, 1, 2)))
    if rng.random() < 0.3:
        body += quirks.in_element(rng, elements, drawing.team, scope, extra)
    lines: list[str] = []
    joins: list[str] = []
    found: list[Value] = []
    for _ in range(rng.choice((1, 1, 2))):
        operator = rng.choice(("+", "+", "max", "min", "*", "count", "int+", "intmax"))
        elements.tags.add(f"total {operator}")
        name = elements.name("s")
        for place, own in enumerate(scopes):
            kind, start, add, grown = _total(drawing, operator, name, own)
            if place == 0:
                lines.append(f"{kind} {name} = {start};")
            if rng.random() < 0.2:
                add = f"if ({elements.condition(own)}) {{ {add} }}"
            body.append(add)
        joins += drawing.team.joined(
            name, kind, operator.replace("int", "").replace("count", "+"), drawing.top
        )
        known = name if grown[0] < 1e30 else f"fminf(fmaxf({name}, -64.0f), 64.0f)"
        found.append(Value(known, kind, min(grown[0], 64 if known != name else grown[0]), grown[1]))
    if width == 1 and drawing.team.can_stage and not drawing.staged and rng.random() < 0.3:
        elements.tags.add("staged row")
        value = elements.expression(scope, "float", 1).small()
        staged = "kept_row"
        body.append(f"{staged}[{col}] = (float)((int)({value.text}) & 63);")
        lines += drawing.team.loop(col, body) + joins + drawing.team.barrier()
        drawing.staged = staged
    else:
        lines += drawing.team.loop(col, body) + joins
    drawing.uniform += found
    return lines


def _total(
    drawing: Drawing, operator: str, name: str, scope: Scope
) -> tuple[str, str, str, tuple[float, int]]:
    """The total's type, start, statement and bound."""
    elements, rng = drawing.elements, drawing.rng
    if operator in ("count", "int+", "intmax"):
        value = elements.expression(scope, "int", 1).small()
        if operator == "count":
            return "int", "0", f"{name} += {elements.condition(scope)} ? 1 : 0;", (512, 0)
        if operator == "intmax":
            return "int", "-100000", f"{name} = max({name}, {value.text});", (100000, 0)
        return "int", "0", f"{name} += {value.text};", (value.bound * 512, 0)
    value = elements.expression(scope, "float", 2).small()
    if operator == "*":
        text = f"({elements.condition(scope)} ? -1.0f : 1.0f)"
        return "float", "1.0f", f"{name} *= {text};", (1, 0)
    if operator == "+":
        sign = rng.choice(
            (f"{name} += {value.text};", f"{name} = {name} + {value.text};", f"{name} -= {value.text};")
        )
        return "float", "0.0f", sign, (value.bound * 512, value.grain)
    word, start = ("fmaxf", "-INFINITY") if operator == "max" else ("fminf", "INFINITY")
    start = rng.choice((start, start.replace("INFINITY", "FLT_MAX")))
    pick = f"{name} = {word}({name}, {value.text});"
    if rng.random() < 0.3:
        sign = ">" if operator == "max" else "<"
        pick = f"if ({value.text} {sign} {name}) {name} = {value.text};"
    return "float", start, pick, (1e39, value.grain)


def _indented(lines: list[str]) -> list[str]:
    return [line if line.startswith("#") else f"    {line}" for line in lines]


def _program(seed: int, drawing: Drawing, body: list[str], extra: list[Operand], promise: str) -> Program:
    rng, team = drawing.rng, drawing.team
    arrays = [r.operand for r in (*drawing.inputs, *drawing.outputs)]
    arrays += [drawing.row_output] if drawing.row_output else []
    arrays += extra
    conditional = drawing.elements.tags & {"guarded store", "break"}
    arrays = [
        Operand(a.name, a.type, a.shape, "inout", a.low, 8 if a.type != "uint8" else 9, align=a.align)
        if conditional and a.role == "output"
        else a
        for a in arrays
    ]
    sizes = (Operand("rows", "int32", value="rows"), Operand("d", "int32", value="d"))
    operands = (*arrays, *sizes)
    restrict = rng.random() < 0.4
    header = ", ".join(declared(operand, restrict) for operand in operands)
    shared = [f"__shared__ float kept_row[{team.most_columns}];"] if drawing.staged else []
    dynamic = ""
    is_cuda = drawing.elements.language == "cuda"
    if drawing.staged and is_cuda and rng.random() < 0.5:
        shared, dynamic = ["extern __shared__ float kept_row[];"], "4 * d"
    whole = [*team.shared_lines(), *shared, *body]
    prefix, entry = rng.choice((('extern "C" ', "k"), ("", "k"), ("template <int B> ", f"k<{team.threads}>")))
    if not is_cuda:
        prefix, entry = "", "k"
    source = "\n".join(
        ["#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "#include <cfloat>", *drawing.top,
         f"{prefix}__global__ void k({header})", "{", *_indented(whole), "}", ""]
    )  # fmt: skip
    columns = {"any": "{ min = 1, max = 512 }", "multiple": "{ min = 8, max = 512, multiple_of = 8 }"}
    contract = {
        "rows": "{ min = 1, max = 4096 }", "d": columns.get(promise, "{ one_of = [32, 64, 96, 256] }"),
    }  # fmt: skip
    lengths = {"any": (64, 200, 33, 1, 7, 100), "multiple": (64, 200, 8, 40, 256)}.get(
        promise, (64, 256, 32, 96)
    )
    where = tuple({"rows": rng.choice((3, 5, 9, 14)), "d": length} for length in lengths)
    tags = (team.name, promise, drawing.elements.language, *sorted(drawing.elements.tags))
    return Program(
        f"random_{seed}", source if is_cuda else translated(source), operands, team.grid, team.block,
        contract, where, dynamic, entry, tags, drawing.elements.language,
    )  # fmt: skip
