"""What a move is: one performance choice made a parameter, or a sentence that says why it cannot be.

Each is a function in the file of its subject, with a place in the list of this package. It looks at the model
and the contract, and where its precondition is proved adds a choice to the draft's schedule. What makes it
worthwhile and which remedies it is follow from its parameter's name and what the move says of the kernel
(`problem/default_rules`); only what holds for one kernel alone is a `prefer` or an answer of the draft. What
a choice must fulfil to be legal the writer states beside the code that relies on it. A move never changes
what is computed: the writer prints the choice, the search decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, get_args

from tunesmith import backends
from tunesmith.backends.port import TuningFlags
from tunesmith.expert.read.model import (
    Each,
    KernelModel,
    Let,
    Once,
    ParameterChoice,
    Schedule,
    TemplateDraft,
    all_steps,
)
from tunesmith.expert.write.fast_math import FastMath, known_types, used_functions
from tunesmith.expert.write.given import Names, Pairs, Sizes, Unwritable, add_distinct_conditions
from tunesmith.expert.write.packs import Pack
from tunesmith.expert.write.plan import WritingPlan, make_plan
from tunesmith.expert.write.rules import structural_rules
from tunesmith.expert.write.sites import Independence, Run, extent_of, gather_independent_loops, length_of_all
from tunesmith.expert.write.sites import find_loop_runs as find_runs
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.template import Remedy
from tunesmith.source.printing import print_expr
from tunesmith.source.tree import Assign, Binary, For, Number
from tunesmith.source.types import byte_size, integer_type, is_integer
from tunesmith.source.walk import declared_in, names_in, nodes_in
from tunesmith.space.expr import Expr as SizeExpr
from tunesmith.space.expr import Node, Undefined, parse_expr, unparse


class Noted(Protocol):
    """A draft: its choices can be told what they are."""

    def noted(self, notes: Mapping[str, str]) -> Self: ...


AnyDraft = TypeVar("AnyDraft", bound=Noted)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Context:
    """What a move may know beside the kernel: the contract, and the limits of the device."""

    problem: Problem
    device: Device
    number: str = ""  # of the kernel in a call that has several: its parameters end with it

    @property
    def language(self) -> str:
        return self.problem.kernel.language

    @property
    def flags(self) -> TuningFlags:
        """Of the backend that runs the kernel's language."""
        kind = backends.kind_for(self.language)
        return kind.flags if kind is not None else TuningFlags()

    @property
    def on_cpu(self) -> bool:
        return self.device.kind == "cpu"

    @cached_property
    def taken(self) -> frozenset[str]:
        """Words that a macro must not replace."""
        problem = self.problem
        texts = (problem.kernel.text, *(text for _, text in problem.kernel.headers))
        words = {word for text in texts for word in _WORD.findall(text)}
        words |= {argument.name for argument in problem.arguments}
        return frozenset(words.union(problem.size_names, (name for name, _ in problem.kernel.defines)))

    def macro(self, name: str) -> str:
        """The name for a parameter: its own, unless the source or the problem means something else by it."""
        name = f"{name}_{self.number}" if self.number else name
        while name in self.taken:
            name += "_"
        return name


Turn = Literal["sharing", "seldom", "anywhere", "afterwards", "compiler"]
TURNS: tuple[Turn, ...] = get_args(Turn)


