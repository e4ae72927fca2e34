"""What is changed in a repository, kept so that it can be taken back whatever happens meanwhile.

Before any file is touched, the patch, each file as it was and as it will be, and a record of them are on
disk, in the run's folder. Each file is replaced in one step. Only what is as recorded is ever replaced.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import (
    explain_disk_errors,
    open_plain,
    read_plain,
    take_lock,
    write_new,
    write_whole,
)
from tunesmith.base.text import sha256_hex
from tunesmith.plugins.repo.git import SECONDS, run_git
from tunesmith.problem.problem import is_inside

FOLDER, RECORD, LOCK = "apply", "apply.json", "lock"
FORMAT = 1
Status = Literal["begun", "applied", "undone"]
Side = Literal["before", "after"]


@dataclass(frozen=True)
class ChangedFile:
    """Digests of its bytes; `before` is empty where there was no such file."""

    path: str  # from the repository's top
    before: str
    after: str
    mode: int = 0o644


@dataclass(frozen=True)
class ApplyRecord:
    format: int
    status: Status  # begun: files may be in either state
    repository: str
    patch: str  # its file, beside the record
    files: tuple[ChangedFile, ...]  # a file comes before those that include it


@dataclass(frozen=True)
class NewFile:
    path: str
    before: bytes | None
    after: bytes


class RepositoryChanges:
    """The changes of one run, in its folder."""

    def __init__(self, folder: Path, record: ApplyRecord) -> None:
        self.folder = folder
        self.record = record

    @property
    def repository(self) -> Path:
        return Path(self.record.repository)

    @property
    def patch(self) -> Path:
        return self.folder / self.record.patch

    @staticmethod
    def of(run: Path) -> RepositoryChanges | None:
        """What is kept of an earlier call; None where there is nothing."""
        path = run / FOLDER / RECORD
        if not os.path.lexists(path):
            return None
        with explain_disk_errors("read it", path):
            data = read_plain(path)
        try:
            record = decode_json(data, ApplyRecord, "apply.json")
        except Malformed as error:
            raise BadInput(str(error), where=str(path), hint="move the folder away") from error
        if record.format != FORMAT or not all(map(is_inside, (file.path for file in record.files))):
            fault = f"a record of format {record.format}, and this version reads format {FORMAT}"
            raise BadInput(fault, where=str(path), hint="move the folder away")
        return RepositoryChanges(run / FOLDER, record)

    @staticmethod
    def begin(
        run: Path, repository: Path, name: str, patch: str, files: tuple[NewFile, ...]
    ) -> RepositoryChanges:
        """Everything on disk, and nothing of the repository touched yet."""
        folder = run / FOLDER
        with explain_disk_errors("keep the changes", folder):
            folder.mkdir(exist_ok=True)
            write_whole(folder / f"{name}.patch", patch.encode("utf-8", "surrogatepass"))
            listed = []
            for number, file in enumerate(files):
                mode = 0o644
                if file.before is not None:
                    mode = stat.S_IMODE((repository / file.path).stat().st_mode)
                    write_whole(folder / f"before-{number}", file.before)
                write_whole(folder / f"after-{number}", file.after)
                before, after = map(_digest_or_empty, (file.before, file.after))
                listed.append(ChangedFile(file.path, before, after, mode))
            record = ApplyRecord(FORMAT, "begun", str(repository), f"{name}.patch", tuple(listed))
            made = RepositoryChanges(folder, record)
            made.mark("begun")
        return made

    def mark(self, status: Status) -> None:
        self.record = replace(self.record, status=status)
        with explain_disk_errors("keep the changes", self.folder):
            write_whole(self.folder / RECORD, encode_json(self.record) + b"\n")

    def kept(self, number: int, side: Side) -> bytes | None:
        """A file's bytes, held against the record."""
        file = self.record.files[number]
        wanted = file.before if side == "before" else file.after
        if not wanted:
            return None
        path = self.folder / f"{side}-{number}"
        with explain_disk_errors("read what was kept", path):
            data = read_plain(path)
        if _digest_or_empty(data) != wanted:
            raise BadInput("what was kept of a file was changed", where=str(path), hint=self._by_hand)
        return data

    @property
    def _by_hand(self) -> str:
        return f"take the patch back by hand: git apply -R {self.patch}"

    def strangers(self) -> list[str]:
        """Files that are neither as they were nor as they were made."""
        known = [(file, self._digest_now(file)) for file in self.record.files]
        return [file.path for file, digest in known if digest not in (file.before, file.after)]

    def _digest_now(self, file: ChangedFile) -> str:
        return _digest_or_empty(_read_if_present(self.repository / file.path))

    def switch(self, side: Side) -> None:
        """All files as they were, or as they are made."""
        if strangers := self.strangers():
            fault = f"{', '.join(strangers)}: changed by somebody else meanwhile, and left as it is"
            raise BadInput(fault, where=str(self.repository), hint=self._by_hand)
        order = range(len(self.record.files))
        for number in order if side == "after" else reversed(order):
            self._put(number, side)

    def undo(self) -> None:
        """The files as they were. Where others changed them since, the patch is taken back by git."""
        if self.strangers() and self._is_patched():
            self._reversed_by_git()
        elif not self.strangers():
            self.switch("before")
        self.mark("undone")

    def _is_patched(self) -> bool:
        """Whether any file is as it was made, or is new: a patch that never came in need not be taken out."""
        return any(
            self._digest_now(file) == file.after
            or (not file.before and os.path.lexists(self.repository / file.path))
            for file in self.record.files
        )

    def restored(self) -> list[str]:
        """Files as they were, by git where others changed them meanwhile. Those that still have the patch."""
        if not self.strangers():
            self.switch("before")
            self.mark("undone")
            return []
        if not self._is_patched():
            self.mark("undone")
            return []
        try:
            self._reversed_by_git()
        except BadInput:
            strangers = self.strangers()
            for number, file in reversed(list(enumerate(self.record.files))):
                # What a file that stays patched includes stays too: it would not compile without it.
                if file.path not in strangers and file.before:
                    self._put(number, "before")
            left = [file.path for file in self.record.files if file.path in strangers or not file.before]
            return [path for path in left if os.path.lexists(self.repository / path)]
        self.mark("undone")
        return []

    def _put(self, number: int, side: Side) -> None:
        file = self.record.files[number]
        path = self.repository / file.path
        data = self.kept(number, side)
        if self._digest_now(file) == _digest_or_empty(data):
            return
        with explain_disk_errors("change the file", path, instead="another repository with --repo"):
            if data is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, data, file.mode)

    def _reversed_by_git(self) -> None:
        strangers = ", ".join(self.strangers())
        fault = f"{strangers}: changed since the patch was applied, and it cannot be taken out of that"
        if shutil.which("git") is None:
            raise BadInput(fault, where=str(self.repository), hint=self._by_hand)
        for options in (["--check"], []):
            ended = run_git(self.repository, "apply", "-R", *options, str(self.patch.resolve()))
            if ended is None or ended.returncode:
                raise BadInput(fault, where=str(self.repository), hint=self._by_hand)


