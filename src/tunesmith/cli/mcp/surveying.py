"""What is there: sources, problems and runs below the folders of a client, and what they tell unbuilt."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import tunesmith
from tunesmith.cli.mcp.answers import (
    LONGEST_TEXT,
    DraftAnswer,
    InspectAnswer,
    RunAnswer,
    TemplateAnswer,
    foreign,
    kernel_answers,
    run_answer,
    template_answer,
)
from tunesmith.cli.mcp.mailbox import open_requests
from tunesmith.errors import BadInput
from tunesmith.problem.languages import is_source_name
from tunesmith.run.store import JOURNAL
from tunesmith.session import kept, sources
from tunesmith.session.problems import PROBLEM_FILE, read_text
from tunesmith.text import counted, named_values

MOST_FOUND = 100  # of each kind
MOST_LISTED = 20  # runs whose reports and kernels are listed
DEEPEST = 4
MOST_FOLDERS = 5000  # that are looked into
_PASSED_OVER = ("node_modules", "__pycache__", "build", "dist")


def survey(path: Path | None, folders: Sequence[Path], entry: str | None) -> InspectAnswer:
    """Of a path, or of all folders with the devices that are here."""
    named = tuple(map(str, folders))
    if path is None:
        found = tunesmith.devices()
        devices = tuple(f"{d.backend} {d.id}: {d.name}" for d in found.devices)
        return _folder("", folders, named, devices, found.troubles)
    if path.is_file() and path.name != PROBLEM_FILE:
        source = tunesmith.explain_file(path, entry=entry)
        notes = (source.missing,) if source.missing else ()
        return InspectAnswer(str(path), "kernel source", named, kernel_answers(source), notes=notes)
    if (path / JOURNAL).is_file():
        notes = ("a run: look at it with status",)
        return InspectAnswer(str(path), "run", named, runs=(str(path),), notes=notes)
    if path.name == PROBLEM_FILE or (path / PROBLEM_FILE).is_file():
        own = tunesmith.Problem.load(path).definition
        sizes = "; ".join(f"{w.name} at {named_values(w.as_dict())}" for w in own.workloads)
        notes = (foreign(f"{own.name}, {own.kernel.language}, workloads: {sizes}"),)
        return InspectAnswer(str(path), "problem", named, problems=(str(path),), notes=notes)
    if not path.is_dir():
        raise BadInput("there is nothing", where=str(path), hint="name a file or a folder that is there")
    return _folder(str(path), (path,), named)


def _folder(
    path: str,
    roots: Sequence[Path],
    named: tuple[str, ...],
    devices: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> InspectAnswer:
    problems: list[str] = []
    runs: list[str] = []
    kernels: list[str] = []
    for folder, files in _walk(roots):
        if JOURNAL in files:
            runs.append(str(folder))
        elif PROBLEM_FILE in files:
            problems.append(str(folder))
        else:
            kernels += [str(folder / name) for name in files if is_source_name(name)]
    cut_off = [len(found) - MOST_FOUND for found in (problems, runs, kernels)]
    more = tuple(f"{counted(left, 'path')} more of a kind" for left in cut_off if left > 0)
    found = (tuple(map(foreign, sorted(each)[:MOST_FOUND])) for each in (problems, runs, kernels))
    own_problems, own_runs, own_kernels = found
    return InspectAnswer(
        path, "folder", named, (), own_problems, own_runs, own_kernels, devices, (*notes, *more)
    )


def _walk(roots: Sequence[Path]) -> Iterator[tuple[Path, list[str]]]:
    """No link is followed; what is in a run or in a hidden folder is passed over, and what has a name that no
    answer can spell."""
    for root in roots:
        for here, inner, files in islice(os.walk(root), MOST_FOLDERS):
            folder = Path(here)
            is_deep = len(folder.relative_to(root).parts) >= DEEPEST
            inner[:] = sorted(
                n for n in inner if not n.startswith(".") and n not in _PASSED_OVER and _is_text(n)
            )
            if is_deep or JOURNAL in files:
                inner.clear()
            yield folder, sorted(filter(_is_text, files))


def _is_text(name: str) -> bool:
    """Whether it is UTF-8: other bytes of a name have no place in JSON."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


def run_files(folders: Sequence[Path]) -> list[tuple[Path, tuple[str, ...]]]:
    """The newest runs below the folders, each with the names of the files that it has delivered."""
    found: list[tuple[float, Path]] = []
    for folder, files in _walk(folders):
        if JOURNAL in files:
            with contextlib.suppress(OSError):  # it is gone again
                found.append(((folder / JOURNAL).lstat().st_mtime, folder))
    newest = sorted(dict.fromkeys(found), reverse=True)[:MOST_LISTED]
    return [(folder, _delivered(folder / "tuned")) for _, folder in newest]


def _delivered(tuned: Path) -> tuple[str, ...]:
    try:
        if tuned.is_symlink() or not tuned.is_dir():
            return ()
        with os.scandir(tuned) as entries:
            names = sorted(e.name for e in entries if e.is_file(follow_symlinks=False))
    except OSError:  # it may not be read, or is gone again: the others are still listed
        return ()
    return tuple(filter(_is_text, names))[:MOST_FOUND]


def draft(kernel: Path, folder: Path, entry: str | None, defines: Sequence[str]) -> DraftAnswer:
    made = sources.draft(kernel, folder, entry, sources.given_defines(defines))
    text = foreign(read_text(made.folder / PROBLEM_FILE), LONGEST_TEXT)
    return DraftAnswer(str(made.folder), made.files, made.fills, text)


def expert_template(
    problem: Path, moves: Sequence[str] | None, out: Path | None, device: str | None
) -> TemplateAnswer:
    return template_answer(tunesmith.write_template(problem, moves=moves, out=out, device=device))


def kept_template(run: Path, winner: bool, out: Path | None) -> TemplateAnswer:
    found = kept.write_kept(run, winner, (), out)
    if len(found.texts) > 1:
        fault = f"{len(found.texts)} templates won: {', '.join(found.texts)}"
        raise BadInput(fault, where=str(run), hint="read them in the run's folder")
    text = foreign(next(iter(found.texts.values())), LONGEST_TEXT)
    return TemplateAnswer(tunesmith.load_run(run).result.problem, text, file=", ".join(found.files))


def run_at(folder: Path) -> RunAnswer:
    run = tunesmith.load_run(folder)
    return run_answer(run, [request.name for request in open_requests(folder)])


def inspect_lines(found: InspectAnswer) -> list[str]:
    lines = [f"{found.path or ', '.join(found.folders)}: {found.kind}"]
    for kernel in found.kernels:
        verdict = "read" if kernel.understood else "beyond the expert"
        lines.append(f"{kernel.entry}, line {kernel.line}: {verdict}")
        lines += [f"  {line}" for line in (*kernel.reading, *kernel.obstacles)]
        lines += [f"  moves that would apply: {', '.join(kernel.moves) or 'none'}"]
        lines += [f"  left to say: {line}" for line in kernel.left]
    for what, paths in (("problem", found.problems), ("run", found.runs), ("source", found.sources)):
        lines += [f"{what} {path}" for path in paths]
    return [*lines, *(f"device {one}" for one in found.devices), *(f"note: {note}" for note in found.notes)]
