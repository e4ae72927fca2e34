"""Pages of benchmarks, of results that are made up: `results/*.json`, and what stands here."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import steering_page
from benchmarks.cuda import floors, render
from benchmarks.cuda.render_profiles import faults, occupancy
from benchmarks.cuda.render_profiles import floors as rendered_floors

MACHINE = {
    "device": "a GPU",
    "driver": "1.0",
    "compilers": ["nvrtc 13"],
    "packages": {},
    "python": "3",
    "cores": 2,
}
FACTS = {"commands": ["python -m it"], "date": "2026-01-02", "machine": MACHINE}


def view(kernel: str, seconds: float | None, distance: float | None, *kinds: str) -> dict[str, Any]:
    return {
        "profile": {"kernel": kernel, "seconds": seconds, "counters": None},
        "diagnosis": {
            "bound": "latency" if kinds else "bandwidth",
            "distance": distance,
            "ceiling": "memory bandwidth",
            "findings": [{"kind": kind} for kind in kinds],
        },
    }


def a_page(*workloads: dict[str, Any]) -> dict[str, Any]:
    return {"device": "NVIDIA X", "driver": "CUDA 13", "compiler": "nvrtc 13", "workloads": list(workloads)}


PAGE = a_page(
    {"name": "small", "views": [view("original", 4e-6, 2.0, "narrow_access"), view("B=1", 2e-6, 1.0)]},
    {"name": "large", "views": [view("original", 9e-5, 1.05)]},
)


def floors_of(page: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the program makes of this page in the folder."""
    (folder / "it.profile.json").write_text(json.dumps(page))
    assert floors.main(["--pages", str(folder), "--out", str(folder / "out")]) == 0
    found: dict[str, Any] = json.loads((folder / "out" / "floors.json").read_text())
    return found


def looked(named: bool, *findings: str) -> dict[str, Any]:
    return {"named": named, "findings": list(findings), "distance": 3.0}


def searches(without: list[int], steered: list[int], example: str = "it") -> list[dict[str, Any]]:
    rows = []
    for steer, counts in ((False, without), (True, steered)):
        for seed, count in enumerate(counts):
            moves = [{"focus": "VEC >= 4", "reason": "narrow"}] if steer else []
            row = {
                "example": example,
                "search": "default",
                "seed": seed,
                "steer": steer,
                "evaluations": count,
            }
            rows.append({**row, "reached": count < 100, "moves": moves})
    return rows


def read_results(name: str) -> dict[str, Any]:
    """`reached` has every goal, `short` none of them."""
    found: dict[str, Any] = json.loads(
        (Path(__file__).parent / "results" / f"{name}.json").read_text("utf-8")
    )
    return found


def pages() -> Iterator[tuple[str, bytes]]:
    reached, short = read_results("reached"), read_results("short")
    every = {
        "reached": render.page(reached, {"hostile": "A note."}),
        "short": render.page(short, {}),
        "nothing measured": render.page(dict.fromkeys(reached), {}),
        "no copies": render.page({**reached, "copy_rate": None}, {}),
        "no profiles": render.page(
            dict.fromkeys((*reached, "floors", "faults", "occupancy")), {"floors": "A remark."}
        ),
        "floors": "\n".join(rendered_floors({"floors": _dated(_floors())})),
        "faults": "\n".join(faults({"faults": {**FACTS, "kernels": _planted()}})),
    }
    for name, cases, different in (("same", 1000, []), ("differs", 1000, [{}]), ("few", 100, [])):
        results = {**FACTS, "cases": cases, "different": different, "registers": [16, 255]}
        every[f"occupancy, {name}"] = "\n".join(occupancy({"occupancy": results}))
    for name, rows in (
        ("pays", searches([15, 16, 17, 18], [5, 6, 7, 8])),
        ("costs", searches([15, 16, 17, 18], [25, 26, 27, 28])),
        ("no difference", searches([15, 16, 17, 18], [5, 21, 16, 22])),
        ("unlike seeds", searches([10, 20, 30], [8, 100])),
        ("easy and hard", searches([1, 1], [1, 1], "easy") + searches([9, 1], [1, 1], "hard")),
    ):
        every[f"steering, {name}"] = steering_page.page(rows, "a GPU", "2026-01-02", ["python -m it"])
    yield from ((f"{name}.md", text.encode()) for name, text in every.items())


def _floors() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return floors_of(PAGE, Path(folder))


def _dated(results: dict[str, Any]) -> dict[str, Any]:
    """Without what is of this day and this machine."""
    kept = {**results["machine"], **{key: MACHINE[key] for key in ("packages", "python", "cores")}}
    return {**results, "date": FACTS["date"], "commands": FACTS["commands"], "machine": kept}


def _planted() -> dict[str, Any]:
    def one(number: int) -> dict[str, Any]:
        seen = looked(number > 0, "tail" if number else "latency")
        return {"planted": ["tail"], "with": seen, "without": looked(number > 3)}

    healthy = {"planted": [], "with": looked(True), "without": looked(True)}
    return {**{f"k{number}": one(number) for number in range(10)}, "fine": healthy}