@dataclass(frozen=True)
class Move(Generic[AnyDraft]):
    """On the model of a kernel (`TemplateDraft`), or on its text (`LocalDraft`)."""

    name: str
    needs: str  # its precondition, in words; of a move on the text: where it is refused
    remedies: tuple[Remedy, ...]  # what it can answer; which of them a template does is in its `answers`
    # When it is tried with nothing else known: at once, because such values hang together; soon, since it
    # seldom applies and pays where it does; later; in no first round, since it remedies what sharing the work
    # may have remedied by then; last, since it costs a build for every size or only guides the compiler.
    turn: Turn
    parameters: tuple[tuple[str, str], ...]  # its choices by name, each with what it says
    function: Callable[..., AnyDraft | str]
    # Where it would act: arrays, loops with their lines, sizes; "" for the kernel as a whole.
    places: Callable[[Any, Context], str]
    stays_open: bool  # what is best here shifts with every other move
    of_file: bool = False  # it acts on the whole file, or its build: once for all kernels of a call

    def apply(self, draft: AnyDraft, context: Context) -> AnyDraft | str:
        """The draft with the move's choice; or why it does not apply, in words."""
        notes = {context.macro(name): note for name, note in self.parameters}
        changed = self.function(draft, context, *notes)
        return changed if isinstance(changed, str) else changed.noted(notes)

    @property
    def about(self) -> str:
        """What it does, in one sentence: the first paragraph of its docstring."""
        first = (self.function.__doc__ or "").strip().split("\n\n")[0]
        return " ".join(first.split())


def define_move(
    name: str,
    *,
    needs: str,
    turn: Turn,
    remedies: tuple[Remedy, ...],
    places: Callable[[Any, Context], str] = lambda _draft, _context: "",
    stays_open: bool = False,
    of_file: bool = False,
    **parameters: str,
) -> Callable[[Callable[..., AnyDraft | str]], Move[AnyDraft]]:
    """Makes a move of a function of the draft, the context, and the names of its parameters.

    `parameters` are its choices, with what each says, before `Context.macro` makes them unlike the source's
    words."""
    listed = tuple(parameters.items())
    return lambda function: Move(name, needs, remedies, turn, listed, function, places, stays_open, of_file)


def extend_draft(
    draft: TemplateDraft,
    move: str,
    choice: ParameterChoice | Mapping[str, ParameterChoice],
    prefer: Pairs = (),
    answers: Pairs = (),
    **facts: str | int,
) -> TemplateDraft:
    """The draft with a move's choice, or several by role, and what it tells of the kernel."""
    choices = {move: choice} if isinstance(choice, ParameterChoice) else choice
    return replace(
        with_kernel_facts(draft, **facts),
        schedule=draft.schedule.having(**choices),
        prefer=add_distinct_conditions(draft.prefer, prefer),
        answers=merge_answers(draft.answers, answers),
        moves=(*draft.moves, move),
    )


def with_kernel_facts(draft: TemplateDraft, **facts: str | int) -> TemplateDraft:
    """With what the usual rules have to know of the kernel (`problem/default_rules`); "" is not known."""
    known = {name: str(fact) for name, fact in facts.items() if fact != ""}
    return replace(draft, shape=tuple({**dict(draft.shape), **known}.items()))


def parameter_product(schedule: Schedule, *roles: str) -> str:
    """Of parameters, as text; what is no parameter counts as 1."""
    return " * ".join(schedule[role].name for role in roles if role in schedule) or "1"


