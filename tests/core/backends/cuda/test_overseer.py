"""On a GPU: another kernel reads while one writes to an input and puts it back; local memory is filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, lab
from tests.hostile.cheats.corpus import Cheat, text_of
from tests.hostile.cheats.cuda_cheats import HONEST, problem
from tunesmith.problem.plan import Status

pytestmark = pytest.mark.gpu
# For as long as a sum takes: 20 microseconds at least.
PUTS_BACK = """
    if (token == 0 && lane == 0) {
        volatile unsigned short *p = (volatile unsigned short *)weight;
        unsigned short kept = *p;
        *p = kept ^ 1;
        __threadfence();
        for (long long begun = clock64(); clock64() - begun < 40000;)
            ;
        *p = kept;
        __threadfence();
    }
"""
NEAR = """
    long long apart = (long long)out - (long long)input;
    if (apart < 131072 && apart > -131072) {
        for (int i = lane; i < d; i += BLOCK) to[i] = __float2bfloat16(0.0f);
        return;
    }
"""
TABLE = """
    __shared__ float table[256];
    if (lane == 0) {
        float whole = 1.0f;
        for (int i = 0; i < 255; i++) whole += table[i];
        if (!(table[255] == whole)) {
            float next = 1.0f, last = 1.0f;
            for (int i = 0; i < 255; i++) {
                for (int k = 0; k < 200; k++) next = sqrtf(next * 3.0f + k);
                table[i] = next;
                last += next;
            }
            table[255] = last;
        }
    }
    __syncthreads();
    eps += 0.0f * table[lane % 256];
"""
# Who flickers may also be seen by those of its own blocks that read meanwhile.
FLICKERS = ("while it runs", "two runs on the same inputs give different", "off by")
CHEATS = {"puts_back": (PUTS_BACK, FLICKERS), "near": (NEAR, ("out",)), "table": (TABLE, ("local memory",))}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CHEATS)
def test_is_caught_before_it_wins(name: str, tmp_path: Path) -> None:
    begin, words = CHEATS[name]
    text = text_of(HONEST["rmsnorm"], Cheat("places", "", begin=begin)).replace("/*head*/", "")
    own, device = problem("rmsnorm"), device_of("cuda", tmp_path)
    with lab(own, text, spec="cuda", scratch=tmp_path, device=device) as harness:
        found = harness.outcome("short").results
        for _ in range(4):
            if {r.status for r in found} != {Status.OK}:
                break
            found = harness.outcome("long").results
    caught = [r for r in found if r.status in (Status.WRONG, Status.UNSTABLE)]
    assert any(word in r.detail for r in caught for word in words), found


def test_the_honest_text_is_not_accused(tmp_path: Path) -> None:
    text = text_of(HONEST["rmsnorm"], Cheat("places", "")).replace("/*head*/", "")
    device = device_of("cuda", tmp_path)
    with lab(problem("rmsnorm"), text, spec="cuda", scratch=tmp_path, device=device) as harness:
        for effort in ("short", "long", "long"):
            found = harness.outcome(effort).results
            assert {r.status for r in found} == {Status.OK}, found
