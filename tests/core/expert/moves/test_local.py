"""Local moves on sources as they come: what is inserted, what is refused and why, that it builds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cuda_here import needs_nvrtc
from tests.golden.cases import all_cases
from tests.golden.made_problems import made_problem
from tests.samples import HOPPER
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.moves import LOCAL_MOVES
from tunesmith.expert.moves.move import Context
from tunesmith.expert.moves.text_edits import LocalDraft, find_site, start_draft, template_text
from tunesmith.lab.build import unit_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template

GPU = Device("cuda", "0", "a GPU", "cuda", "13", "gpu", HOPPER)

KERNEL = next(case for case in all_cases() if str(case).startswith("moves/local.cu: all of them")).texts[0]


def problem(kernel: str = KERNEL) -> Problem:
    return made_problem(f"{kernel}\n", "blur")


def draft_of(given: Problem, *moves: str) -> tuple[LocalDraft, dict[str, str]]:
    site = find_site(given)
    assert not isinstance(site, str), site
    draft, refused = start_draft(site, given), {}
    for move in LOCAL_MOVES:
        if move.name in moves or not moves:
            found = move.apply(draft, Context(given, GPU))
            if isinstance(found, str):
                refused[move.name] = found
            else:
                draft = found
    return draft, refused


def text_of(given: Problem, *moves: str) -> str:
    draft, refused = draft_of(given, *moves)
    assert not refused, refused
    return template_text(draft, Context(given, GPU))


def template_of(given: Problem, *moves: str) -> Template:
    return parse_template(text_of(given, *moves), path="template.cu", problem=given)


def test_edits_leave_the_rest_of_the_text_as_it_is() -> None:
    text = text_of(problem())
    assert "__global__ LAUNCH_BOUNDS void blur(T *NO_ALIAS out, const T *__restrict__ in, " in text
    assert "const float* NO_ALIAS weights" in text
    assert (
        "#endif\n#if FAST\n#define expf __expf\n#endif\n// a comment" in text
    )  # behind the conditional include
    assert "\n#if UNROLL\n#pragma unroll UNROLL\n#endif\n        for (int half = 0;" in text
    assert text.count("#pragma unroll UNROLL") == 1  # not the outer loop, not the one with its own pragma
    taken_out = text.replace(" LAUNCH_BOUNDS void", " void").replace("NO_ALIAS ", "")
    taken_out = taken_out.replace("#pragma unroll KNOB_UNROLL", "#pragma unroll 2")
    taken_out = taken_out.replace("#if UNROLL\n#pragma unroll UNROLL\n#endif\n", "")
    assert taken_out.replace("#if FAST\n#define expf __expf\n#endif\n", "").strip().endswith(KERNEL)


@needs_nvrtc
@pytest.mark.parametrize(
    "changed", [{}, {"RESTRICT": 1, "UNROLL": 4, "FAST": 1, "BOUNDS": 2, "LEVEL": 10}, {"REGS": 32}]
)
def test_it_builds_at_the_default_and_elsewhere(changed: dict[str, int]) -> None:
    given = problem()
    template = template_of(given)
    config = template.default
    for name, value in changed.items():
        config = config.replace(name, value)
    device = absent_device(None)
    assert build_cubin(unit_of(template.render(given, config, {"n": 100, "taps": 3})), device).data


def test_loops_without_another_are_found_in_one_pass() -> None:
    body = """
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) x[j] = f(i);
        for (int i = 0; i < 4; i++) { if (i) { x[i]++; } }
        for (int i = 0; i < 4; i++) {
            while (i) x[i]--;
            for (int j = 0; j < 4; j++) { x[j]++; }
        }
    """
    source = f"__global__ void blur(float *x) {{{body}{'for (;;) x[0]++; ' * 5000}}}\n"
    site = find_site(replace(problem(), kernel=replace(problem().kernel, text=source)))
    assert not isinstance(site, str), site
    assert [loop.line for loop in site.inner_loops[:3]] == [2, 3, 6]
    assert source[site.inner_loops[0].at :].startswith("for (int j")
    assert len(site.inner_loops) == 5003
    assert {loop.line for loop in site.inner_loops[3:]} == {8}
