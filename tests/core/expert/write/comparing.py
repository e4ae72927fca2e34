"""Written CUDA kernels give what the originals give, thread by thread on the host, and write nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.core.expert.write import models
from tests.core.expert.write.building import DEVICE, read
from tests.core.expert.write.emulator import run
from tests.core.expert.write.models import MAP, ROWS, Model
from tests.running import FIXTURES
from tunesmith.backends.messages import Draw
from tunesmith.expert.read.model import Schedule, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem, element_type
from tunesmith.problem.template import Variant, original_variant
from tunesmith.space.configset import Config

ANY_LANES = models.choice("LANES", 4, 16, 32, 64, 96, default=64)
SMALL_ROWS = ROWS.having(lanes=ANY_LANES).without("load_hint")
SMALL_MAP = MAP.having(lanes=ANY_LANES, tasks=models.choice("TASKS", 1, 4)).without("load_hint")


def planned(problem: Problem, made: Variant, sizes: dict[str, int]) -> Plan:
    found = plan_launch(problem, made, sizes, DEVICE, None)
    assert isinstance(found, Plan), found
    return found


def compare(
    model: Model,
    schedule: Schedule,
    sizes: dict[str, int],
    folder: Path,
    hardware: tuple[str, str, str] | None = None,
    **values: int,
) -> None:
    """`hardware`: a helper, and the statements that do the same for one and for two."""
    kernel, problem = model()
    draft = TemplateDraft(kernel, schedule)
    if hardware is not None:
        helper, one, two = hardware
        draft = replace(draft, hardware=((helper, one),), in_pairs=((helper, two),))
    template = read(render_draft(draft, problem), problem)
    known = {name: value for name, value in values.items() if name in template.default.as_dict()}
    made = template.render(problem, Config.of({**template.default.as_dict(), **known}), sizes)
    alike(problem, made, sizes, folder)


def in_a_process_of_its_own(
    work: Callable[[], dict[str, np.ndarray]], folder: Path
) -> Mapping[str, np.ndarray]:
    """A kernel that waits in vain ends its process."""
    child = os.fork()
    if child == 0:
        try:
            np.savez(folder / "found.npz", **work())
            os._exit(0)
        except BaseException as error:
            print(error)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    return np.load(folder / "found.npz")


def alike(problem: Problem, made: Variant, sizes: dict[str, int], folder: Path) -> None:
    """It leaves in all arrays what the original leaves."""
    first = original_variant(problem, sizes)
    plans = [planned(problem, v, sizes) for v in (first, made)]
    inputs = draw_inputs(plans[0], Draw("normal", 7, problem.inputs))

    def both() -> dict[str, np.ndarray]:
        runs = zip(("want", "got"), (first, made), plans, strict=True)
        results = {word: run(v, plan, inputs, folder, 7) for word, v, plan in runs}
        return {f"{word} {name}": array for word, left in results.items() for name, array in left.items()}

    found = in_a_process_of_its_own(both, folder)
    for buffer in plans[0].buffers:
        kind = element_type(buffer.type)
        want, got = (found[f"{w} {buffer.name}"].view(kind.numpy).astype(np.float64) for w in ("want", "got"))
        assert np.isfinite(got).all()
        tolerance = {1: 0.13, 2: 2e-2}.get(kind.bytes, 1e-4)  # of float8 the next code, beside a tie
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance / 10, err_msg=buffer.name)


def of_the_zoo(name: str) -> Model:
    return models.lifted(FIXTURES / "zoo" / name)