def refuse_unnamed(repository: Path, named: str | os.PathLike[str] | None, run: Path) -> Path:
    """The repository that a file names: it is changed only where the user names it too, or where they, or
    the run, are in it. One that lies around theirs is another's."""
    found = Path(os.path.realpath(repository))
    if named is not None and os.path.realpath(named) == str(found):
        return found
    for place in (Path.cwd(), run.resolve()):
        around = [place, *place.parents]
        top = next((folder for folder in around if (folder / ".git").exists()), place)
        if found in around[: around.index(top) + 1]:
            return found
    fault = "a repository is changed where you name it, or are in it, and only a file names this one"
    raise BadInput(fault, where=str(found), hint=f"if it is meant: --repo {shlex.quote(str(found))}")


@contextmanager
def run_locked(run: Path) -> Iterator[None]:
    """Keeps others from applying this run meanwhile; BadInput where somebody does."""
    path = run / FOLDER / LOCK
    with explain_disk_errors("lock the run", path):
        path.parent.mkdir(exist_ok=True)
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
    with _hold_lock(descriptor, "another process applies this run", path):
        yield


@contextmanager
def repository_locked(repository: Path) -> Iterator[None]:
    """Keeps other runs from the repository meanwhile. Its folder itself is locked: nothing is written."""
    with explain_disk_errors("lock the repository", repository):
        descriptor = os.open(repository, os.O_RDONLY | os.O_DIRECTORY)
    with _hold_lock(descriptor, "another process applies a run to this repository", repository):
        yield


@contextmanager
def _hold_lock(descriptor: int, fault: str, where: Path) -> Iterator[None]:
    try:
        try:
            take_lock(descriptor)
        except BlockingIOError as error:
            raise BadInput(fault, where=str(where), hint="wait for it") from error
        yield
    finally:
        os.close(descriptor)


def recorded_edges(runs: Path, repository: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """What other runs beside this one changed in the repository: a file, before and after."""
    for path in sorted(runs.glob(f"*/{FOLDER}/{RECORD}")):
        try:
            found = RepositoryChanges.of(path.parent.parent)
            if found is None or found.record.status != "applied" or found.repository != repository:
                continue
            for number, file in enumerate(found.record.files):
                before, after = found.kept(number, "before"), found.kept(number, "after")
                if before is not None and after is not None:
                    yield file.path, before, after
        except BadInput:
            continue  # one that cannot be read says nothing of our files


def uncommitted_files(repository: Path, paths: tuple[str, ...]) -> list[str]:
    """Of these files those with changes that git does not have; [] where there is no git."""
    if shutil.which("git") is None:
        return []
    quickly = ("--untracked-files=no", "--ignore-submodules=all")
    ended = run_git(repository, "status", "--porcelain=v1", "-z", *quickly, "--", *paths)
    top = run_git(repository, "rev-parse", "--show-prefix")
    if ended is None or top is None:
        fault = f"git did not say within {SECONDS} s what is committed"
        raise BadInput(fault, where=str(repository), hint="see what git status does there")
    if ended.returncode or top.returncode:
        return []  # no repository of git's
    prefix = top.stdout.decode(errors="replace").rstrip("\n")  # of a folder below its top
    entries = ended.stdout.decode(errors="replace").split("\0")
    return [entry[3:].removeprefix(prefix) for entry in entries if len(entry) > 3]


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """In one step, with these permissions; on disk when it returns."""
    partial = path.with_name(f".{path.name}.tunesmith.part")
    partial.unlink(missing_ok=True)
    write_new(partial, data)
    try:
        partial.chmod(mode)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_if_present(path: Path) -> bytes | None:
    try:
        return read_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "put a plain file in its place"
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error


def _digest_or_empty(data: bytes | None) -> str:
    return "" if data is None else sha256_hex(data)
