"""What runs delivered, called as a program would: by three ways of PyTorch, and at random sizes.

    python -m benchmarks.cuda.delivered --out DIR [--sizes 200] [--seed 1] RUN…
    python -m benchmarks.cuda.delivered --out DIR --page FILE

Figures go to DIR/delivered.json, those of other runs stay there; --page writes them as Markdown. Needs
PyTorch and the device that the runs were made on.

The workloads are timed by `tunesmith bench`. At random sizes each call goes through the PyTorch runtime,
dispatch and all; launches are captured in CUDA graphs, so that the host's part is not in the time, and
original and tuned are replayed in alternation: cold, over copies of the arrays that together exceed the
cache, and, where the cache can hold them, warm, over one. A size counts as slower where the whole 95 %
interval of the paired ratio lies below 0.98.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

import tunesmith
from benchmarks.cuda import evidence
from benchmarks.cuda import markdown as md
from tunesmith.problem.domain import Domain
from tunesmith.problem.problem import Argument, Problem
from tunesmith.run.folder import RunFolder
from tunesmith.run.outcome import median_interval
from tunesmith.session import problems, result

BELOW = 0.98
COLD_BYTES = 160 << 20  # of all copies together
MAX_COPIES = 512  # launches of one graph
WARM_COPIES = 64
MAX_BYTES = 2 << 30  # of one call
APART = 256  # bytes that an array begins at a multiple of
ROUNDS = 11

HOW = (
    "*Delivered*: kernels in the dispatch, of all that won. *Eager, compile, graph*: the operator of "
    "`tunesmith export --to torch` against the original called the same way, geometric mean over the "
    "workloads (least to most). *Host*: microseconds until a call returns, original → tuned. *Random sizes*: "
    "sizes of the contract, log-uniform, each called through the dispatch, cold and, where the cache holds "
    "the arrays, warm; *tuned*: how many the tuned kernels serve, with their geometric mean; *least*: the "
    "smallest median ratio; *slower*: sizes with the whole 95 % interval below 0.98."
)


class Caller:
    """One size: arrays in several copies, and graphs of calls over them."""

    def __init__(self, problem: Problem, sizes: dict[str, int]) -> None:
        import torch

        self.torch = torch
        self.arrays = [a for a in problem.arguments if a.is_array and not a.alias and a.role != "workspace"]
        shapes = [[max(0, e.evaluate(sizes)) for e in a.shape] for a in self.arrays]
        lengths = [math.prod(shape) * a.element.bytes for a, shape in zip(self.arrays, shapes, strict=True)]
        self.nbytes = sum(lengths)
        count = max(2, min(MAX_COPIES, -(-COLD_BYTES // max(1, self.nbytes))))
        columns = [self._copies(a, shape, count) for a, shape in zip(self.arrays, shapes, strict=True)]
        self.copies = list(zip(*columns, strict=True))
        told = {name for a in self.arrays for e in a.shape for name in e.names}
        self.named = {name: value for name, value in sizes.items() if name not in told}

    def _copies(self, argument: Argument, shape: list[int], count: int) -> list[Any]:
        """Parts of one allocation, each as aligned as an array of its own."""
        torch, element = self.torch, argument.element
        kind = {"float8_e4m3": "float8_e4m3fn"}.get(argument.type, argument.type)
        length = math.prod(shape)
        step = -(-max(1, length * element.bytes) // APART) * APART // element.bytes
        if element.kind == "float":
            whole = torch.randn(step * count, device="cuda", dtype=torch.float32)
        else:
            low, high = (int(v) for v in argument.range or (0, 1))
            whole = torch.randint(low, max(low + 1, high), (step * count,), device="cuda")
        whole = whole.to(getattr(torch, kind))
        return [whole[n * step : n * step + length].view(shape) for n in range(count)]

    def graph(self, function: Any, sets: list[Any]) -> Any:
        torch = self.torch
        function(*sets[0], **self.named)  # loads it
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for arrays in sets:
                function(*arrays, **self.named)
        return graph

    def milliseconds(self, graph: Any) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    def rounds(self, functions: Sequence[Any], warm: bool) -> list[tuple[float, ...]]:
        """Milliseconds of each function, in alternation."""
        sets = [self.copies[0]] * WARM_COPIES if warm else self.copies
        graphs = [self.graph(function, sets) for function in functions]
        for graph in graphs:
            self.milliseconds(graph)
        return [tuple(self.milliseconds(graph) for graph in graphs) for _ in range(ROUNDS)]


def sizes_of(domain: Domain, count: int, seed: int) -> list[dict[str, int]]:
    rng = np.random.default_rng(seed)
    points = np.concatenate([domain.sample(rng) for _ in range(4)])
    points = np.unique(points[domain.bytes(points) <= MAX_BYTES], axis=0)
    return [dict(one) for one in domain.named(rng.permutation(points)[:count])]


def figures(folder: Path, count: int, seed: int) -> dict[str, Any]:
    state, templates = problems.state_and_templates(RunFolder(folder))
    problem = templates.problem
    dispatch = result.dispatch_in(folder, result.delivered_files(folder))
    benched = tunesmith.bench(folder)
    return {
        "problem": problem.name,
        "delivered": dispatch.winners - len(dispatch.left_out),
        "won": dispatch.winners,
        "left_out": list(dispatch.left_out),
        "bench": [_benched(w) for w in benched.workloads],
        "notes": [*benched.notes, *(note for w in benched.workloads for note in w.notes)],
        **_at_random(folder, problem, state.device.limits.llc, count, seed),
    }


def _benched(workload: Any) -> dict[str, Any]:
    ways = {
        way.way: {"ratio": way.ratio, "host_us": [way.original_host_us, way.tuned_host_us]}
        for way in workload.ways
    }
    return {"name": workload.name, "verified": workload.verified, "ways": ways}


def _at_random(folder: Path, problem: Problem, llc: int, count: int, seed: int) -> dict[str, Any]:
    calls = result.calls_of(folder.resolve(), "torch")
    dispatch = result.dispatch_in(folder, result.delivered_files(folder))
    rows: list[dict[str, Any]] = []
    drawn = sizes_of(Domain(problem, ()), count, seed)
    for number, sizes in enumerate(drawn, 1):
        caller = Caller(problem, sizes)
        tuned = dispatch.entry_for(sizes).config is not None
        for cache in ("cold", "warm") if caller.nbytes <= llc else ("cold",):
            rounds = caller.rounds((calls.original, calls), cache == "warm")
            found = median_interval(tuple(original / ours for original, ours in rounds), seed)
            interval = {"ratio": found.value, "low": found.low, "high": found.high}
            rows.append({"sizes": sizes, "cache": cache, "tuned": tuned, **interval})
        if sys.stderr.isatty() or number % 50 == 0:
            print(f"{problem.name}: {number} of {len(drawn)}", file=sys.stderr)
    return {"sizes": len(drawn), "rows": rows}


def page(told: dict[str, Any]) -> str:
    found = told["problems"].values()
    ways = list(next(iter(found))["bench"][0]["ways"])
    head = ["problem", "delivered", *ways, "host", "tuned", "least", "slower"]
    lines = ["# What is delivered, where it is called", "", HOW, ""]
    lines += md.table(head, [_row(one, ways) for one in found])
    slower = sum(len(_slower(one)) for one in found)
    missing = sum(one["won"] - one["delivered"] for one in found)
    lines += [
        md.claim(missing == 0, f"{missing} winners are not delivered (0)"),
        md.claim(slower == 0, f"{slower} sizes are slower (0)"),
        "",
        *md.source(told),
    ]
    return "\n".join(lines)


def _row(one: dict[str, Any], ways: list[str]) -> list[str]:
    cells = [one["problem"], f"{one['delivered']} of {one['won']}"]
    for way in ways:
        ratios = [w["ways"][way]["ratio"] for w in one["bench"]]
        cells.append(f"{geometric_mean(ratios):.2f}× ({min(ratios):.2f} to {max(ratios):.2f})")
    host = [w["ways"][ways[0]]["host_us"] for w in one["bench"]]
    cells.append(" → ".join(f"{sum(each) / len(host):.1f}" for each in zip(*host, strict=True)))
    rows = one["rows"]
    served = [row["ratio"] for row in rows if row["tuned"]]
    count = len({tuple(row["sizes"].items()) for row in rows if row["tuned"]})
    mean = f", {geometric_mean(served):.2f}×" if served else ""
    cells += [f"{count} of {one['sizes']}{mean}", f"{min(row['ratio'] for row in rows):.2f}×"]
    return [*cells, str(len(_slower(one)))]


def _slower(one: dict[str, Any]) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(row["sizes"].items()) for row in one["rows"] if row["high"] < BELOW}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    told = evidence.read(given.out, "delivered") or {"problems": {}}
    for run in given.runs:
        one = figures(run, given.sizes, given.seed)
        told["problems"][one["problem"]] = one
        evidence.write(given.out, "delivered", {"problems": told["problems"]}, adds=True)
        ways = list(one["bench"][0]["ways"])
        print(" | ".join(_row(one, ways)))
        for row in one["rows"]:
            if row["high"] < BELOW:
                print(f"  slower: {row['sizes']} {row['cache']} {row['ratio']:.3f}, tuned {row['tuned']}")
    if given.page:
        given.page.write_text(page(told), encoding="utf-8")


if __name__ == "__main__":
    main()
