"""What is delivered of winners that are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.samples import TEMPLATE, a_device, a_problem, a_template, config
from tunesmith.deliver.tuned import tuned_files
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.outcome import Interval
from tunesmith.run.race import Pick, Winners
from tunesmith.space.configset import Config

PROBLEM = a_problem()


A, B, C = config(64), config(128, 4), config(256, 2)


BAKED = TEMPLATE.replace("// [launch]", '// [defines]\n// D = "d if VEC == 4 else 0"\n// [launch]').replace(
    "int k =", "int k = D +"
)


def no_store(digest: str) -> bytes:
    raise AssertionError(f"nothing is stored, asked for {digest}")


def choice(general: Config | None, /, **picks: Config | None) -> Winners:
    gain = Interval(2.0, 1.9, 2.1)
    return Winners(general, tuple(Pick(name, config, gain) for name, config in picks.items()))


def delivered(
    chosen: Winners, problem: Problem = PROBLEM, template: Template | None = None, **limits: Any
) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    found = template or a_template(problem)
    device = a_device(**limits)
    files = tuned_files(
        problem, device, assemble_delivery(problem, lambda _config: found, device, chosen), no_store
    )
    return files, json.loads(files["dispatch.json"])["entries"]


def requiring(rules: int) -> Template:
    """Conditions none of which is long, and all together are."""
    odd = [f'// r{n} = "{" or ".join(f"rows % {n + 7} == {k}" for k in range(1, 60))}"' for n in range(rules)]
    return a_template(PROBLEM, TEMPLATE.replace("// [launch]", "\n".join([*odd, "// [launch]"])))


def with_headers(problem: Problem, *headers: tuple[str, str]) -> Problem:
    return replace(problem, kernel=replace(problem.kernel, headers=headers))
