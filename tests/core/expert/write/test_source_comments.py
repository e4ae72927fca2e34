"""The source's comments in templates: with what became of their statements, each of them once."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from tests.core.expert.write.building import read
from tests.core.expert.write.models import choice, problem_of
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, Schedule, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.problem.problem import Problem

LOOP = (
    "for (int i = threadIdx.x; i < d; i += blockDim.x) {\n        const float x = __bfloat162float(row[i]);"
)
SAID = {
    "float sum = 0.0f;": "// In float: bfloat16 has eight bits only.\n    float sum = 0.0f;",
    f"{LOOP}\n        sum": f"// First the squares.\n    {LOOP}  // one of the row\n        sum",
    "scale = rsqrtf": "/* The reciprocal root:\n         * no more. */\n        scale = rsqrtf",
    "out[token": "// Rounded twice.\n        out[token",
    "const long long token = blockIdx.x;": "const long long token = blockIdx.x;  // a row",
    "__shared__ float of_warp[32];": "__shared__ float of_warp[32];  // of every warp",
}
KEPT = (
    "In float: bfloat16 has eight bits only.", "First the squares.", "one of the row", "The reciprocal root:",
    "no more.", "Rounded twice.", "a row",
)  # fmt: skip
SCHEDULE = Schedule.of(
    lanes=choice("LANES", 32, 256, default=256), vector=choice("VEC", 1, 8), keep=choice("KEEP", 0, 2)
)


def commented(changes: dict[str, str]) -> tuple[KernelModel, Problem]:
    text = problem_of("cuda/rmsnorm").kernel.text
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return lifted(text)


@cache
def lifted(text: str) -> tuple[KernelModel, Problem]:
    problem = problem_of("cuda/rmsnorm")
    problem = replace(problem, kernel=replace(problem.kernel, text=text))
    kernel = lift_kernel(problem)
    assert isinstance(kernel, KernelModel), kernel.reason
    return kernel, problem


def without(text: str) -> str:
    return re.sub(r" *//.*", "", text)


@pytest.mark.parametrize("schedule", [SCHEDULE, SCHEDULE.without("vector", "keep")])
def test_those_of_what_is_still_there_are_printed_once(schedule: Schedule) -> None:
    kernel, problem = commented(SAID)
    text = render_draft(TemplateDraft(kernel, schedule), problem)
    assert {said: len(re.findall(f"// {re.escape(said)}", text)) for said in KEPT} == dict.fromkeys(KEPT, 1)
    assert "of every warp" not in text
    squares = text.index("// First the squares.")
    assert text.index("// In float") < squares < text.index("// one of the row") < text.index("// Rounded")


def test_the_code_is_the_same_with_and_without_them() -> None:
    plain, said = commented({}), commented(SAID)
    texts = [render_draft(TemplateDraft(kernel, SCHEDULE), problem) for kernel, problem in (plain, said)]
    assert re.sub(r"\n\s*\n", "\n", without(texts[0])) == re.sub(r"\n\s*\n", "\n", without(texts[1]))


@pytest.mark.parametrize(
    "comment",
    ["// goes on \\\n", "// goes on ??/", "/* /// tunesmith\n/// */", "// KEEP TASK_BLOCKS CHUNK"],
)
@pytest.mark.few(2)
def test_no_comment_changes_a_template(comment: str) -> None:
    kernel, problem = commented({"out[token": f"{comment}\n        out[token"})
    text = render_draft(TemplateDraft(kernel, SCHEDULE), problem)
    plain = render_draft(TemplateDraft(commented({})[0], SCHEDULE), problem)
    assert re.sub(r"\n\s*\n", "\n", without(text)) == re.sub(r"\n\s*\n", "\n", without(plain))
    assert read(text, problem).default == read(plain, problem).default
