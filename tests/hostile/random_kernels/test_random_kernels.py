"""Generated kernels and traps give what they gave, whatever the expert made of them; the judge sees."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.write.emulator import needs_emulator
from tests.hostile.random_kernels.batch import run
from tests.hostile.random_kernels.generator import generate
from tests.hostile.random_kernels.opencl import translated
from tests.hostile.random_kernels.program import Case, Operand, Outcome, Program
from tests.hostile.random_kernels.running import Failure, Tally, judged, reduced, run_seeds, verdict_of
from tests.hostile.random_kernels.traps import KNOWN_HOLES, TRAPS
from tests.hostile.random_kernels.trying import PROVED_MOVES, Attempt, attempt, original_alone, racy
from tests.opencl_here import needs_opencl
from tunesmith.problem.template import original_variant

LONG_RUN = 5000
QUICK = (
    "a vote",
    "a narrow signed total",
    "a load near the end",
    "an index that is cut twice",
    "a row kept and changed",
    "a total added by one thread",
    "a tail by its place",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("random-kernels")
    yield made
    shutil.rmtree(made)  # a compiled header is large


def told(failures: list[Failure]) -> str:
    return "\n\n".join(failure.text() for failure in failures)


@needs_emulator
@pytest.mark.timeout(300)
def test_generated_kernels_keep_what_they_compute(folder: Path) -> None:
    tally, failures = run_seeds((5, 11, 15), folder, configs=2, sizes=1)
    assert not failures, told(failures)
    assert tally.lifted >= 3, tally.table()
    assert not tally.racy, tally.reasons


@needs_opencl
@pytest.mark.timeout(300)
@pytest.mark.long
def test_kernels_of_opencl_keep_what_they_compute(folder: Path) -> None:
    seeds = [seed for seed in range(40) if generate(seed).language == "opencl"]
    tally, failures = run_seeds(seeds[:2], folder, configs=1, sizes=1)
    assert not failures, told(failures)
    assert (tally.lifted, tally.racy) == (2, 0), tally.table()


@needs_emulator
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_generated_kernels_keep_what_they_compute(folder: Path) -> None:
    whole, failures = Tally(), list[Failure]()
    for first in range(10_000, 10_000 + LONG_RUN, 10):
        tally, found = run_seeds(range(first, first + 10), folder)
        whole.add(tally)
        failures += found
    assert not failures, told(failures)
    assert whole.lifted > LONG_RUN * 0.8, whole.table()
    assert whole.racy < LONG_RUN * 0.02, whole.table()


def _sprung(names: tuple[str, ...], folder: Path, configs: int, sizes: int) -> dict[str, tuple[Outcome, ...]]:
    """Of every trap, the configurations that are wrong."""
    attempts = [
        attempt(TRAPS[name].program(name), place, configs, sizes, PROVED_MOVES)
        for place, name in enumerate(names)
    ]
    whole = run([case for tried in attempts for case in tried.cases], folder)
    found = {}
    for name, tried in zip(names, attempts, strict=True):
        outcomes = [outcome for outcome in whole if outcome.case.name == tried.program.name]
        assert not tried.broken, f"{name}: {tried.broken}"
        assert not racy(outcomes), f"{name}: {racy(outcomes)}"
        found[name] = verdict_of(tried, outcomes)[1]
    return found


@needs_emulator
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_few_traps(folder: Path) -> None:
    assert {name: bad for name, bad in _sprung(QUICK, folder, 2, 1).items() if bad} == {}


@needs_emulator
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, len(TRAPS), 12))
def test_traps(first: int, folder: Path) -> None:
    names = tuple(TRAPS)[first : first + 12]
    found = _sprung(tuple(name for name in names if name not in KNOWN_HOLES), folder, 6, 3)
    assert {name: bad for name, bad in found.items() if bad} == {}


@needs_emulator
@pytest.mark.long
@pytest.mark.parametrize("name", KNOWN_HOLES)
def test_a_known_hole_is_still_one(name: str, folder: Path) -> None:
    """Once this fails the hole is closed: take it out of the list."""
    assert _sprung((name,), folder, 6, 3)[name]


def test_there_are_many_traps() -> None:
    assert len(TRAPS) >= 40
    assert set(KNOWN_HOLES) <= set(TRAPS)
    assert set(QUICK) <= set(TRAPS)


def test_a_seed_is_a_kernel() -> None:
    assert generate(5) == generate(5)
    assert generate(5).source != generate(6).source


def test_the_grammar_reaches_everything_it_names() -> None:
    seen = {tag for seed in range(400) for tag in generate(seed).tags}
    teams = {
        "flat",
        "grid stride",
        "plane",
        "column blocks",
        "several",
        "several apart",
        "block",
        "block of rows",
    }
    teams |= {"warp", "part of a warp", "thread"}
    ways = {"left", "right", "clamped", "turned round", "pairs", "spread", "next row", "transposed", "table"}
    work = {
        "taps",
        "local array",
        "while",
        "float2",
        "helper",
        "narrow",
        "unsigned wrap",
        "staged row",
        "carried",
    }
    totals = {f"total {name}" for name in ("+", "*", "max", "min", "count", "int+", "intmax")}
    odd = {
        "quirk thread",
        "quirk atomic",
        "quirk lane",
        "quirk clock",
        "guarded store",
        "uniform branch",
        "break",
    }
    wide = {"float4", "float4 stored", "__half2", "__half2 stored", "uchar4", "int4 stored", "opencl"}
    cpp = {"narrow compound", "unsigned below zero", "do while", "continue", "local pointer", "nested guards"}
    assert teams | ways | work | totals | odd | wide | cpp <= seen


def test_a_kernel_as_opencl() -> None:
    text = translated(
        "#include <cfloat>\n__device__ float g(float a) { return fmaxf(a, 1.0f); }\n"
        'extern "C" __global__ void k(const unsigned char *__restrict__ x, float *out)\n{\n'
        "    __shared__ float room[4];\n    __syncthreads();\n"
        "    ((float4 *)out)[threadIdx.x] = make_float4(g(x[0]), 0, 0, 0);\n}\n"
    )
    assert text == (
        "static float g(float a) { return fmax(a, 1.0f); }\n"
        "__kernel void k(__global const unsigned char *restrict x, __global float *out)\n{\n"
        "    __local float room[4];\n    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    ((__global float4 *)out)[(int)get_local_id(0)] = (float4)(g(x[0]), 0, 0, 0);\n}\n"
    )


# -- the judge itself: each of these must be told, or a wrong template would pass

_OPERANDS = (
    Operand("x", "float32", ("n",)), Operand("out", "float32", ("n",), "output"),
    Operand("n", "int32", value="n"),
)  # fmt: skip


def _program(body: str) -> Program:
    source = f'extern "C" __global__ void k(const float *x, float *out, int n) {{\n{body}\n}}\n'
    sizes = ({"n": 70}, {"n": 64})
    return Program(
        "judged", source, _OPERANDS, ("ceildiv(n, 64)",), ("64",), {"n": "{ min = 1, max = 4096 }"}, sizes
    )


_I = "const int i = blockIdx.x * 64 + threadIdx.x;\n"
_GOOD = _I + "if (i < n) out[i] = x[i] * 2.0f;"
_BAD = {
    "another value": (_I + "if (i < n) out[i] = i == 69 ? 9.5f : x[i] * 2.0f;", "differs"),
    "an element that is not written": (_I + "if (i < n - 1) out[i] = x[i] * 2.0f;", "differs"),
    "a load outside": (_I + "out[i < n ? i : 0] = x[i < n ? i : 1 << 20] * 2.0f;", "crash"),
    "a load behind the end": (_I + "if (i < n) out[i] = x[n] > 1e30f ? 0.0f : x[i] * 2.0f;", "crash"),
    "a store behind the end": (_I + "if (i <= n) out[i] = i < n ? x[i] * 2.0f : 0.0f;", "crash"),
    "an input that is written": (_I + "if (i < n) { ((float *)x)[i] = 1.0f; out[i] = 2.0f; }", "crash"),
    "a vector at an odd place": (_I + "if (i < n) out[i] = ((const float2 *)(x + 1))->x + x[i];", "crash"),
    "a barrier that some do not reach": (
        _I + "if (threadIdx.x < 9) __syncwarp();\n__syncthreads();\nif (i < n) out[i] = x[i];", "crash"),
    "an endless loop": (_I + "for (volatile int k = 0; k == 0;) {}\nif (i < n) out[i] = x[i];", "timeout"),
    "shared memory that nobody set": (
        _I + "__shared__ float s[64];\nif (threadIdx.x < 32) s[threadIdx.x] = 0.0f;\n__syncthreads();\n"
        "if (i < n) out[i] = x[i] * 2.0f + s[threadIdx.x];", "differs"),
    "a race": (
        _I + "__shared__ float s[64];\ns[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
        "if (i < n) out[i] = s[threadIdx.x ^ 1] == s[threadIdx.x ^ 1] ? x[i] * 2.0f : 0.0f;", "differs"),
}  # fmt: skip


@needs_emulator
@pytest.mark.long
def test_what_does_not_compile_is_told_and_the_rest_is_judged(folder: Path) -> None:
    (case,) = original_alone(_program(_GOOD), 3)
    bad = replace(
        case.trials[0],
        variant=original_variant(_program("out[0] = nothing;").problem(), {"n": 70}),
        seed=5,
        label="tried",
    )
    outcomes = run([replace(case, trials=(*case.trials, bad))], folder)
    assert sorted(outcome.verdict for outcome in outcomes) == ["build", "ok", "ok"]


@needs_emulator
@pytest.mark.timeout(300)
@pytest.mark.long
def test_the_judge_sees_what_is_wrong(folder: Path) -> None:
    good, cases = _program(_GOOD), []
    for name, (body, _) in _BAD.items():
        (case,) = original_alone(good, 3)
        problem = _program(body).problem()
        # Once against the end of its pages and once against their start: odd seeds lie at the end.
        trials = [
            replace(case.trials[0], variant=original_variant(problem, {"n": 70}), seed=seed, label="tried")
            for seed in (5, 7)
        ]
        cases.append(Case(name.replace(" ", "_"), (*case.trials, *trials), case.inputs))
    outcomes = run(cases, folder, seconds=1)
    for name, (_, verdict) in _BAD.items():
        own = [o for o in outcomes if o.case.name == name.replace(" ", "_")]
        assert not racy(own), name
        assert verdict in [o.verdict for o in own], (name, [(o.verdict, o.detail) for o in own])


@needs_emulator
@pytest.mark.long
def test_an_original_that_depends_on_the_order_is_told(folder: Path) -> None:
    body = _I + "if (i < n) out[0] = (float)i;\nif (i > 0 && i < n) out[i] = 0.0f;"
    assert racy(run(original_alone(_program(body), 3), folder))


def test_a_failing_kernel_is_made_shorter() -> None:
    program = generate(2)
    needle = next(line for line in program.source.split("\n") if "out0[" in line)
    short = reduced(program, lambda p: needle in p.source)
    assert needle in short.source
    assert len(short.source) < len(program.source) * 0.8


def test_a_broken_expert_is_a_failure(folder: Path) -> None:
    tried = Attempt(generate(3), "", (), "", (), "KeyError: 'x'")
    tally, failures = judged([(3, tried)], folder, Tally())
    assert (tally.broken, len(failures)) == (1, 1)
    assert "KeyError" in failures[0].text()
