"""What a session may be able to do besides: who asks looks whether it can."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from tunesmith.backends.port import LaunchCall, Pointer, PointerPair, Session


@runtime_checkable
class Scrambling(Protocol):
    """A session with a kernel of its own that leaves nothing of what others have in local memory."""

    def scramble(self, is_local: bool, is_patient: bool = False) -> None:
        """Run it, on all parts of the device; or one that fills as much of other memory. On a busy one it
        waits longer for parts that others have when it `is_patient`."""


def scramble(session: Session) -> None:
    """Nothing of what others have left in local memory is there any more, where the session can see to it."""
    if isinstance(session, Scrambling):
        session.scramble(is_local=True)


@runtime_checkable
class Overseeing(Protocol):
    """A session where another kernel can read while a launch runs."""

    def run_overseen(self, calls: Sequence[LaunchCall], pairs: Sequence[PointerPair]) -> int | None:
        """The number of a pair, alike before, that was seen to be unlike meanwhile; None: of none."""


@runtime_checkable
class Shielding(Protocol):
    """A session whose memory is pages of this process."""

    def shielded(self, spans: Sequence[Pointer]) -> AbstractContextManager[None]:
        """Whoever writes there meanwhile dies of it. Whole pages."""
