"""What a kernel computes, apart from how its threads share the work.

A kernel is read as *tasks* that do not depend on each other (a row, a token and head, a group), each worked
on by a *team* of threads today (a block, a warp, a part of a warp, one thread). What a team does for its task
is a list of *steps*. The heart is `Each`: a loop over elements whose order does not matter, spread over the
team, perhaps with totals (sums, maxima) that every member knows afterwards. How many threads a team has, how
many elements one takes at once, whether a row is kept in registers: none of that is in the steps. It is in
the `Schedule`, which moves fill in with parameters, and from which the writer prints.

    token < tokens:                                    Task("token", extent tokens)
        Each i in 0 .. d: sum += x * x                 totals: sum
        Let scale = rsqrtf(sum / d + eps)              the same for the whole team
        Each i in 0 .. d: out[token * d + i] = ...

Inside steps every access to global memory is an `Index` on a kernel parameter's name, with pointer arithmetic
folded in; every name is a parameter, a task's index, a loop's own index, or defined by an earlier step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, Program, effects_of
from tunesmith.source.substitution import rename_variables, substitute
from tunesmith.source.tree import Declare, Expr, Function, Name, Source, Stmt, Type, Unreadable
from tunesmith.source.types import is_integer
from tunesmith.source.walk import declared_in, names_in

# On the model; what different threads of the kernel do with no order between them already; the problem file.
Ground = Literal["proved", "the kernel's own", "the contract's word"]


@dataclass(frozen=True)
class Fact:
    what: str
    ground: Ground
    where: str  # the line or the promise that it comes from


def order_free(line: int, *, shared: bool) -> Fact:
    """That a loop's turns may come in any order; `shared`: different threads take them today."""
    ground: Ground = "the kernel's own" if shared else "proved"
    return Fact("the turns of a loop may come in any order", ground, f"line {line}")


def facts_of(
    loops: Sequence[Each], source: Source, aliases: Mapping[str, str], arrays: Sequence[str]
) -> tuple[Fact, ...]:
    """Everything that a reading relies on, once each, in the order of the steps."""
    return tuple(dict.fromkeys([*_of_loops(loops, source), *_of_memory(aliases, arrays)]))


def _of_loops(loops: Sequence[Each], source: Source) -> Iterator[Fact]:
    program = Program.of(source)
    for loop in loops:
        where = f"line {loop.line}"
        if loop.order is not None:
            yield loop.order
        for total in loop.totals:
            what = f"'{total.name}' may be joined in another order"
            exact = is_integer(total.type) or total.operator in ("max", "min")
            yield Fact(what, "proved" if exact else "the contract's word", where if exact else "[accuracy]")
        if effects_of(loop.body, program) & Effects.STOPS:
            yield Fact("the kernel does not stop itself", "the contract's word", where)
        if loop.again:
            yield Fact("every element it stores has been stored before", "proved", where)


def _of_memory(aliases: Mapping[str, str], arrays: Sequence[str]) -> Iterator[Fact]:
    for array, other in aliases.items():
        yield Fact(f"'{array}' is the same memory as '{other}'", "the contract's word", "alias")
    apart = [array for array in arrays if array not in aliases]
    if len(apart) > 1:
        yield Fact(f"{', '.join(apart)} do not overlap", "the contract's word", "no alias")


# -- Launches that overlap: where a kernel waits for the one ahead of it, and where it lets the next one
# start.
#
# Letting the next one start is a hint: without it that happens when the kernel ends. Waiting is kept, first
# of
# all, where the launch says that it overlaps (`pdl`); elsewhere there is nothing to wait for. What is left
# out
# is said.


WAIT = "cudaGridDependencySynchronize"
START = "cudaTriggerProgrammaticLaunchCompletion"
_ENDS = "that the launch behind may start is not kept: it starts when this one ends"
_NO_WAIT = (
    "the wait is not kept: the launch does not say `pdl`, so that it starts when the one ahead has ended"
)


