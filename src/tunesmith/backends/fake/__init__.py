"""The simulated device: kernels that say what they compute, cost and do wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tunesmith.backends.backend_kind import BackendKind, DoctorFinding, ListDevices
from tunesmith.problem.languages import FAKE

if TYPE_CHECKING:
    from tunesmith.backends.port import Backend
    from tunesmith.run.ports import OwnAuthor

NO_PROFILES, NO_COUNTERS = "a simulated device has nothing to profile", "a simulated device has no counters"


def _make(_argument: str) -> Backend:
    from tunesmith.backends.fake.simulated import FakeBackend

    return FakeBackend()


def author() -> OwnAuthor:
    from tunesmith.backends.fake.author import FakeAuthor

    return FakeAuthor()


def _check(_devices: ListDevices) -> list[DoctorFinding]:
    return [DoctorFinding("simulated device (fake, replay)", True, "always there")]


KIND = BackendKind(
    name="fake",
    languages=(FAKE,),
    make=_make,
    plays_absent=True,
    check=_check,
    no_profiles=NO_PROFILES,
    no_counters=NO_COUNTERS,
    author=author,
)
