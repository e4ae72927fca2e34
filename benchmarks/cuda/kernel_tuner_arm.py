"""The same search by Kernel Tuner 1.5 with its CuPy back end: brute force over the same configurations.

    pip install 'kernel_tuner==1.5.*' cupy-cuda13x        # for this script alone
    python -m benchmarks.cuda.kernel_tuner_arm --out DIR [--workloads N]

The source is the template of examples/cuda/silu_and_mul, its macros are the tunable parameters, block and
grid are what the template's launch says, and the configurations are the ones that Tunesmith searches. The
workloads are tuned one after the other, as it tunes one size at a time: 7 iterations each (its default), no
answer check, data wherever the cache has it (its default too). CuPy's own cache of compiled kernels starts
empty. DIR/kernel_tuner_arm.json keeps wall seconds, its own account of them, and the winners.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cuda import evidence
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Template, configs_of
from tunesmith.session import place
from tunesmith.session.problems import load_problem, load_template
from tunesmith.space.expr import Expr

EXAMPLE = evidence.EXAMPLES / "silu_and_mul"
ITERATIONS = 7
PARTS = ("compile_time", "benchmark_time", "verification_time", "framework_time", "strategy_time")


def configurations(problem: Problem, template: Template, device: Device) -> list[dict[str, int]]:
    """What Tunesmith searches; each is legal at every workload of this problem."""
    known = device.limits.names()
    found = []
    for config in configs_of(problem, template, device):
        variant = template.render(problem, config)
        if all(variant.allows({**w.as_dict(), **known}) for w in problem.workloads):
            found.append(config.as_dict())
    return found


def arguments_of(problem: Problem, workload: Workload) -> list[Any]:
    """The kernel's arguments in its order: arrays of normal numbers, scalars of their own type."""
    sizes, rng = workload.as_dict(), np.random.default_rng(1)
    made: list[Any] = []
    for argument in problem.arguments:
        kind = argument.element.numpy
        if argument.is_array:
            shape = [axis.evaluate(sizes) for axis in argument.shape]
            made.append(rng.standard_normal(shape, dtype=np.float32).astype(kind))
        else:
            assert isinstance(argument.value, Expr)
            made.append(kind.type(argument.value.evaluate(sizes)))
    return made


def grid_of(template: Template, workload: Workload) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """The template's own grid, for Kernel Tuner to divide by nothing."""
    (launch,) = template.launches
    sizes = workload.as_dict()

    def grid(params: Mapping[str, int]) -> tuple[int, ...]:
        names = {**sizes, **{p.name: int(params[p.name]) for p in template.space.params}}
        return tuple(axis.evaluate(names) for axis in launch.grid)

    return grid


def tune(
    template: Template,
    workload: Workload,
    data: list[Any],
    allowed: list[dict[str, int]],
    compiler_options: list[str],
) -> Any:
    import kernel_tuner

    params = {p.name: list(p.values) for p in template.space.params}
    keys = {tuple(config[name] for name in params) for config in allowed}

    def searched(p: Mapping[str, int]) -> bool:
        return tuple(int(p[name]) for name in params) in keys

    results, _ = kernel_tuner.tune_kernel(
        template.launches[0].entry,
        template.source,
        grid_of(template, workload),
        data,
        params,
        grid_div_x=[],
        grid_div_y=[],
        grid_div_z=[],
        restrictions=searched,
        block_size_names=["BLOCK"],
        lang="CUPY",
        iterations=ITERATIONS,
        compiler_options=compiler_options or None,
        quiet=True,
    )
    return results


def figures(results: list[dict[str, Any]], names: list[str], wall: float) -> dict[str, Any]:
    """One workload: seconds as Kernel Tuner accounts for them, and the configuration it would choose."""
    timed = [r for r in results if "__error__" not in r]
    best = min(timed, key=lambda r: r["time"])
    return {
        "wall_s": wall,
        "seconds": {part.removesuffix("_time"): sum(r.get(part, 0) for r in results) / 1e3 for part in PARTS},
        "configurations": len(results),
        "failed": len(results) - len(timed),
        "winner": {name: int(best[name]) for name in names},
        "winner_us": 1e3 * float(best["time"]),
    }


def main() -> int:
    options = argparse.ArgumentParser(description="Search the silu_and_mul space with Kernel Tuner.")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--workloads", type=int, default=0, help="only the first so many")
    options.add_argument(
        "--option", action="append", default=[], help="for its compiler: --option=--std=c++17"
    )
    chosen = options.parse_args()
    problem, files = load_problem(EXAMPLE)
    template = load_template(EXAMPLE / "template.cu", problem, files)
    with place.temporary_scratch() as scratch:
        device = place.choose_device(place.find_local_devices(place.WorkerSite("cuda", scratch)), None)
    allowed = configurations(problem, template, device)
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CUPY_CACHE_DIR"] = cache  # before CuPy is imported: nothing is compiled already
        before = time.perf_counter()
        import kernel_tuner  # noqa: F401

        importing = time.perf_counter() - before
        for workload in problem.workloads[: chosen.workloads or None]:
            data = arguments_of(problem, workload)
            before = time.perf_counter()
            results = tune(template, workload, data, allowed, chosen.option)
            wall = time.perf_counter() - before
            rows[workload.name] = figures(results, [p.name for p in template.space.params], wall)
            print(f"{workload.name:20} {wall:6.2f} s {rows[workload.name]}")
            sys.stdout.flush()
    pairs = sum(row["configurations"] for row in rows.values())
    told = {
        "import_s": importing,
        "iterations": ITERATIONS,
        "configurations": len(allowed),
        "pairs": pairs,
        "wall_s": sum(row["wall_s"] for row in rows.values()),
        "compile_and_benchmark_s": sum(
            row["seconds"]["compile"] + row["seconds"]["benchmark"] for row in rows.values()
        ),
        "workloads": rows,
        "winners": {name: row["winner"] for name, row in rows.items()},
    }
    print(f"{told['wall_s']:.1f} s, {1e3 * told['wall_s'] / pairs:.1f} ms for a configuration at a size")
    evidence.write(chosen.out, "kernel_tuner_arm", told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
