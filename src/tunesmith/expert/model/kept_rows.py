"""Rows that threads keep in arrays of their own between loops, read as one value for every element.

    float v[4];
    for (k = 0; k * blockDim.x + threadIdx.x < n; k++)        for (i = threadIdx.x; i < n; i += blockDim.x)
        v[k] = x[k * blockDim.x + threadIdx.x];         ->        v[i] = x[i];
    for (k = 0; k * blockDim.x + threadIdx.x < n; k++)        for (i = threadIdx.x; i < n; i += blockDim.x)
        out[k * blockDim.x + threadIdx.x] = v[k];                 out[i] = v[i];

    for (k = 0; k < 4; k++)                                   for (i = lane; i < 128; i += 32)
        v[k] = k * 32 + lane < n ? x[k * 32 + lane] : 0;  ->      v[i] = i < n ? x[i] : 0;
    for (k = 0; k < 4; k++)                                   for (i = lane; i < 128; i += 32)
        sum += v[k];                                              sum += v[i];

Place k of a thread's array is the element that the thread takes in turn k: all loops that touch the array
count the same turns, so that no thread sees a place of another one. The first of them sets every place that
it comes to before it is read: nothing is left of an earlier task. In the model such an array is one in shared
memory, of which every team has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model import affine
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.geometry import THREAD, LaunchedKernel, OtherForm, form_of, strided_loops
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.scenarios import Scenario
from tunesmith.expert.model.shifted_loops import BoundsOf, counted_by_element
from tunesmith.expert.model.team_record import identity_of
from tunesmith.expert.model.totals import MAXIMA, MINIMA, Update, set_to, update_in
from tunesmith.expert.model.translate import product

_MOST = 1024  # places of one thread's array


@dataclass(frozen=True)
class TurnCount:
    """How a loop counts: as long as `each` * index + `first` is below `stop`, or `turns` times."""

    each: c.Expr | None  # None: the loop itself does not say which element a turn is for
    first: c.Expr | None
    stop: c.Expr | None
    turns: int | None

    def fits(self, other: TurnCount) -> bool:
        if self.turns != other.turns or (self.stop is None) != (other.stop is None):
            return False
        pairs = ((self.each, other.each), (self.first, other.first), (self.stop, other.stop))
        return all(a is None or b is None or affine.same_value(a, b) for a, b in pairs)


def with_kept_rows(kernel: LaunchedKernel, _bounds_of: BoundsOf) -> OtherForm | None:
    """The kernel with such arrays as shared ones, and what that rests on; None where it has none."""
    work = _KeptRows(kernel.normal, kernel.scenarios)
    body = work.block(kernel.normal.body)
    if not work.kept:
        return None
    normal = replace(
        kernel.normal,
        body=body,
        types={**kernel.normal.types, **work.types, **work.variables},
        shared={**kernel.normal.shared, **work.kept},
    )
    roles = strided_loops(normal, kernel.scenarios[-1])
    if any(roles[name].role != "element" for name in work.types):
        return None
    said = "threads keep values of their own elements alone in '{}'"
    facts = [Fact(said.format(one.name), "proved", f"line {one.line}") for one in work.kept.values()]
    return OtherForm(replace(kernel, normal=normal), tuple(facts))


class _KeptRows:
    def __init__(self, normal: Normal, tried: Sequence[Scenario]) -> None:
        self._normal, self._tried = normal, tried
        self._definitions = normal.definitions
        self._taken = normal.names
        self.types: dict[str, c.Type] = {}  # of the new indices
        self.variables: dict[str, c.Type] = {}  # of turns
        self.kept: dict[str, c.Declare] = {}

    def block(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        whole = self._without_breaks(self._from_first(stmts))
        own = [stmt for stmt in whole if isinstance(stmt, c.Declare) and _is_small_array(stmt)]
        found = self._converted(whole, own) if own else None
        stmts = stmts if found is None else found
        return tuple(walk.map_blocks(stmt, self.block) for stmt in stmts)

    def _from_first(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """`m = v[0]; for (k = 1; ...) m = fmaxf(m, v[k]);` as a loop from 0 on that starts from nothing."""
        done = list(stmts)
        for at, (stmt, loop) in enumerate(pairwise(stmts)):
            name, value = _value_set(stmt)
            head = affine.head_of(loop) if isinstance(loop, c.For) else None
            if not name or head is None or not isinstance(loop, c.For) or head.start != affine.number(1):
                continue
            match value:
                case c.Index(base=c.Name(name=array), index=c.Number(value=0)):
                    update = _plain_update(loop.body, name, c.Index(c.Name(array), c.Name(head.index)))
                case _:
                    continue
            type_ = self._normal.types.get(name)
            if update is None or type_ is None or type_.is_pointer or type_.base != "float":
                continue
            nothing = identity_of(update.operator, type_)
            done[at] = _set_to(stmt, nothing)
            first = loop.init[0]
            assert isinstance(first, c.Declare)
            done[at + 1] = replace(loop, init=(replace(first, init=affine.number(0)),))
        return tuple(done)

    def _without_breaks(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """`if (i < n) ... else break;` as the end of a turn: later turns are beyond the bound as well."""
        return tuple(self._without_break(stmt) if isinstance(stmt, c.For) else stmt for stmt in stmts)

    def _without_break(self, loop: c.For) -> c.For:
        index = _index(loop)
        match loop.body:
            case (*before, c.If(condition=test, otherwise=(c.Jump(word="break"),)) as last):
                bounds = affine.bounds_in(test, lambda expr: index in walk.names_in(expr))
                if index is None or bounds is None or len(bounds) != 1:
                    return loop
                moves = affine.affine(bounds[0][0], index)
                fixed = walk.names_in(test) & walk.assigned_in(loop.body)
                if moves is None or fixed or index in walk.names_in(bounds[0][1]):
                    return loop
                step = [int_value(moves[0], scenario.numbers) for scenario in self._tried]
                plain = all(
                    isinstance(s, c.Declare) and s.init is not None and is_pure(s.init) for s in before
                )
                if plain and all(by is not None and by > 0 for by in step):
                    return replace(loop, body=(*before, replace(last, otherwise=())))
        return loop

    def _converted(self, stmts: tuple[c.Stmt, ...], arrays: Sequence[c.Declare]) -> tuple[c.Stmt, ...] | None:
        names = {declare.name for declare in arrays}
        names = {name for name in names if _sets_first(stmts, name)}
        users = {at for at, stmt in enumerate(stmts) if walk.names_in(stmt) & names and stmt not in arrays}
        loops = {at: stmt for at in users if isinstance(stmt := stmts[at], c.For)}
        if not names or len(loops) != len(users):
            return None
        counts = {at: self._count(loop, names) for at, loop in loops.items()}
        known = [count for count in counts.values() if count is not None]
        chosen = next((count for count in known if count.each is not None), None)
        if chosen is None or len(known) != len(counts) or not all(chosen.fits(count) for count in known):
            return None
        if not self._shares_out(chosen):
            return None
        done = list(stmts)
        for at, loop in loops.items():
            made = self._by_element(loop, chosen, names)
            if made is None:
                return None
            done[at] = made
        for declare in arrays:
            if declare.name in names:
                places = affine.number(_MOST * _MOST)  # as many as there may be
                self.kept[declare.name] = replace(declare, dims=(places,), init=None, storage="shared")
        return tuple(stmt for stmt in done if stmt not in arrays or getattr(stmt, "name", "") not in names)

    def _count(self, loop: c.For, names: set[str]) -> TurnCount | None:
        """None for loops that count otherwise, or use an array at a place that is not the turn's."""
        index = _index(loop)
        if index is None or loop.condition is None or index in walk.assigned_in(loop.body):
            return None
        if any(isinstance(node, c.Jump | c.Return | c.Verbatim) for node in walk.nodes_in(loop.body)):
            return None
        uses = [node for node in walk.nodes_in(loop.body) if isinstance(node, c.Name) and node.name in names]
        if len(uses) != sum(1 for _ in _accesses(loop.body, names, index)):
            return None
        head = affine.head_of(loop)
        if head is not None:
            turns = int_value(head.stop)
            if head.start != affine.number(0) or head.step != affine.number(1) or turns is None:
                return None
            each, first = self._element(loop.body, index, names) or (None, None)
            return TurnCount(each, first, None, turns) if 0 < turns <= _MOST else None
        bounds = affine.bounds_in(loop.condition, lambda expr: index in walk.names_in(expr))
        if bounds is None or len(bounds) != 1 or index in walk.names_in(bounds[0][1]):
            return None
        element = affine.affine(bounds[0][0], index)
        fixed = walk.assigned_in(loop.body) & (walk.names_in(loop.condition) | {index})
        return None if element is None or fixed else TurnCount(element[0], element[1], bounds[0][1], None)

    def _element(self, body: Sequence[c.Stmt], index: str, names: set[str]) -> tuple[c.Expr, c.Expr] | None:
        """`each` and `first` of the element that a turn is for: what its tests compare, or its places."""
        tests = [node.condition for node in walk.nodes_in(body) if isinstance(node, c.If | c.Ternary)]
        for test in tests:
            bounds = affine.bounds_in(test, lambda expr: index in walk.names_in(expr)) or ()
            for expr, _ in bounds:
                found = affine.affine(expr, index)
                if found is not None and self._is_of_thread(found[1]):
                    return found
        for node in walk.nodes_in(body):
            array = walk.root(node)[0] if isinstance(node, c.Index) else None
            if not isinstance(node, c.Index) or array in names or index not in walk.names_in(node.index):
                continue
            found = affine.affine(node.index, index)
            if found is not None:
                own = {
                    key: n for key, n in affine.terms(found[1]).items() if any(map(self._is_of_thread, key))
                }
                return found[0], affine.from_terms(own)
        return None

    def _is_of_thread(self, part: c.Expr) -> bool:
        return bool(walk.names_in(substitute(part, self._definitions)) & THREAD)

    def _shares_out(self, count: TurnCount) -> bool:
        """Whether threads start at 0 or above, and below a turn's step, in every block: turns lie apart."""
        assert count.each is not None and count.first is not None
        each, first = (substitute(part, self._definitions) for part in (count.each, count.first))
        for scenario in self._tried:
            step, form = int_value(each, scenario.numbers), form_of(first, scenario)
            if step is None or form is None or form.per_block != (0, 0, 0):
                return False
            if min(form.base) < 0 or max(form.base) >= step:
                return False
        return True

    def _with_variables(self, loop: c.For, names: set[str]) -> tuple[c.Stmt, ...]:
        """A place that a turn sets first is a variable of the turn, and stored at its end."""
        body = loop.body
        for name in sorted(names):
            place = next((node for node in walk.nodes_in(body) if _is_place(node, name)), None)
            if not isinstance(place, c.Index) or not _is_set(body, name):
                continue
            fresh = walk.fresh_name(f"{name}_now", self._taken)
            type_ = c.Type(self._normal.types[name].base)
            self.variables[fresh] = type_
            body = (
                c.Declare(type_, fresh, line=loop.line),
                *walk.map_nodes(body, partial(_said_as, name, c.Name(fresh))),
                c.Evaluate(c.Assign("=", place, c.Name(fresh)), line=loop.line),
            )
        return body

    def _by_element(self, loop: c.For, count: TurnCount, names: set[str]) -> c.For | None:
        index = _index(loop)
        assert index is not None and count.each is not None and count.first is not None
        element = affine.plus(c.Binary("*", c.Name(index), count.each), count.first)
        stop = count.stop
        if stop is None:
            assert count.turns is not None
            stop = fold(product(count.each, affine.number(count.turns)))

        def node(expr: c.Expr) -> c.Expr:
            at_turn = isinstance(expr, c.Index) and walk.root(expr)[0] in names
            return replace(expr, index=element) if at_turn and isinstance(expr, c.Index) else expr

        body = walk.map_nodes(self._with_variables(loop, names), node)
        known = replace(self._normal, types={**self._normal.types, **self.types})
        made = counted_by_element(
            known, replace(loop, body=body), index, element, stop, count.first, count.each
        )
        if made is None:
            return None
        changed, name, type_ = made
        self.types[name] = type_
        return changed


