"""Models of the examples' kernels as the reader is to give them, and full schedules to write them with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.running import EXAMPLES, FIXTURES
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import (
    Each,
    ElementArray,
    KernelModel,
    Let,
    Operator,
    ParameterChoice,
    Schedule,
    Step,
    Task,
    Total,
)
from tunesmith.problem.problem import Problem
from tunesmith.session.problems import load_problem
from tunesmith.source.reader.parse import read_expression, read_source_tree
from tunesmith.source.reader.templates import BoundKernel, bind_kernel
from tunesmith.source.tree import Stmt, Type

ROOT = Path(__file__).parents[4]
Model = Callable[[], tuple[KernelModel, Problem]]


def problem_of(name: str) -> Problem:
    return load_problem(ROOT / "examples" / name)[0]


def statements(text: str, language: str = "cuda") -> tuple[Stmt, ...]:
    return read_source_tree(f"__device__ void f() {{ {text} }}", language).functions[0].body  # type: ignore[arg-type]


def total(name: str, operator: Operator, start: str, combine: str = "", type_: str = "float") -> Total:
    return Total(name, Type(type_), operator, read_expression(start), combine)


def each(
    stop: str, body: str, *totals: Total, index: str = "i", type_: str = "int", language: str = "cuda"
) -> Each:
    zero = read_expression("0")
    return Each(index, zero, read_expression(stop), statements(body, language), totals, type_)


def let(text: str) -> Let:
    return Let(statements(text))


def kernel(
    problem: Problem,
    tasks: tuple[Task, ...],
    *steps: Step,
    staged: tuple[ElementArray, ...] = (),
    team: str = "block",
) -> KernelModel:
    source = read_source_tree(problem.kernel.text, problem.kernel.language)  # type: ignore[arg-type]
    bound = bind_kernel(source, problem.launches[0].entry)
    assert isinstance(bound, BoundKernel), bound
    return KernelModel(source, bound.function, tasks, steps, team, staged=staged)  # type: ignore[arg-type]


def task(name: str, extent: str, type_: str = "long long") -> Task:
    return Task(name, read_expression(extent), type_)


def lifted(folder: Path) -> Model:
    """What the reader makes of the kernel there."""

    def model() -> tuple[KernelModel, Problem]:
        problem = load_problem(folder).definition
        kernel = lift_kernel(problem)
        assert isinstance(kernel, KernelModel), kernel
        return kernel, problem

    return model


rmsnorm, silu_and_mul = lifted(EXAMPLES / "cuda/rmsnorm"), lifted(EXAMPLES / "cuda/silu_and_mul")
rotary, split_parts = lifted(EXAMPLES / "cuda/rotary_embedding"), lifted(FIXTURES / "zoo/split_parts")
group_quant = lifted(EXAMPLES / "cuda/per_token_group_quant_fp8")
cl_rmsnorm, cl_softmax, cl_silu_and_mul = (
    lifted(EXAMPLES / "opencl" / name) for name in ("rmsnorm", "softmax", "silu_and_mul")
)


def fused_add_rmsnorm() -> tuple[KernelModel, Problem]:
    """As if the source took one element at a time."""
    problem = problem_of("cuda/fused_add_rmsnorm")
    at = "[token * d + i]"
    first = f"""const float x = __half2float(input{at}) + __half2float(residual{at}); sum += x * x;
                residual{at} = __float2half(x);
                row[i] = x;"""
    last = f"input{at} = __float2half(row[i] * scale * __half2float(weight[i]));"
    return kernel(
        problem, (task("token", "tokens"),), each("d", first, total("sum", "+", "0.0f")),
        let("const float scale = rsqrtf(sum / d + eps);"), each("d", last),
        staged=(ElementArray("row", Type("float")),),
    ), problem  # fmt: skip


NOTES = {
    "LANES": "threads that share a task",
    "TASKS": "tasks in a block",
    "VEC": "elements in one load or store",
    "ITEMS": "vectors a thread has under way at once",
    "SPLIT": "1: the elements of a task are spread over several blocks",
    "BESIDE": "1: loops that do not depend on each other run side by side",
    "KEEP": "vectors of its task a thread keeps in registers; 0: they are read again",
    "PERSIST": "blocks for every multiprocessor, which go on to further tasks; 0: blocks end",
    "LOAD": "loads: 1: not kept in L1; 2: evicted first",
    "STORE": "1: results are evicted first",
    "FAST": "1: functions and quotients from the special-function unit",
    "RECIPROCAL": "quotients by what is the same for a row: 1: a product; 2: a product set right",
    "DIVIDE": "index divisions: 1: by shifts, of powers of two; 2: by products",
    "BAKE": "1: sizes are constants of the build",
    "BOUNDS": "blocks that must fit on a multiprocessor at once",
}


def choice(name: str, *values: int, default: int | None = None, categorical: bool = False) -> ParameterChoice:
    first = values[0] if default is None else default
    return ParameterChoice(name, values, first, NOTES.get(name, ""), categorical)


MAP = Schedule.of(
    lanes=choice("LANES", 64, 128, 1024, default=128),
    vector=choice("VEC", 1, 2, 4, 8),
    items=choice("ITEMS", 1, 2, 4),
    split=choice("SPLIT", 0, 1),
    load_hint=choice("LOAD", 0, 1, 2, categorical=True),
    store_hint=choice("STORE", 0, 1, categorical=True),
    fast=choice("FAST", 0, 1),
)
BESIDE = MAP.without("fast", "load_hint").having(
    lanes=choice("LANES", 4, 32, 96, 128, default=128),
    tasks=choice("TASKS", 1, 4),
    beside=choice("BESIDE", 0, 1),
)
ROWS = MAP.without("split").having(
    lanes=choice("LANES", 4, 16, 32, 64, 256, 1024, default=256),
    tasks=choice("TASKS", 1, 2, 8),
    keep=choice("KEEP", 0, 1, 2, 4, 8),
    persistent=choice("PERSIST", 0, 1, 2),
    reciprocal=choice("RECIPROCAL", 0, 1, 2),
    bounds=choice("BOUNDS", 1, 2),
    bake=choice("BAKE", 0, 1),
)


CPU = Schedule.of(
    lanes=choice("LANES", 1, 8),
    tasks=choice("TASKS", 1, 8, 64, default=64),
    vector=choice("VEC", 1, 8, 16),
    items=choice("ITEMS", 1, 2, 4),
    fast=choice("FAST", 0, 1),
    reciprocal=choice("RECIPROCAL", 0, 1),
)


def merge_packs() -> tuple[KernelModel, Problem]:
    """Casts to 16 bytes, offsets that move with the index, a shared scalar, a conditional store."""
    problem = problem_of("cuda/merge_attn_states_lse")
    row = "i / (head_dim / 8u)"
    body = f"""
        const float a = s_a[{row}], b = s_b[{row}];
        const uint4 pack_a = ((const uint4 *)(v_a + (unsigned int)(i * 8)))[0];
        const uint4 pack_b = ((const uint4 *)(v_b + (unsigned int)(i * 8)))[0];
        uint4 merged;
        for (unsigned int j = 0; j < 8u; j++)
            ((__half *)&merged)[j] = __float2half(a * __half2float(((const __half *)&pack_a)[j])
                                                  + b * __half2float(((const __half *)&pack_b)[j]));
        ((uint4 *)(v_merged + (unsigned int)(i * 8)))[0] = merged;
        if (i % (head_dim / 8u) == 0)
            s_merged[{row}] = logf(a) + b;"""
    return kernel(
        problem, (), each("tokens * heads * (head_dim / 8u)", body, type_="unsigned int"), team="grid"
    ), problem  # fmt: skip
