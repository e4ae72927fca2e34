"""Fuzz readers until their time is up; what they should have refused is told and kept.

python -m tests.hostile.fuzz [READER ...] [--seconds 600] [--seed 1] [--out DIR]
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import resource
import sys
import time
from pathlib import Path

from tests.hostile.fuzz.driver import DEADLINE, fuzz
from tests.hostile.fuzz.readers import READERS

MEMORY = 6 << 30  # bytes of address space: what wants more is a fault


def main(arguments: list[str]) -> int:
    known = {reader.name: reader for reader in READERS}
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz")
    parser.add_argument("readers", nargs="*", choices=[[], *known], default=[])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"))
    given = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    given.out.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}", flush=True)
    faults = 0
    for name in given.readers or known:
        last = given.out / f"{name}.last"  # should the process itself be lost

        def before(data: bytes, last: Path = last) -> None:
            last.write_bytes(data)
            faulthandler.dump_traceback_later(60 * DEADLINE, exit=True)

        def found(place: str, data: bytes, trace: str, name: str = name) -> None:
            digest = hashlib.sha256(data).hexdigest()[:8]
            file = given.out / f"{name}-{digest}"
            file.write_bytes(data)
            file.with_suffix(".txt").write_text(f"{place}\n{trace}", "utf-8", "replace")
            print(f"{name}: {place}: {file}", flush=True)

        done = fuzz(known[name], seed=given.seed, seconds=given.seconds, before=before, found=found)
        faulthandler.cancel_dump_traceback_later()
        last.unlink(missing_ok=True)
        counts = f"{done.tried} inputs, {done.lines} lines reached, {done.pool} inputs in the pool"
        print(f"{name}: {counts}, {len(done.faults)} kinds of faults", flush=True)
        faults += len(done.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