def _is_place(node: c.Expr | c.Stmt, array: str) -> bool:
    return isinstance(node, c.Index) and node.base == c.Name(array)


def _said_as(array: str, name: c.Name, node: c.Expr) -> c.Expr:
    return name if _is_place(node, array) else node


def _is_small_array(declare: c.Declare) -> bool:
    size = int_value(declare.dims[0]) if len(declare.dims) == 1 else None
    plain = not declare.storage and not declare.type.is_pointer and declare.init is None
    return plain and size is not None and 0 < size <= _MOST


def _index(loop: c.For) -> str | None:
    """The one index of a loop that counts 0, 1, 2, ... in its head, and nowhere else."""
    match loop.init, loop.step:
        case (c.Declare(name=name, init=start, dims=()),), (step,) if start is not None:
            counts = step in (
                c.Unary("++", c.Name(name)),
                c.Unary("++", c.Name(name), postfix=True),
                c.Assign("+=", c.Name(name), affine.number(1)),
            )
            return name if counts and int_value(start) == 0 else None
    return None


def _accesses(body: Sequence[c.Stmt], names: set[str], index: str) -> Iterator[c.Index]:
    """Places of the arrays that are the turn's own."""
    for node in walk.nodes_in(body):
        match node:
            case c.Index(base=c.Name(name=name), index=at) if name in names:
                if affine.without_casts(at) == c.Name(index):
                    yield node


