"""The templates of a run that somebody takes home: as they were searched, or reduced to what won."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.problem.reduced import reduced
from tunesmith.run.files import explained, write_new
from tunesmith.run.racing import verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.run.store import RunFolder
from tunesmith.session.problems import state_and_templates


@dataclass(frozen=True)
class KeptTemplates:
    texts: dict[str, str]  # by the name that the run's folder has for it, that of the general winner first
    files: tuple[str, ...]  # where they were written


def kept_templates(path: Path, winner: bool = False, still_open: Sequence[str] = ()) -> dict[str, str]:
    """File name -> text of every template that won, that of the general winner first."""
    if still_open and not winner:
        fault = "what is to stay open can be said of a template that is reduced to what won"
        raise BadInput(fault, where=str(path), hint="add --winner, or leave --open out: all is open as it is")
    folder = RunFolder.open(path)
    state, templates = state_and_templates(folder)
    problem = templates.problem
    if state.stopped is None:
        fault = "this run is not finished, so it is not known what won"
        raise BadInput(fault, where=str(path), hint=f"go on with: {folder.go_on}")
    choice = verified_choice(problem, state)
    configs = choice.configs()
    if not configs:
        fault = "this run found nothing better than the original, so no template won"
        hint = "what was searched is in the folder of the run, or write one with: tunesmith template PROBLEM"
        raise BadInput(fault, where=str(path), hint=hint)
    known = {name: None for config in configs for name, _ in config.items}
    if unknown := [name for name in still_open if name not in known]:
        fault = f"there is no parameter {unknown[0]!r}; there are {', '.join(known) or 'none'}"
        raise BadInput(fault, where=str(path), hint="name some of these, separated by commas")
    found: dict[str, str] = {}
    for candidate, name in delivered_templates(problem, state, choice).items():
        own = [config for config in configs if config.candidate == candidate]
        template = templates.of(state.candidate(candidate))
        if winner and not template.is_concrete:
            template = reduced(template, problem, own, [n for n in still_open if n in dict(own[0].items)])
        found[name] = template.as_delivered(problem)
    return found


def write_kept(path: Path, winner: bool, still_open: Sequence[str], out: Path | None) -> KeptTemplates:
    """To the file `out`; where several templates won, each after the first into one of its own beside it."""
    texts = kept_templates(path, winner, still_open)
    if out is None:
        return KeptTemplates(texts, ())
    targets = [
        out.with_name(f"{out.stem}{f'-{n}' if n > 1 else ''}{out.suffix}") for n in range(1, len(texts) + 1)
    ]
    for target in targets:
        if os.path.lexists(target):
            raise BadInput(
                "the file exists already", where=str(target), hint="choose another name with --out"
            )
    for target, text in zip(targets, texts.values(), strict=True):
        with explained("write the template", target, instead="another name with --out"):
            write_new(target, text.encode())
    return KeptTemplates(texts, tuple(map(str, targets)))
