"""Problems made of a kernel's text, and readings made short, for the tests of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.csource.nodes import Declare
from tunesmith.csource.printing import print_expr
from tunesmith.expert.model.kernel import Each, KernelModel, Let, NotReadable, Once, Repeat, Step, When
from tunesmith.expert.model.lift import lift
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.session.problems import load_problem

ROOT = Path(__file__).parents[3]


def problem_in(folder: str) -> Problem:
    return load_problem(ROOT / folder)[0]


def row_problem(
    body: str,
    *,
    grid: Sequence[str] = ("rows",),
    block: Sequence[str] = ("256",),
    d: str = "{ min = 1, max = 65536 }",
    before: str = "",
    alias: str = "",
    many: tuple[int, int] = (512, 32),
) -> Problem:
    """A kernel `k(x, out, rows, d)` on rows of floats."""
    head = 'extern "C" __global__ void k(const float *x, float *out, int rows, int d)'
    kernel = f"{before}\n{head} {{\n{body}\n}}\n"
    text = f"""
name = "rows"
[kernel]
source = "kernel.cu"
entry = "k"
language = "cuda"
[[argument]]
name = "x"
type = "float32*"
shape = ["rows", "d"]
role = "input"
[[argument]]
name = "out"
type = "float32*"
shape = ["rows", "d"]
role = "{"inout" if alias else "output"}"
{alias}
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int32"
value = "d"
[launch]
grid = [{", ".join(f'"{part}"' for part in grid)}]
block = [{", ".join(f'"{part}"' for part in block)}]
[contract]
rows = {{ min = 1, max = 65536 }}
d = {d}
[workloads]
many = {{ rows = {many[0]}, d = {many[1]} }}
[accuracy]
rtol = 1e-3
atol = 1e-3
"""
    return parse_problem(text, path="problem.toml", read=lambda _: kernel)


def lifted(problem: Problem) -> KernelModel:
    kernel = lift(problem)
    assert isinstance(kernel, KernelModel), kernel.reason
    return kernel


def refusal(problem: Problem) -> str:
    found = lift(problem)
    assert isinstance(found, NotReadable), summary(found)
    return found.reason


def summary(kernel: KernelModel) -> str:
    """`token<tokens | each 0..d +sum; let scale; each 0..d`"""
    tasks = ", ".join(f"{task.name}<{task.size or print_expr(task.extent)}" for task in kernel.tasks)
    return f"{tasks} | {_steps(kernel.steps)}".strip()


def _steps(steps: Sequence[Step]) -> str:
    return "; ".join(_step(step) for step in steps)


def _step(step: Step) -> str:
    match step:
        case Each():
            totals = "".join(f" {total.operator}{total.name}" for total in step.totals)
            return f"each {print_expr(step.start)}..{print_expr(step.stop)}{totals}"
        case Let(body=body):
            return "let " + ", ".join(stmt.name for stmt in body if isinstance(stmt, Declare))
        case Once(body=body):
            return f"once {len(body)}"
        case When():
            other = f" else {{{_steps(step.otherwise)}}}" if step.otherwise else ""
            return f"when {print_expr(step.condition)} {{{_steps(step.then)}}}{other}"
        case Repeat():
            return f"again {step.index} {{{_steps(step.body)}}}"
