"""Examples and zoo with the compiler that comes from PyPI, which `make test-long` installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.cpu_device.test_kernels import EXAMPLES, KERNELS
from tunesmith.lab.lab import LabSettings
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.plugins.cpu_device.build import ZIG, find_compilers
from tunesmith.problem.template import original_variant
from tunesmith.session import place
from tunesmith.session.problems import load_problem

OWN = [*KERNELS, *sorted(path.parent for path in (EXAMPLES.parent / "hip").glob("*/problem.toml"))]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(ZIG not in [one.name for one in find_compilers()], reason="ziglang is not installed"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", OWN, ids=lambda folder: folder.name)
def test_is_right(folder: Path, tmp_path: Path) -> None:
    """The examples on all cases, the others on those that a search begins with."""
    problem = load_problem(folder).definition
    language, here = problem.kernel.language, place.find_local_devices(place.WorkerSite("cpu", tmp_path))
    warp = stand_in.choose_device(language, here, None).limits.warp
    (own,) = (d for d in here.devices if d.limits.warp == warp and d.driver.startswith(ZIG))
    lab = place.make_lab(problem, own, place.WorkerSite("cpu", tmp_path), settings=LabSettings(0, 1))
    try:
        if folder.is_relative_to(EXAMPLES.parent):
            assert lab.check()
        else:
            cases = lab._cases.of_level("smoke", original_variant(problem))
            assert cases
            assert all(isinstance(lab._cases.established(case), float) for case in cases if not case.is_odd)
    finally:
        lab.close()
