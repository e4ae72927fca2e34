"""The time of a step, over a long and a short batch of tokens."""

from __future__ import annotations

import argparse
import time

import torch
from program import make_block, step

TOKENS = (8192, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    block = make_block()
    batches = [
        tuple(torch.randn(rows, 4096, device="cuda").to(torch.bfloat16) for _ in range(2)) for rows in TOKENS
    ]

    def once() -> None:
        for x, residual in batches:
            step(block, x, residual)

    for _ in range(3):
        once()
    torch.cuda.synchronize()
    times = []
    for _ in range(5 if steps >= 20 else 1):
        begun = time.perf_counter()
        for _ in range(max(1, steps // 5)):
            once()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) / max(1, steps // 5))
    print(f"step: {1e3 * sorted(times)[len(times) // 2]:.4f} ms")


if __name__ == "__main__":
    main()