@dataclass(frozen=True)
class LaunchOrder:
    """How a kernel that is written keeps the order of a call whose launches may overlap."""

    waits_if: str = ""  # a macro: with it the launch may start before the one ahead of it has ended
    starts_if: str = ""  # a condition on macros: the launch behind it may start early
    handed: frozenset[str] = frozenset()  # arrays it may not touch before launches ahead of it have ended


IN_TURN = LaunchOrder()  # no launch starts before the one ahead of it has ended


def handed_to(function: c.Function, overlaps: bool) -> LaunchOrder:
    """Of a kernel whose own launch overlaps: a launch ahead that nobody here knows may still be under way."""
    if not overlaps:
        return IN_TURN
    return LaunchOrder(handed=frozenset(p.name for p in function.parameters if p.type.is_pointer))


def without_waits(function: c.Function, overlaps: bool) -> tuple[c.Function, bool, tuple[str, ...]]:
    """The kernel without either, whether it has to wait before all else, and what is left out, in words.
    Raises Unreadable."""
    waits = False
    touched = False
    for stmt in function.body:
        if _is_call(stmt, WAIT):
            if overlaps and touched:
                raise c.Unreadable("memory is touched before the launch ahead has ended", stmt.line)
            waits = True
        elif overlaps and any(_is_call(part, WAIT) for part in walk.statements_in((stmt,))):
            raise c.Unreadable("it waits for the launch ahead in a branch or a loop", stmt.line)
        touched = touched or bool(effects_of(stmt) & (Effects.READS | Effects.WRITES | Effects.UNKNOWN))
    ours = (c.Call(WAIT), c.Call(START))
    body = walk.map_statements(
        function.body, on_stmt=lambda s: () if isinstance(s, c.Evaluate) and s.expr in ours else s
    )
    notes = [
        f"line {stmt.line}: {_ENDS if _is_call(stmt, START) else _NO_WAIT}"
        for stmt in walk.statements_in(function.body)
        if _is_call(stmt, START) or (_is_call(stmt, WAIT) and not overlaps)
    ]
    return replace(function, body=body), waits and overlaps, tuple(dict.fromkeys(notes))


def _is_call(stmt: c.Stmt, name: str) -> bool:
    return isinstance(stmt, c.Evaluate) and stmt.expr == c.Call(name)


class OutOfReach(Unreadable):
    """The kernel cannot be read as tasks and steps; caught by `lift`, which makes a `NotReadable` of it."""

    @classmethod
    def at(cls, line: int, reason: str) -> OutOfReach:
        return cls(f"line {line}: {reason}", line)


@dataclass(frozen=True)
class Reach:
    """An index that the source bounds: the launch must come to every value below the bound.

    `count` is how many values it comes to, over gridDim and blockDim. Where a loop `goes_on` by as many,
    these are only the values it starts from."""

    name: str
    bound: Expr
    count: Expr
    goes_on: bool = False


Operator = Literal["+", "*", "max", "min", "&", "|", "^"]
JOINING: Mapping[str, Operator] = {"+": "+", "*": "*", "&": "&", "|": "|", "^": "^"}  # those of C itself


@dataclass(frozen=True)
class Task:
    """One index of the independent pieces of work: 0 <= name < extent. `extent` is over kernel parameters.

    Where no parameter tells it, `extent` is over the names gridDim.* (and blockDim.*) of today's launch;
    `size` is the same over the problem's sizes, for a launch: "" where it has no such expression. `count` is
    the steps' name for such an extent, "" where they do not ask for it."""

    name: str
    extent: Expr
    type: str = "int"
    size: str = ""
    count: str = ""


@dataclass(frozen=True)
class Total:
    """A value combined over all elements of a loop, known to the whole team afterwards.

    The loop's body combines it as the source does (`sum += x * x`, `m = fmaxf(m, x)`), thread by thread.
    `start` is what every thread begins with: an identity of the operator, or for maxima and minima any value
    that is the same for the whole team. `combine` is the function that joins two; "": the operator does."""

    name: str
    type: Type
    operator: Operator
    start: Expr
    combine: str = ""


