"""The launches of this very process, seen from inside: `with tunesmith.capture() as seen:`."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Unpack

from tunesmith.capture import building
from tunesmith.capture.collecting import collect, traces_in
from tunesmith.capture.ranking import RankedKernel, ranking
from tunesmith.capture.records import Capture, CapturedProgram
from tunesmith.capture.watching import (
    CaptureWish,
    WishedCapture,
    check_seen,
    new_folder,
    settings_for,
    wish_of,
)
from tunesmith.errors import BadInput

BEFORE = (
    "seen from inside: of modules that were loaded before, the images are not known; to have them, run the "
    "program with: tunesmith capture -- PROGRAM"
)


class SeenLaunches:
    """A context: what this process launches inside it. Afterwards `capture` has what was seen."""

    def __init__(self, wish: CaptureWish, out: Path | None = None) -> None:
        self._wish, self._out = wish, out
        self._capture: Capture | None = None
        self._library: ctypes.CDLL | None = None
        self.folder = Path()

    @property
    def capture(self) -> Capture:
        if self._capture is None:
            raise BadInput("nothing is known before the block ends", hint="ask after the `with` block")
        return self._capture

    def ranking(self) -> list[RankedKernel]:
        """What could be tuned, and what that would give."""
        return ranking(self.capture)

    def __enter__(self) -> SeenLaunches:
        if self._library is not None:
            raise BadInput("this capture has begun already", hint="make another: tunesmith.capture()")
        self.folder = new_folder(self._out, ())
        path = building.build(self.folder)
        told = settings_for(self.folder, self._wish, building.cupti_paths(sys.executable))
        before = {name: os.environ.get(name) for name in told}
        os.environ.update(told)
        try:
            self._library = ctypes.CDLL(str(path))
            self._started, self._begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
            self._watches = bool(self._library.tunesmith_watch_start())
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What was seen is written also where the block failed; its own error goes on."""
        assert self._library is not None
        self._library.tunesmith_watch_stop()
        program = CapturedProgram((), self._started, time.monotonic() - self._begun, None)
        traces, notes = traces_in(self.folder)
        try:
            check_seen(traces, "this block")
            self._capture = collect(self.folder, program, traces, [*notes, BEFORE])
        except Exception:
            if error is None:
                raise
        finally:
            (self.folder / building.LIBRARY).unlink(missing_ok=True)


def seen_launches(
    *, out: str | os.PathLike[str] | None = None, **wish: Unpack[WishedCapture]
) -> SeenLaunches:
    """What this process launches while the context lasts; `out` is the folder."""
    return SeenLaunches(wish_of(**wish), Path(out) if out is not None else None)
