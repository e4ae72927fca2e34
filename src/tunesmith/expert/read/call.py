"""A call as the kernels it launches: each is read as a problem of its own, with its launch alone.

What is known of such a problem is what holds at that launch: its arguments, its grid, the sizes at which it
is made (`when`). An array that one launch writes and a later one reads is written in the first, and only read
in the second: a launch begins when the one ahead of it has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.read.accesses import find_touches
from tunesmith.expert.read.checks import collect_accesses
from tunesmith.expert.read.integers import parameter_values, same_value, to_sizes, without_casts
from tunesmith.expert.read.model import Each, KernelModel, Once, Step, all_steps, map_steps, own_parts
from tunesmith.problem.problem import Argument, Launch, Problem
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.reader.templates import sizes_of_entry
from tunesmith.source.substitution import substitute
from tunesmith.source.types import is_integer
from tunesmith.space.expr import Arithmetic, Expr, Node, Num, RealExpr, parse_expr
from tunesmith.space.space import Constraint


@dataclass(frozen=True)
class CallPart:
    """A kernel of a call, with the launches that run it in the same way but for the names of its arrays."""

    number: str  # from 1 on; "" where the call has no other
    places: tuple[int, ...]  # of its launches in the call
    problem: Problem  # with the first of these launches alone

    @property
    def entry(self) -> str:
        return self.problem.launches[0].entry


CallReading = Sequence[tuple[CallPart, KernelModel | str]]  # its kernels, or why one is not read


def parts_of(problem: Problem) -> tuple[CallPart, ...]:
    """The kernels of a call, in the order of their first launches."""
    if len(problem.launches) < 2:
        return (CallPart("", tuple(range(len(problem.launches))), problem),)
    alike: dict[object, list[int]] = {}
    for place, launch in enumerate(problem.launches):
        alike.setdefault(_launch_reading_key(launch, problem), []).append(place)
    return tuple(
        CallPart(
            str(number) if len(alike) > 1 else "",
            tuple(alike_parts),
            isolate_launch(problem, problem.launches[alike_parts[0]]),
        )
        for number, alike_parts in enumerate(alike.values(), 1)
    )


def isolate_launch(problem: Problem, launch: Launch) -> Problem:
    """The problem with one of its launches, at the sizes at which that is made."""
    when = launch.when
    alone = replace(problem, launches=(launch,))
    if when is None or not when.names <= set(problem.size_names):
        return alone  # made at all sizes, or nobody knows at which: what is to hold everywhere holds there
    contract = replace(alone.contract, require=(*alone.contract.require, Constraint("launched", when)))
    made = tuple(w for w in problem.workloads if when.holds(w.as_dict()))
    return replace(alone, contract=contract, workloads=made)


def _launch_reading_key(launch: Launch, problem: Problem) -> object:
    """What a reading of the launch may depend on; arrays count by their places, not by their names."""
    arguments = {argument.name: argument for argument in problem.arguments}
    passed = [arguments[name] for name in launch.args]
    roots = [memory_of(argument, problem) for argument in passed]
    how = (launch.grid, launch.block, launch.cluster, (launch.shared, launch.when))
    texts = tuple(tuple(_expr_text(expr) for expr in exprs) for exprs in how)
    given = tuple(
        _argument_reading_key(argument, roots.index(root))
        for argument, root in zip(passed, roots, strict=True)
    )
    return launch.entry, texts, launch.cooperative, launch.pdl, given


def memory_of(argument: Argument, problem: Problem) -> str:
    """The array whose memory it is."""
    arguments = {one.name: one for one in problem.arguments}
    seen: list[str] = []
    while argument.alias is not None and argument.name not in seen:
        seen.append(argument.name)
        argument = arguments.get(argument.alias, replace(argument, alias=None))
    return argument.name


def _argument_reading_key(argument: Argument, memory: int) -> object:
    shape, strides = (tuple(map(_expr_text, exprs)) for exprs in (argument.shape, argument.strides))
    value = argument.value if isinstance(argument.value, float) else _expr_text(argument.value)
    kind = "array" if argument.is_array else argument.role
    place = memory if argument.is_array else None
    return argument.type, kind, shape, strides, value, argument.align, argument.alias is None, place


def _expr_text(expr: Expr | RealExpr | None) -> str | None:
    return None if expr is None else expr.text


def passed_twice(launch: Launch, problem: Problem) -> str | None:
    """An array that a launch passes more than once: by two names, which nobody says are one."""
    arrays = [name for name in launch.args if problem.argument(name).is_array]
    return next((name for name in arrays if arrays.count(name) > 1), None)


def with_handed(problem: Problem) -> Problem:
    """Of a single launch that overlaps: a launch ahead of the call may still be writing any array."""
    if not problem.launches[0].pdl:
        return problem
    changed = tuple(replace(a, role="inout") if a.is_array else a for a in problem.arguments)
    return replace(problem, arguments=changed)


def with_own_roles(problem: Problem, kernel: KernelModel, handed: Collection[str] = ()) -> Problem:
    """With every array that this launch leaves alone as its input, whatever other launches do to it.

    Not so what is `handed` to it by a launch that may still be under way when it starts."""
    parameters = [parameter.name for parameter in kernel.function.parameters]
    stored = {access.array for access in kernel.accesses if access.kind != "load"}
    by_argument = dict(zip(problem.launches[0].args, parameters, strict=False))
    only_read = [name for name, parameter in by_argument.items() if parameter not in stored]

    def with_role(argument: Argument) -> Argument:
        if argument.is_array and argument.name in handed:
            return replace(argument, role="inout")
        return (
            replace(argument, role="input") if argument.is_array and argument.name in only_read else argument
        )

    return replace(problem, arguments=tuple(map(with_role, problem.arguments)))


def handed_on(problem: Problem, reading: CallReading) -> list[str]:
    """Arrays that a launch leaves for a later one, in words; as far as both are read."""
    touched: list[tuple[str, set[str], set[str]]] = []  # of each launch: its entry, what it writes, and reads
    by_place = {place: kernel for part, kernel in reading for place in part.places}
    for place, launch in enumerate(problem.launches):
        kernel = by_place[place]
        if isinstance(kernel, str):
            touched.append((launch.entry, set(), set()))
            continue
        names = {p.name: arg for p, arg in zip(kernel.function.parameters, launch.args, strict=False)}
        uses = [(names[a.array], a.kind) for a in kernel.accesses if a.array in names]
        written = {name for name, kind in uses if kind != "load"}
        touched.append((launch.entry, written, {name for name, kind in uses if kind != "store"}))
    lines = []
    for at, (entry, _, wanted) in enumerate(touched):
        for name in sorted(wanted):
            before = [other for other, written, _ in touched[:at] if name in written]
            if before:
                lines.append(f"{name}: {entry} finds there what {before[-1]} has left")
    return list(dict.fromkeys(lines))


def launches_of(problem: Problem, parts: Sequence[CallPart]) -> tuple[Launch, ...]:
    """The launches of these kernels, in the call's order."""
    places = sorted(place for part in parts for place in part.places)
    return tuple(problem.launches[place] for place in places)


