"""Times from a recording, in place of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tunesmith.backends.backend_kind import BackendKind
from tunesmith.backends.fake import NO_COUNTERS, NO_PROFILES, author
from tunesmith.problem.languages import FAKE

if TYPE_CHECKING:
    from tunesmith.backends.port import Backend


def _make(path: str) -> Backend:
    from tunesmith.backends.replay.recorded import ReplayBackend

    return ReplayBackend(path)


KIND = BackendKind(
    name="replay",
    languages=(FAKE,),
    make=_make,
    from_file=True,
    no_profiles=NO_PROFILES,
    no_counters=NO_COUNTERS,
    author=author,
)
