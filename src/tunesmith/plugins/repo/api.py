"""The Python interface of programs and repositories: `capture`, `extract` and `apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from tunesmith.api import PathName, RunLike, load_run, path_of
from tunesmith.base.interrupts import interrupted_once
from tunesmith.session.progress import ListenerLike, listener_of

if TYPE_CHECKING:
    from tunesmith.plugins.repo.apply.commands import Applied, WishedApply
    from tunesmith.plugins.repo.capture.capture import CapturedRun, SeenLaunches, WishedCapture
    from tunesmith.plugins.repo.extract.extract import ExtractedFolder, WishedExtraction


def capture(*, out: PathName | None = None, **wish: Unpack[WishedCapture]) -> SeenLaunches:
    """`with tunesmith.capture() as seen:` sees the kernels that this process launches in the block.

    Afterwards `seen.capture` has what was seen, `seen.ranking()` what tuning could give. `out` is the folder.
    """
    from tunesmith.plugins.repo.capture.capture import seen_launches

    return seen_launches(out=out, **wish)


def capture_program(
    command: Sequence[str],
    *,
    out: PathName | None = None,
    listener: ListenerLike | None = None,
    **wish: Unpack[WishedCapture],
) -> CapturedRun:
    """Run a program to its end and see which kernels it launches; docs/capture.md says how."""
    from tunesmith.plugins.repo.capture import capture as watching

    note = listener_of(listener).note
    return watching.watch_program(list(command), watching.CaptureWish(**wish), path_of(out), note)


def load_capture(folder: PathName | None = None) -> CapturedRun:
    """A capture that is there, by default the newest here."""
    from tunesmith.plugins.repo.capture import capture as watching

    return watching.load_captured_run(path_of(folder))


def extract(
    repository: PathName = ".", *, kernel: str, out: PathName | None = None,
    listener: ListenerLike | None = None, **wish: Unpack[WishedExtraction],
) -> ExtractedFolder:  # fmt: skip
    """Take a kernel out of a repository: a problem folder that stands alone; docs/extract.md says how."""
    from tunesmith.plugins.repo.extract import extract as folder

    return folder.extract_folder(repository, kernel, path_of(out), listener_of(listener).note, **wish)


def apply(run: RunLike | None = None, *, listener: ListenerLike | None = None, **wish: Unpack[WishedApply]
) -> Applied:  # fmt: skip
    """Patch the repository that a run's kernel was taken from, or swap launches. docs/apply.md says how."""
    from tunesmith.plugins.repo.apply import apply as applying

    with interrupted_once():
        return applying.apply_run(load_run(run), listener_of(listener), **wish)