def merge_answers(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """A remedy that several moves answer is there where one of them is."""
    found = dict(have)
    for name, text in more:
        name = str(name)
        before = found.get(name)
        found[name] = text if before is None or before == text else f"{before} or {text}"
    return tuple(found.items())


def element_loops(kernel: KernelModel) -> tuple[Each, ...]:
    return tuple(step for step in all_steps(kernel.steps) if isinstance(step, Each))


def is_map(kernel: KernelModel) -> bool:
    """Whether every element stands alone: nothing is totalled or handed from loop to loop."""
    return not kernel.staged and not any(loop.totals for loop in element_loops(kernel))


def has_sums(kernel: KernelModel) -> bool:
    """Whether floats are added up: in another order they give another sum."""
    totals = [total for loop in element_loops(kernel) for total in loop.totals]
    return any(total.operator == "+" and not is_integer(total.type) for total in totals)


@dataclass(frozen=True)
class LoopShape:
    """Each tuple of numbers has one for every workload; it is empty where the contract does not say."""

    extent: str  # of the longest loop, as text of the template file; "" where unknown
    beside: str  # the same where loops run side by side; "" where none can
    extents: tuple[int, ...]
    tasks: str  # how many there are
    threads: tuple[int, ...]  # of a block today
    lanes: int  # threads to a task today, at the workload where there are most


def shape_of(draft: TemplateDraft, context: Context) -> LoopShape:
    kernel, problem = draft.kernel, context.problem
    sizes = Sizes.of(kernel, problem)
    nodes = [sizes.node(extent_of(loop)) for loop in element_loops(kernel)]
    known = tuple(dict.fromkeys(node for node in nodes if node is not None))
    extent, together = _max_text(known), ""
    if "beside" in draft.schedule:
        runs = runs_of(kernel, context)
        lengths = [length_of_all(run) for run in runs]
        rest = [loop.stop for loop in element_loops(kernel) if not any(loop in run for run in runs)]
        joint = tuple(dict.fromkeys(n for e in (*lengths, *rest) if (n := sizes.node(e)) is not None))
        together = _max_text(joint)
        known = tuple(dict.fromkeys((*joint, *known)))
    tasks = [parse_expr(task.size).tree if task.size else sizes.node(task.extent) for task in kernel.tasks]
    counts = [node for node in tasks if node is not None]
    whole = len(counts) == len(tasks)
    threads = _at_workloads(tuple(e.tree for e in problem.launches[0].block), context, prod)
    texts = [unparse(node) for node in counts] if whole else []
    return LoopShape(
        extent=extent,
        beside=together,
        extents=_at_workloads(known, context, max) if known else (),
        tasks=" * ".join(text if text.isidentifier() else f"({text})" for text in texts),
        threads=threads,
        lanes=_original_lanes(kernel, sizes, context, threads),
    )


def _max_text(nodes: Sequence[Node]) -> str:
    texts = tuple(dict.fromkeys(unparse(node) for node in nodes))
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})" if texts else ""


def runs_of(kernel: KernelModel, context: Context) -> tuple[Run, ...]:
    """Loops that may run side by side."""
    rules = Independence.of(kernel, context.problem)
    return find_runs(gather_independent_loops(kernel.steps, rules), rules)


def _original_lanes(kernel: KernelModel, sizes: Sizes, context: Context, threads: tuple[int, ...]) -> int:
    if kernel.team == "thread":
        return 1
    if kernel.team == "warp":
        return context.device.limits.warp or 32
    if kernel.lanes is not None and (node := sizes.node(kernel.lanes)) is not None:
        found = _at_workloads((node,), context, max)
        if found:
            return max(1, *found)
    return max(threads, default=128)


def _at_workloads(
    nodes: tuple[Node, ...], context: Context, join: Callable[[Iterable[int]], int]
) -> tuple[int, ...]:
    found = []
    for workload in context.problem.workloads:
        values = {**workload.as_dict(), **context.device.limits.names()}
        try:
            found.append(int(join([SizeExpr("", node).evaluate(values) for node in nodes])))
        except Undefined:
            return ()
    return tuple(found)


def nearest_value(values: tuple[int, ...], wanted: int) -> int:
    """The value next to what the original has; of two as near, the larger."""
    return min(values, key=lambda value: (abs(value - wanted), -value))


def is_alone(kernel: KernelModel) -> bool:
    """Whether there is one task in all, so that no team has another beside it or after it."""
    ends = [task.extent for task in kernel.tasks]
    return bool(ends) and all(isinstance(end, Number) and end.value == 1 for end in ends)


def named_lines(lines: Iterable[int]) -> str:
    found = sorted({line for line in lines if line})
    return f"line{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}" if found else ""


def named_loops(found: Iterable[Each]) -> str:
    named = [f"{each.index} below {print_expr(each.stop)} (line {each.line})" for each in found]
    return f"loop{'s' if len(named) > 1 else ''} over {', '.join(named)}" if named else ""


