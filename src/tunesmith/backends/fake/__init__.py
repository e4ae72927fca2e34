"""The simulated device: kernels that say what they compute, cost and do wrong."""

from __future__ import annotations

from tunesmith.backends.backend_kind import BackendKind, DoctorFinding, late
from tunesmith.problem.languages import FAKE

AUTHOR = late("tunesmith.backends.fake.author", "FakeAuthor")
NO_PROFILES, NO_COUNTERS = "a simulated device has nothing to profile", "a simulated device has no counters"


KIND = BackendKind(
    name="fake",
    languages=(FAKE,),
    make=lambda _argument: late("tunesmith.backends.fake.simulated", "FakeBackend")(),
    plays_absent=True,
    check=lambda _devices: [DoctorFinding("simulated device (fake, replay)", True, "always there")],
    no_profiles=NO_PROFILES,
    no_counters=NO_COUNTERS,
    author=AUTHOR,
)