@dataclass(frozen=True)
class Overlap:
    """A launch that may overlap with the one ahead of it."""

    place: int
    handed: frozenset[str]  # arrays that launches ahead of it may write, or read where it writes itself


def find_overlaps(problem: Problem, reading: CallReading) -> tuple[tuple[Overlap, ...], tuple[str, ...]]:
    """The launches that may, and why the others may not.

    The kernel waits for the launch ahead, and so for all that one has waited for: a launch that was made to
    overlap by the user may not have waited for anything."""
    parts = {place: (part, kernel) for part, kernel in reading for place in part.places}
    found, reasons = list[Overlap](), list[str]()
    for place in range(1, len(problem.launches)):
        part, kernel = parts[place]
        why = _why_not(part, kernel, problem.launches[place - 1], problem.launches[place])
        if why:
            reasons.append(f"{problem.launches[place].entry}: {why}")
            continue
        stored = _arrays_at_launch(problem.launches[place], kernel, problem, ("store", "update", "atomic"))
        handed = set[str]()
        for launch, (_, before) in ((problem.launches[at], parts[at]) for at in range(place)):
            handed |= _arrays_at_launch(launch, before, problem, ("store", "update", "atomic"))
            handed |= _by_all_names(_arrays_at_launch(launch, before, problem, ("load",)), problem) & stored
        found.append(Overlap(place, _by_all_names(handed, problem)))
    return tuple(found), tuple(dict.fromkeys(reasons))


