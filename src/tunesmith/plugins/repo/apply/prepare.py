"""The patch of a repository: what a run delivered, held against the files as they are now."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, read_plain
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.plugins.exports.patch import (
    LaunchingFile,
    PromisedAt,
    RepositoryPatch,
    base_name,
    macros_in,
    patched_repository,
)
from tunesmith.plugins.repo.apply.changes import NewFile, recorded_edges, refuse_unnamed, uncommitted_files
from tunesmith.plugins.repo.extract.draft import text_digest
from tunesmith.plugins.repo.extract.flatten import OF_FIELDS
from tunesmith.plugins.repo.extract.host import defines_kernel
from tunesmith.plugins.repo.extract.tree import Includes, Repository
from tunesmith.problem.problem import Origin, Problem

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[\"<]([^\">\n]+)[\">]", re.MULTILINE)
_MAX_HEADERS = 500


@dataclass(frozen=True)
class PreparedPatch:
    problem: Problem
    origin: Origin
    repository: Path
    artefact: Artefact
    patch: RepositoryPatch
    files: tuple[NewFile, ...]


def prepare_patch(run: Path, result: DeviceResult, repo: Path | None, force: bool) -> PreparedPatch:
    """Nothing is changed. Raises BadInput where it may not, or cannot, be applied."""
    problem, origin = _require_origin(run, result)
    repository = repository_of(run, origin, repo)
    artefact = Artefact((result,))
    edges: dict[str, list[tuple[str, str]]] = {}
    for path, before, after in recorded_edges(run.resolve().parent, repository):
        was, now = (text_digest(data.decode("utf-8", "replace")) for data in (before, after))
        edges.setdefault(path, []).append((was, now))
    ours = _check_digests(origin, repository, edges)
    launching = [
        _read_launching_file(repository, path, artefact, origin)
        for path in dict.fromkeys((*origin.launching_files, origin.file))
    ]
    promised = _promised_launch(problem, origin)
    patch = patched_repository(artefact, launching, posixpath.dirname(origin.file), promised=promised)
    changed = tuple(change.path for change in patch.changes if change.before is not None)
    open_changes = [path for path in uncommitted_files(repository, changed) if path not in ours]
    if open_changes and not force:
        fault = f"{', '.join(open_changes)}: changes that are not committed"
        raise BadInput(fault, where=str(repository), hint="commit or stash them, or say --force")
    files = []
    for change in patch.changes:
        place = repository / change.path
        if change.before is None and os.path.lexists(place):
            hint = "move it away, or undo the run that wrote it: tunesmith apply --undo RUN"
            raise BadInput("a file of this name is there already", where=str(place), hint=hint)
        old = None if change.before is None else change.before.encode()
        files.append(NewFile(change.path, old, change.after.encode()))
    return PreparedPatch(problem, origin, repository, artefact, patch, tuple(files))


def _require_origin(run: Path, result: DeviceResult) -> tuple[Problem, Origin]:
    assert result.templates is not None, "a patch is made of the problem as well"
    problem = result.templates.problem
    entry, _ = base_name(problem.launches[0].entry)
    if problem.origin is None and entry.endswith(OF_FIELDS):
        fault = (
            f"{entry} takes the fields of what {entry.removesuffix(OF_FIELDS)} takes by value, and a patch"
        )
        fault += " changes launches that pass the tuned kernel's own arguments: none there does"
        hint = "put it in by hand, with a call that passes the fields: tunesmith export RUN"
        raise BadInput(fault, where=str(run), hint=hint)
    if problem.origin is None:
        fault = "problem.toml has no [origin]: its kernel was not taken from a repository"
        hint = "tune what `tunesmith extract REPO --kernel NAME` takes out, or use: tunesmith export"
        raise BadInput(fault, where=str(run), hint=hint)
    return problem, problem.origin


def prepared_repository(run: Path, result: DeviceResult, repo: Path | None) -> Path:
    """Where the patch goes."""
    return repository_of(run, _require_origin(run, result)[1], repo)


def repository_of(run: Path, origin: Origin, repo: Path | None) -> Path:
    found = repo if repo is not None else Path(origin.repository) if origin.repository else None
    if found is None or not found.is_dir():
        where = str(found) if found is not None else None
        fault = "the repository that the kernel was taken from is not there"
        raise BadInput(fault, where=where, hint="say where it is: --repo DIR")
    return refuse_unnamed(found, repo, run)


def _check_digests(
    origin: Origin, repository: Path, edges: Mapping[str, list[tuple[str, str]]]
) -> frozenset[str]:
    """Files that other runs of ours changed since the kernel was taken; BadInput where somebody else did."""
    ours, changed = set(), []
    known = {path for path, digest in origin.digests if digest}
    if untold := [path for path in (origin.file, *origin.launching_files) if path not in known]:
        fault = f"[origin.digests] has none of {untold[0]}, so that nobody can tell whether it has changed"
        raise BadInput(fault, where=str(repository), hint="take it again: tunesmith extract")
    for path, digest in origin.digests:
        if not (repository / path).is_file():
            changed.append(f"{path} is gone")
            continue
        current = text_digest(_read_source_text(repository, path))
        if current == digest:
            continue
        if _is_reachable(digest, current, edges.get(path, [])):
            ours.add(path)
        else:
            changed.append(f"{path} has changed")
    if changed:
        fault = f"since the kernel was taken from it, {', '.join(changed)}"
        hint = "take it again (tunesmith extract) and tune that, or check out what it was taken from"
        raise BadInput(fault, where=str(repository), hint=hint)
    return frozenset(ours)


def _is_reachable(start: str, end: str, edges: list[tuple[str, str]]) -> bool:
    reached, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for before, after in edges:
            if before == here and after not in reached:
                reached.add(after)
                waiting.append(after)
    return end in reached


def _read_source_text(repository: Path, path: str) -> str:
    place = repository / path
    try:
        return read_plain(place).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("not UTF-8 text", where=str(place), hint="save it as UTF-8") from error
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        raise BadInput(fault, where=str(place), hint="correct --repo") from error


def _promised_launch(problem: Problem, origin: Origin) -> PromisedAt | None:
    """The launch that was read, where others may not keep what it promises."""
    filled = [a.name for a in problem.arguments if a.init is not None and a.role != "workspace"]
    if len(origin.launches) < 2 or origin.alone or not (filled or origin.unread):
        return None
    what = f"{filled[0]} is filled before it" if filled else f"the host asks for {origin.unread[0]}"
    if not origin.read:
        why = f"{what}, and which launch that was read from is not kept: take the kernel again"
        return PromisedAt("", why)
    return PromisedAt(origin.read, f"{what} at {origin.read}, which nothing can check here")


def _read_launching_file(repository: Path, path: str, artefact: Artefact, origin: Origin) -> LaunchingFile:
    """What the file includes tells whether it means the kernel that was tuned, or another of that name."""
    text = _read_source_text(repository, path)
    base, _ = base_name(artefact.first.dispatch.original.launches[0].entry)
    headers = _collect_headers(repository, path, text, origin.include)
    macros = frozenset(name for more in headers.values() for name in macros_in(more))
    other = ""
    if origin.file != path and origin.file not in headers:
        texts = {path: text, **headers}
        other = next((one for one, more in texts.items() if defines_kernel(more, base)), "")
    return LaunchingFile(path, text, macros, other)


def _collect_headers(repository: Path, path: str, text: str, folders: Sequence[str]) -> dict[str, str]:
    """Headers of the repository which the file includes, by whatever way, with their texts. `folders`: where
    they are looked for besides; what is in none is found by the end of its path, as `extract` does."""
    found: dict[str, str] = {}
    seen = {path}
    waiting = [(path, text)]
    by_ends: Includes | None = None
    while waiting and len(seen) < _MAX_HEADERS:
        here, words = waiting.pop()
        for name in _INCLUDE.findall(words):
            ways = [posixpath.join(base, name) for base in (posixpath.dirname(here), *folders, "")]
            inner = next((way for way in map(posixpath.normpath, ways) if _lies_in(repository, way)), None)
            if inner is None:
                by_ends = by_ends or Includes(Repository(repository))
                inner = by_ends.find(name, here)
            if inner is None or inner in seen:
                continue
            seen.add(inner)
            place = repository / inner
            with explain_disk_errors("read a header", place):
                more = read_plain(place.resolve()).decode("utf-8", "replace")
            found[inner] = more
            waiting.append((inner, more))
    return found


def _lies_in(repository: Path, path: str) -> bool:
    place = (repository / path).resolve()  # a header may be a link
    return place.is_relative_to(repository) and place.is_file()
