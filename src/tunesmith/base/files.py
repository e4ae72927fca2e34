"""Files that others may have had a hand in: written whole or not at all, read only if they are plain files.

No link is followed in the last part of a path. A folder on the way that is one is the user's own choice.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.base.errors import BadInput

SETTINGS_FILE = "tunesmith.toml"
AGAIN = "run the same command again"
MAX_BYTES = 1 << 31  # of a file that is read whole
ROOM = 1 << 20  # bytes that a compiler needs at least
_PART = ".part"


@contextlib.contextmanager
def explain_disk_errors(
    action: str, path: Path, then: str = AGAIN, instead: str = "another folder"
) -> Iterator[None]:
    """Turn what a disk can do to us into a sentence. `then` goes on once the trouble is over."""
    try:
        yield
    except OSError as error:
        hint = f"choose {instead}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            hint = f"free some room on that disk, then: {then}"
        elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            hint = f"make it writable, or choose {instead}"
        elif isinstance(error, NotPlain):
            hint = f"put a plain file in its place, or choose {instead}"
        raise BadInput(f"cannot {action}: {error.strerror or error}", where=str(path), hint=hint) from error


class NotPlain(OSError):
    """A link, folder, pipe or device where a file of data should be."""


def open_plain(path: Path, flags: int, mode: int = 0o644) -> int:
    """A descriptor of a regular file, whatever lies there instead. A pipe that nobody writes to does not
    keep us waiting."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotPlain(errno.ELOOP, "it is a link, which is not followed", str(path)) from error
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise NotPlain(error.errno, "it is not a plain file", str(path)) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        why = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "it is not a plain file"
        raise NotPlain(errno.EINVAL, why, str(path))
    return descriptor


def take_lock(descriptor: int) -> None:
    """At once or not at all: a BlockingIOError where somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.05)  # perhaps somebody only looks, see below
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Whether a process has that lock. One that was killed has none."""
    try:
        descriptor = open_plain(path, os.O_RDONLY)
    except OSError:  # nobody has ever taken it, or nobody here may look
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # some network file systems have no locks
        return False
    finally:
        os.close(descriptor)
    return False


def read_plain(path: Path, most: int = MAX_BYTES) -> bytes:
    """At most so many bytes of a regular file."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read(most)


def write_new(target: Path, data: bytes) -> None:
    """Where nothing is, also no link that leads nowhere; on disk when it returns."""
    descriptor = open_plain(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def write_whole(target: Path, data: bytes) -> None:
    """In place of whatever is there, whoever else writes it; until then it has a name that nobody can
    foresee, hidden, so that nobody who looks for files takes it for one."""
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_PART}")
    write_new(partial, data)
    try:
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def check_room(folder: Path) -> None:
    """An OSError where a disk is full; whatever else may be wrong is nothing to do with room."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise


def check_below(path: Path, folder: Path) -> None:
    """BadInput where what a folder is said to hold lies elsewhere, by its name or by a link."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        fault = f"a run of this folder lies in it, this path leads out of it: {path}"
        raise BadInput(fault, where=str(folder), hint="remove the link, or begin another with --out")


def remove_partial(folder: Path) -> None:
    """What a process left that was killed while it wrote; for whoever has the folder to itself."""
    for left in folder.glob(f".*{_PART}"):
        left.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """A folder with all that is in it; of a link the link alone."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def private_folder() -> Path:
    """For what belongs at home where there is none: nobody else's, and there again the next time."""
    wanted = Path(tempfile.gettempdir()) / f"tunesmith-{os.getuid()}"
    with contextlib.suppress(OSError):
        wanted.mkdir(mode=0o700)
    found = wanted.lstat() if os.path.lexists(wanted) else None
    is_ours = found is not None and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if found is not None and is_ours and not found.st_mode & 0o077:
        return wanted
    return Path(tempfile.mkdtemp(prefix="tunesmith-"))


def folder_names(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct, in their order: the second of a name gets a number that no other one has."""
    found: list[str] = []
    for name in names:
        number, numbered = 2, name
        while numbered in found or (numbered != name and numbered in names):
            numbered, number = f"{name}-{number}", number + 1
        found.append(numbered)
    return tuple(found)