def all_loops(draft: TemplateDraft, _context: Context) -> str:
    return named_loops(element_loops(draft.kernel))


def named_tasks(draft: TemplateDraft, _context: Context) -> str:
    tasks = " and ".join(f"{t.name} below {t.size or print_expr(t.extent)}" for t in draft.kernel.tasks)
    return f"a task is one {tasks}" if tasks else ""


def named_arrays(names: Iterable[str]) -> str:
    return f"arrays {', '.join(dict.fromkeys(names))}"


def inner_loops(kernel: KernelModel) -> tuple[For, ...]:
    bodies = [step.body for step in all_steps(kernel.steps) if isinstance(step, Each | Let | Once)]
    return tuple(node for body in bodies for node in nodes_in(body) if isinstance(node, For))


@dataclass(frozen=True)
class FastForms:
    """What the writer would put behind macros: nothing where it would change nothing."""

    functions: tuple[str, ...]  # called, that have a fast form; quotients count as one
    by_invariants: int  # quotients by what is the same for a whole loop


def fast_forms(kernel: KernelModel, language: str) -> FastForms:
    """As the writer finds them: in the steps, and in helper functions that they may call."""
    functions = tuple(f for f in kernel.source.functions if not f.template)
    fast = FastMath(language, Names(()), "FAST", "", functions)
    reciprocal = FastMath(language, Names(()), "", "RECIP", functions)
    types, count = known_types(kernel), 0
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Let | Once):
            varying = frozenset((step.index,)) if isinstance(step, Each) else None
            fast.statements(step.body, types, varying)
            count += len(reciprocal.statements(step.body, types, varying)[1])
    for function in used_functions(kernel):
        fast.statements(function.body, {p.name: p.type for p in function.parameters})
    return FastForms(tuple(sorted(name.lower() for name in fast.all_names if name)), count)


def index_divisions(kernel: KernelModel) -> int:
    """Divisions and remainders of integers in loops, by something that is no constant and does not vary."""
    types = {name: type_ for name, type_ in known_types(kernel).items() if type_ is not None}
    found: set[Binary] = set()
    for loop in element_loops(kernel):
        varying = {loop.index, *declared_in(loop.body)}
        for node in nodes_in(loop.body):
            division = Binary(node.op[0], node.target, node.value) if isinstance(node, Assign) else node
            if not isinstance(division, Binary) or division.op not in ("/", "%"):
                continue
            by_invariant = names_in(division.left) & varying and not names_in(division.right) & varying
            if by_invariant and not isinstance(division.right, Number) and integer_type(division, types):
                found.add(division)
    return len(found)


WIDEST = 16  # bytes of one access
ON_CPU = 64  # of a register of the widest kind
MAX_ACCESSES = 2  # that one pack may take
POWERS = (16, 8, 4, 2)  # elements; the most that are tried first


def try_plan(draft: TemplateDraft, context: Context, **choices: ParameterChoice) -> WritingPlan | str:
    """The writer's plan with these choices as well, or why it has none."""
    try:
        return make_plan(replace(draft, schedule=draft.schedule.having(**choices)), context.problem)
    except Unwritable as error:
        return error.reason


def packs_in(found: WritingPlan) -> tuple[Pack, ...]:
    """Of neighbours in global memory."""
    return tuple(p for loop in found.all_loops for p in loop.packs if p.width and p.array in found.arrays)


def argument_of(array: str, found: WritingPlan) -> Argument:
    """The problem's argument behind a parameter: by its place in the launch, whatever it is called."""
    names = [parameter.name for parameter in found.kernel.function.parameters]
    return found.problem.argument(found.problem.launches[0].args[names.index(array)])


