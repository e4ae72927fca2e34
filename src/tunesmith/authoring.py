"""What the expert reads in a kernel, and the template it writes from it, without a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tunesmith import backends, machine, roles
from tunesmith.config import RunConfig
from tunesmith.core.device import Device, Limits
from tunesmith.core.errors import BadInput
from tunesmith.core.files.template_file import parse_template
from tunesmith.core.ports import Declined, Refactoring
from tunesmith.core.problem import Problem
from tunesmith.core.space.feasible import configs_of
from tunesmith.machine import temporary_scratch
from tunesmith.problems import load_problem
from tunesmith.store import explained

# Where kernels can be read and written, though no backend runs them yet: by their language.
ASSUMED = {
    "hip": Device(
        "hip",
        "assumed",
        "AMD Instinct MI300X (assumed)",
        "HIP",
        "",
        "gpu",
        Limits(
            max_threads=1024,
            max_block=(1024, 1024, 1024),
            max_grid=((1 << 31) - 1, 65535, 65535),
            shared=64 << 10,
            sms=304,
            warp=64,
            llc=256 << 20,
            memory=192 << 30,
            max_allocation=192 << 30,
            alignment=256,
        ),
        absent=True,
    )
}


@dataclass(frozen=True)
class TemplateMade:
    problem: str
    device: str  # whose limits its choices were made for
    template: str | None  # the text; None: there is none
    declined: str = ""  # why
    moves: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    feasible: int | None = None
    file: str | None = None  # where it was written


@dataclass(frozen=True)
class Reading:
    problem: str
    device: str
    lines: tuple[str, ...]  # what the kernel does, in words
    moves: tuple[str, ...]  # that apply
    refused: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()  # on the launch


def make_template(
    problem_path: Path, config: RunConfig, moves: tuple[str, ...] | None, out: Path | None
) -> TemplateMade:
    """With all moves that apply, or those named. Nothing is built or run."""
    problem, _ = load_problem(problem_path)
    device = _device(problem, config)
    author = roles.move_author(problem)
    available, refused = author.available(problem, device)
    if moves is not None:
        known = [*available, *(name for name, _ in refused)]
        if unknown := [name for name in moves if name not in known]:
            raise BadInput(
                f"--moves: there is no move {unknown[0]!r}; there are {', '.join(known) or 'none'}",
                hint="name some of these, separated by commas, or leave --moves out",
            )
    if out is not None and os.path.lexists(out):
        raise BadInput("the file exists already", where=str(out), hint="choose another name with --out")
    written = author.write(Refactoring(moves if moves is not None else available), problem, device)
    if isinstance(written, Declined):
        return TemplateMade(problem.name, device.name, None, written.reason, (), refused)
    template = parse_template(written.text, path=str(out or "template"), problem=problem)
    feasible = len(configs_of(problem, template, device))
    if out is not None:
        with explained("write the template", out, instead="another name with --out"):
            out.write_text(written.text, encoding="utf-8")
    said = written.refused if moves is not None else refused
    return TemplateMade(
        problem.name,
        device.name,
        written.text,
        moves=written.moves,
        refused=said,
        notes=written.notes,
        feasible=feasible,
        file=str(out) if out is not None else None,
    )


def explain(problem_path: Path, config: RunConfig) -> Reading:
    problem, _ = load_problem(problem_path)
    device = _device(problem, config)
    available, refused = roles.move_author(problem).available(problem, device)
    lines, notes = roles.reading_of(problem), roles.launch_notes(problem, device)
    return Reading(problem.name, device.name, lines, available, refused, notes)


def _device(problem: Problem, config: RunConfig) -> Device:
    """Moves depend on limits: those of the device here, or of the one that is named or assumed."""
    assumed = ASSUMED.get(problem.kernel.language)
    if assumed is not None and config.backend is None:
        return assumed
    spec = backends.backend_for(problem.kernel.language, config.backend)
    with temporary_scratch() as scratch:
        return machine.choose_device(machine.look(spec, scratch), config.device)
