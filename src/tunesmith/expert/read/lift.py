"""From a problem's kernel to what it computes: `lift`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from tunesmith.expert.read import geometry
from tunesmith.expert.read.checks import (
    check_exchange,
    check_in_sight,
    check_own_memory,
    check_pointers,
    check_references,
    check_sizes_stay,
    collect_accesses,
    marked_again,
    other_obstacles,
    told_in,
    with_one_dynamic_array,
)
from tunesmith.expert.read.contract import (
    facts_of_fixed,
    fixed_values,
    given_arrays,
    is_same,
    language_of,
    one_kernel,
    read_at_sizes,
    with_decided,
    with_promised,
    with_wave_size,
)
from tunesmith.expert.read.geometry import Scenario, every_scenario, sample_scenarios
from tunesmith.expert.read.integers import BUILTINS, LaunchTerms, launch_terms
from tunesmith.expert.read.model import (
    Each,
    Fact,
    KernelModel,
    KernelReading,
    NotReadable,
    OutOfReach,
    Step,
    Task,
    all_steps,
    facts_of,
    map_steps,
    names_in_steps,
    substitute_in_steps,
    with_functions_called,
    without_waits,
)
from tunesmith.expert.read.normal import Normal, normal_form, with_used_types
from tunesmith.expert.read.rules.launched_loops import (
    loops_apart,
    passed_by_all,
    turned_once,
    with_element_loops,
    with_tests_as_loops,
)
from tunesmith.expert.read.rules.loops import with_guarded_turns, without_single_turns
from tunesmith.expert.read.rules.pointers import in_elements
from tunesmith.expert.read.rules.tidy import tidy_statements, with_versions
from tunesmith.expert.read.rules.totals import (
    find_cooperative_call,
    with_totals_in_variables,
    with_two_passes,
)
from tunesmith.expert.read.styles.elements import FlatReader, flat_reading, with_blocks_as_tasks
from tunesmith.expert.read.styles.shared_rows import with_rows_read_again
from tunesmith.expert.read.styles.team import read_rows, read_teams
from tunesmith.expert.read.styles.thread_rows import looks_like_rows, with_kept_rows, with_rows_as_tasks
from tunesmith.expert.read.styles.tiles import read_boxes
from tunesmith.problem.problem import Problem
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Program
from tunesmith.source.fold import fold_statements, int_value
from tunesmith.source.inline import inline_calls, with_helpers, without_references
from tunesmith.source.preprocess import Predefined, Toolkit
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import bind_kernel
from tunesmith.source.substitution import substitute
from tunesmith.space import expr as size

_WORDS = {
    "fmaxf": "fmax", "fminf": "fmin", "__int_as_float": "as_float", "__uint_as_float": "as_float",
}  # fmt: skip


def in_opencl_words(kernel: KernelModel) -> KernelModel:
    defined = {function.name for function in kernel.source.functions}
    words = {cuda: opencl for cuda, opencl in _WORDS.items() if cuda not in defined}
    return with_functions_called(kernel, words)


def _name_task_counts(
    tasks: tuple[Task, ...], steps: tuple[Step, ...], normal: Normal
) -> tuple[tuple[Task, ...], tuple[Step, ...]]:
    """Axes of today's grid that the steps ask for, by a name: another launch has other axes."""
    used, taken = names_in_steps(steps), set(normal.types) | set(normal.ids)
    done: list[Task] = []
    for task in tasks:
        if isinstance(task.extent, c.Name) and task.extent.name in used & set(BUILTINS):
            name = walk.numbered_name(f"{task.name}_count", taken)
            steps = substitute_in_steps(steps, {task.extent.name: c.Name(name)})
            task = replace(task, count=name)
        done.append(task)
    return tuple(done), steps


def aliases_of(problem: Problem, function: c.Function) -> dict[str, str]:
    """Arrays that are the same memory, by the kernel's names for them: one stands for all."""
    by_name = {a.name: a for a in problem.arguments}
    ordered = [by_name[name] for name in problem.launches[0].args if name in by_name]
    names = {a.name: p.name for a, p in zip(ordered, function.parameters, strict=False)}
    found = {
        names[a.name]: names.get(a.alias, a.alias) for a in ordered if a.alias is not None and a.name in names
    }
    for name in found:  # of one that stands for another in turn
        for _ in found:
            found[name] = found.get(found[name], found[name])
    return found


def parameter_multiples(problem: Problem, launch: LaunchTerms) -> dict[str, int]:
    """What the contract promises: parameters that are multiples of something."""
    rules = {rule.name: rule.multiple_of for rule in problem.contract.sizes}
    pairs = launch.parameters.items()
    return {name: rules.get(node.id, 1) for name, node in pairs if isinstance(node, size.Variable)}


