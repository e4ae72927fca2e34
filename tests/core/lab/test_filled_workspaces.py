"""What a template asks of its callers and the original did not is in its time."""

from __future__ import annotations

from pathlib import Path

from tests.core.lab.labs import device_of, lab
from tests.hostile.cheats.corpus import HONEST, Cheat, problem, text_of
from tests.opencl_here import needs_opencl
from tunesmith.problem.template_file import parse_template

TABLES = 'tables = { type = "float32*", shape = ["64", "32768"], init = 0 }'


@needs_opencl
def test_clearing_64_tables_before_each_call_counts(tmp_path: Path) -> None:
    """It was claimed as 1.35x: its clears were outside the window."""
    seconds = []
    with lab(
        problem("tiny"), spec="opencl", scratch=tmp_path, device=device_of("opencl", tmp_path)
    ) as harness:
        for declared in (TABLES.replace(", init = 0", ""), TABLES):
            cheat = Cheat("", "", workspace=declared, parameter="__global float *tables")
            text = text_of(HONEST["rmsnorm"], cheat)
            harness.template = parse_template(text, path="template.cl", problem=harness.problem)
            harness.lab.admit(harness.template)
            timing = harness.result("long").timing
            seconds.append(min(timing.samples))
    assert seconds[1] > 2 * seconds[0] + 1e-4, f"8 MiB are cleared in each launch: {seconds}"
