"""Chunks that the copy engine brings: the same results, whatever the order of threads and copies (sm_90)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.comparing import SMALL_MAP, planned
from tests.core.expert.write.emulator import needs_emulator, run
from tests.core.expert.write.models import choice
from tests.core.expert.write.test_ring import ROWS, STAGES, built_from_moves, made
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.messages import Draw
from tunesmith.expert.read.model import TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.lab.references import draw_inputs

BULK = choice("BULK", 0, 1)


def test_loops_side_by_side_have_none() -> None:
    kernel, problem = models.split_parts()
    schedule = SMALL_MAP.having(ring=STAGES, bulk=BULK, beside=choice("BESIDE", 0, 1))
    text = render_draft(TemplateDraft(kernel, schedule), problem)
    joint = text[text.index("#if BESIDE") : text.index("#else", text.index("for (int base"))]
    assert "await_run" in text
    assert "BULK" not in joint


WRONG = (
    ("phases ^= 1u << stage;", ";"),  # the stage's last chunk is taken for the next one
    ("count * 2);", "count * 2 + 16);"),  # a barrier is told of more than comes
    ("    __syncwarp();\n", ""),  # others may still read what is overwritten
    ("!= LANES / 32 - 1)", "!= 0)"),  # the first to have read sends, not the last
    ('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n    return', "return"),
    ("come[s] = 0;", "come[s] = 1;"),
)


@needs_emulator
@pytest.mark.parametrize(("what", "instead"), WRONG)
@pytest.mark.few(1)
@pytest.mark.long
def test_a_wrong_ring_is_noticed(what: str, instead: str, emulated: Path) -> None:
    sizes = {"tokens": 3, "d": 4096}
    right = made(models.rmsnorm, ROWS.having(bulk=BULK), sizes, LANES=64, VEC=8, STAGES=2, BULK=1)
    assert what in right.source
    problem = models.rmsnorm()[1]
    plan = planned(problem, right, sizes)
    inputs = draw_inputs(plan, Draw("normal", 7, problem.inputs))
    wrong = replace(right, source=right.source.replace(what, instead))
    results = []
    for one in (right, wrong):
        into = emulated / "out"
        into.write_bytes(b"")
        if (child := os.fork()) == 0:  # a kernel that waits in vain ends its process
            try:
                into.write_bytes(run(one, plan, inputs, emulated, 7)["out"].tobytes())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        results.append(into.read_bytes())
    assert results[0]
    assert results[0] != results[1]


@needs_nvrtc
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("name", ["softmax", "layernorm", "swiglu_interleaved", "l2_normalize"])
@pytest.mark.few(1)
@pytest.mark.long
def test_machine_code_has_the_copies_and_spills_nothing(name: str, stages: int) -> None:
    wanted = {"LANES": 64, "VEC": 8 if name == "softmax" else 4, "STAGES": stages, "BULK": 1, "PERSIST": 1}
    spills, code = built_from_moves(name, "sm_90", wanted)
    assert spills == 0
    assert "UBLKCP" in code
