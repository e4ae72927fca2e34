"""Random kernels with a tile in shared memory: halos, edges, transposes, products; some with a flaw.

What is flawed differs from run to run or reads what nobody wrote: the expert must leave it alone."""

from __future__ import annotations

import random

from tests.hostile.random_kernels.program import Operand, Program

_BLOCKS = ((8, 4), (16, 4), (8, 8), (16, 2), (4, 8))
_SIZES = tuple({"rows": rows, "d": d} for rows, d in ((9, 33), (16, 64), (1, 7), (13, 20)))


def generate_tile(seed: int) -> Program:
    rng = random.Random(f"tile {seed}")
    made = rng.choice((_stencil, _stencil, _transpose, _product))(rng)
    source, tags, out, block, grid = made
    operands = (
        Operand("x", rng.choice(("float32", "float32", "int32")), ("rows", "d"), align=rng.choice((0, 16))),
        Operand("taps", "float32", ("16",)),
        Operand("out", "float32", out, "output", align=rng.choice((0, 16))),
        Operand("rows", "int32", value="rows"),
        Operand("d", "int32", value="d"),
    )
    kind = "float" if operands[0].type == "float32" else "int"
    head = f'extern "C" __global__ void k(const {kind} *x, const float *taps, float *out, int rows, int d)'
    lines = "\n".join(f"    {line}" for line in source)
    promise = {"rows": "{ min = 1, max = 4096 }", "d": "{ min = 1, max = 512 }"}
    text = f"{head}\n{{\n{lines}\n}}\n"
    return Program(f"tile_{seed}", text, operands, grid, block, promise, _SIZES, tags=("tile", *tags))