def check_reach(reading: KernelReading, launches: Iterable[Scenario]) -> None:
    for scenario in launches:
        numbers = scenario.numbers
        for reach in reading.reach:
            if reach.goes_on:
                continue
            bound, count = int_value(reach.bound, numbers), int_value(reach.count, numbers)
            if bound is not None and count is not None and count < bound:
                sizes = ", ".join(f"{name} = {value}" for name, value in scenario.sizes)
                raise OutOfReach(
                    f"with {sizes} the launch comes to {count} values of '{reach.name}', and the kernel's "
                    f"own test allows {bound}"
                )


def lift_kernel(problem: Problem) -> KernelModel | NotReadable:
    """The kernel as tasks and steps; `NotReadable` with the reason in words where it cannot be read so.

    Where several compilers may build it, it has to be one kernel to all of them."""
    found = read_at_sizes(
        problem, lambda at: one_kernel(at.kernel, lambda source, state: _read_under(at, source, state))
    )
    given = (problem.kernel.text, *(text for _, text in (*problem.kernel.headers, *problem.kernel.defines)))
    return told_in("\n".join(given), found) if isinstance(found, NotReadable) else found


def _read_under(problem: Problem, source: c.Source, state: Predefined) -> KernelModel | NotReadable:
    kernel = problem.kernel
    given = (kernel.text, language_of(kernel.language), kernel.defines, kernel.headers)
    if len(problem.launches) != 1:
        several = f"the operator runs {len(problem.launches)} kernels, one after the other"
        return NotReadable(source, None, several)
    if not source.asks_toolkit:
        return _lift_source(problem, source)
    # With the toolkit's headers or without them, it has to be one kernel; nvcc has those of its runtime.
    ways: tuple[Toolkit, ...] = ("there", "absent")
    texts = "".join((given[0], *dict(given[3]).values()))
    if kernel.compiler == "nvcc" and not re.search(r"\bCUDA_VERSION\b", texts):
        ways = ("there",)
    first, *others = (_lift_source(problem, read_source_tree(*given, way, state)) for way in ways)
    if isinstance(first, NotReadable) or all(is_same(first, other) for other in others):
        return first
    return NotReadable(source, None, source.unread[0])


def _lift_source(problem: Problem, source: c.Source) -> KernelModel | NotReadable:
    source = with_helpers(source)
    bound = bind_kernel(source, problem.launches[0].entry or problem.kernel.entry)
    if isinstance(bound, str):
        return NotReadable(source, None, bound)
    fixed, arrays = fixed_values(problem, bound.function), given_arrays(problem, bound.function)
    function, said = with_decided(bound.function, fixed, arrays)
    bound = replace(bound, function=function)
    try:
        inlined = inline_calls(function, source)
        function, source = with_wave_size(inlined.function, problem.kernel), inlined.source
        function, also = with_decided(function, fixed, arrays)
        function, once = without_single_turns(function, fixed)
        function, promised = with_promised(function, source, problem)
        function, waits, left_out = without_waits(function, bool(problem.launches[0].pdl))
        function = with_one_dynamic_array(without_references(function))
        inlined = replace(inlined, function=function)
        check_in_sight(inlined, source)
        check_references(function.body)
        model = _with_or_without_tests(_Lifting(problem, source, function, bound.arguments))
        facts = (*facts_of_fixed(tuple(dict.fromkeys((*said, *also, *once))), fixed), *promised)
        return replace(model, waits=waits, facts=model.facts + facts, notes=(*model.notes, *left_out))
    except c.Unreadable as stop:
        others = other_obstacles(bound.function, bound.source, stop.reason)
        return NotReadable(source, function, stop.reason, stop.line, others)
    except RecursionError:
        return NotReadable(source, function, "its expressions are nested too deeply")


def _is_one_block(reading: KernelReading, launched: geometry.LaunchedKernel) -> bool:
    """Whether the launch is a single block, all of whose threads are the team: that is one task."""
    one, lanes = c.Number("1", 1), reading.lanes
    is_single = all(launched.launch.values.get(f"gridDim.{axis}") == one for axis in "xyz")
    if reading.team != "block" or not is_single or lanes is None:
        return False
    return all(int_value(lanes, scenario.numbers) == scenario.threads for scenario in launched.scenarios)


def _with_or_without_tests(lifting: _Lifting) -> KernelModel:
    """Tests that every block passes may stand around some of its work: then they are left out."""
    try:
        return lifting.read_kernel()
    except OutOfReach:
        try:
            model = lifting.read_kernel() if lifting.has_sure_tests() else None
        except OutOfReach:
            model = None
        if model is None:
            raise
        return model


