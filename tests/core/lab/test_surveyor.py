"""A surveyor builds, in order, and says what cannot run; it never asks a device for anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.core.lab.in_process import InProcessWorker, Log
from tests.core.lab.labs import device_of, fake_kernel, scale_problem, template_text
from tunesmith import backends
from tunesmith.backends.messages import Build
from tunesmith.lab.build import Builders, BuildSurveyor
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.space.configset import Config

PROBLEM = scale_problem()
TEMPLATE = parse_template(
    template_text(
        """
[params]
BLOCK = [32, 64, 2048]
BAD = [0, 1]
[default]
BLOCK = 64
BAD = 0
[launch]
grid = ["rows"]
block = ["BLOCK"]
""",
        "int use[BLOCK + BAD];\n" + fake_kernel(fault="BAD"),
    ),
    path="template.fake",
    problem=PROBLEM,
)
LOG = Log()


@pytest.fixture
def surveyor() -> Iterator[BuildSurveyor]:
    device = replace(device_of("fake"), absent=True)
    pool = Builders(lambda: InProcessWorker("build", lambda: backends.make_backend("fake"), LOG), device, 2)  # type: ignore[arg-type]
    yield BuildSurveyor(PROBLEM, device, pool)
    pool.close()


def config(block: int, bad: int = 0) -> Config:
    return Config.of({"BLOCK": block, "BAD": bad})


def test_in_order_and_nothing_but_builds(surveyor: BuildSurveyor) -> None:
    asked = [None, config(64), config(32, 1), config(2048), config(32)]
    for one in asked:
        surveyor.submit(TEMPLATE, one)
    found = [surveyor.collect() for _ in asked]
    assert [f.config for f in found] == asked
    assert [f.status for f in found] == ["ok", "ok", Status.BUILD_FAILED, Status.OVER_LIMITS, "ok"]
    assert found[2].builds[0].code_digest == ""
    assert "written not to compile" in found[2].refused[0].detail
    assert found[3].builds[0].resources is not None
    assert "2048 threads per block, the device allows 1024" in found[3].refused[0].detail
    assert len(LOG.of(Build)) == len(LOG.served) == len(asked)
