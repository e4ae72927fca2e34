"""Whether the profiler names a planted fault first: kernels that are bad in one known way, and healthy ones.

    python -m benchmarks.cuda.faults --out DIR [--record FOLDER] [NAME…]

Each kernel of tests/fixtures/bad_cuda is profiled at its first workload as a user does it, once with counters
and once without. DIR/faults.json keeps the findings in their order. `--record` writes the profiles with
counters into a folder, as tests/fixtures/profiles has them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.asking import ask

FIXTURES = evidence.ROOT / "tests" / "fixtures" / "bad_cuda"


def profile(folder: Path, out: Path, workload: str, *more: str) -> dict[str, Any]:
    words = ["profile", str(folder), "--workload", workload, "--out", str(out), *more]
    return ask(words)


def first_workload(folder: Path) -> str:
    """The first in the file, which is the one the fault was written for."""
    lines = (folder / "problem.toml").read_text("utf-8").splitlines()
    return lines[lines.index("[workloads]") + 1].split("=")[0].strip()


def look(name: str, out: Path, record: Path | None) -> dict[str, Any]:
    folder = FIXTURES / name
    planted = json.loads((folder / "expected.json").read_text("utf-8"))["names"]
    workload = first_workload(folder)
    found: dict[str, Any] = {"planted": planted, "workload": workload}
    for way, more in (("with", ()), ("without", ("--no-counters",))):
        page = profile(folder, out, workload, *more)
        view = page["workloads"][0]["views"][0]
        findings = [finding["kind"] for finding in view["diagnosis"]["findings"]]
        found[way] = {
            "bound": view["diagnosis"]["bound"],
            "distance": view["diagnosis"]["distance"],
            "findings": findings,
            "no_counters": view["profile"]["no_counters"],
            "notes": [*page["notes"], *view["notes"]],
            "named": findings[:1] == planted[:1] if planted else not findings,
        }
        if way == "with" and record is not None:
            record.mkdir(parents=True, exist_ok=True)
            origin = {"all": f"{page['device']}, {page['driver']}, {page['compiler']}"}
            text = json.dumps({"origin": origin, "profile": view["profile"]}, indent=1)
            (record / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return found


def main() -> int:
    options = argparse.ArgumentParser(description="Profile kernels with a planted fault.")
    everything = sorted(path.parent.name for path in FIXTURES.glob("*/problem.toml"))
    options.add_argument("names", nargs="*", default=everything, metavar="NAME", help=", ".join(everything))
    options.add_argument("--out", type=Path, required=True, help="folder for plots and figures")
    options.add_argument("--record", type=Path, help="folder for the profiles with counters")
    arguments = options.parse_args()
    kernels = {name: look(name, arguments.out, arguments.record) for name in arguments.names}
    evidence.write(arguments.out, "faults", {"kernels": kernels})
    for name, found in kernels.items():
        print(f"{name:18} planted {found['planted']}")
        for way in ("with", "without"):
            seen = found[way]
            verdict = "yes" if seen["named"] else "NO "
            told = (seen["bound"], seen["findings"], seen["no_counters"], seen["notes"])
            print(f"   {way:8} {verdict}", *told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
