"""From a problem's kernel to what it computes: `lift`."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.problem import Problem
from tunesmith.expert.c.bind import bind
from tunesmith.expert.c.fold import fold_statements
from tunesmith.expert.c.inline import inline
from tunesmith.expert.c.nodes import Function, Source
from tunesmith.expert.c.out_of_sight import check_in_sight
from tunesmith.expert.c.parse import read_source_tree
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.unreadable import Unreadable
from tunesmith.expert.model.element_loops import cooperates
from tunesmith.expert.model.exchange import check_exchange
from tunesmith.expert.model.flat import Flat, read_flat
from tunesmith.expert.model.geometry import Strided, strided_loops
from tunesmith.expert.model.kernel import Beyond, Kernel
from tunesmith.expert.model.launch_terms import LaunchTerms, launch_terms
from tunesmith.expert.model.loops_apart import loops_apart
from tunesmith.expert.model.memory_totals import with_totals_in_variables
from tunesmith.expert.model.normal import Normal, normal_form
from tunesmith.expert.model.online import with_two_passes
from tunesmith.expert.model.opencl_words import in_opencl_words
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.reading import Reading, check_reach
from tunesmith.expert.model.scenario import Scenario, every_scenario, scenarios
from tunesmith.expert.model.shared_types import with_used_types
from tunesmith.expert.model.shifted_loops import with_element_loops
from tunesmith.expert.model.team_reader import read_rows, read_teams
from tunesmith.expert.model.tidy import tidy
from tunesmith.expert.model.wrap_up import (
    aliases_of,
    check_own_memory,
    flat_reading,
    kernel_of,
    looks_like_rows,
    multiples,
)
from tunesmith.expert.reading.source_model import Language


def lift(problem: Problem) -> Kernel | Beyond:
    """The kernel as tasks and steps; `Beyond` with the reason in words where it cannot be read so."""
    kernel = problem.kernel
    source = read_source_tree(kernel.text, language_of(kernel.language), kernel.defines)
    if len(problem.launches) != 1:
        return Beyond(source, None, f"the operator runs {len(problem.launches)} kernels, one after the other")
    bound = bind(source, problem.launches[0].entry or kernel.entry)
    if isinstance(bound, str):
        return Beyond(source, None, bound)
    function = bound.function
    try:
        inlined = inline(function, source)
        function = inlined.function
        check_in_sight(inlined, source)
        return _Lifting(problem, source, function, bound.arguments).kernel()
    except OutOfReach as stop:
        return Beyond(source, function, stop.reason, stop.line)
    except Unreadable as stop:
        return Beyond(source, function, stop.reason, stop.line)
    except RecursionError:
        return Beyond(source, function, "its expressions are nested too deeply")


def language_of(word: str) -> Language:
    return "opencl" if word == "opencl" else "hip" if word == "hip" else "cuda"


class _Lifting:
    def __init__(
        self, problem: Problem, source: Source, function: Function, bound: tuple[tuple[str, str], ...]
    ) -> None:
        self._problem = problem
        self._source = source
        self._function = function
        self._bound = bound

    def kernel(self) -> Kernel:
        normal, launch = self._normal()
        tried = scenarios(self._problem, launch.parameters)
        if not tried:
            raise OutOfReach("no launch of at most 1024 threads follows from the problem's sizes")
        normal, reach = with_element_loops(normal, tried)
        loops = strided_loops(normal, tried[-1])
        reading = self._read(normal, launch, tried, loops)
        reading = replace(reading, reach=(*reading.reach, *reach))
        check_reach(reading, every_scenario(self._problem, launch.parameters))
        problem, source, function = self._problem, self._source, self._function
        kernel = kernel_of(reading, normal, problem, source, function, self._bound, launch)
        return in_opencl_words(kernel) if problem.kernel.language == "opencl" else kernel

    def _normal(self) -> tuple[Normal, LaunchTerms]:
        function = self._function
        names = tuple(p.name for p in function.parameters)
        body = tidy(function.body, self._source, names)
        in_shared = frozenset(
            p.name for p in function.parameters if p.type.is_pointer and p.type.space == "local"
        )
        launch = launch_terms(self._problem, names)
        body = fold_statements(substitute(body, launch.single))
        normal = normal_form(body, function, in_shared, self._problem.kernel.language)
        check_own_memory(normal)
        normal = with_totals_in_variables(normal, aliases_of(self._problem, function))
        return with_used_types(normal), launch

    def _read(
        self,
        normal: Normal,
        launch: LaunchTerms,
        tried: tuple[Scenario, ...],
        loops: dict[str, Strided],
    ) -> Reading:
        aliases = aliases_of(self._problem, self._function)
        together = cooperates(normal.body) is not None or bool(normal.shared)
        if together or any(loop.role == "element" for loop in loops.values()):
            return read_teams(normal, launch, tried, loops, aliases, self._problem.kernel.language)
        promised = multiples(self._problem, launch)
        parts = [read_flat(part, loops, tried, launch, promised) for part in loops_apart(normal, loops)]
        if parts and not any(part.tasks for part in parts):
            readings = [flat_reading(part, normal, aliases, "") for part in parts]
            return replace(
                readings[0],
                steps=tuple(step for reading in readings for step in reading.steps),
                notes=tuple(dict.fromkeys(note for reading in readings for note in reading.notes)),
                reach=tuple(reach for reading in readings for reach in reading.reach),
                apart=tuple(reading.reach for reading in readings),
            )
        flat: Flat = read_flat(normal, loops, tried, launch, promised)
        if not looks_like_rows(flat, normal):
            return flat_reading(flat, normal, aliases, "")
        try:
            reading = self._rows(normal, launch, tried, loops, aliases)
            check_exchange(reading.steps, normal.arrays, aliases, has_barriers=False)
            return reading
        except OutOfReach as stop:
            return flat_reading(flat, normal, aliases, stop.reason)

    def _rows(
        self,
        normal: Normal,
        launch: LaunchTerms,
        tried: tuple[Scenario, ...],
        loops: dict[str, Strided],
        aliases: dict[str, str],
    ) -> Reading:
        """A thread to each row; an online softmax is tried as two passes."""
        try:
            return read_rows(normal, launch, tried, loops, aliases)
        except OutOfReach:
            language = self._problem.kernel.language
            apart = with_two_passes(normal, "fmax" if language == "opencl" else "fmaxf")
            if apart is None:
                raise
        reading = read_rows(apart, launch, tried, strided_loops(apart, tried[-1]), aliases)
        note = "the maximum and the sum of exponentials, found in one pass, are read as two loops"
        return replace(reading, notes=(*reading.notes, note))