def _by_all_names(arrays: Collection[str], problem: Problem) -> frozenset[str]:
    """These arrays and all others that may be the same memory."""
    memories = {memory_of(problem.argument(name), problem) for name in arrays}
    return frozenset(a.name for a in problem.arguments if a.is_array and memory_of(a, problem) in memories)


def _why_not(part: CallPart, kernel: KernelModel | str, ahead: Launch, behind: Launch) -> str:
    if isinstance(kernel, str):
        return "it is not read"
    if len(part.places) > 1:
        return "its kernel is launched several times"
    if kernel.waits or behind.pdl or ahead.pdl:
        return "it overlaps already, or the launch ahead of it does"
    if ahead.when is not None and ahead.when.text != _expr_text(behind.when):
        return f"{ahead.entry} is not launched at all sizes at which it is (when)"
    return ""


def _arrays_at_launch(
    launch: Launch, kernel: KernelModel | str, problem: Problem, kinds: Collection[str]
) -> frozenset[str]:
    """Arrays that a launch may touch in these ways: all that it is given where its kernel is not read."""
    if isinstance(kernel, str):
        return frozenset(name for name in launch.args if problem.argument(name).is_array)
    parameters = [parameter.name for parameter in kernel.function.parameters]
    names = dict(zip(parameters, launch.args, strict=False))
    return frozenset(names[a.array] for a in kernel.accesses if a.kind in kinds and a.array in names)


# -- Launches that only fill an array with one value, where a later kernel makes that needless.
#
# Such a launch may go if the next one that is given the array either stores every element that was filled and
# reads none, or takes each of them up once, `out[i] += x`, where it stores all of them: then it starts from
# the
# value itself. Both are proved on the models: what is stored in every turn, at places that count through all
# turns of all tasks without a gap.


_PLAIN = (c.Number, c.Name, c.Unary, c.Cast)
_FLOATS = ("float", "double")


class NotNeedless(Exception):
    """Why a launch that fills has to stay, in words."""


@dataclass(frozen=True)
class ReadLaunch:
    """A launch with what its kernel computes."""

    part: CallPart
    launch: Launch
    kernel: KernelModel | str

    @property
    def model(self) -> KernelModel:
        assert isinstance(self.kernel, KernelModel), "it was read"
        return self.kernel

    @property
    def condition(self) -> str | None:
        return _expr_text(self.launch.when)

    def argument_name(self, parameter: str) -> str:
        names = [p.name for p in self.model.function.parameters]
        return self.launch.args[names.index(parameter)]


@dataclass(frozen=True)
class Fill:
    """`count` elements from the first on are set to a value that is the same for the whole call."""

    array: str  # the problem's name for it
    type: c.Type  # of an element
    value: c.Expr  # over parameters of the kernel that fills
    count: Node


