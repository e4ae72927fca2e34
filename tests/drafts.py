"""Authors and templates made up for tests: what each writes, refuses, or gets wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Declined, Refactoring, Written

HEAD = "// /// tunesmith\n"


def a_draft(params: Mapping[str, Sequence[int]], require: str = "", block: str = "64") -> str:
    """A template whose first values are the defaults."""
    lines = ["[params]", *(f"{name} = {list(values)}" for name, values in params.items())]
    lines += ["[default]", *(f"{name} = {values[0]}" for name, values in params.items())]
    if require:
        lines += ["[require]", f'rule = "{require}"']
    lines += ["[launch]", 'grid = ["rows"]', f'block = ["{block}"]']
    comment = "".join(f"// {line}\n" for line in lines)
    return f"{HEAD}{comment}// ///\n__constant int use[] = {{{', '.join(params)}}};\n"


@dataclass
class Scripted:
    """Writes what the last move of its task names; keeps every task it was given."""

    texts: Mapping[str, str | Declined | Mapping[str, Sequence[int]] | Exception]
    tasks: list[Refactoring] = field(default_factory=list)

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        self.tasks.append(task)
        found = self.texts[task.moves[-1]]
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Declined):
            return found
        if isinstance(found, str):
            return Written(found, task.moves)
        left = {
            name: [value for value in values if (name, value) not in task.without]
            for name, values in found.items()
        }
        refused = (("split", "a row has no end"),)
        return Written(a_draft(left), task.moves, refused, ("made for a test",))