def _in_whole_turns(step: Step, multiples: Mapping[str, int]) -> Step:
    """`(d + 7) / 8` turns are d / 8 where the contract says that 8 divides d."""
    if isinstance(step, Each):
        match step.stop:
            case c.Binary(
                "/", c.Binary("+", c.Name(name) as size, c.Number(value=int(up))), c.Number(value=by)
            ):
                if up + 1 == by and multiples.get(name, 1) % by == 0:
                    return replace(step, stop=c.Binary("/", size, step.stop.right))
    return step


class _Lifting:
    def __init__(
        self, problem: Problem, source: c.Source, function: c.Function, bound: tuple[tuple[str, str], ...]
    ) -> None:
        self._problem, self._source, self._function, self._bound = problem, source, function, bound
        self.without_sure_tests = False

    def has_sure_tests(self) -> bool:
        """Whether leaving tests out changes what there is to read."""

        def body(without: bool) -> tuple[c.Stmt, ...]:
            self.without_sure_tests = without
            try:
                return self._normal()[0].body
            except OutOfReach:
                return ()

        return body(False) != body(True)

    def read_kernel(self) -> KernelModel:
        normal, launch = self._normal()
        tried = sample_scenarios(self._problem, launch.parameters)
        if not tried:
            raise OutOfReach("no launch of at most 1024 threads follows from the problem's sizes")
        plain = normal
        normal, reach = with_element_loops(normal, tried, lambda e: launch.bounds_of(e, self._size_ranges))
        loops = geometry.strided_loops(normal, tried[-1])
        aliases = aliases_of(self._problem, self._function)
        promised = parameter_multiples(self._problem, launch)
        launched = geometry.LaunchedKernel(normal, launch, tried, loops, aliases, promised)
        given = replace(launched, normal=plain)
        try:
            reading = self._read(launched)
            reading = replace(reading, reach=(*reading.reach, *reach))
        except OutOfReach as stop:
            if (model := self._lift_other_forms(given)) is not None:
                return model
            if not any(declare.is_array for declare in normal.shared.values()):
                raise
            again = self._with_rows(launched)
            if again is None:
                launched = given
                reading = self._with_tiles(launched, stop)
            else:
                launched, reading = again
                reading = replace(reading, reach=(*reading.reach, *reach))
        try:
            return self._checked(launched, reading)
        except OutOfReach:
            if (model := self._lift_other_forms(given)) is not None:
                return model
            raise

    def _checked(self, launched: geometry.LaunchedKernel, reading: KernelReading) -> KernelModel:
        check_reach(reading, every_scenario(self._problem, launched.launch.parameters))
        kernel = self._model(reading, launched)
        return in_opencl_words(kernel) if self._problem.kernel.language == "opencl" else kernel

    def _lift_other_forms(self, kernel: geometry.LaunchedKernel) -> KernelModel | None:
        """The kernel in other forms: rows that threads keep in arrays of their own, tests as loops."""
        bounds_of = partial(kernel.launch.bounds_of, ranges=self._size_ranges)
        forms = (partial(with_kept_rows, kernel, bounds_of), partial(with_tests_as_loops, kernel, bounds_of))
        for form in forms:
            found = form()
            if found is None:
                continue
            normal, reach = with_element_loops(found.kernel.normal, kernel.scenarios, bounds_of)
            loops = geometry.strided_loops(normal, kernel.scenarios[-1])
            try:
                again = replace(found.kernel, normal=normal, loops=loops)
                reading = read_teams(again, self._problem.kernel.language)
                reach, facts = (*reading.reach, *reach), (*reading.facts, *found.facts)
                return self._checked(again, replace(reading, reach=reach, facts=facts))
            except OutOfReach:
                continue
        return None

    def _model(self, reading: KernelReading, launched: geometry.LaunchedKernel) -> KernelModel:
        normal = launched.normal
        whole = map_steps(reading.steps, lambda step: _in_whole_turns(step, launched.multiples))
        steps = marked_again(whole, normal.arrays, launched.multiples)
        check_exchange(steps, normal.arrays, launched.aliases, reading.barriers > 0)
        tasks, steps = _name_task_counts(reading.tasks, steps, normal)
        loops = [step for step in all_steps(steps) if isinstance(step, Each)]
        if not tasks and _is_one_block(reading, launched) and any(loop.totals for loop in loops):
            tasks = (Task(walk.numbered_name("only", set(normal.types) | set(normal.ids)), c.Number("1", 1)),)
        again = "the loop stores only what an earlier loop has stored"
        notes = [f"line {loop.line}: {again}" for loop in loops if loop.again]
        accesses = collect_accesses(steps, normal.arrays)
        facts = facts_of(loops, self._source, launched.aliases, tuple(normal.arrays))
        return KernelModel(
            self._source, self._function, tasks, steps, reading.team, reading.lanes, reading.staged, accesses,
            self._bound, reading.barriers, (*reading.notes, *notes), reading.apart or (reading.reach,),
            reading.facts + facts,
        )  # fmt: skip

    def _normal(self) -> tuple[Normal, LaunchTerms]:
        function = self._function
        names = tuple(p.name for p in function.parameters)
        tidy = tidy_statements(function.body, self._source, function.parameters)
        body = with_versions(with_guarded_turns(tidy))
        pointers = (p for p in function.parameters if p.type.is_pointer)
        in_shared = frozenset(p.name for p in pointers if p.type.space == "local")
        launch = launch_terms(self._problem, names)
        body = fold_statements(substitute(in_elements(function, body, launch), launch.single))
        if self.without_sure_tests:
            body = turned_once(body, launch)
        normal = normal_form(body, function, in_shared, self._problem.kernel.language)
        if self.without_sure_tests:
            normal = replace(normal, body=passed_by_all(normal, launch))
        normal = replace(normal, functions=self._source.functions)
        check_own_memory(normal)
        check_sizes_stay(normal.body, launch)
        check_pointers(normal, self._source)
        normal = with_totals_in_variables(normal, aliases_of(self._problem, function))
        return with_used_types(normal), launch

    @property
    def _size_ranges(self) -> dict[str, tuple[int, int]]:
        """Of the sizes, by the contract."""
        return {rule.name: rule.span for rule in self._problem.contract.sizes}

    def _with_rows(
        self, kernel: geometry.LaunchedKernel
    ) -> tuple[geometry.LaunchedKernel, KernelReading] | None:
        """Rows in shared memory that all threads of a block read: loaded by each."""
        found = with_rows_read_again(kernel, self._source, self._size_ranges)
        if found is None:
            return None
        found = replace(found, loops=geometry.strided_loops(found.normal, kernel.scenarios[-1]))
        shared, said = kernel.normal.shared, "every place of '{}' that is read was filled before"
        rows = sorted(shared.keys() - found.normal.shared.keys())
        facts = tuple(Fact(said.format(row), "proved", f"line {shared[row].line}") for row in rows)
        try:
            return found, replace(self._read(found), facts=facts)
        except OutOfReach:
            return None

    def _with_tiles(self, kernel: geometry.LaunchedKernel, before: OutOfReach) -> KernelReading:
        """Threads that fill tiles for each other; `before`: why they were not read otherwise."""
        try:
            flat, facts = read_boxes(kernel, self._source)
            reading = flat_reading(flat, kernel.normal, kernel.aliases, "")
        except OutOfReach as stop:
            raise OutOfReach(f"{before.reason}; as tiles: {stop.reason}", before.line or stop.line) from None
        return replace(reading, facts=(*facts, *reading.facts))

    def _read(self, kernel: geometry.LaunchedKernel) -> KernelReading:
        normal, loops, aliases = kernel.normal, kernel.loops, kernel.aliases
        together = find_cooperative_call(normal.body) is not None or bool(normal.shared)
        if together or any(loop.role == "element" for loop in loops.values()):
            return read_teams(kernel, self._problem.kernel.language)
        parts = [FlatReader(replace(kernel, normal=part)).read() for part in loops_apart(normal, loops)]
        if parts and not any(part.tasks for part in parts):
            readings = [flat_reading(part, normal, aliases, "") for part in parts]
            return replace(
                readings[0],
                steps=tuple(step for reading in readings for step in reading.steps),
                notes=tuple(dict.fromkeys(note for reading in readings for note in reading.notes)),
                reach=tuple(reach for reading in readings for reach in reading.reach),
                apart=tuple(reading.reach for reading in readings),
            )
        launches = every_scenario(self._problem, kernel.launch.parameters)
        rules, program = self._problem.contract.sizes, Program.of(self._source)
        flat = with_rows_as_tasks(FlatReader(kernel).read(), kernel, program, rules, launches)
        if not looks_like_rows(flat, normal):
            return flat_reading(with_blocks_as_tasks(flat, kernel), normal, aliases, "")
        try:
            reading = self._rows(kernel)
            check_exchange(reading.steps, normal.arrays, aliases, has_barriers=False)
            return reading
        except OutOfReach as stop:
            return flat_reading(flat, normal, aliases, stop.reason)

    def _rows(self, kernel: geometry.LaunchedKernel) -> KernelReading:
        """A thread to each row; an online softmax is tried as two passes."""
        try:
            return read_rows(kernel)
        except OutOfReach:
            maximum = "fmax" if self._problem.kernel.language == "opencl" else "fmaxf"
            apart = with_two_passes(kernel.normal, maximum)
            if apart is None:
                raise
        loops = geometry.strided_loops(apart, kernel.scenarios[-1])
        reading = read_rows(replace(kernel, normal=apart, loops=loops))
        note = "the maximum and the sum of exponentials, found in one pass, are read as two loops"
        return replace(reading, notes=(*reading.notes, note))
