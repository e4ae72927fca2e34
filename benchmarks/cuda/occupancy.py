"""Whether our occupancy is the driver's: random registers, shared memory and block sizes.

    python -m benchmarks.cuda.occupancy --out DIR [--cases 1000] [--seed 0]

Kernels that need from few to all registers, with and without static shared memory, are built once for each
limit on registers. Each case draws one of them, a block and dynamic shared memory, and asks both.
DIR/occupancy.json keeps how many agree and every case that does not.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from tunesmith import backends
from tunesmith.backends.cuda.cubin import unpack
from tunesmith.backends.cuda.devices import check_cuda, describe_all, driver
from tunesmith.backends.messages import Unit
from tunesmith.problem.device import Device, Resources, compute_occupancy

CAPS = (16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 168, 192, 224, 255)
STATIC = (0, 100, 4096, 20000)
# Values that are all alive at once; how many registers they take is decided by the limit.
SOURCE = """
extern "C" __global__ void busy(float *out, const float *in, int n)
{
    __shared__ float kept[STATIC_FLOATS + 1];
    float value[192];
    #pragma unroll
    for (int i = 0; i < 192; ++i) { value[i] = in[i * n + threadIdx.x]; }
    kept[threadIdx.x % (STATIC_FLOATS + 1)] = value[0];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 192; ++i) {
        out[i * n + threadIdx.x] = value[i] * value[191 - i] + kept[i % (STATIC_FLOATS + 1)];
    }
}
"""


def builds(device: Device) -> list[tuple[Resources, Any]]:
    """Each kernel as the compiler describes it, and as the driver has loaded it."""
    backend, found = backends.make_backend("cuda"), []
    for cap in CAPS:
        for static in STATIC:
            source = SOURCE.replace("STATIC_FLOATS", str(static // 4))
            unit = Unit("busy.cu", source, "cuda", (f"--maxrregcount={cap}",), ("busy",))
            binary = backend.build(unit, device)
            symbols, cubin = unpack(binary.data)
            module = check_cuda(driver().cuModuleLoadData(cubin))
            found.append(
                (
                    binary.resources,
                    check_cuda(driver().cuModuleGetFunction(module, symbols["busy"].encode())),
                )
            )
    return found


def compare(cases: int, seed: int) -> dict[str, Any]:
    cu = driver()
    device = describe_all()[0]
    check_cuda(
        cu.cuCtxSetCurrent(
            check_cuda(cu.cuDevicePrimaryCtxRetain(check_cuda(cu.cuDeviceGet(int(device.id)))))
        )
    )
    kernels, drawn = builds(device), random.Random(seed)
    attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    limits, different, registers = device.limits, [], set()
    for _ in range(cases):
        resources, function = drawn.choice(kernels)
        threads = drawn.choice(
            (drawn.randint(1, limits.max_threads), 32 * drawn.randint(1, limits.max_threads // 32))
        )
        most = limits.shared - (resources.shared or 0)
        shared = drawn.choice((0, drawn.randint(0, most), drawn.randint(0, most // 16)))
        check_cuda(cu.cuFuncSetAttribute(function, attribute, shared))
        told = int(check_cuda(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared)))
        ours = compute_occupancy(limits, resources, threads, shared)
        registers.add(resources.registers)
        if ours is None or ours.blocks_per_sm != told:
            case = {
                "registers": resources.registers,
                "static": resources.shared,
                "threads": threads,
                "dynamic": shared,
            }
            different.append(case | {"driver": told, "ours": ours.blocks_per_sm if ours else None})
    return {
        "cases": cases,
        "seed": seed,
        "registers": sorted(r for r in registers if r is not None),
        "different": different,
    }


def main() -> int:
    options = argparse.ArgumentParser(description="Compare our occupancy with the driver's.")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    arguments = options.parse_args()
    found = compare(arguments.cases, arguments.seed)
    evidence.write(arguments.out, "occupancy", found)
    for case in found["different"][:20]:
        print(case)
    print(
        f"{found['cases'] - len(found['different'])} of {found['cases']} agree; "
        f"registers {found['registers']}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