@dataclass(frozen=True)
class Each:
    """For every index in start <= index < stop, in any order, once: the body.

    It reads what it does not write or, in place, the very elements it writes in the same turn. Arrays of the
    kernel's `staged` live between loops over the same range: a later one may read what an earlier one wrote.
    """

    index: str
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    totals: tuple[Total, ...] = ()
    type: str = "int"
    # Every element it stores has been stored by an earlier loop of the task: perhaps the same values again.
    # Whether leaving it out is right is the oracle's to say.
    again: bool = False
    line: int = field(default=0, compare=False)
    # That its turns may come in any order, and what that rests on; None: the word of whoever made the model.
    order: Fact | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)  # among all loops, where a plan has counted them


@dataclass(frozen=True)
class Let:
    """Statements whose results are the same for the whole team: every thread may run them. No stores."""

    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Once:
    """Statements with effects on global memory that one thread of the team runs."""

    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class When:
    """A branch that the whole team takes or does not."""

    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Repeat:
    """A loop that the whole team runs in turn: for (index = start; index < stop; index += step)."""

    index: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Step, ...]
    type: str = "int"
    line: int = field(default=0, compare=False)


Step = Each | Let | Once | When | Repeat


@dataclass(frozen=True)
class ElementArray:
    """One value of every element of a task that a loop leaves for a later one, in shared memory today."""

    name: str  # in the bodies: Index(Name(name), Name(index of the loop)), or with a constant second index
    type: Type
    width: int = 1  # values for one element


Team = Literal["grid", "block", "warp", "part of a warp", "thread"]


@dataclass(frozen=True)
class ArrayAccess:
    """One way a parameter's array is touched, for moves and for words."""

    array: str
    kind: Literal["load", "store", "update", "atomic"]
    type: Type  # of what is moved at once: __half, or uint4 through a cast
    index: Expr  # in elements of `type`
    stride: int | None  # elements from one index of the loop to the next; None: not constant
    loop: str = ""  # index of the `Each` it is in; "" outside
    # The stride holds in stretches only, if each of these is a multiple of the stretch (`Stride`).
    within: tuple[Expr, ...] = ()
    offset: Expr | None = None  # of a cast access, in elements of the array's own type, before `index`
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class KernelModel:
    """`function` is the kernel with template arguments bound and helpers that touch memory inlined."""

    source: Source
    function: Function
    tasks: tuple[Task, ...]  # slowest first
    steps: tuple[Step, ...]
    team: Team
    lanes: Expr | None = None  # how many threads a team has today
    staged: tuple[ElementArray, ...] = ()
    accesses: tuple[ArrayAccess, ...] = ()
    bound: tuple[tuple[str, str], ...] = ()  # template parameters -> what the entry binds them to
    barriers: int = 0
    notes: tuple[str, ...] = ()  # what was found on the way, in words with line numbers
    # Where the indices of the launch end, all of them; of several loops over the whole grid each has its own.
    reach: tuple[tuple[Reach, ...], ...] = ()
    facts: tuple[Fact, ...] = ()  # what the reading rests on
    waits: bool = False  # for the launch ahead of it, before all else
    pinned: tuple[tuple[str, int], ...] = ()  # sizes that it is read at, and that a template has to ask for


@dataclass(frozen=True)
class NotReadable:
    """A kernel that could not be read as tasks and steps: only local moves are possible."""

    source: Source
    function: Function | None
    reason: str  # in words, with a line number
    line: int = 0
    others: tuple[str, ...] = ()  # what else stands in the way, with lines and what would have to change


@dataclass(frozen=True)
class ParameterChoice:
    """A parameter of the template to be: a macro with a finite domain."""

    name: str
    values: tuple[int, ...]
    default: int
    note: str = ""
    categorical: bool = False

    def noted(self, notes: Mapping[str, str]) -> ParameterChoice:
        return self if self.note else replace(self, note=notes.get(self.name, ""))


