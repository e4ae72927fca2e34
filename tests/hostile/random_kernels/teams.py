"""How a generated kernel shares its work: who takes an element or a row, a team's loops and reductions."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from tests.hostile.random_kernels.elements import Elements

MAX_COLUMNS = 512
_JOIN = {"+": "{a} + {b}", "*": "{a} * {b}", "max": "{max}({a}, {b})", "min": "{min}({a}, {b})"}


def _joined(operator: str, kind: str, a: str, b: str) -> str:
    words = {"max": "fmaxf", "min": "fminf"} if kind == "float" else {"max": "max", "min": "min"}
    return _JOIN[operator].format(a=a, b=b, **words)


def _indented(lines: list[str]) -> list[str]:
    return [line if line.startswith("#") else f"    {line}" for line in lines]


@dataclass
class Team:
    name: str
    rng: random.Random
    elements: Elements
    grid: tuple[str, ...]
    block: tuple[str, ...]
    threads: int  # of a block
    lanes: int  # threads to a row; 1 where a row is one thread's
    row: str = "row"
    is_flat: bool = False
    opening: tuple[str, ...] = ()  # before the work
    wrapped: tuple[str, ...] = ()  # what opens a block around it, that the same number of braces closes
    most_columns: int = MAX_COLUMNS
    columns: str = "d"  # how many there are of what is taken at once
    shared: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)

    @property
    def cooperates(self) -> bool:
        return not self.is_flat

    @property
    def is_serial(self) -> bool:
        return not self.is_flat and self.lanes == 1

    @property
    def is_block(self) -> bool:
        return self.lanes == self.threads and not self.is_flat

    @property
    def can_stage(self) -> bool:
        return self.is_block and self.threads > 1

    @property
    def lane(self) -> str:
        return "threadIdx.x" if self.is_block else "lane"

    def shared_lines(self) -> list[str]:
        return self.shared

    def barrier(self) -> list[str]:
        return ["__syncthreads();"] if self.is_block else []

    def around_element(self, lines: list[str]) -> list[str]:
        return [
            *self.opening,
            *self.wrapped,
            *(_indented(lines) if self.wrapped else lines),
            *["}"] * len(self.wrapped),
        ]

    around_row = around_element

    def once(self, lines: list[str]) -> list[str]:
        if self.is_serial:
            return lines
        return [f"if ({self.lane} == 0) {{", *_indented(lines), "}"]

    def loop(self, col: str, lines: list[str]) -> list[str]:
        """Over the columns of a row."""
        start, step = ("0", "1") if self.is_serial else (self.lane, str(self.lanes))
        kind = (
            self.rng.choice(("int", "int", "int", "unsigned", "long long", "short"))
            if self.is_serial
            else "int"
        )
        if self.is_block and self.rng.random() < 0.5:
            step = "blockDim.x"
        way = self.rng.random()
        if not self.is_serial and way < 0.15:
            base = self.elements.name("b")
            return [
                f"for (int {base} = 0; {base} < {self.columns}; {base} += {step}) {{",
                f"    const int {col} = {base} + {start};",
                f"    if ({col} < {self.columns}) {{",
                *_indented(_indented(lines)),
                "    }",
                "}",
            ]
        increment = f"{col}++" if step == "1" and way < 0.7 else f"{col} += {step}"
        pragma = [f"#pragma unroll {self.rng.choice((2, 4))}"] if way > 0.92 else []
        if kind == "unsigned":
            self.elements.tags.add("unsigned index")
            inner = self.elements.name("i")
            return [
                f"for (unsigned {inner} = 0; {inner} < (unsigned)({self.columns}); {inner}++) {{",
                *_indented([f"const int {col} = (int){inner};", *lines]),
                "}",
            ]
        return [
            *pragma,
            f"for ({kind} {col} = {start}; {col} < {self.columns}; {increment}) {{",
            *_indented(lines),
            "}",
        ]

    def joined(self, name: str, kind: str, operator: str, top: list[str]) -> list[str]:
        """The total of all lanes in `name`, known to each of them."""
        if self.is_serial:
            return []
        if self.elements.language == "opencl":
            return self._tree(name, kind, operator)
        if not self.is_block or self.threads == 32:
            return self._by_shuffles(name, kind, operator, top)
        way = self.rng.choice(("tree", "warps", "warps", "shared by all"))
        self.elements.tags.add(f"reduction by {way}")
        if way == "tree" and self.threads & (self.threads - 1) == 0:
            return self._tree(name, kind, operator)
        return self._warps(name, kind, operator, top)

    def _by_shuffles(self, name: str, kind: str, operator: str, top: list[str]) -> list[str]:
        mask = (
            "0xffffffffu"
            if self.lanes == 32
            else f"({(1 << self.lanes) - 1}u << (threadIdx.x & 31 & ~{self.lanes - 1}))"
        )
        step = self.elements.name("o")
        if self.rng.random() < 0.35 and self.lanes == 32:
            helper = self._helper(kind, operator, top)
            return [f"{name} = {helper}({name});"]
        if self.rng.random() < 0.3 and self.lanes == 32:
            other = f"__shfl_down_sync({mask}, {name}, {step})"
            return [
                f"for (int {step} = 16; {step} > 0; {step} >>= 1) {{",
                f"    {name} = {_joined(operator, kind, name, other)};",
                "}",
                f"{name} = __shfl_sync({mask}, {name}, 0);",
            ]
        other = f"__shfl_xor_sync({mask}, {name}, {step})"
        return [
            f"for (int {step} = {self.lanes // 2}; {step} > 0; {step} /= 2) {{",
            f"    {name} = {_joined(operator, kind, name, other)};",
            "}",
        ]

    def _helper(self, kind: str, operator: str, top: list[str]) -> str:
        key = f"{kind}{operator}"
        if key not in self.helpers:
            self.helpers[key] = self.elements.name("warp_all")
            other = "__shfl_xor_sync(0xffffffffu, v, o)"
            top.append(
                f"__device__ {kind} {self.helpers[key]}({kind} v) {{\n    for (int o = 16; o > 0; o >>= 1)\n"
                f"        v = {_joined(operator, kind, 'v', other)};\n    return v;\n}}"
            )
        return self.helpers[key]

    def _tree(self, name: str, kind: str, operator: str) -> list[str]:
        room, step = self.elements.name("room"), self.elements.name("o")
        self.shared.append(f"__shared__ {kind} {room}[{self.threads}];")
        own, other = f"{room}[threadIdx.x]", f"{room}[threadIdx.x + {step}]"
        return [
            f"{room}[threadIdx.x] = {name};",
            "__syncthreads();",
            f"for (int {step} = {self.threads // 2}; {step} > 0; {step} >>= 1) {{",
            f"    if (threadIdx.x < {step}) {{",
            f"        {own} = {_joined(operator, kind, own, other)};",
            "    }",
            "    __syncthreads();",
            "}",
            f"{name} = {room}[0];",
        ]

    def _warps(self, name: str, kind: str, operator: str, top: list[str]) -> list[str]:
        room, k = self.elements.name("room"), self.elements.name("k")
        warps = self.threads // 32
        self.shared.append(f"__shared__ {kind} {room}[{warps}];")
        helper = self._helper(kind, operator, top)
        return [
            f"{name} = {helper}({name});",
            f"if (threadIdx.x % 32 == 0) {room}[threadIdx.x / 32] = {name};",
            "__syncthreads();",
            f"{name} = {room}[0];",
            f"for (int {k} = 1; {k} < {warps}; {k}++) {{",
            f"    {name} = {_joined(operator, kind, name, f'{room}[{k}]')};",
            "}",
        ]


def flat_team(rng: random.Random, elements: Elements, columns: str = "d") -> Team:
    threads = rng.choice((64, 128, 96))
    kind = rng.choice(("int", "int", "unsigned", "long long"))
    at = elements.name("at")
    parts = [
        f"const int row = {at} / d;",
        rng.choice((f"const int i = {at} % d;", f"const int i = {at} - row * d;")),
    ]
    first = "blockIdx.x * blockDim.x + threadIdx.x"
    if kind == "long long":
        first = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
    every = f"ceildiv(rows * d, {threads})"
    name = rng.choice(("flat", "flat", "grid stride", "plane", "column blocks", "several", "several apart"))
    team = Team(name, rng, elements, (every,), (str(threads),), threads, 1, is_flat=True)
    match name:
        case "flat" if rng.random() < 0.5:
            team.opening = (f"const {kind} {at} = {first};", f"if ({at} >= rows * d) return;", *parts)
        case "flat":
            team.opening = (f"const {kind} {at} = {first};",)
            team.wrapped = (f"if ({at} < rows * d) {{", *(f"    {part}" for part in parts))
        case "grid stride":
            team.grid = (rng.choice(("3", "8", f"min({every}, 5)")),)
            team.wrapped = (
                f"for ({kind} {at} = {first}; {at} < rows * d; {at} += gridDim.x * blockDim.x) {{",
            )
            team.wrapped += tuple(f"    {part}" for part in parts)
        case "plane" if rng.random() < 0.5:
            _rows_in_turn(team, rng)
        case "plane":
            team.grid, team.block = ("ceildiv(d, 16)", "ceildiv(rows, 4)"), ("16", "4")
            team.threads = 64
            team.opening = (
                "const int i = blockIdx.x * blockDim.x + threadIdx.x;",
                "const int row = blockIdx.y * blockDim.y + threadIdx.y;",
                "if (i >= d || row >= rows) return;",
            )
        case "column blocks":
            team.grid = (f"ceildiv(d, {threads})", "rows")
            team.opening = ("const int row = blockIdx.y;", f"const int i = {first};", "if (i >= d) return;")
        case _:
            apart = name == "several apart"
            team.grid = (f"ceildiv(rows * d, {threads * 4})",)
            begin = f"blockIdx.x * {threads * 4} + threadIdx.x" if apart else f"({first}) * 4"
            team.opening = (f"const int first = {begin};".replace("(long long)", ""),)
            team.wrapped = (
                "for (int n = 0; n < 4; n++) {",
                f"    const int {at} = first + n{f' * {threads}' if apart else ''};",
                f"    if ({at} >= rows * d) {'continue' if apart else 'break'};",
                *(f"    {part}" for part in parts),
            )
    if columns != "d":
        team.opening = tuple(re.sub(r"\bd\b", columns, line) for line in team.opening)
        team.wrapped = tuple(re.sub(r"\bd\b", columns, line) for line in team.wrapped)
    return _closed(team)


def _rows_in_turn(team: Team, rng: random.Random) -> None:
    """Each thread takes four rows of a column, one after the other."""
    team.name, team.threads = "rows in turn", 64
    team.grid, team.block = ("ceildiv(d, 16)", "ceildiv(rows, 16)"), ("16", "4")
    team.opening = (
        "const int i = blockIdx.x * blockDim.x + threadIdx.x;",
        "const int top = (blockIdx.y * blockDim.y + threadIdx.y) * 4;",
        "if (i >= d) return;",
    )
    start = rng.choice(("top", "0"))
    if start == "top":
        team.wrapped = ("for (int row = top; row < min(rows, top + 4); ++row) {",)
        return
    leave = rng.choice(("break", "continue"))
    team.wrapped = (
        "for (int n = 0; n < 4; n++) {",
        "    const int row = top + n;",
        f"    if (row >= rows) {leave};",
    )


def _closed(team: Team) -> Team:
    """Only the first of the wrapping lines opens a block: the others go with the work."""
    if len(team.wrapped) > 1:
        head, *rest = team.wrapped
        own = team.around_element

        def around(lines: list[str]) -> list[str]:
            return own([*(line.removeprefix("    ") for line in rest), *lines])

        team.wrapped = (head,)
        team.around_element = around  # type: ignore[method-assign]
    return team


def row_team(rng: random.Random, elements: Elements) -> Team:
    name = rng.choice(
        ("block", "block", "block", "warp", "warp", "part of a warp", "thread", "thread", "block of rows")
    )
    if elements.language == "opencl" and "warp" in name:
        name = "block"
    if name in ("block", "block of rows"):
        threads = rng.choice((32, 64, 64, 128, 96 if elements.language == "cuda" else 16))
        team = Team(name, rng, elements, ("rows",), (str(threads),), threads, threads)
        team.opening = (rng.choice(("const int row = blockIdx.x;", "int row = (int)blockIdx.x;")),)
        if name == "block of rows":
            team.grid, team.opening = (rng.choice(("2", "4")),), ()
            team.wrapped = ("for (int row = blockIdx.x; row < rows; row += gridDim.x) {",)
            inner = team.around_element
            team.around_row = lambda lines: inner([*lines, "__syncthreads();"])  # type: ignore[method-assign]
        return team
    threads = rng.choice((64, 128))
    if name == "thread":
        team = Team(name, rng, elements, (f"ceildiv(rows, {threads})",), (str(threads),), threads, 1)
        team.opening = ("const int row = blockIdx.x * blockDim.x + threadIdx.x;", "if (row >= rows) return;")
        return team
    lanes = 32 if name == "warp" else rng.choice((8, 16, 4))
    team = Team(name, rng, elements, (f"ceildiv(rows, {threads // lanes})",), (str(threads),), threads, lanes)
    row = f"blockIdx.x * {threads // lanes} + threadIdx.x / {lanes}"
    if rng.random() < 0.5:
        row = f"(blockIdx.x * blockDim.x + threadIdx.x) / {lanes}"
    lane = rng.choice((f"threadIdx.x % {lanes}", f"threadIdx.x & {lanes - 1}"))
    team.opening = (f"const int row = {row};", f"const int lane = {lane};", "if (row >= rows) return;")
    return team
