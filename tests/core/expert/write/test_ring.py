"""Chunks copied ahead through shared memory: the same results, whatever the order of threads and copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.building import read, variant
from tests.core.expert.write.comparing import SMALL_ROWS, planned
from tests.core.expert.write.emulator import needs_emulator, run
from tests.core.expert.write.models import Model, choice
from tests.cuda_here import needs_nvrtc
from tests.running import FIXTURES
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.cubin import disassemble_cubin, unpack
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Draw, Unit
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.read.model import Schedule, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.template import Variant
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

STAGES = choice("STAGES", 0, 2, 3, 4)
ROWS = SMALL_ROWS.having(ring=STAGES)


def made(model: Model, schedule: Schedule, sizes: dict[str, int], **values: int) -> Variant:
    kernel, problem = model()
    template = read(render_draft(TemplateDraft(kernel, schedule), problem), problem)
    known = {name: value for name, value in values.items() if name in template.default.as_dict()}
    return template.render(problem, Config.of({**template.default.as_dict(), **known}), sizes)


@needs_emulator
@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("cp.async.wait_group 1;", "cp.async.wait_group 2;"),  # one chunk too few has landed
        ("wait_copies();\n", "\n"),
        ("const int ahead = base + STAGES * CHUNK;", "const int ahead = base + CHUNK;"),
    ],
)
@pytest.mark.few(1)
def test_a_wrong_ring_is_noticed(what: str, instead: str, emulated: Path) -> None:
    """By the emulator: what nobody waited for has not landed, and what is sent for is gone at once."""
    sizes = {"tokens": 3, "d": 512}
    right = made(models.rmsnorm, ROWS, sizes, LANES=32, VEC=4, STAGES=2)
    assert what in right.source
    head, body = right.source.split('extern "C"')
    if what.startswith("cp"):
        head = head.replace(what, instead)
    else:
        body = body.replace(what, instead)
    problem = models.rmsnorm()[1]
    plan = planned(problem, right, sizes)
    inputs = draw_inputs(plan, Draw("normal", 7, problem.inputs))
    wrong = replace(right, source=f'{head}extern "C"{body}')
    results = [run(one, plan, inputs, emulated)["out"].tobytes() for one in (right, wrong)]
    assert results[0] != results[1]


MOVES = ("lanes", "tasks", "vector", "items", "persistent", "ring")


def built_from_moves(name: str, architecture: str, wanted: dict[str, int]) -> tuple[int, str]:
    """What a kernel of the zoo spills with the moves at these values, and its machine code."""
    problem, _ = load_problem(FIXTURES / "zoo" / name)
    device = absent_device(architecture)
    written = ExpertAuthor().write(Refactoring(MOVES), problem, device)
    assert isinstance(written, Written)
    assert "ring" in written.moves
    template = read(written.text, problem)
    known = template.default.as_dict()
    config = Config.of({**known, **{name: value for name, value in wanted.items() if name in known}})
    one = variant(template, problem, config)
    binary = build_cubin(Unit(one.path, one.source, "cuda", one.flags, one.entries, compiler="nvrtc"), device)
    return binary.resources.spills, str(disassemble_cubin(unpack(binary.data)[1]).kernels)


@needs_nvrtc
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("layernorm", "sm_80"),
        ("swiglu_interleaved", "sm_90"),
        ("softmax", "sm_90"),
        ("l2_normalize", "sm_80"),
    ],
)
@pytest.mark.few(1)
@pytest.mark.long
def test_machine_code_has_the_copies_and_spills_nothing(name: str, architecture: str, stages: int) -> None:
    # Of a flat range a block takes one chunk unless blocks go on: the template forbids copies ahead without.
    goes_on = {"PERSIST": 1} if name == "swiglu_interleaved" else {}
    wanted = {"LANES": 64, "VEC": 4, "STAGES": stages, **goes_on}
    spills, code = built_from_moves(name, architecture, wanted)
    assert spills == 0
    assert "LDGSTS" in code