@dataclass(frozen=True)
class Schedule(Mapping[str, ParameterChoice]):
    """What the writer parameterises: choices by their role, in the order in which moves made them.

    Of a role that is not there the writer does what is usual, and prints no parameter. With all defaults a
    printed kernel shares work as the original does, as far as the scheme allows."""

    roles: tuple[tuple[str, ParameterChoice], ...] = ()

    @classmethod
    def of(cls, **choices: ParameterChoice) -> Schedule:
        return cls(tuple(choices.items()))

    def __getitem__(self, role: str) -> ParameterChoice:
        return dict(self.roles)[role]

    def __iter__(self) -> Iterator[str]:
        return (role for role, _ in self.roles)

    def __len__(self) -> int:
        return len(self.roles)

    @property
    def choices(self) -> tuple[ParameterChoice, ...]:
        return tuple(choice for _, choice in self.roles)

    def having(self, **choices: ParameterChoice) -> Schedule:
        """With these as well, or in place of those of the same role."""
        return Schedule(tuple({**dict(self.roles), **choices}.items()))

    def without(self, *roles: str) -> Schedule:
        return Schedule(tuple(pair for pair in self.roles if pair[0] not in roles))


@dataclass(frozen=True)
class TemplateDraft:
    """A template to be written: what is computed, how it may be shared, and what must hold."""

    kernel: KernelModel
    schedule: Schedule = Schedule()
    require: tuple[tuple[str, str], ...] = ()  # name -> expression of the template file
    prefer: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, str], ...] = ()  # remedy -> condition
    shape: tuple[tuple[str, str], ...] = ()  # what the usual rules know of it (`problem/default_rules`)
    moves: tuple[str, ...] = ()  # applied, in order
    hardware: tuple[tuple[str, str], ...] = ()  # helper -> the same as a statement for the device's unit
    in_pairs: tuple[tuple[str, str], ...] = ()  # helper -> the same for two values, {a} and {b}, as one
    build_flags: tuple[str, ...] = ()  # of the template's [build]; "{NAME}" inserts a parameter
    number: str = ""  # of the kernel in a call that has several: its parameters end with it
    order: LaunchOrder = IN_TURN

    def noted(self, notes: Mapping[str, str]) -> TemplateDraft:
        """With words for choices that have none yet, by parameter."""
        found = {role: choice.noted(notes) for role, choice in self.schedule.items()}
        return replace(self, schedule=self.schedule.having(**found))


@dataclass(frozen=True)
class KernelReading:
    """A reading before it is a `KernelModel`: what both ways of reading come to, and what it rests on."""

    tasks: tuple[Task, ...]
    steps: tuple[Step, ...]
    team: Team
    lanes: Expr | None
    staged: tuple[ElementArray, ...] = ()
    barriers: int = 0
    notes: tuple[str, ...] = ()
    reach: tuple[Reach, ...] = ()
    apart: tuple[tuple[Reach, ...], ...] = ()  # `reach` by loop, where each is over the whole grid
    facts: tuple[Fact, ...] = ()  # besides those of its loops


def own_parts(step: Step) -> Iterator[Expr | tuple[Stmt, ...]]:
    """The expressions and statement lists of a step; not those of steps inside it."""
    match step:
        case Each():
            yield step.start
            yield step.stop
            for total in step.totals:
                yield total.start
            yield step.body
        case Let(body=body) | Once(body=body):
            yield body
        case When():
            yield step.condition
        case Repeat():
            yield step.start
            yield step.stop
            yield step.step


def parts_of(step: Step) -> Iterator[Expr | tuple[Stmt, ...]]:
    """The same, and of those inside it."""
    for each in all_steps((step,)):
        yield from own_parts(each)


def names_in_steps(steps: Sequence[Step]) -> frozenset[str]:
    found: set[str] = set()
    for step in steps:
        for part in parts_of(step):
            found |= names_in(part)
    return frozenset(found)


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, When):
            yield from all_steps((*step.then, *step.otherwise))
        elif isinstance(step, Repeat):
            yield from all_steps(step.body)


