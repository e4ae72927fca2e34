"""The simulated device: kernels that say what they compute, cost and do wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tunesmith.backends.backend_kind import BackendKind, DoctorFinding, late
from tunesmith.problem.languages import FAKE

if TYPE_CHECKING:
    from tunesmith.backends.port import Backend

AUTHOR = late("tunesmith.backends.fake.author", "FakeAuthor")
NO_PROFILES, NO_COUNTERS = "a simulated device has nothing to profile", "a simulated device has no counters"


def _make(_argument: str) -> Backend:
    from tunesmith.backends.fake.simulated import FakeBackend

    return FakeBackend()


KIND = BackendKind(
    name="fake",
    languages=(FAKE,),
    make=_make,
    plays_absent=True,
    check=lambda _devices: [DoctorFinding("simulated device (fake, replay)", True, "always there")],
    no_profiles=NO_PROFILES,
    no_counters=NO_COUNTERS,
    author=AUTHOR,
)
