"""How long it takes to list the legal configurations of a 14-parameter matrix multiplication.

    python benchmarks/space_enumeration.py             times it; fails if the list takes more than 1 s
    python benchmarks/space_enumeration.py --verify    first compares with trying every combination (slow)

Parameters and rules are those of the well-known tunable OpenCL GEMM kernels: work-group tiles MWG, NWG, KWG;
thread grids MDIMC x NDIMC and, for loading, MDIMA and NDIMB; unrolling KWI; vector widths VWM, VWN; strides
STRM, STRN; local-memory caching SA, SB. The rules are texts in Tunesmith's expression language.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tunesmith.space.configset import Param
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint, Space

PARAMS: dict[str, tuple[int, ...]] = {
    "MWG": (16, 32, 64, 128),
    "NWG": (16, 32, 64, 128),
    "KWG": (16, 32),
    "MDIMC": (8, 16, 32),
    "NDIMC": (8, 16, 32),
    "MDIMA": (8, 16, 32),
    "NDIMB": (8, 16, 32),
    "KWI": (2, 8),
    "VWM": (1, 2, 4, 8),
    "VWN": (1, 2, 4, 8),
    "STRM": (0, 1),
    "STRN": (0, 1),
    "SA": (0, 1),
    "SB": (0, 1),
}
RULES = {
    "unrolled_k": "KWG % KWI == 0",
    "tile_m": "MWG % (MDIMC * VWM) == 0",
    "tile_n": "NWG % (NDIMC * VWN) == 0",
    "load_a": "MWG % (MDIMA * VWM) == 0",
    "load_b": "NWG % (NDIMB * VWN) == 0",
    "rows_a": "KWG % (MDIMC * NDIMC // MDIMA) == 0",
    "rows_b": "KWG % (MDIMC * NDIMC // NDIMB) == 0",
    "threads": "MDIMC * NDIMC <= device.threads",
    "two_groups_fit": "2 * 4 * KWG * (SA * MWG + SB * NWG) <= device.shared",
    "whole_m": "m % MWG == 0",
    "whole_n": "n % NWG == 0",
}
DEVICE = {"device.threads": 1024, "device.shared": 49152}
CASES: dict[str, tuple[dict[str, int], ...]] = {
    "one workload": ({"m": 4096, "n": 4096},),
    "three workloads": ({"m": 4096, "n": 48}, {"m": 96, "n": 4096}, {"m": 1040, "n": 1040}),
}
REPEATS = 7
LIMIT_S = 1.0

Workloads = Sequence[Mapping[str, int]]


def space() -> Space:
    params = tuple(Param(name, values) for name, values in PARAMS.items())
    return Space(params, tuple(Constraint(name, parse_expr(text)) for name, text in RULES.items()))


def brute_force(workloads: Workloads) -> set[tuple[int, ...]]:
    """Every combination tried, with the rules written a second time, in Python."""
    threads, shared = DEVICE["device.threads"], DEVICE["device.shared"]
    legal = set()
    for values in itertools.product(*PARAMS.values()):
        mwg, nwg, kwg, mdimc, ndimc, mdima, ndimb, kwi, vwm, vwn, _, _, sa, sb = values
        if (
            kwg % kwi == 0
            and mwg % (mdimc * vwm) == 0
            and nwg % (ndimc * vwn) == 0
            and mwg % (mdima * vwm) == 0
            and nwg % (ndimb * vwn) == 0
            and kwg % (mdimc * ndimc // mdima) == 0
            and kwg % (mdimc * ndimc // ndimb) == 0
            and mdimc * ndimc <= threads
            and 2 * 4 * kwg * (sa * mwg + sb * nwg) <= shared
            and any(sizes["m"] % mwg == 0 and sizes["n"] % nwg == 0 for sizes in workloads)
        ):
            legal.add(values)
    return legal


def verify(workloads: Workloads) -> bool:
    listed = [tuple(row) for row in space().configs(workloads, DEVICE).values_matrix().tolist()]
    return len(listed) == len(set(listed)) and set(listed) == brute_force(workloads)


def seconds(workloads: Workloads) -> tuple[list[float], list[float], int]:
    """To read the texts and build the set; then also to write all values out as a matrix; the count."""
    build, write = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        configs = space().configs(workloads, DEVICE)
        build.append(time.perf_counter() - start)
        matrix = configs.values_matrix()
        write.append(time.perf_counter() - start)
    return build, write, len(matrix)


def machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = f"{len(models)} x {models[0]}" if models else platform.processor() or platform.machine()
    return f"{platform.node()}, {cpu}, Python {platform.python_version()}, NumPy {np.__version__}"


def main() -> int:
    options = argparse.ArgumentParser(description="Time the enumeration of a GEMM search space.")
    options.add_argument("--verify", action="store_true", help="first compare with trying every combination")
    arguments = options.parse_args()
    print(f"machine       {machine()}")
    print(f"date          {datetime.datetime.now().astimezone().isoformat(timespec='minutes')}")
    print(f"command       {' '.join(['python', *sys.argv])}")
    print(f"combinations  {space().combinations:,}")
    slow = False
    for name, workloads in CASES.items():
        if arguments.verify and not verify(workloads):
            print(f"{name}: differs from trying every combination")
            return 1
        build, write, count = seconds(workloads)
        checked = " (equal to trying every combination)" if arguments.verify else ""
        print(f"\n{name}\n  legal       {count:,}{checked}")
        for label, times in (("built", build), ("written out", write)):
            print(
                f"  {label:11} best {min(times):.4f} s, median {statistics.median(times):.4f} s of {REPEATS}"
            )
        slow = slow or statistics.median(write) > LIMIT_S
    if slow:
        print(f"\ntoo slow: at most {LIMIT_S:g} s is allowed")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
