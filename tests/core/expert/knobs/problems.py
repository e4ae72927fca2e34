"""The problems of tests/fixtures/knobs, with the templates that the knobs move alone makes of them."""

from __future__ import annotations

from functools import cache

from tests.core.expert.moves.kernels import CPU
from tests.golden.made_problems import made_problem
from tests.running import FIXTURES
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import ExpertAuthor
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Declined, Refactoring, Written
from tunesmith.session.problems import load_problem

FOLDER = FIXTURES / "knobs"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/problem.toml"))
CUDA = [name for name in NAMES if (FOLDER / name / "kernel.cu").exists()]
H200 = absent_device("H200")


@cache
def problem_of(name: str) -> Problem:
    return load_problem(FOLDER / name)[0]


def device_of(problem: Problem) -> Device:
    return CPU if problem.kernel.language == "opencl" else H200


def asked(problem: Problem) -> Written | Declined:
    return ExpertAuthor().write(Refactoring(("knobs",)), problem, device_of(problem))


def opened(problem: Problem) -> tuple[Written, Template]:
    written = asked(problem)
    assert isinstance(written, Written), written
    return written, parse_template(written.text, path="template.cu", problem=problem)


def made(kernel: str, grid: str, block: str) -> Problem:
    """A problem of a kernel `work(float *out, const float *x, int n)`."""
    return made_problem(kernel, "work", launch={"grid": [grid], "block": [block]})
