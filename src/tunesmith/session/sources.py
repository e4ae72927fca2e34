"""Kernel files before there is a problem: what the expert makes of them, and drafts of problems."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import BadInput, DeviceMissing, bug_text
from tunesmith.expert.author import catalogue
from tunesmith.expert.reading.draft import bare_kernels, draft_problem
from tunesmith.expert.reading.explained import ExplainedText, explain_text
from tunesmith.problem import languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_source import user_headers
from tunesmith.run.config import RunConfig
from tunesmith.run.files import explained, write_new
from tunesmith.run.ports import Catalogue
from tunesmith.session.authoring import device_for
from tunesmith.session.problems import HeaderFolders, read_text

_MISSING = "correct the name; it counts from the current folder"
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class DraftedProblem:
    folder: Path
    files: tuple[str, ...]
    fills: int  # places that only the user can fill in
    is_apart: bool  # from headers beside its source


@dataclass(frozen=True)
class ExplainedBareKernel:
    """One kernel of a file: all that can be said of it before there is a problem."""

    entry: str
    line: int
    read: bool
    lines: tuple[str, ...]  # what it computes, in words
    obstacles: tuple[str, ...]  # all that stands in the way, each with what would have to change
    moves: tuple[str, ...]  # that would apply
    about: tuple[tuple[str, str], ...]  # what each of them does, and where
    refused: tuple[tuple[str, str], ...]  # those that would not, and why
    filled: tuple[str, ...]  # what `init` would fill in
    left: tuple[str, ...]  # and what it would leave to say


@dataclass(frozen=True)
class ExplainedSource:
    file: str
    language: str
    device: str  # that moves were chosen for; "" where there is none
    missing: str  # why there is none
    kernels: tuple[ExplainedBareKernel, ...]


def explain_source(
    path: Path, entry: str | None, defines: tuple[tuple[str, str], ...], config: RunConfig
) -> ExplainedSource:
    """Every kernel of the file, or the one that `entry` names. Nothing is built or run."""
    text = read_text(path, _MISSING)
    language = languages.language_of(path.name, text)
    given = (path.name, language, entry, defines, _own_headers(path, text, language) or ())
    bare = bare_kernels(text, *given)  # type: ignore[arg-type]
    device, missing = _device(language, config)
    found = tuple(_explained(explain_text(one), device) for one in bare)
    return ExplainedSource(str(path), language, device.name if device else "", missing, found)


def draft(
    kernel_file: Path, output: Path | None, entry: str | None, defines: tuple[tuple[str, str], ...] = ()
) -> DraftedProblem:
    """Write a drafted problem folder; never over anything that is there."""
    text = read_text(kernel_file, _MISSING)
    language = languages.language_of(kernel_file.name, text)
    folder = output or Path(kernel_file.stem)
    headers = _own_headers(kernel_file, text, language)
    include = _left_behind(kernel_file, folder, headers)
    given = (kernel_file.name, language, entry, include, defines, headers or ())
    drafted = draft_problem(text, *given)  # type: ignore[arg-type]
    files = {kernel_file.name: text, **drafted.files}
    if folder.resolve() == kernel_file.parent.resolve():
        del files[kernel_file.name]  # the source lies there already
    there = [name for name in files if os.path.lexists(folder / name)]
    if there:
        hint = "choose another folder with -o DIR"
        raise BadInput(f"{', '.join(there)} would be overwritten", where=str(folder), hint=hint)
    with explained("write the draft", folder, instead="another folder with -o DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        try:
            for name, content in files.items():
                write_new(folder / name, content.encode())
                written.append(folder / name)
        except OSError:
            for path in written:
                path.unlink(missing_ok=True)
            raise
    return DraftedProblem(folder, tuple(files), drafted.fills, bool(include))


def _left_behind(kernel_file: Path, folder: Path, headers: tuple[tuple[str, str], ...] | None) -> list[str]:
    """The source's own folder, where headers lie beside it that a copy elsewhere would miss."""
    own = kernel_file.parent
    here = folder.resolve() == own.resolve()
    return [] if here or headers == () else [os.path.relpath(own, folder)]


def _own_headers(path: Path, text: str, language: str) -> tuple[tuple[str, str], ...] | None:
    """The user's own headers beside a source, as included -> text; None: something is wrong with them, which
    is told when a problem is read."""
    if not languages.named(language).reads_headers:
        return ()
    try:
        return user_headers(text, path.name, HeaderFolders(path.parent, path.parent).find, ())
    except BadInput:
        return None


def given_defines(options: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`--define T=float`; a name alone is 1, as for compilers."""
    found = []
    for option in options:
        name, _, value = option.partition("=")
        if not _IDENTIFIER.fullmatch(name):
            fault = f"--define is NAME=VALUE with a C identifier; got {option!r}"
            raise BadInput(fault, hint="for example: --define T=float")
        found.append((name, value if "=" in option else "1"))
    return tuple(found)


def _device(language: str, config: RunConfig) -> tuple[Device | None, str]:
    try:
        return device_for(language, config), ""
    except DeviceMissing as error:
        return None, str(error)


def _explained(text: ExplainedText, device: Device | None) -> ExplainedBareKernel:
    moves = Catalogue() if device is None or text.problem is None else _moves(text.problem, device)
    about = tuple((offer.name, offer.words) for offer in moves.offers if offer.words)
    said = (text.entry, text.line, text.is_read, text.lines, text.obstacles)
    return ExplainedBareKernel(*said, moves.available, about, moves.refused, text.filled, text.left)


def _moves(problem: Problem, device: Device) -> Catalogue:
    try:
        return catalogue(problem, device)
    except Exception as error:  # whatever a text does to the writer, the rest has been said
        why = f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}"
        return Catalogue(refused=(("any move", why),))