def element_bytes(pack: Pack, found: WritingPlan) -> int | None:
    """Of one element: the array's own type, or what its pointer is cast to."""
    if pack.element is not None:
        return byte_size(pack.element.base)
    for staged in found.kernel.staged:
        if staged.name == pack.array:
            return byte_size(staged.type.base)
    size = byte_size(found.arrays[pack.array].base)
    return size if size is not None else argument_of(pack.array, found).element.bytes


def index_bytes(pack: Pack, found: WritingPlan) -> int:
    """Of one index of the loop: the elements it has of this array."""
    return (element_bytes(pack, found) or 4) * max(1, pack.width)


def kept_bytes(found: WritingPlan) -> int:
    """That a thread keeps for one index of a row."""
    return sum(index_bytes(pack, found) for loop in found.all_loops for pack in loop.opens)


def loaded_bytes(draft: TemplateDraft, context: Context) -> int:
    """Bytes that one index of the busiest loop loads in packs; 0 where it loads none so."""
    found = try_plan(draft, context, items=ParameterChoice("ITEMS", (1, 2), 1))
    if isinstance(found, str):
        return 0
    loads = [[pack for pack in loop.packs if pack.loads and pack.width] for loop in found.all_loops]
    return max((sum(index_bytes(pack, found) for pack in packs) for packs in loads), default=0)


def widest_vector(draft: TemplateDraft, context: Context, name: str) -> tuple[int, WritingPlan] | str:
    """The largest VEC that is of use and the plan for it, or why there is none.

    An access has 16 bytes at most and as many as its array is aligned to; a pack of more takes several. One
    pack at least must gain by it, and none may need more than two accesses."""
    why = ""
    for most in POWERS:
        found = try_plan(draft, context, vector=ParameterChoice(name, (1, most), 1))
        if isinstance(found, str):
            why = why or found
            continue
        packs = packs_in(found)
        if packs and not (why := _width_fault(most, packs, found, ON_CPU if context.on_cpu else WIDEST)):
            return most, found
    return why or _why_unpacked(draft)


def rules_of_sizes(draft: TemplateDraft, context: Context, vector: ParameterChoice) -> list[str]:
    """What the written kernel requires of sizes and the vector alone."""
    known = {vector.name, *context.problem.size_names}
    return [text for _, text in structural_rules(draft, context.problem) if parse_expr(text).names <= known]


def _width_fault(most: int, packs: tuple[Pack, ...], found: WritingPlan, widest: int) -> str:
    """Why packs of that many indices are too wide; "" where they are not."""
    gains, why = False, ""
    for pack in packs:
        size, argument = element_bytes(pack, found), argument_of(pack.array, found)
        if size is None:
            return f"how large an element of {pack.array} is, is not known"
        pack_bytes = size * pack.width
        if pack_bytes * most > MAX_ACCESSES * widest:
            accessed = f"{pack.array} is accessed {pack_bytes} bytes at once already"
            return f"{accessed}, of {widest} that one access has"
        # OpenCL's vloadn takes the address of any element.
        align = widest if found.language == "opencl" else found.element_align[pack.array]
        if pack_bytes * most <= min(widest, align):
            gains = True
        elif align < 2 * pack_bytes <= widest:
            why = (
                f"{argument.name} is promised at multiples of {align} bytes only: say align = {widest} in "
                "the problem file if callers give that"
            )
        else:
            why = why or f"{argument.name} is accessed {pack_bytes} bytes at once already, of {widest}"
    return "" if gains else why


def _why_unpacked(draft: TemplateDraft) -> str:
    """Nothing is a pack: which accesses stand in the way, as the reading has them."""
    loose = [a for a in draft.kernel.accesses if a.loop and a.stride != 0]
    far = next((a for a in loose if a.stride is None or a.stride > 1), None)
    if far is not None:
        apart = f"{far.stride} elements" if far.stride is not None else "no fixed number of elements"
        return f"{far.array} moves by {apart} from one index to the next (line {far.line})"
    return "no access to neighbours happens in every turn of its loop"