_Made = tuple[list[str], tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _grid(bx: int, by: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (str(bx), str(by)), (f"ceildiv(d, {bx})", f"ceildiv(rows, {by})")


def _flaw(rng: random.Random) -> str:
    return rng.choice(("no barrier", "hole", "weak", "strict")) if rng.random() < 0.1 else ""


def _barrier(flaw: str) -> list[str]:
    return [] if flaw == "no barrier" else ["__syncthreads();"]


def _guarded(rng: random.Random, place: str, test: str, value: str, flaw: str) -> list[str]:
    """A write of the value where the test holds, and of something else where it does not."""
    test = test.replace("< d", "< d - 1") if flaw == "strict" else test
    way = rng.choice(("choice", "branch", "first", "turned"))
    match way:
        case "choice":
            return [f"{place} = {test} ? {value} : 0;"]
        case "branch":
            return [f"if ({test}) {place} = {value}; else {place} = 1;"]
        case "first":
            return [f"{place} = 0;", f"if ({test}) {place} = {value};"]
    return [f"{place} = !({test}) ? 2 : {value};"]


def _stencil(rng: random.Random) -> _Made:
    (bx, by), flaw = rng.choice(_BLOCKS), _flaw(rng)
    hx, hy = rng.choice((0, 1, 2)), rng.choice((0, 1, 2))
    wide, high = bx + 2 * hx, by + 2 * hy
    pad = rng.choice((0, 1, 3))
    two = rng.random() < 0.6
    room = f"[{high}][{wide + pad}]" if two else f"[{high * (wide + pad)}]"
    lines = [f"__shared__ float t{room};"]

    def at(row: str, col: str) -> str:
        return f"t[{row}][{col}]" if two else f"t[({row}) * {wide + pad} + {col}]"

    lines += ["const int tx = threadIdx.x, ty = threadIdx.y;"]
    lines += [f"const int col = blockIdx.x * {bx} + tx, row = blockIdx.y * {by} + ty;"]
    tags = [f"halo {hx} {hy}", flaw] if flaw else [f"halo {hx} {hy}"]
    clamped = rng.random() < 0.35
    inside = "r >= 0 && r < rows && c >= 0 && c < d"
    if clamped:
        tags.append("clamped")
        body = [
            f"const int r = min(max((int)blockIdx.y * {by} + i / {wide} - {hy}, 0), rows - 1);",
            f"const int c = min(max((int)blockIdx.x * {bx} + i % {wide} - {hx}, 0), d - 1);",
            f"{at(f'i / {wide}', f'i % {wide}')} = x[r * d + c];",
        ]
    else:
        body = [
            f"const int r = (int)blockIdx.y * {by} + i / {wide} - {hy};",
            f"const int c = (int)blockIdx.x * {bx} + i % {wide} - {hx};",
            *_guarded(rng, at(f"i / {wide}", f"i % {wide}"), inside, "x[r * d + c]", flaw),
        ]
    lines += [f"for (int i = ty * {bx} + tx; i < {wide * high}; i += {bx * by}) {{", *body, "}"]
    table = rng.random() < 0.3
    if table:
        lines += ["__shared__ float w[16];", "if (ty == 0 && tx < 4) w[tx] = taps[tx];"]
    lines += _barrier(flaw)
    reach = hx + 1 if flaw == "hole" else hx
    places = [(rng.randint(0, 2 * hy), rng.randint(0, hx + reach)) for _ in range(rng.choice((1, 2, 4)))]
    terms = [f"{at(f'ty + {row}', f'tx + {col}')} * {rng.choice((1, 2, -1))}" for row, col in places]
    if flaw == "hole":
        terms.append(at(f"ty + {2 * hy}", f"tx + {2 * hx + 1}"))
    lines += [f"float sum = {' + '.join(terms)};"]
    if rng.random() < 0.5:
        lines += [f"for (int j = 0; j < {2 * hx + 1}; j++)", f"    sum += {at(f'ty + {hy}', 'tx + j')};"]
    if table:
        lines += ["sum += w[2];", "for (int j = 0; j < 4; j++) sum -= w[j];"]
    test = "col < d && row < rows" if flaw != "weak" else "col < d + 0 && row < rows"
    lines += [f"if ({test}) out[row * d + col] = sum;"]
    return lines, tuple(tags), ("rows", "d"), *_grid(bx, by)


def _transpose(rng: random.Random) -> _Made:
    side, step, flaw = *rng.choice(((8, 8), (8, 4), (16, 4), (16, 8))), _flaw(rng)
    lines = [f"__shared__ float t[{side}][{side + rng.choice((0, 1, 2))}];"]
    lines += [f"int c = blockIdx.x * {side} + threadIdx.x, r = blockIdx.y * {side} + threadIdx.y;"]
    tests = {"strict": "c < d - 1 && r + j < rows", "weak": "c < d && r + j < rows - 1"}
    test = tests.get(flaw, "c < d && r + j < rows")
    lines += [f"for (int j = 0; j < {side}; j += {step})"]
    lines += [f"    if ({test}) t[threadIdx.y + j][threadIdx.x] = x[(r + j) * d + c];", *_barrier(flaw)]
    more = " + 1" if flaw == "hole" else ""
    lines += [f"r = blockIdx.y * {side} + threadIdx.x;", f"c = blockIdx.x * {side} + threadIdx.y;"]
    scaled = rng.choice(("", " * 2 + 1", " * taps[3]"))
    lines += [f"for (int j = 0; j < {side}; j += {step}) {{", "    if (r >= rows || c + j >= d) continue;"]
    lines += [f"    out[(c + j) * rows + r] = t[threadIdx.x][(threadIdx.y + j{more}) % {side}]{scaled};", "}"]
    grid = (f"ceildiv(d, {side})", f"ceildiv(rows, {side})")
    return lines, ("transpose", flaw or "whole"), ("d", "rows"), (str(side), str(step)), grid


def _product(rng: random.Random) -> _Made:
    side, flaw = rng.choice((4, 8)), _flaw(rng)
    lines = [f"__shared__ float a[{side}][{side + 1}], b[{side}][{side}];"]
    lines += [f"const int c = blockIdx.x * {side} + threadIdx.x, r = blockIdx.y * {side} + threadIdx.y;"]
    lines += ["float sum = 0.0f;", f"for (int k = 0; k < d; k += {side}) {{"]
    left = "r < rows && k + (int)threadIdx.x < d"
    lines += _guarded(rng, "a[threadIdx.y][threadIdx.x]", left, "x[r * d + k + threadIdx.x]", flaw)
    right = "c < rows && k + (int)threadIdx.y < d"
    lines += _guarded(rng, "b[threadIdx.y][threadIdx.x]", right, "x[c * d + k + threadIdx.y]", "")
    lines += _barrier(flaw)
    lines += [f"for (int j = 0; j < {side}; j++) sum += a[threadIdx.y][j] * b[j][threadIdx.x];"]
    lines += [*([] if flaw == "weak" else ["__syncthreads();"]), "}"]
    lines += ["if (r < rows && c < rows) out[r * rows + c] = sum;"]
    grid = (f"ceildiv(rows, {side})", f"ceildiv(rows, {side})")
    return lines, ("product", flaw or "whole"), ("rows", "rows"), (str(side), str(side)), grid
