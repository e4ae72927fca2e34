"""Times from a recording, in place of a device."""

from __future__ import annotations

from tunesmith.backends.backend_kind import BackendKind, late
from tunesmith.backends.fake import AUTHOR, NO_COUNTERS, NO_PROFILES
from tunesmith.problem.languages import FAKE

KIND = BackendKind(
    name="replay",
    languages=(FAKE,),
    make=late("tunesmith.backends.replay.recorded", "ReplayBackend"),
    from_file=True,
    no_profiles=NO_PROFILES,
    no_counters=NO_COUNTERS,
    author=AUTHOR,
)
