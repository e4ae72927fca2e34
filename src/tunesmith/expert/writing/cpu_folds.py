"""The lanes of an OpenCL vector joined to one value, as functions: half with half, down to one.

Halves are values. Lanes taken from memory (a union, or a pointer to the vector) would be shorter to print,
but PoCL 3.0 loses them: in a group with barriers it runs a loop over lanes in step for all work-items, and an
address of private memory that was computed before the loop is then the last work-item's for all of them.
"""

from __future__ import annotations

from tunesmith.expert.model.kernel import Total
from tunesmith.expert.writing.plan import Plan
from tunesmith.expert.writing.team_totals import joined

_WORDS = {"+": "sum", "*": "product"}


class Folds:
    def __init__(self, plan: Plan, vec: str) -> None:
        self._plan, self._vec = plan, vec
        self._made: dict[tuple[str, str], tuple[str, Total]] = {}

    def name(self, total: Total) -> str:
        """The function for totals of this kind."""
        key = (total.operator, total.combine)
        if key not in self._made:
            word = _WORDS.get(total.operator, total.operator)
            self._made[key] = (self._plan.names.fresh(f"{word}_of_lanes"), total)
        return self._made[key][0]

    def text(self) -> list[list[str]]:
        return [self._function(name, total) for name, total in self._made.values()]

    def _function(self, name: str, total: Total) -> list[str]:
        knob = self._plan.knobs.vector
        lines = [f"float {name}({self._vec} x)", "{"]
        wider = "x"  # what the next halves are taken of
        for width in (8, 4, 2):
            if width >= knob.most:
                continue
            halves = joined(total, f"{wider}.lo", f"{wider}.hi")
            lines += [f"#if {knob.name} > {width}", f"    const float{width} x{width} = {halves};"]
            if width in knob.values:
                lines += [f"#elif {knob.name} == {width}", f"    const float{width} x{width} = x;"]
            lines.append("#endif")
            wider = f"x{width}"
        return [
            *lines,
            f"#if {knob.name} > 1",
            f"    return {joined(total, f'{wider}.lo', f'{wider}.hi')};",
            "#else",
            "    return x;",
            "#endif",
            "}",
        ]
