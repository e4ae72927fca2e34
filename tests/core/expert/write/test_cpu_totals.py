"""Totals over vectors and work-items on a CPU: where PoCL 3.0 goes wrong, odd numbers of lanes, the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.expert.write.building import read
from tests.core.expert.write.models import CPU, choice
from tests.core.expert.write.test_opencl import outputs
from tests.opencl_here import needs_opencl
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.problem.template import original_variant
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

ZOO = Path(__file__).parents[3] / "fixtures" / "zoo"
EVERY = CPU.without("fast", "reciprocal").having(
    lanes=choice("LANES", 1, 5, 7, 8, 16, 64),
    tasks=choice("TASKS", 1, 4),
    vector=choice("VEC", 1, 2, 4, 8, 16),
    items=choice("ITEMS", 1, 3, 4),
)


def _outputs(name: str, sizes: dict[str, int], values: dict[str, int] | None) -> dict[str, Any]:
    """What the original writes (no values), or the template with these, on the CPU here."""
    problem = load_problem(ZOO / name / "problem.toml")[0]
    made = original_variant(problem, sizes)
    if values is not None:
        kernel = lift_kernel(problem)
        assert isinstance(kernel, KernelModel), kernel
        template = read(render_draft(TemplateDraft(kernel, EVERY), problem), problem)
        of_source = {param.name.rstrip("_"): param.name for param in template.space.params}
        chosen = {of_source[knob]: value for knob, value in values.items()}
        config = Config.of({**template.default.as_dict(), **chosen})
        made = template.render(problem, config, sizes)
    return outputs(problem, made, sizes)[0]


@needs_opencl
@pytest.mark.parametrize(("lanes", "tasks"), [(8, 1), (8, 4), (64, 1)])
@pytest.mark.parametrize(("rows", "d"), [(1, 4), (5, 64)])
@pytest.mark.few(1)
@pytest.mark.long
def test_each_work_item_has_a_maximum_of_its_own(lanes: int, tasks: int, rows: int, d: int) -> None:
    """Two floats travel as one double: with lanes read back from memory PoCL gave all the last one's."""
    sizes, values = {"rows": rows, "d": d}, {"LANES": lanes, "TASKS": tasks, "VEC": 2, "ITEMS": 1}
    found, wanted = _outputs("cl_int8_quant", sizes, values), _outputs("cl_int8_quant", sizes, None)
    np.testing.assert_array_equal(found["scale"], wanted["scale"])
    np.testing.assert_array_equal(found["q"], wanted["q"])


@needs_opencl
@pytest.mark.parametrize(
    "values",
    [
        {"LANES": 5, "VEC": 1, "TASKS": 4},
        {"LANES": 7, "VEC": 2, "ITEMS": 3},
        {"LANES": 1, "VEC": 16, "ITEMS": 4},
        {"LANES": 64, "VEC": 4, "ITEMS": 3, "TASKS": 4},
    ],
)
@pytest.mark.few(1)
def test_a_sum_has_every_element_once_for_any_number_of_lanes(values: dict[str, int]) -> None:
    sizes = {"rows": 6, "d": 1001}
    found, wanted = _outputs("cl_row_dot", sizes, values), _outputs("cl_row_dot", sizes, None)
    np.testing.assert_allclose(found["out"], wanted["out"], rtol=1e-5, atol=1e-4)


@needs_opencl
def test_the_lanes_of_the_original_are_summed_in_its_order() -> None:
    """A chain over the lanes had twice the roundings of the original's tree, and failed its accuracy."""
    sizes, values = {"rows": 33, "d": 1025}, {"LANES": 16, "TASKS": 4, "VEC": 1, "ITEMS": 1}
    found, wanted = _outputs("cl_row_dot", sizes, values), _outputs("cl_row_dot", sizes, None)
    np.testing.assert_array_equal(found["out"], wanted["out"])
