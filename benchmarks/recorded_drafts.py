"""Which drafts that a gate once admitted vetting turns away today, with its words.

    python -m benchmarks.recorded_drafts FOLDER...

FOLDER holds folders of runs, at any depth: those kept in tests/fixtures/comparisons, unpacked, or your own.
Of each admitted draft the default and the ends of every parameter are vetted as a model's text is, the
expert's too. Prints a line for each that is turned away and how many there were; exit 1 where there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.base.errors import TunesmithError
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, builds_of, users_texts
from tunesmith.problem.vet import vet_flags, vet_source
from tunesmith.run.folder import JOURNAL, RunFolder
from tunesmith.session import problems
from tunesmith.space.configset import Config

PASSED, REFUSED = "passed", "turned away"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.recorded_drafts", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    counted: Counter[str] = Counter()
    for journal in sorted(file for top in given.folders for file in top.rglob(JOURNAL)):
        for name, author, fault in refusals(journal.parent):
            counted[f"of {author} {REFUSED if fault else PASSED}"] += 1
            if fault:
                print(f"{journal.parent}, {name} by {author}: {fault}", flush=True)
    print(*(f"{number} {kind}" for kind, number in sorted(counted.items())), sep="\n")
    return any(kind.endswith(REFUSED) for kind in counted)


def refusals(run: Path) -> Iterator[tuple[str, str, str]]:
    """Each admitted draft, its author, and why it is turned away; empty where it is not."""
    try:
        state, templates = problems.state_and_templates(RunFolder(run))
    except TunesmithError as error:
        print(f"{run}: left out, {error}", flush=True)
        return
    for candidate in state.candidates:
        if candidate.admitted is not None and candidate.drafted is not None:
            is_models = templates.of(candidate).is_foreign
            fault = first_fault(templates.problem, templates.of(candidate))
            yield candidate.id, "a model" if is_models else "the expert", fault


def first_fault(problem: Problem, template: Template) -> str:
    original, *headers = users_texts(problem)
    for config in ends(template):
        for build in builds_of(problem, template, config):
            one = build.variant
            found = vet_source(one.source, original, one.language, headers, one.overlapping)
            fault = str(found) if found is not None else vet_flags(template.flags, one.language)
            if fault:
                return f"{config.label}: {fault}"
    return ""


def ends(template: Template) -> Iterator[Config]:
    """The default, and it with one parameter at its first or last value."""
    default = template.default
    yield default
    for param in template.space.params:
        for value in {param.values[0], param.values[-1]} - {default.as_dict()[param.name]}:
            yield default.replace(param.name, value)


if __name__ == "__main__":
    sys.exit(main())
