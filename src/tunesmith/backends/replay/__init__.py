"""Times from a recording, in place of a device."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.backends import fake
from tunesmith.backends.replay.recorded import ReplayBackend

KIND = replace(
    fake.KIND,
    name="replay",
    make=ReplayBackend,
    from_file=True,
    plays_absent=False,
    check=lambda _devices: [],
)
