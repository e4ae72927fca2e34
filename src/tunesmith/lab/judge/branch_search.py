"""Whether the checks of a winner have met both sides of its conditions on data; if not, inputs are drawn.

A copy of the kernel that marks the sides it takes runs on the inputs of the checks, in the process of
candidates, and is never timed. An input that takes a new side becomes a case that the kernel is judged on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import first_line, seed_of, truncate_text
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.measure import LaunchPlans, case_deadline
from tunesmith.lab.memory import Verdict
from tunesmith.lab.references import draw_of
from tunesmith.lab.runner import Runner
from tunesmith.problem.cases import Case
from tunesmith.problem.device import Device
from tunesmith.problem.plan import CannotRun
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.structures import planted_name
from tunesmith.problem.template import Variant
from tunesmith.problem.vetting.device_words import Refusal
from tunesmith.run.outcome import NO_SIDES, DataSides
from tunesmith.space.expr import parse_expr

if TYPE_CHECKING:
    from tunesmith.problem.watched_conditions import WatchedText
    from tunesmith.source.tree import Language

SECONDS = 3.0  # for the inputs of the checks, and as much again for those that are drawn
CASE_BYTES, DRAWN_BYTES = 4 << 20, 1 << 18
DRAWN_SIZES, MAX_DRAWN = 6, 48
LAUNCH_SECONDS = 0.01  # that a launch may take where nobody has timed the original
_DEFINED = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
Marks = NDArray[np.bool_]


@dataclass
class BranchSearch:
    _problem: Problem
    _device: Device
    _builders: Builders
    _plans: LaunchPlans
    _runner: Runner  # of candidates
    _established: Callable[[Case], float | Verdict]  # what the original takes

    def search(
        self, code: BuiltCode, variant: Variant, cases: Sequence[Case], seed: int
    ) -> tuple[list[Case], DataSides]:
        """Further cases, and what none has met. `cases`: on which the kernel has proved right."""
        watched = watch_variant(code, variant)
        if isinstance(watched, str):
            return _empty_search_result(watched)
        if not watched.conditions:
            return [], NO_SIDES
        marking = marking_variant(variant, watched)
        if isinstance(built := self._builders.start(marking).result(), Verdict):
            return _empty_search_result(f"a copy that marks them does not build: {built.detail}")
        met, found = np.zeros(2 * len(watched.conditions), np.bool_), list[Case]()
        sized = [(self._plans.plan(marking, dict(case.sizes), built), case) for case in cases]
        known = [(plan.nbytes, case) for plan, case in sized if not isinstance(plan, CannotRun)]
        known.sort(key=lambda one: one[0])
        small = {case.sizes: case for nbytes, case in known if nbytes <= DRAWN_BYTES}
        checked = (case for nbytes, case in known if nbytes <= CASE_BYTES)
        for inputs, is_new in ((checked, False), (_drawn_cases([*small.values()], watched, met, seed), True)):
            until = time.perf_counter() + SECONDS
            for case in inputs:
                if met.all() or time.perf_counter() > until:
                    break
                marks = self._marks(case, marking, built)
                if isinstance(marks, str):
                    return _empty_search_result(f"a copy that marks them does not run: {marks}")
                if is_new and (marks & ~met).any():
                    if isinstance(self._established(case), Verdict):
                        continue  # where the original fails nobody is judged
                    found.append(case)
                met |= marks
        return found, _sides_of(watched, met, len(found))

    def _marks(self, case: Case, marking: Variant, built: BuiltCode) -> Marks | str:
        plan = self._plans.plan(marking, dict(case.sizes), built)
        if isinstance(plan, CannotRun):
            return plan.reason
        deadline = case_deadline(LAUNCH_SECONDS, self._device, built.seconds, plan)
        run = self._runner.run(built, plan, draw_of(self._problem, case), deadline)
        if isinstance(run, Verdict):
            return f"{run.status}: {run.detail}"
        return np.asarray(np.frombuffer(run.outputs[-1], np.int32) == 1)


def _empty_search_result(why: str) -> tuple[list[Case], DataSides]:
    return [], DataSides(why_not=truncate_text(first_line(why), 200))


def _drawn_cases(cases: Sequence[Case], watched: WatchedText, met: Marks, seed: int) -> Iterator[Case]:
    """With numbers of what is unmet by then; every other time with all others of the text as well."""
    several = cases[:: max(1, len(cases) // DRAWN_SIZES)]
    for number in range(MAX_DRAWN if several else 0):
        sides = zip(watched.conditions, met.reshape(-1, 2), strict=True)
        wanted = [each for condition, pair in sides if not pair.all() for each in condition.numbers]
        wanted += watched.numbers if number % 2 or not wanted else ()
        name = planted_name(dict.fromkeys(wanted))
        drawn_seed = seed_of(seed, "sides", number)
        yield Case(several[number % len(several)].sizes, name, drawn_seed, "verify", compares_errors=False)


@lru_cache(maxsize=64)
def watch_variant(code: BuiltCode, variant: Variant) -> WatchedText | str:
    """The very text that was compiled."""
    from tunesmith.problem.watched_conditions import watch_conditions  # a reader of C

    given = tuple((name, value or "1") for name, value in _DEFINED.findall(" ".join(variant.flags)))
    watched = watch_conditions(code.unit.source, cast("Language", variant.language), given, variant.headers)
    if not isinstance(watched, str) and watched.conditions and variant.made_from:
        from tunesmith.problem.vet import vetted_text

        about = (variant.made_from[0], variant.language, variant.made_from[1:], variant.flags)
        if isinstance(found := vetted_text(watched.plain, *about, variant.overlapping), Refusal):
            return f"with its macros expanded it is refused: {found.words}"
    return watched


def marking_variant(variant: Variant, watched: WatchedText) -> Variant:
    """The copy as a kernel of its own, with an output more; all of a stranger's in it has been vetted."""
    from tunesmith.problem.watched_conditions import MARKS, plain_entry

    shape = (parse_expr(str(2 * len(watched.conditions))),)
    marks = Argument(MARKS, "int32", "output", shape, init=0.0, compare="exact")
    launches = [
        replace(one, args=(MARKS, *one.args)) if plain_entry(one.entry) in watched.functions else one
        for one in variant.launches
    ]
    text = replace(variant, source=watched.source, headers=(), made_from=())
    return replace(text, launches=tuple(launches), arguments=(*variant.arguments, marks))


def _sides_of(watched: WatchedText, met: Marks, drawn: int) -> DataSides:
    """What never ran is left out: something else decides there, most often a parameter of the template."""
    half = {
        condition: "false" if was_true else "true"
        for condition, (was_false, was_true) in zip(watched.conditions, met.reshape(-1, 2), strict=True)
        if was_false != was_true
    }
    texts = {condition.text for condition in half}
    unmet = [
        f"line {condition.line}: `{condition.text}` was never {side}"
        for condition, side in half.items()
        if not any(text in condition.text for text in texts - {condition.text})  # `a && b` where a is unmet
    ]
    return DataSides(len(watched.conditions), tuple(dict.fromkeys(unmet)), drawn)