def step_lists(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """This list of steps, and those of branches and loops in it."""
    yield steps
    for step in steps:
        if isinstance(step, When):
            yield from step_lists(step.then)
            yield from step_lists(step.otherwise)
        elif isinstance(step, Repeat):
            yield from step_lists(step.body)


def map_lists(steps: Sequence[Step], fn: Callable[[list[Step]], Sequence[Step]]) -> tuple[Step, ...]:
    """Every list of steps passed through `fn`, from the inside out."""
    mapped = list[Step]()
    for step in steps:
        if isinstance(step, When):
            step = replace(step, then=map_lists(step.then, fn), otherwise=map_lists(step.otherwise, fn))
        elif isinstance(step, Repeat):
            step = replace(step, body=map_lists(step.body, fn))
        mapped.append(step)
    return tuple(fn(mapped))


def map_steps(steps: Sequence[Step], fn: Callable[[Step], Step | None]) -> tuple[Step, ...]:
    """Steps rebuilt from the inside out, each passed through `fn`; None leaves it out."""
    return map_lists(steps, lambda some: [done for step in some if (done := fn(step)) is not None])


def map_own_parts(
    step: Step, on_expr: Callable[[Expr], Expr], on_body: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> Step:
    """A step with its expressions and statement lists passed through these; not those of steps inside it."""
    match step:
        case Each():
            totals = tuple(replace(total, start=on_expr(total.start)) for total in step.totals)
            start, stop = on_expr(step.start), on_expr(step.stop)
            return replace(step, start=start, stop=stop, totals=totals, body=on_body(step.body))
        case Let(body=body) | Once(body=body):
            return replace(step, body=on_body(body))
        case When():
            return replace(step, condition=on_expr(step.condition))
        case Repeat():
            start, stop = on_expr(step.start), on_expr(step.stop)
            return replace(step, start=start, stop=stop, step=on_expr(step.step))


def with_functions_called(kernel: KernelModel, words: Mapping[str, str]) -> KernelModel:
    """The kernel with other names for functions that its steps call."""

    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, c.Call) and expr.function in words:
            return replace(expr, function=words[expr.function])
        return expr

    def one(step: Step) -> Step:
        step = map_own_parts(
            step, lambda e: walk.map_expr(e, renamed), lambda body: walk.map_nodes(body, renamed)
        )
        if isinstance(step, Each):
            totals = tuple(replace(t, combine=words.get(t.combine, t.combine)) for t in step.totals)
            step = replace(step, totals=totals)
        return step

    return replace(kernel, steps=map_steps(kernel.steps, one))


def substitute_in_steps(steps: Sequence[Step], values: Mapping[str, Expr]) -> tuple[Step, ...]:
    """Names replaced everywhere in the steps; indices of loops must not be among them."""

    def one(step: Step) -> Step:
        return map_own_parts(step, lambda e: substitute(e, values), lambda body: substitute(body, values))

    return map_steps(steps, one)


def without_unused(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Definitions that nothing reads left out, and neighbouring ones put together."""
    current = tuple(steps)
    while True:
        used = names_in_steps(current)
        shorter = map_steps(current, partial(_drop_unused, used=used))
        if shorter == current:
            return map_lists(current, _merge_lets)
        current = shorter


def _drop_unused(step: Step, used: frozenset[str]) -> Step | None:
    if isinstance(step, Let):
        step = replace(step, body=tuple(s for s in step.body if not isinstance(s, Declare) or s.name in used))
    match step:
        case Let(body=()) | When(then=(), otherwise=()):
            return None
    return step


def _merge_lets(steps: Sequence[Step]) -> list[Step]:
    done: list[Step] = []
    for step in steps:
        last = done[-1] if done else None
        if isinstance(step, Let) and isinstance(last, Let):
            done[-1] = replace(last, body=(*last.body, *step.body))
        else:
            done.append(step)
    return done


def renamed_lets(steps: Sequence[Step], names: Mapping[str, str]) -> tuple[Step, ...]:
    """Definitions under other names, where these are not in use yet."""
    parts = [part for step in all_steps(steps) for part in own_parts(step)]
    used = names_in_steps(steps).union(*(declared_in(part) for part in parts))
    free: dict[str, str] = {}
    for old, new in names.items():
        if new not in used and new not in free.values():
            free[old] = new
    values = {old: Name(new) for old, new in free.items()}

    def one(step: Step) -> Step:
        return map_own_parts(step, lambda e: substitute(e, values), lambda body: rename_variables(body, free))

    return map_steps(steps, one) if free else tuple(steps)
