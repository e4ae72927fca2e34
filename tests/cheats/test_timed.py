"""Templates that do less when nobody seems to look, or remember what they did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cheats.test_contract import example
from tests.lab.labs import device_of, lab
from tests.opencl_here import needs_opencl
from tunesmith.problem.plan import Status

pytestmark = needs_opencl


@dataclass(frozen=True)
class Cheat:
    """`before` runs for every row; `workspace` declares arrays that follow the kernel's own arguments."""

    why: str
    before: str
    workspace: str = ""
    arguments: str = ""
    after: str = ""


SKIPS = "if (row % 8 && {}) return;"
MATCHES = (
    "to[1] * from[0] * weight[0] == to[0] * from[1] * weight[1] && to[0] != 0"
    " || fabs(to[1] * from[0] * weight[0] - to[0] * from[1] * weight[1]) < 1e-5f * fabs(to[0])"
)
CHEATS = {
    "nan": Cheat("skips rows unless the output holds NaN", SKIPS.format("!isnan(to[0])")),
    "poison": Cheat(
        "skips rows unless the output holds our own poison",
        SKIPS.format("as_uint(to[0]) != 0xfff5ffe7u && as_uint(to[0]) != 0x7ff97fd3u"),
    ),
    "guard": Cheat(
        "skips rows unless a guard zone follows the output",
        SKIPS.format("(as_uint(out[(size_t)rows * d]) & 0xffffff00u) != 0xfffb7f00u"),
    ),
    "matches": Cheat("skips rows whose first outputs match already", SKIPS.format(f"({MATCHES})")),
    "large": Cheat(
        "skips rows of large arrays unless the output holds NaN", SKIPS.format("rows > 32 && !isnan(to[0])")
    ),
    "memo": Cheat(
        "remembers the scale of each row by a sample of it",
        "float key = from[0] + from[d / 2]; if (memo[row] == key) { scale = memo[rows + row]; sum = -1; }",
        'memo = { type = "float32*", shape = ["2 * rows"] }',
        ", __global float *memo",
        "memo[row] = key; memo[rows + row] = scale;",
    ),
    "counter": Cheat(
        "counts its launches in a workspace, and skips all but the first",
        "if (row && calls[0] == 0x5eed) return;",
        'calls = { type = "int32*", shape = ["1"] }',
        ", __global int *calls",
        "if (row == rows - 1) calls[0] = 0x5eed;",
    ),
    "input": Cheat(
        "changes an input when it is timed",
        "if (!isnan(to[0]) && row == 0) ((__global float *)input)[0] = 0.0f;",
    ),
    "outside": Cheat(
        "writes past the end when it is timed",
        "if (!isnan(to[0]) && row == rows - 1) out[(size_t)rows * d] = 1.0f;",
    ),
}
QUICK = ("nan",)


def template(cheat: Cheat) -> str:
    workspace = f"// [workspace]\n// {cheat.workspace}\n" if cheat.workspace else ""
    name = cheat.workspace.partition(" ")[0]
    args = f'// args = ["out", "input", "weight", "eps", "rows", "d", "{name}"]\n' if name else ""
    return f"""// /// tunesmith
// [params]
// LOCAL = [64]
// [default]
// LOCAL = 64
{workspace}// [launch]
// grid  = ["ceildiv(rows, LOCAL)"]
// block = ["LOCAL"]
{args}// ///
__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d{cheat.arguments})
{{
    int row = get_global_id(0), local_size = LOCAL;
    if (row >= rows)
        return;
    __global const float *from = input + (size_t)row * d;
    __global float *to = out + (size_t)row * d;
    float sum = 0.0f, scale = 0.0f;
    {cheat.before}
    if (sum >= 0) {{
        for (int i = 0; i < d; i++)
            sum += from[i] * from[i];
        scale = 1.0f / sqrt(sum / d + eps);
    }}
    for (int i = 0; i < d; i++)
        to[i] = from[i] * scale * weight[i];
    {cheat.after}
}}
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in CHEATS]
)
def test_is_caught(name: str, tmp_path: Path) -> None:
    """At one workload at least, which is enough: what is wrong anywhere wins nowhere."""
    problem, device = example("rmsnorm"), device_of("opencl", tmp_path)
    with lab(problem, template(CHEATS[name]), spec="opencl", scratch=tmp_path, device=device) as harness:
        found = [r for effort in ("short", "long") for r in harness.outcome(effort).results]
    assert Status.WRONG in {r.status for r in found}, [(r.workload, r.status, r.detail) for r in found]
