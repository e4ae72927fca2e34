"""What is timed in the tests' own process, by clocks that they make up, nobody disturbs."""

from __future__ import annotations

import pytest

from tunesmith.lab.disturbance import Waits
from tunesmith.lab.worker import timing


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "read_waits", Waits)
