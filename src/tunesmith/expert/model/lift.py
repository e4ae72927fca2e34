"""From a problem's kernel to what it computes: `lift`."""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.core.problem import Problem
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.inline import COLLECTIVE, Inlined, inline, touches
from tunesmith.csource.nodes import Call, Expr, Function, Language, Opaque, Source, Unreadable, Verbatim
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.specialise import bind
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_known
from tunesmith.csource.walk import calls_in, children, declared_in, expressions_in, nodes_in, statements_in
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
from tunesmith.expert.model.teams import read_rows, read_teams
from tunesmith.expert.model.tidy import tidy
from tunesmith.expert.model.wrap_up import (
    aliases_of,
    check_own_memory,
    flat_reading,
    kernel_of,
    looks_like_rows,
    multiples,
)


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


_THREADS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "cooperative_groups", "asm", "__asm__"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.>])([A-Za-z_][\w:]*)\s*(?:<[\w\s,:*]*>)?\s*\(")
_METHOD = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*\s*\(|[)}\]]\s*\(")  # v.go(), R{}(), f()()
_SYNTAX = frozenset({
    "if", "for", "while", "switch", "return", "sizeof", "decltype", "operator", "alignof", "constexpr",
    "static_assert", "__attribute__", "static_cast", "reinterpret_cast", "const_cast", "dynamic_cast",
})  # fmt: skip
_PLAIN_TYPE = re.compile(
    r"(unsigned|signed|u?int|u?char|u?short|u?long|float|double|half|bool|size_t|dim)\d*(_t)?"
)
_NO_TEXT = "whose text is not in the file"


def check_in_sight(inlined: Inlined, source: Source) -> None:
    """Raises Unreadable, with the line, where something hidden may depend on threads."""
    look = _Look(inlined, source)
    for stmt in statements_in(inlined.function.body):
        reason = look.of_text(stmt.text) if isinstance(stmt, Verbatim) else ""
        for part in children(stmt):
            for node in expressions_in(part) if isinstance(part, Expr) else ():
                if isinstance(node, Call):
                    reason = reason or look.of_call(node)
                elif isinstance(node, Opaque):
                    reason = reason or look.of_text(node.text)
        if reason:
            raise Unreadable(f"line {stmt.line}: {reason}", stmt.line)


class _Look:
    def __init__(self, inlined: Inlined, source: Source) -> None:
        self._source = source
        self._variables = frozenset(declared_in(inlined.function.body))
        self._notes: dict[str, str] = {}
        for note in inlined.notes:  # "line 5: f stays a call: why"
            said = note.partition(": ")[2]
            self._notes.setdefault(said.split(" ", 1)[0], said)
        self._seen: dict[int, str] = {}
        self._types = {alias for alias, _ in source.aliases}
        self._types |= {p.name for f in source.functions for p in f.template}

    def of_call(self, call: Call) -> str:
        reason = self._of_name(call.function)
        for word in (word for text in call.template_args for word in _WORD.findall(text)):
            reason = reason or next((self._of_function(f) for f in self._own(word)), "")
        return reason

    def _own(self, name: str) -> list[Function]:
        return [f for f in self._source.functions if f.name == name and not f.is_kernel]

    def _of_name(self, name: str) -> str:
        own = self._own(name)
        for function in own:
            reason = self._of_function(function)
            if reason:
                return reason
        if name in self._variables:
            return f"{name}, a variable, is called"
        if own or is_known(name) or self._is_type(name):
            return ""
        unread = next((why for why in self._source.unread if "function" in why), "")
        return f"{name} is called, {_NO_TEXT}" + (f" ({unread})" if unread else "")

    def _of_function(self, function: Function) -> str:
        if id(function) not in self._seen:
            self._seen[id(function)] = ""  # functions that call each other
            what = touches(function, self._source)
            reason = f"{function.name} stays a call, and it {what}" if what else ""
            if what and function.name in self._notes:
                reason = self._notes[function.name]
            for node in nodes_in(function.body):
                if isinstance(node, Opaque):
                    reason = reason or self.of_text(node.text)
            for call in calls_in(function.body):
                reason = reason or self.of_call(call)
            self._seen[id(function)] = reason
        return self._seen[id(function)]

    def of_text(self, text: str) -> str:
        shown = " ".join(text.split())
        shown = f"'{shown if len(shown) <= 60 else shown[:57] + '...'}' is not understood, and"
        touching = _touching(text)
        if touching:
            return f"{shown} it uses {touching}"
        for name in dict.fromkeys(_CALLED.findall(text)):
            reason = "" if name in _SYNTAX else self._of_name(name.split("::")[-1]) and self._of_name(name)
            if reason:
                return f"{shown} {reason}"
        if _METHOD.search(text):  # its text stands in some structure of the file
            touching = next((word for part in self._source.preamble if (word := _touching(part))), "")
            return f"{shown} a structure of the file uses {touching}" if touching else ""
        return ""

    def _is_type(self, name: str) -> bool:
        """Types are called to convert: `T(0)`, `float(x)`, `__half(y)`."""
        base = name.split("<")[0].split("::")[-1]
        if base in self._types or _PLAIN_TYPE.fullmatch(base):
            return True
        named = re.compile(rf"\b(struct|class|union|enum)\b[^;{{]*\b{re.escape(base)}\b")
        return any(named.search(text) for text in self._source.preamble)


def _touching(text: str) -> str:
    words = _WORD.findall(text)
    return next((word for word in words if word in _THREADS or word.startswith(COLLECTIVE)), "")
