"""Fifty-one hostile kernels and four right ones in one run: what becomes of each, and of the device.

    python -m benchmarks.cuda.hostile --out DIR

The kernels are in tests/fixtures/hostile_cuda, with the status each deserves. Afterwards no process of the
run may be left, and a second run over the right kernels alone must deliver the same winner. Takes about
20 GiB of the device's memory, for the arrays of more than 2^31 elements. DIR/hostile.json keeps the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.journals import Run, verdicts
from benchmarks.cuda.tuning import Tuned, tune

FIXTURE = evidence.ROOT / "tests" / "fixtures" / "hostile_cuda"
PATIENCE_S = 10.0
DETAIL = 160  # characters kept of the reason
FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+")  # of files that it names: they say nothing elsewhere


def table(run: Run, expected: dict[str, Any]) -> list[dict[str, Any]]:
    """For every kernel what was expected and what was found, in the order of the file."""
    found = {config["KIND"]: result for config, result in verdicts(run).items()}
    rows = []
    for kind, told in expected["kinds"].items():
        result = found.get(int(kind))
        got = str(result.status) if result else "not tried"
        detail = FOLDERS.sub("", " ".join(result.detail.split()))[:DETAIL] if result else ""
        rows.append(
            {
                "kind": int(kind),
                "what": told["what"],
                "expected": told["status"],
                "got": got,
                "right": got in told["status"],
                "detail": detail,
            }
        )
    return rows


def won(tuned: Tuned) -> list[int | None]:
    """KIND of the general configuration and of each workload's; None where the original stays."""
    chosen = [tuned.report["general"], *(row["config"] for row in tuned.report["workloads"])]
    return [config["KIND"] if config is not None else None for config in chosen]


def right_alone(template: str, right: list[int]) -> str:
    """The template with nothing but the right kernels in it."""
    values = f"// KIND = [{', '.join(map(str, right))}]"
    changed, count = re.subn(r"// KIND = \{.*?\] \}", values, template, count=1, flags=re.DOTALL)
    assert count == 1, "the template declares KIND in another way"
    return changed


def left_behind(folders: list[Path]) -> list[str]:
    """Command lines of processes that still have anything to do with the folders, after a little patience."""
    end = time.monotonic() + PATIENCE_S
    while (found := _around(folders)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _around(folders: list[Path]) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if state != "Z" and any(str(folder).encode() in environment for folder in folders):
            found.append(command.strip())
    return found


def main() -> int:
    options = argparse.ArgumentParser(description="Mix hostile kernels into one run.")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    out: Path = options.parse_args().out
    expected = json.loads((FIXTURE / "expected.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        environment = {**os.environ, "TMPDIR": name}
        mixed = tune(
            FIXTURE,
            FIXTURE / "template.cu",
            out / "runs" / "hostile",
            seed=1,
            more=["--search", "exhaustive"],
            environment=environment,
        )
        strays = left_behind([temporary, (out / "runs" / "hostile").resolve()])
        clean_template = temporary / "template.cu"
        clean_template.write_text(right_alone((FIXTURE / "template.cu").read_text(), expected["right"]))
        clean = tune(FIXTURE, clean_template, out / "runs" / "hostile-clean", seed=1)
    rows = table(mixed.run, expected)
    for row in rows:
        mark = "  " if row["right"] else "! "
        print(f"{mark}{row['kind']:3} {row['what']:48} {row['got']:13} {row['detail'][:60]}")
    verdict = {
        "hostile": sum(row["kind"] not in expected["right"] for row in rows),
        "all_right": all(row["right"] for row in rows),
        "winner": won(mixed),
        "winner_right": set(won(mixed)) == {expected["winner"]},
        "strays": strays,
        "clean_winner": won(clean),
        "usable_afterwards": set(won(clean)) == {expected["winner"]},
    }
    print(verdict)
    figures = {"mixed": mixed.figures(), "clean": clean.figures()}
    evidence.write(out, "hostile", {"verdict": verdict, "kernels": rows, **figures})
    good = verdict["all_right"] and verdict["winner_right"] and verdict["usable_afterwards"] and not strays
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
