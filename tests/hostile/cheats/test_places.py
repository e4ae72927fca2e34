"""Templates that a user gives as files, so that nothing vets them: they ask where arrays lie, write where
they may not and put it back, keep a table in local memory. Checks, finals or the verification tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, lab
from tests.hostile.cheats.corpus import HONEST, Cheat, problem, text_of
from tests.opencl_here import needs_opencl
from tunesmith.problem.plan import Status

pytestmark = needs_opencl
TRIES = 4
NOTHING = "{ for (int i = 0; i < d; i++) to[i] = 0.0f; return; }"
PUTS_BACK = "{{ volatile __global float *p = {}; float kept = *p; *p = 1.0f; *p = kept; }}"
# What it does, and what the verdict says.
PLACES = {
    "near": (f"if (abs_diff((ulong)out, (ulong)input) < 131072) {NOTHING}", "out"),
    "near_weight": (f"if (abs_diff((ulong)out, (ulong)weight) < 65536) {NOTHING}", "out"),
    "page_and_128": (f"if (((size_t)out & 4095) != 128 || ((size_t)input & 4095) != 128) {NOTHING}", "out"),
    "ordered": (f"if (out < input && input < weight && weight - out < 1 << 20) {NOTHING}", "out"),
    "touching": (f"if (out + (size_t)rows * d == input) {NOTHING}", "out"),
    "page": (f"if (((size_t)out & 4095) == 0) {NOTHING}", "out"),
    "far": (f"if (abs_diff((ulong)out, (ulong)input) > 2 << 20) {NOTHING}", "out"),
    "writes_input": (
        "if (row == 0)" + PUTS_BACK.format("(__global float *)weight"),
        "to an input or outside",
    ),
    "writes_behind": ("if (row == 0)" + PUTS_BACK.format("out + (size_t)rows * d"), "to an input or outside"),
    "writes_before": ("if (row == 0)" + PUTS_BACK.format("out - 1"), "to an input or outside"),
}


@pytest.mark.parametrize(
    "name", [n if n in ("near", "writes_behind") else pytest.param(n, marks=pytest.mark.long) for n in PLACES]
)
def test_is_caught_before_it_wins(name: str, tmp_path: Path) -> None:
    begin, words = PLACES[name]
    text = text_of(HONEST["rmsnorm"], Cheat("places", "", begin=begin))
    device = device_of("opencl", tmp_path)
    with lab(problem("tiny"), text, spec="opencl", scratch=tmp_path, device=device) as harness:
        found = harness.outcome("short").results
        if all(r.status is Status.OK for r in found):
            found = harness.outcome("long").results
        if all(r.status is Status.OK for r in found):
            found = harness.lab.verify(harness.trial(effort="long")).outcome.results
    assert {r.status for r in found} & {Status.WRONG, Status.UNSTABLE}, found
    assert any(words in r.detail for r in found), found


# A table that takes long to make, believed where its sum says that it is whole: right, and by luck.
TABLE = """
    __local float table[256];
    if (lane == 0) {
        float whole = 1.0f;
        for (int i = 0; i < 255; i++) whole += table[i];
        if (!(table[255] == whole))
            {
                float next = 1.0f, last = 1.0f;
                for (int i = 0; i < 255; i++) {
                    for (int k = 0; k < 40; k++) next = sqrt(next * 3.0f + k);
                    table[i] = next;
                    last += next;
                }
                table[255] = last;
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
"""


@pytest.mark.long
@pytest.mark.timeout(400)  # beside others
@pytest.mark.parametrize("keeps", [True, False])
def test_a_table_kept_in_local_memory_is_no_gain(keeps: bool, tmp_path: Path) -> None:
    """The same that makes its table each time is slower, and honest."""
    begin = TABLE if keeps else TABLE.replace("!(table[255] == whole)", "whole != 0.0f || 1")
    edits = (("total / d + eps", "total / d + eps + 0.0f * table[lane]"),)
    text = text_of(HONEST["groups"], Cheat("places", "", base="groups", begin=begin, edits=edits))
    device = device_of("opencl", tmp_path)
    with lab(problem("groups"), text, spec="opencl", scratch=tmp_path, device=device) as harness:
        found = harness.outcome("long").results
        for _ in range(TRIES if keeps else 0):  # a busy host hides it now and then
            if {r.status for r in found} != {Status.OK}:
                break
            found = harness.outcome("long").results
    assert {r.status for r in found} == ({Status.WRONG} if keeps else {Status.OK}), found
    assert all("local memory" in r.detail for r in found if keeps), found