def without_fills(
    problem: Problem, reading: CallReading
) -> tuple[Problem, CallReading, tuple[str, ...]] | str:
    """The call without launches that only fill, its kernels, and what was left out; or why none was."""
    parts = {place: (part, kernel) for part, kernel in reading for place in part.places}
    launches = [ReadLaunch(parts[at][0], launch, parts[at][1]) for at, launch in enumerate(problem.launches)]
    reasons, notes = list[str](), list[str]()
    at = 0
    while at < len(launches):
        one = launches[at]
        try:
            fill = _fill_of(one, problem)
            changed = _drop_fill(fill, one, launches[at + 1 :], problem) if fill is not None else None
        except NotNeedless as reason:
            reasons.append(f"{one.launch.entry} fills an array, and {reason}")
            changed = None
        if changed is None:
            at += 1
            continue
        rest, note = changed
        notes.append(note)
        launches[at:] = rest
    if not notes:
        return "; ".join(dict.fromkeys(reasons)) or "no launch only fills an array with one value"
    return *_call_of(problem, launches), tuple(notes)


def _call_of(problem: Problem, launches: Sequence[ReadLaunch]) -> tuple[Problem, CallReading]:
    """The call of these launches: kernels are numbered anew."""
    places_by_launch: dict[tuple[str, Launch | None], list[int]] = {}
    for place, one in enumerate(launches):
        changed = one.launch if one.launch not in problem.launches else None
        places_by_launch.setdefault((one.part.number, changed), []).append(place)
    several = len(places_by_launch) > 1
    reading = []
    for number, places in enumerate(places_by_launch.values(), 1):
        first = launches[places[0]]
        part = CallPart(str(number) if several else "", tuple(places), isolate_launch(problem, first.launch))
        reading.append((part, first.kernel))
    return replace(problem, launches=tuple(one.launch for one in launches)), tuple(reading)


def _fill_of(one: ReadLaunch, problem: Problem) -> Fill | None:
    """What the launch fills; None where it does anything else."""
    kernel = one.kernel
    if isinstance(kernel, str) or kernel.tasks or kernel.waits or len(kernel.steps) != 1:
        return None
    match kernel.steps[0]:
        case (
            Each(
                index=index,
                totals=(),
                body=(c.Evaluate(expr=c.Assign(op="=", target=c.Index(c.Name(array), place), value=value)),),
            ) as loop
        ):
            pass
        case _:
            return None
    parameters = {p.name: p.type for p in kernel.function.parameters}
    scalars = {name for name, type_ in parameters.items() if not type_.is_pointer}
    plain = all(isinstance(node, _PLAIN) for node in walk.nodes_in(value))
    is_whole = _is_equal_number(loop.start, 0) and without_casts(place) == c.Name(index)
    if not plain or not walk.names_in(value) <= scalars or not is_whole or array not in parameters:
        return None
    type_, count = c.Type(parameters[array].base), _to_size_node(loop.stop, one, problem)
    if count is None or parameters[array].pointers != 1 or not (is_integer(type_) or type_.base in _FLOATS):
        return None
    return Fill(one.argument_name(array), type_, value, count)


def _drop_fill(
    fill: Fill, one: ReadLaunch, later: Sequence[ReadLaunch], problem: Problem
) -> tuple[list[ReadLaunch], str] | None:
    """The launches behind it as they do without it, and that in words; None where nobody looks at it."""
    if any(fill.array in (a.alias, a.name) for a in problem.arguments if a.alias is not None):
        raise NotNeedless(f"{fill.array} may share memory with another array (alias)")
    at = next((place for place, other in enumerate(later) if fill.array in other.launch.args), None)
    if at is None:
        return None
    user = later[at]
    if user.condition != one.condition:
        raise NotNeedless(f"{user.launch.entry} is not launched at the same sizes (when)")
    if isinstance(user.kernel, str):
        raise NotNeedless(f"{user.launch.entry}, which is given it next, is not read")
    if user.launch.args.count(fill.array) != 1:
        raise NotNeedless(f"{user.launch.entry} is given it twice")
    parameter = user.kernel.function.parameters[user.launch.args.index(fill.array)]
    name = parameter.name
    if parameter.type.base != fill.type.base or parameter.type.pointers != 1:
        raise NotNeedless(f"{user.launch.entry} takes it for an array of another type")
    arrays = {name: parameter.type}
    found = [touch for part in _kernel_parts(user.kernel) for touch in find_touches(part, arrays)]
    if any(touch.atomic for touch in found):
        raise NotNeedless(f"{user.launch.entry} adds to it in any order (atomics): it must find it filled")
    if not any(touch.reads for touch in found):
        if not any(_is_fill_covered(step, name, fill, user, problem) for step in user.kernel.steps):
            raise NotNeedless(f"it is not proved that {user.launch.entry} stores every element of it")
        note = f"{one.launch.entry} is left out: {user.launch.entry} stores all of {fill.array} anew"
        return list(later), note
    changed = _substitute_fill(fill, one, user, name, problem)
    note = f"{one.launch.entry} is left out: {user.launch.entry} starts from what it would have filled in"
    return [*later[:at], changed, *later[at + 1 :]], note