# -- what is set before it is read --------------------------------------------------------------------


def _sets_first(stmts: Sequence[c.Stmt], name: str) -> bool:
    """Whether the first loop that touches the array sets its turn's place before it reads it."""
    first = next((s for s in stmts if not isinstance(s, c.Declare) and name in walk.names_in(s)), None)
    return isinstance(first, c.For) and _is_set(first.body, name) is True


def _is_set(body: Sequence[c.Stmt], name: str) -> bool | None:
    """Whether it is; None where nothing is said of it."""
    for stmt in body:
        if name not in walk.names_in(stmt):
            continue
        match stmt:
            case c.Evaluate(expr=c.Assign(op="=", target=c.Index(base=c.Name()), value=value)):
                return name not in walk.names_in(value)
            case c.If(condition=condition, then=then, otherwise=otherwise):
                both = (_is_set(then, name), _is_set(otherwise, name))
                return both == (True, True) and name not in walk.names_in(condition)
            case c.Scope(body=inner):
                return _is_set(inner, name)
        return False
    return None


def _plain_update(body: Sequence[c.Stmt], name: str, place: c.Expr) -> Update | None:
    """A sum, maximum or minimum of the very values at the place, and of nothing else."""
    match body:
        case (c.Evaluate(expr=c.Assign(op="+=", target=c.Name(name=own), value=value)),):
            return Update("+") if own == name and value == place else None
        case (c.Evaluate(expr=c.Assign(op="=")) | c.If(),):
            update = update_in(body, name)
            if update is None or update.operator not in ("max", "min"):
                return None
            known = {name, *walk.names_in(place)}
            parts = [node for node in walk.nodes_in(body) if isinstance(node, c.Name | c.Number | c.Index)]
            plain = all(node == place or (isinstance(node, c.Name) and node.name in known) for node in parts)
            return update if plain and not any(_computes(node) for node in walk.nodes_in(body)) else None
    return None


def _computes(node: c.Expr | c.Stmt) -> bool:
    """Arithmetic, in place of a mere choice."""
    if isinstance(node, c.Call):
        return node.function not in MAXIMA | MINIMA
    choice = isinstance(node, c.Binary) and node.op in ("<", ">", "<=", ">=")
    return isinstance(node, c.Binary | c.Unary | c.Cast | c.Opaque) and not choice


def _value_set(stmt: c.Stmt) -> tuple[str, c.Expr | None]:
    if isinstance(stmt, c.Declare) and not stmt.dims and not stmt.storage:
        return stmt.name, stmt.init
    return set_to(stmt)


def _set_to(stmt: c.Stmt, value: c.Expr) -> c.Stmt:
    match stmt:
        case c.Declare():
            return replace(stmt, init=value)
        case c.Evaluate(expr=c.Assign() as assign):
            return replace(stmt, expr=replace(assign, value=value))
    return stmt
