"""The whole text of some templates. Written anew by: python -m tests.expert.writing.test_golden"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expert.writing.building import read
from tests.expert.writing.models import choice, cl_rmsnorm, rmsnorm
from tests.expert.writing.test_beside import rotary, split_parts
from tests.running import FIXTURES
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.model.kernel import Schedule, TemplateDraft
from tunesmith.expert.writing import write
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem

WIDE = {"rotary_embedding.cu": "VEC == 8 or rot_dim < 64", "split_parts.cu": "VEC == 8 or a < 64"}
GOLDEN = Path(__file__).with_name("golden")
ROW = Schedule.of(
    lanes=choice("LANES", 32, 256, default=256),
    vector=choice("VEC", 1, 8),
    keep=choice("KEEP", 0, 2),
)
CPU_ROW = Schedule.of(
    tasks=choice("TASKS", 1, 64, default=64), vector=choice("VEC", 1, 8), items=choice("ITEMS", 1, 2)
)
PAIR = Schedule.of(
    lanes=choice("LANES", 32, 512, default=512),
    vector=choice("VEC", 1, 8),
    split=choice("SPLIT", 0, 1),
    beside=choice("BESIDE", 0, 1),
    divide=choice("DIVIDE", 0, 1, 2),
)
AHEAD = ROW.without("keep").having(
    tasks=choice("TASKS", 1, 4), ring=choice("STAGES", 0, 2, 4), bulk=choice("BULK", 0, 1)
)
CASES = {
    "rmsnorm.cu": (rmsnorm, ROW),
    "rmsnorm_ahead.cu": (rmsnorm, AHEAD),
    "rmsnorm.cl": (cl_rmsnorm, CPU_ROW),
    "rotary_embedding.cu": (rotary, PAIR),
    "split_parts.cu": (split_parts, PAIR),
}


CALLS = {"rows_int8_two_pass.cu": ("lanes", "vector", "split", "hints", "registers")}  # of the zoo


def _written(name: str) -> str:
    if name in CALLS:
        problem, _ = load_problem(FIXTURES / "zoo" / name.removesuffix(".cu"))
        found = ExpertAuthor().write(Refactoring(CALLS[name]), problem, absent_device("H200"))
        assert isinstance(found, Written)
        return found.text
    model, schedule = CASES[name]
    kernel, problem = model()
    return write(
        TemplateDraft(kernel, schedule, prefer=(("wide", WIDE.get(name, "VEC == 8 or d < 64")),)), problem
    )


@pytest.mark.parametrize("name", [*CASES, *CALLS])
def test_text_is_as_it_was(name: str) -> None:
    assert _written(name) == (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", CASES)
def test_text_reads_back_as_a_template(name: str) -> None:
    model, schedule = CASES[name]
    template = read(_written(name), model()[1])
    used = [
        c for c in schedule.choices if (c.name, name) != ("DIVIDE", "split_parts.cu")
    ]  # nothing is divided
    assert [p.name for p in template.space.params] == [c.name for c in used]
    assert template.default.as_dict() == {c.name: c.default for c in used}
    assert "wide" in [c.name for c in template.space.constraints]


def test_writing_twice_gives_the_same() -> None:
    assert _written("rmsnorm.cu") == _written("rmsnorm.cu")


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for case in (*CASES, *CALLS):
        (GOLDEN / f"{case}.txt").write_text(_written(case), "utf-8")
