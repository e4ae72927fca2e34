"""The README's picture of a result, from a run's report.json.

    python -m benchmarks.picture RUN/report.json docs/images/result.svg

Two bars for each workload: the original's time and the winner's, with the speed-up and its interval.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tunesmith.deliver.pages.plots import INK, MUTED, PALETTE, RULE, Drawing, Linear, format_ratio

WIDTH, LEFT, RIGHT, TOP, ROW = 760.0, 130.0, 560.0, 72.0, 58.0


def picture(report: dict[str, Any]) -> bytes:
    workloads = report["workloads"]
    title = f"{report['problem']}: time before and after tuning"
    device = report["device"]
    name = device if isinstance(device, str) else device["name"]
    below = f"{name}, verified in a fresh process"
    drawing = Drawing(WIDTH, TOP + ROW * len(workloads) + 16, title, below)
    x = Linear(0, 1, LEFT, RIGHT)
    for place, workload in enumerate(workloads):
        top = TOP + ROW * place
        before, after = workload["baseline_us"], workload["tuned_us"]
        drawing.text(24, top + 26, workload["name"], 13, INK, bold=True)
        for row, (value, colour) in enumerate(((before, RULE), (after, PALETTE[0]))):
            drawing.rect(LEFT, top + 4 + 21 * row, x.at(value / before) - LEFT, 17, colour)
            drawing.text(x.at(value / before) + 8, top + 17 + 21 * row, f"{value:,.0f} µs", 12, MUTED)
        low, high = workload["interval"]
        drawing.text(RIGHT + 90, top + 24, format_ratio(workload["speedup"]), 18, INK, bold=True)
        drawing.text(RIGHT + 90, top + 42, f"{low:.2f} to {high:.2f}", 11, MUTED)
    return drawing.render()


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    report, picture_file = Path(sys.argv[1]), Path(sys.argv[2])
    picture_file.parent.mkdir(parents=True, exist_ok=True)
    picture_file.write_bytes(picture(json.loads(report.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
