"""Models of small kernels, made by hand: moves are tested on what they look at, whoever read it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

from tests.golden.made_problems import arguments_of, made_problem
from tests.samples import HOPPER
from tunesmith.expert.moves import MOVES, Move
from tunesmith.expert.moves.move import Context
from tunesmith.expert.read.model import Each, KernelModel, Let, Step, Task, TemplateDraft, Total
from tunesmith.expert.write.rules import structural_rules
from tunesmith.problem.default_rules import usual_rules
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Shape
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.tree import Expr, Number, Return, Stmt, Type
from tunesmith.space.configset import Param
from tunesmith.space.expr import parse_expr

GPU = Device("cuda", "0", "a GPU", "cuda", "13", "gpu", HOPPER)
CPU = Device("opencl", "0", "a CPU", "pocl", "3", "cpu", replace(HOPPER, warp=1, max_threads=4096))


def body(text: str) -> tuple[Stmt, ...]:
    (function,) = read_source_tree(f"__device__ float body() {{ {text} }}", "cuda").functions
    return function.body


def expr(text: str) -> Expr:
    (statement,) = body(f"return {text};")
    assert isinstance(statement, Return)
    assert statement.value is not None
    return statement.value


def each(
    text: str, stop: str = "d", index: str = "i", start: str = "0", totals: tuple[Total, ...] = ()
) -> Each:
    return Each(index, expr(start), expr(stop), body(text), totals, line=1)


SUM = Total("sum", Type("float"), "+", Number("0.0f", 0.0))


def problem(
    signature: str,
    *,
    align: int = 16,
    grid: str = "rows",
    block: str = "256",
    sizes: str = "rows = 1024, d = 4096",
    contract: str = "rows = { min = 1, max = 65536 }\nd = { min = 1, max = 65536 }",
    source: str = "__global__ void it() {}",
    language: str = "cuda",
) -> Problem:
    """`signature`: "out: float16*[rows, d]; x: float16*[rows, d]; d: int32 = d", the output first."""
    arrays = {one["name"]: {"align": align} for one in arguments_of(signature) if "shape" in one}
    return made_problem(
        source, "moves", signature=signature, argument=arrays, language=language,
        launch={"grid": [grid], "block": [block]}, contract=tomllib.loads(contract),
        workloads=tomllib.loads(f"one = {{ {sizes} }}"),
    )  # fmt: skip


def kernel(
    header: str, *steps: Step, tasks: tuple[Task, ...] | None = None, helpers: str = "", **more: object
) -> KernelModel:
    """`header`: the kernel's parameter list as in C."""
    source = read_source_tree(
        f"#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n{helpers}\n__global__ void it({header}) {{}}", "cuda"
    )
    rows = (Task("row", expr("rows")),) if tasks is None else tasks
    found = KernelModel(source, source.functions[-1], rows, steps, "block")
    return replace(found, **more)  # type: ignore[arg-type]


ROWS = "__half *out, const __half *x, int rows, int d"
SIGNATURE = "out: float16*[rows, d]; x: float16*[rows, d]; rows: int32 = rows; d: int32 = d"
LOAD = "const float v = __half2float(x[row * d + i]);"
MAP = kernel(ROWS, each(f"{LOAD} out[row * d + i] = __float2half(v / (1.0f + expf(-v)));"))
NORM = kernel(
    ROWS,
    each(f"{LOAD} sum += v * v;", totals=(SUM,)),
    Let(body("const float scale = sqrtf(sum / d + 1e-6f);")),
    each(f"{LOAD} out[row * d + i] = __float2half(v / scale);"),
)
FLAT = kernel("__half *out, const __half *x, int n", each("out[i] = x[i];", stop="n"), tasks=(), team="grid")
FLAT_PROBLEM = problem(
    "out: float16*[n]; x: float16*[n]; n: int32 = n",
    grid="ceildiv(n, 256)", sizes="n = 1000000", contract="n = { min = 1, max = 100000000 }",
)  # fmt: skip
PROBLEM = problem(SIGNATURE)


def move(name: str) -> Move[TemplateDraft]:
    return next(m for m in MOVES if m.name == name)


def applied(
    given: KernelModel, *names: str, problem: Problem = PROBLEM, device: Device = GPU
) -> TemplateDraft:
    draft = TemplateDraft(given)
    for name in names:
        found = move(name).apply(draft, Context(problem, device))
        assert not isinstance(found, str), f"{name}: {found}"
        draft = found
    return draft


def searched(draft: TemplateDraft, problem: Problem = PROBLEM) -> TemplateDraft:
    """With the preferences and answers that whoever reads the template adds by the usual rules."""
    choices, facts = draft.schedule.choices, dict(draft.shape)
    on_cpu = facts.pop("kind", "gpu") == "cpu"
    prefer, answers = usual_rules(
        Shape(facts, {}, on_cpu),
        [Param(c.name, c.values) for c in choices],
        {c.name: c.default for c in choices},
        [parse_expr(text) for _, text in structural_rules(draft, problem)],
        problem.size_names,
    )
    said = [(str(remedy), e.text) for remedy, e in answers]
    named = [(name, e.text) for name, e in prefer]
    return replace(draft, prefer=(*draft.prefer, *named), answers=(*draft.answers, *said))


def refused(given: KernelModel, *names: str, problem: Problem = PROBLEM, device: Device = GPU) -> str:
    """Why the last of the moves does not apply after the others."""
    draft = applied(given, *names[:-1], problem=problem, device=device)
    found = move(names[-1]).apply(draft, Context(problem, device))
    assert isinstance(found, str), found
    return found