def _substitute_fill(
    fill: Fill, one: ReadLaunch, user: ReadLaunch, name: str, problem: Problem
) -> ReadLaunch:
    """The kernel that takes up what was filled, with the value in place of what it loads."""
    kernel = user.model
    whole = [step for step in kernel.steps if _is_fill_covered(step, name, fill, user, problem)]
    touching = [s for s in all_steps(kernel.steps) if any(name in walk.names_in(p) for p in own_parts(s))]
    (step,) = whole if len(whole) == 1 else (None,)
    if not isinstance(step, Each | Once) or touching != whole:
        raise NotNeedless(f"{user.launch.entry} does more with it than take up each element once")
    if sum(name in walk.names_in((stmt,)) for stmt in step.body) != 1:
        raise NotNeedless(f"{user.launch.entry} takes up its elements more than once")
    if len(user.part.places) > 1:
        raise NotNeedless(f"{user.launch.entry} is launched again with other arrays")
    if sizes_of_entry(user.launch.entry):
        raise NotNeedless(f"the entry of {user.launch.entry} has sizes in it")
    names, added = dict[str, c.Expr](), list[tuple[c.Parameter, str]]()
    taken = {p.name for p in kernel.function.parameters} | _kernel_words(kernel)
    for parameter_name in sorted(walk.names_in(fill.value)):
        names[parameter_name] = c.Name(_scalar_name(parameter_name, one, user, added, taken))
    value = c.Cast(fill.type, substitute(fill.value, names))
    changed = replace(step, body=tuple(_with_value(stmt, name, value) for stmt in step.body))
    if any(name in walk.names_in(part) for part in _parts_without_stores(changed.body, name)):
        raise NotNeedless(f"{user.launch.entry} reads it elsewhere than where it stores")
    steps = map_steps(kernel.steps, lambda one: changed if one is step else one)
    parameters = (*kernel.function.parameters, *(parameter for parameter, _ in added))
    function = replace(kernel.function, parameters=parameters)
    arrays = {p.name: p.type for p in function.parameters if p.type.is_pointer}
    made = replace(kernel, function=function, steps=steps, accesses=collect_accesses(steps, arrays))
    launch = replace(user.launch, args=(*user.launch.args, *(argument for _, argument in added)))
    return ReadLaunch(user.part, launch, made)


def _with_value(stmt: c.Stmt, array: str, value: c.Expr) -> c.Stmt:
    """`out[i] += x` as `out[i] = value + x`; `out[i] = f(out[i])` as `out[i] = f(value)`."""
    match stmt:
        case c.Evaluate(expr=c.Assign(op=op, target=c.Index(c.Name(name)) as target, value=right)) if (
            name == array
        ):
            right = walk.map_expr(right, lambda node: value if node == target else node)
            if op != "=":
                right = c.Binary(op.removesuffix("="), value, right)
            return replace(stmt, expr=c.Assign("=", target, right))
    return stmt


