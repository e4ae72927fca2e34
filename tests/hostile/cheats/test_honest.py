"""Honest kernels pass: random configurations of right templates, through everything that accepts a winner."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.honest import Tally, main, run, table
from tests.hostile.cheats.corpus import ROOT
from tests.opencl_here import needs_opencl
from tunesmith.problem.plan import Status
from tunesmith.run.outcome import Result
from tunesmith.space.configset import Config

EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "opencl").glob("*/problem.toml"))
ZOO = sorted(path.parent for path in (ROOT / "tests" / "fixtures" / "zoo").glob("cl_*/problem.toml"))

# Of a draft with every move, a configuration that adds 32,000 numbers in one lane: half as much error again.
LESS_EXACT = "cl_softmax"


@needs_opencl
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", [*EXAMPLES, *ZOO], ids=lambda folder: folder.name)
def test_none_is_accused(folder: Path) -> None:
    """A short measurement, a final and a verification of the first, and short ones of others."""
    _, (tally,) = run([folder], "opencl", None, 8, 500.0, seed=11)
    assert tally.evaluations["verify"] >= 1
    assert tally.total == 8
    alarms = [alarm for alarm in tally.alarms if folder.name != LESS_EXACT or "the rms error" not in alarm]
    assert not alarms, "\n".join(alarms)


def test_alarms_and_failures_are_counted_by_evaluation() -> None:
    tally = Tally("p")
    config = Config.of({"A": 1})
    tally.add("short", config, [Result("w", Status.OK), Result("v", Status.INFEASIBLE)])
    tally.add("long", config, [Result("w", Status.WRONG, detail="off"), Result("v", Status.WRONG)])
    tally.add("verify", config, [Result("w", Status.TIMED_OUT, detail="late")])
    assert (tally.total, tally.accused, tally.failed, len(tally.alarms)) == (3, 1, 1, 2)
    assert "off" in tally.alarms[0]
    last = list(table([tally]))[-1]
    assert last.startswith("| **all** | 3 | 1 | 1 | 1 | 1 | 5 | 1 | 1 | 1 | 1 |")


def test_an_alarm_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks import honest
    from tests.core.lab.labs import device_of

    for status, code in ((Status.OK, 0), (Status.SUSPECT, 1), (Status.CRASHED, 0)):
        tally = Tally("p")
        tally.add("short", Config.of({"A": 1}), [Result("w", status)])
        monkeypatch.setattr(honest, "run", lambda *_a, _t=tally: (device_of("fake"), [_t]))
        assert main(["folder"]) == code
        assert ("no alarm" in capsys.readouterr().out) is (code == 0)
