"""How long a plain copy takes that moves as many bytes as an operator must: the ceiling for its kernels.

    python -m benchmarks.cuda.copy_rate --out DIR

For every workload of every example in examples/cuda: half of its necessary bytes read, half written, by a
kernel that copies 16 bytes at a time, with several block sizes and unrollings, timed in alternation with the
stopwatch that times the kernels (a CUDA graph, rotating over 3 x L2); beyond 64 MiB also by the driver's own
copy. The fastest counts. DIR/copy_rate.json keeps the figures, by bytes.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.race import Contender, Track
from tunesmith.backends.cuda.devices import check_cuda, driver
from tunesmith.backends.cuda.session import CudaSession
from tunesmith.backends.messages import TimingPolicy
from tunesmith.backends.port import Pointer
from tunesmith.problem.device import Device
from tunesmith.problem.plan import necessary_traffic
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.outcome import median
from tunesmith.session import place
from tunesmith.session.problems import load_problem, load_template

LARGE = 64 << 20  # bytes moved from which on the driver's own copy is asked too
CHAIN_S = 0.002
ROUNDS = 21
POLICY = TimingPolicy(rounds=15, min_rounds=15, chain_seconds=0.001, max_seconds=300.0)

PROBLEM = """\
name = "copy"
[kernel]
source = "copy.cu"
entry = "copy"
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
align = 16
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
align = 16
[[argument]]
name = "n"
type = "int64"
value = "n"
[launch]
grid = ["ceildiv(n, 1024)"]
block = ["256"]
[contract]
n = { min = 4, max = 0x100000000, multiple_of = 4 }
[workloads]
"""
DECLARATION = """\
// /// tunesmith
// [params]
// BLOCK = [128, 256, 512, 1024]
// ITEMS = [1, 2, 4]
// STREAM = [0, 1]
// [default]
// BLOCK = 256
// ITEMS = 1
// STREAM = 0
// [launch]
// grid = ["ceildiv(n, 4 * BLOCK * ITEMS)"]
// block = ["BLOCK"]
// ///
"""
KERNEL = """\
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef STREAM
#define STREAM 0
#endif
extern "C" __global__ void copy(float *out, const float *x, long long n)
{
    const long long first = (long long)blockIdx.x * (BLOCK * ITEMS) + threadIdx.x;
    const float4 *from = (const float4 *)x;
    float4 *to = (float4 *)out;
    float4 kept[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (first + k * BLOCK < n / 4)
            kept[k] = STREAM ? __ldcs(from + first + k * BLOCK) : from[first + k * BLOCK];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (first + k * BLOCK < n / 4) {
            if (STREAM)
                __stcs(to + first + k * BLOCK, kept[k]);
            else
                to[first + k * BLOCK] = kept[k];
        }
}
"""


def bytes_of_examples() -> dict[int, list[str]]:
    """Every number of bytes that some workload must move, with the workloads."""
    found: dict[int, list[str]] = {}
    for path in sorted(evidence.EXAMPLES.glob("*/problem.toml")):
        problem, _ = load_problem(path)
        for workload in problem.workloads:
            moved = necessary_traffic(problem, workload.as_dict())
            found.setdefault(moved, []).append(f"{problem.name}/{workload.name}")
    return dict(sorted(found.items()))


def elements(moved: int) -> int:
    """Floats to copy: as many bytes read as written, in whole vectors."""
    return max(4, 4 * round(moved / 2 / 16))


def written(folder: Path, sizes: list[int]) -> tuple[Problem, Template]:
    """The copy as a problem with a template, a workload for each size."""
    workloads = "".join(f"n{n} = {{ n = {n} }}\n" for n in dict.fromkeys(map(elements, sizes)))
    (folder / "problem.toml").write_text(PROBLEM + workloads)
    (folder / "copy.cu").write_text(KERNEL)
    (folder / "template.cu").write_text(DECLARATION + KERNEL)
    problem, files = load_problem(folder)
    return problem, load_template(folder / "template.cu", problem, files)


def by_kernel(sizes: list[int]) -> dict[int, dict[str, Any]]:
    """Elements -> the fastest kernel's configuration and seconds."""
    with tempfile.TemporaryDirectory() as name, Track("cuda") as track:
        problem, template = written(Path(name), sizes)
        compiler = place.choose_compiler(
            problem, template, track.device, place.WorkerSite("cuda", track.scratch), lambda _text: None
        )
        configs = list(template.space.configs([w.as_dict() for w in problem.workloads], {}))
        variants = [template.render(problem, config) for config in configs]
        built = track.build(variants, compiler)
        found = {}
        for workload in problem.workloads:
            made = [
                track.contender(problem, variant, workload.as_dict(), built[variant.digest])
                for variant in variants
            ]
            able = [(c, m) for c, m in zip(configs, made, strict=True) if isinstance(m, Contender)]
            samples = track.time(problem, workload, [m for _, m in able], POLICY, seed=1)
            medians = [median(s) for s in samples]
            best = min(range(len(medians)), key=medians.__getitem__)
            found[workload.as_dict()["n"]] = {"config": str(able[best][0]), "seconds": medians[best]}
        return found


def by_driver(sizes: list[int], device: Device) -> dict[int, float]:
    """Elements -> seconds of the driver's copy, in chains that rotate through 3 x L2 and more."""
    session, cu = CudaSession(device), driver()
    begin, end = session.take_events()
    found = {}
    for n in sizes:
        nbytes = 4 * n
        slots = max(2, math.ceil(3 * device.limits.llc / (2 * nbytes)))
        memory = [session.allocate(slots * nbytes) for _ in range(2)]
        session.write(memory[1], 0, bytes(64))
        # Where to, then where from.
        places = [[Pointer(m, slot * nbytes, nbytes) for m in memory] for slot in range(slots)]

        def chain(length: int, places: list[list[Pointer]] = places) -> float:
            with session.gate:
                check_cuda(cu.cuEventRecord(begin, session.stream))
                for number in range(length):
                    session.copy(*places[number % len(places)])
                check_cuda(cu.cuEventRecord(end, session.stream))
            check_cuda(cu.cuStreamSynchronize(session.stream))
            return float(check_cuda(cu.cuEventElapsedTime(begin, end))) * 1e-3 / length

        chain(2)
        length = max(2, min(256, math.ceil(CHAIN_S / chain(2))))
        found[n] = median([chain(length) for _ in range(ROUNDS)])
        for m in memory:
            session.release(m)
    return found


def main() -> int:
    options = argparse.ArgumentParser(description="Time plain copies of the bytes that the examples move.")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    arguments = options.parse_args()
    wanted = bytes_of_examples()
    kernels = by_kernel(list(wanted))
    with place.temporary_scratch() as scratch:
        device = place.choose_device(place.find_local_devices(place.WorkerSite("cuda", scratch)), None)
    large = list(dict.fromkeys(elements(moved) for moved in wanted if moved >= LARGE))
    copies = by_driver(large, device)
    rows: dict[str, Any] = {}
    for moved, workloads in wanted.items():
        n = elements(moved)
        kernel, own = kernels[n], copies.get(n, math.inf)
        seconds = min(kernel["seconds"], own)
        rows[str(moved)] = {
            "seconds": seconds,
            "rate_tb_s": moved / seconds / 1e12,
            "by": "the driver's copy" if own < kernel["seconds"] else f"a kernel, {kernel['config']}",
            "kernel_s": kernel["seconds"],
            "driver_s": own if math.isfinite(own) else None,
            "workloads": workloads,
        }
        print(f"{moved:12} bytes {1e6 * seconds:9.2f} us {rows[str(moved)]['rate_tb_s']:.3f} TB/s")
    evidence.write(arguments.out, "copy_rate", {"copies": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