def _parts_without_stores(body: Sequence[c.Stmt], array: str) -> list[c.Expr | tuple[c.Stmt, ...]]:
    """The statements but for what they store to the array."""
    found: list[c.Expr | tuple[c.Stmt, ...]] = []
    for stmt in body:
        match stmt:
            case c.Evaluate(expr=c.Assign(op="=", target=c.Index(c.Name(name), place), value=right)) if (
                name == array
            ):
                found += [place, right]
            case _:
                found.append((stmt,))
    return found


def _scalar_name(
    parameter_name: str,
    one: ReadLaunch,
    user: ReadLaunch,
    added: list[tuple[c.Parameter, str]],
    taken: set[str],
) -> str:
    """What the later kernel calls a scalar of the one that fills: a parameter more where it has none."""
    argument = one.argument_name(parameter_name)
    type_ = next(p.type for p in one.model.function.parameters if p.name == parameter_name)
    pairs = [*zip(user.model.function.parameters, user.launch.args, strict=False), *added]
    for parameter, passed in pairs:
        if passed == argument and parameter.type.base == type_.base:
            return parameter.name
    name = walk.fresh_name(parameter_name, taken)
    added.append((c.Parameter(replace(type_, const=True), name), argument))
    return name


def _is_fill_covered(step: Step, array: str, fill: Fill, user: ReadLaunch, problem: Problem) -> bool:
    """Whether every turn of every task stores to the array, at places that leave none of the filled out."""
    kernel = user.kernel
    if not isinstance(step, Each | Once) or isinstance(kernel, str):
        return False
    ways_out = (c.Return, c.Jump, c.Verbatim, c.Alternative)
    if any(isinstance(node, ways_out) for node in walk.nodes_in(step.body)):
        return False
    axes = [(task.name, task.extent, task.size) for task in kernel.tasks]
    if isinstance(step, Each):
        if not _is_equal_number(step.start, 0):
            return False
        axes.append((step.index, step.stop, ""))
    place: c.Expr = c.Number("0", 0)
    count: list[Node] = []
    for name, extent, size in axes:
        place = c.Binary("+", c.Binary("*", place, extent), c.Name(name))
        node = parse_expr(size).tree if size else _to_size_node(extent, user, problem)
        if node is None:
            return False
        count.append(node)
    if not axes or _sorted_factors(count) != _sorted_factors([fill.count]):
        return False
    for stmt in step.body:
        match stmt:
            case c.Evaluate(expr=c.Assign(target=c.Index(base=c.Name(name=name), index=at))) if name == array:
                if same_value(without_casts(at), place):
                    return True
    return False


def _sorted_factors(nodes: Sequence[Node]) -> list[str]:
    """What is multiplied, in an order of its own; ones do not count."""
    found: list[Node] = list(nodes)
    done: list[str] = []
    while found:
        node = found.pop()
        if isinstance(node, Arithmetic) and node.op == "*":
            found += [node.left, node.right]
        elif node != Num(1):
            done.append(repr(node))
    return sorted(done)


def _kernel_parts(kernel: KernelModel) -> list[c.Expr | tuple[c.Stmt, ...]]:
    return [part for step in all_steps(kernel.steps) for part in own_parts(step)]


def _kernel_words(kernel: KernelModel) -> set[str]:
    found = {
        word for part in _kernel_parts(kernel) for word in (*walk.names_in(part), *walk.declared_in(part))
    }
    return found | {f.name for f in kernel.source.functions} | {task.name for task in kernel.tasks}


def _is_equal_number(expr: c.Expr, value: int) -> bool:
    return isinstance(expr, c.Number) and expr.value == value


def _to_size_node(expr: c.Expr, one: ReadLaunch, problem: Problem) -> Node | None:
    """An integer of the kernel over the problem's sizes."""
    names = tuple(p.name for p in one.model.function.parameters)
    known = parameter_values(replace(problem, launches=(one.launch,)), names)
    text = to_sizes(without_casts(expr), known)
    return None if text is None else parse_expr(text).tree
