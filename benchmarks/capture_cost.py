"""Measures what capturing costs a program that does little but launch kernels.

    python -m benchmarks.capture_cost [--rounds N] [--launches N] [--json FILE]

A C program makes three kinds of launches of an empty kernel, back to back: with the *same* arguments, with an
*address* that is another one each time, and with a *value* that is another one each time. It is run alone and
captured in turns, beginning with either, and the host's time of a launch is compared within each pair, so
that what else the machine does meets both. Needs an NVIDIA GPU and a C compiler; takes under a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tunesmith

KINDS = ("same", "address", "value")
_PROGRAM = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*Any)();
static void *driver;
static Any entry(const char *name) {
    Any found = (Any)dlsym(driver, name);
    if (!found) { fprintf(stderr, "the driver has no %s\n", name); exit(3); }
    return found;
}
static void must(int code, const char *what) {
    if (code) { fprintf(stderr, "%s: error %d of the driver\n", what, code); exit(3); }
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static const char *PTX =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 p, .param .u32 n)\n{\n ret;\n}\n";
int main(int count, char **words) {
    int launches = count > 1 ? atoi(words[1]) : 20000;
    FILE *out = fopen(words[2], "w");
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver || !out) { fprintf(stderr, "there is no NVIDIA driver\n"); return 3; }
    int device = 0;
    void *context = 0, *module = 0, *kernel = 0;
    uint64_t memory = 0;
    must(entry("cuInit")(0), "cuInit");
    must(entry("cuDeviceGet")(&device, 0), "cuDeviceGet");
    must(entry("cuDevicePrimaryCtxRetain")(&context, device), "cuDevicePrimaryCtxRetain");
    must(entry("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    must(entry("cuModuleLoadData")(&module, PTX), "cuModuleLoadData");
    must(entry("cuModuleGetFunction")(&kernel, module, "nothing"), "cuModuleGetFunction");
    must(entry("cuMemAlloc_v2")(&memory, (size_t)1 << 26), "cuMemAlloc");
    Any launch = entry("cuLaunchKernel"), wait = entry("cuCtxSynchronize");
    for (int kind = -1; kind < 3; kind++) { /* the first is to get warm */
        double begun = now();
        for (int i = 0; i < launches; i++) {
            uint64_t address = memory + (kind == 1 ? 256ull * (i & 0x3ffff) : 0);
            int value = kind == 2 ? i : 7;
            void *arguments[] = {&address, &value};
            must(launch(kernel, 1, 1, 1, 32, 1, 1, 0, (void *)0, arguments, (void *)0), "cuLaunchKernel");
            if (i % 512 == 511) must(wait(), "cuCtxSynchronize");
        }
        must(wait(), "cuCtxSynchronize");
        if (kind >= 0) fprintf(out, "%.9f\n", (now() - begun) / launches);
    }
    return fclose(out);
}
"""


@dataclass(frozen=True)
class LaunchCost:
    """Of one kind of launches: seconds each, by rounds."""

    kind: str
    alone: tuple[float, ...]
    captured: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [after / before for before, after in zip(self.alone, self.captured, strict=True)]

    def line(self) -> str:
        ratios = sorted(self.ratios)
        low, middle, high = ratios[0], statistics.median(ratios), ratios[-1]
        before, after = (1e6 * statistics.median(times) for times in (self.alone, self.captured))
        return (
            f"{self.kind:<8} {before:6.2f} µs alone, {after:6.2f} µs captured: {middle:.2f}x "
            f"({low:.2f} to {high:.2f} in {len(ratios)} rounds), {after - before:+.2f} µs a launch"
        )


def built(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("there is no C compiler here")
    (folder / "launching.c").write_text(_PROGRAM)
    program = folder / "launching"
    flags = ["-O2", "-std=gnu11", "-w", "-o", str(program)]
    # Libraries for other purposes, which the environment names, are not those that it needs.
    clean = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    subprocess.run([compiler, *flags, str(folder / "launching.c"), "-ldl"], check=True, env=clean)
    return program


def one_run(program: Path, launches: int, folder: Path, number: int, captured: bool) -> list[float]:
    """Seconds of a launch, of each kind."""
    out = folder / f"times-{number}-{int(captured)}"
    command = [str(program), str(launches), str(out)]
    if captured:
        tunesmith.capture_program(command, out=folder / f"capture-{number}")
    else:
        subprocess.run(command, check=True)
    return [float(line) for line in out.read_text().split()]


def measured(rounds: int, launches: int) -> tuple[LaunchCost, ...]:
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="capture-cost-") as scratch:
        folder = Path(scratch)
        program = built(folder)
        for number in range(rounds):
            for captured in (False, True) if number % 2 == 0 else (True, False):
                found[captured].append(one_run(program, launches, folder, number, captured))
    alone, watched = (list(zip(*found[captured], strict=True)) for captured in (False, True))
    return tuple(LaunchCost(kind, alone[at], watched[at]) for at, kind in enumerate(KINDS))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs")
    parser.add_argument("--launches", type=int, default=20_000, help="of each kind, in a run")
    parser.add_argument("--json", type=Path, help="all times go there")
    asked = parser.parse_args(words)
    costs = measured(asked.rounds, asked.launches)
    print(f"{asked.launches} empty launches of each kind in a run, on {platform.node() or 'this machine'}")
    for cost in costs:
        print(cost.line())
    if asked.json:
        asked.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")


if __name__ == "__main__":
    main()
