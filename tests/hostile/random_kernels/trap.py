"""One thing that is easily read wrong, in a kernel of a fixed shape: flat, a thread to a row, or a block."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.hostile.random_kernels.program import Operand, Program

_ROWS, _D = Operand("rows", "int32", value="rows"), Operand("d", "int32", value="d")
_X = Operand("x", "float32", ("rows", "d"), align=16)
_OUT = Operand("out", "float32", ("rows", "d"), "inout", align=16)
_AUX = Operand("aux", "int32", ("64",), "inout", 0, 0)
ALL = ("ceildiv(rows * d, 64)",)
_I = "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
_FLAT = _I + "if (i >= rows * d) return;\n"
_BLOCK = "const int row = blockIdx.x;\nx += row * d; out += row * d;\n"
_THREAD = _I.replace(" i ", " row ") + "if (row >= rows) return;\nx += row * d; out += row * d;\n"
LOOP = "for (int i = threadIdx.x; i < d; i += 64) "
SUM = "float s = 0.0f;\n" + LOOP + "s += x[i];\n"
TREE = (
    "__shared__ float room[64];\nroom[threadIdx.x] = s;\n__syncthreads();\n"
    "for (int o = 32; o > 0; o >>= 1) {\n"
    "    if (threadIdx.x < o) room[threadIdx.x] += room[threadIdx.x + o];\n"
    "    __syncthreads();\n}\n"
)
EVEN = "{ min = 64, max = 512, multiple_of = 64 }"


@dataclass(frozen=True)
class Trap:
    body: str
    grid: tuple[str, ...] = ("rows",)
    block: tuple[str, ...] = ("64",)
    before: str = ""
    columns: str = "{ min = 1, max = 512 }"

    def program(self, name: str) -> Program:
        header = "const float *x, float *out, int *aux, int rows, int d"
        lines = "\n".join(f"    {line}" for line in self.body.strip("\n").split("\n"))
        source = f'{self.before}\nextern "C" __global__ void k({header})\n{{\n{lines}\n}}\n'
        lengths = (64, 128, 256, 64) if "multiple_of" in self.columns else (64, 200, 33, 7)
        return Program(
            re.sub(r"\W", "_", name), source, (_X, _OUT, _AUX, _ROWS, _D), self.grid, self.block,
            {"rows": "{ min = 1, max = 4096 }", "d": self.columns},
            tuple({"rows": rows, "d": d} for rows, d in zip((5, 9, 4, 6), lengths, strict=True)),
        )  # fmt: skip


def flat_trap(body: str, before: str = "", columns: str = "{ min = 1, max = 512 }") -> Trap:
    return Trap(_FLAT + body, ALL, before=before, columns=columns)


def thread_trap(body: str, before: str = "") -> Trap:
    return Trap(_THREAD + body, ("ceildiv(rows, 64)",), before=before)


def block_trap(
    body: str, before: str = "", block: str = "64", columns: str = "{ min = 1, max = 512 }"
) -> Trap:
    return Trap(_BLOCK + body, block=(block,), before=before, columns=columns)
