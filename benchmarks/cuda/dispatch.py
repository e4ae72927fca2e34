"""Calls what runs delivered at random sizes of their contracts, and times it against the original.

    python -m benchmarks.cuda.dispatch --out FILE [--sizes 200] [--seed 1] RUN…

Each call goes through the PyTorch runtime, dispatch and all, as a program would make it. Launches are
captured in CUDA graphs over copies of the arrays, so that neither the host's part nor a warm cache is in the
time; original and tuned are replayed in alternation. A size counts as slower where the whole 95 % interval
of the paired ratio lies below 0.98. Needs PyTorch and the device that the runs were made on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tunesmith
from tunesmith.problem.domain import Domain
from tunesmith.run.outcome import median_interval
from tunesmith.run.store import RunFolder
from tunesmith.session import calling, problems

BELOW = 0.98
COLD_BYTES = 160 << 20  # of all copies together
MOST_COPIES = 64
MOST_BYTES = 2 << 30  # of one call
ROUNDS = 15


def sizes_of(domain: Domain, count: int, seed: int) -> list[dict[str, int]]:
    rng = np.random.default_rng(seed)
    points = np.concatenate([domain.sample(rng) for _ in range(4)])
    points = np.unique(points[domain.bytes(points) <= MOST_BYTES], axis=0)
    chosen = rng.permutation(points)[:count]
    return [dict(one) for one in domain.named(chosen)]


class Caller:
    """One size: arrays in several copies, and the two graphs over them."""

    def __init__(self, calls: Any, problem: Any, sizes: dict[str, int]) -> None:
        import torch

        self.torch, self.calls, self.sizes = torch, calls, sizes
        self.arrays = [a for a in problem.arguments if a.is_array and not a.alias and a.role != "workspace"]
        shapes = {a.name: [max(0, e.evaluate(sizes)) for e in a.shape] for a in self.arrays}
        nbytes = sum(math.prod(shapes[a.name]) * a.element.bytes for a in self.arrays)
        copies = max(2, min(MOST_COPIES, -(-COLD_BYTES // max(1, nbytes))))
        self.copies = [[self._array(a, shapes[a.name]) for a in self.arrays] for _ in range(copies)]
        told = {name for e in (x for a in self.arrays for x in a.shape) for name in e.names}
        self.named = {name: value for name, value in sizes.items() if name not in told}

    def _array(self, argument: Any, shape: list[int]) -> Any:
        torch, element = self.torch, argument.element
        kind = {"float8_e4m3": "float8_e4m3fn"}.get(argument.type, argument.type)
        dtype = getattr(torch, kind)
        if element.kind != "float":
            low, high = (int(v) for v in argument.range or (0, 1))
            return torch.randint(low, max(low + 1, high), shape, device="cuda").to(dtype)
        return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)

    def graph(self, function: Any) -> Any:
        torch = self.torch
        function(*self.copies[0], **self.named)  # loads it
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for arrays in self.copies:
                function(*arrays, **self.named)
        return graph

    def seconds(self, graph: Any) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 / len(self.copies)

    def ratios(self) -> list[float]:
        graphs = self.graph(self.calls.original), self.graph(self.calls)
        for graph in graphs:
            self.seconds(graph)
        return [self.seconds(graphs[0]) / self.seconds(graphs[1]) for _ in range(ROUNDS)]


def figures(folder: Path, count: int, seed: int) -> dict[str, Any]:
    state, templates = problems.state_and_templates(RunFolder(folder))
    problem = templates.problem
    calls = calling.calls_of(folder.resolve(), "torch")
    dispatch = calling.dispatch_in(folder, calling.delivered_files(folder))
    rows: list[dict[str, Any]] = []
    for number, sizes in enumerate(sizes_of(Domain(problem, ()), count, seed)):
        ratios = Caller(calls, problem, sizes).ratios()
        found = median_interval(tuple(ratios), seed)
        tuned = dispatch.entry_for(sizes).config is not None
        rows.append(
            {"sizes": sizes, "tuned": tuned, "ratio": found.value, "low": found.low, "high": found.high}
        )
        if sys.stderr.isatty() or number % 50 == 49:
            print(f"{problem.name}: {number + 1} of {count}", file=sys.stderr)
    slower = [row for row in rows if row["high"] < BELOW]
    served = [row["ratio"] for row in rows if row["tuned"]]
    mean = math.exp(sum(map(math.log, served)) / len(served)) if served else None
    return {
        "problem": problem.name,
        "device": state.device.name,
        "tuned_kernels": len({entry.digest for entry in dispatch.tuned}),
        "left_out": list(dispatch.left_out),
        "sizes": len(rows),
        "served_by_tuned": len(served),
        "mean_where_tuned": mean,
        "least": min(row["ratio"] for row in rows),
        "slower": len(slower),
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    for run in given.runs:
        one = figures(run, given.sizes, given.seed)
        found[one["problem"]] = one | {"tunesmith": tunesmith.__version__}
        given.out.write_text(json.dumps(found, indent=1) + "\n")
        mean = f"{one['mean_where_tuned']:.2f}x" if one["mean_where_tuned"] else "-"
        words = f"tuned at {one['served_by_tuned']} of {one['sizes']} ({mean}), least {one['least']:.3f}"
        print(f"{one['problem']}: {words}, slower at {one['slower']}")


if __name__ == "__main__":
    main()
