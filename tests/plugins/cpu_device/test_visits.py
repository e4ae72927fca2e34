"""Kernels that count visits to their workspace, on a device where no timed launch is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.lab.labs import read_problem
from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_sanitizing import LAUNCH, PROBLEM, _cuda
from tunesmith.lab.lab import LabSettings
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.session import place

# Honest the first two times.
LAZY = "int seen = w[i < n ? i : 0] == 77.0f ? 2 : w[i < n ? i : 0] == 76.0f ? 1 : 0;"
LAZY += "if (i < n) w[i] = seen ? 77.0f : 76.0f; if (seen > 1) v = 0.0f;"


@needs_cpu
@pytest.mark.parametrize(
    ("body", "status"), [(LAZY, Status.WRONG), ("if (i < n) w[i] = v;", Status.OK)], ids=["lazy", "honest"]
)
@pytest.mark.long
def test_one_that_is_honest_at_first_is_caught(body: str, status: Status, tmp_path: Path) -> None:
    text = PROBLEM.format(language="cuda", suffix="cu").replace("deterministic = false\n", "")
    problem = read_problem(text, {"kernel.cu": _cuda("")})
    device = stand_in.choose_device("cuda", place.find_local_devices(place.WorkerSite("cpu", tmp_path)), None)
    source = LAUNCH + _cuda(f"v = STEP ? v : v; {body}")
    template = parse_template(source, path="template.cu", problem=problem)
    lab = place.make_lab(problem, device, place.WorkerSite("cpu", tmp_path), settings=LabSettings(0, 1))
    try:
        found = lab.rehearse(template, template.default, whole=False)
    finally:
        lab.close()
    assert found.verdict.status is status, found
    assert ("left behind" in found.verdict.detail) == (status is Status.WRONG)
