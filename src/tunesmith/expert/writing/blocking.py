"""Neighbouring tasks that a team takes at once: the tile of registers that they share.

One index of the tasks, b, is taken BLOCKED values at a time. Each step is done for all of them before the
next: tasks do not depend on each other. What depends on b is there once for each, in arrays that unrolled
loops go through, so they are registers; what does not is there once. Packs that move with b and overlap (rows
above and below in a stencil) are one table of rows: each is loaded once, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import Wording, chained
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer
from tunesmith.csource.walk import assigned_in, names_in
from tunesmith.expert.model.affine import BUILTINS, terms
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Repeat, Task, When, all_steps
from tunesmith.expert.writing.given import Given
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.nest import items
from tunesmith.expert.writing.packs import Key, Pack
from tunesmith.expert.writing.sites import AccessSite, Sites

_FARTHEST = 4  # rows, or elements of a row, from one access to another that may share what is loaded


@dataclass(frozen=True)
class RowTable:
    """Rows of one array: those of the tasks, and `span` more that only some of them read."""

    first: Pack  # the row that lies lowest
    rows: Mapping[Key, int]  # packs -> how many rows above the first they lie
    span: int = 0


@dataclass
class Blocking:
    """`task` None: a team takes one task at a time, and nothing changes."""

    task: Task | None = None
    words: Wording = field(default_factory=lambda: Wording({}))
    is_counted: bool = False  # the last team may lack tasks
    written: frozenset[str] = frozenset()
    alike: int = 0  # loads that are the same for neighbouring tasks, or those of another at a neighbour
    names: dict[str, c.Expr] = field(default_factory=dict)  # what each of the tasks has -> its own

    @classmethod
    def of(cls, given: Given) -> Blocking:
        """Along the index that most loads do not move with, or overlap along; of those the fastest."""
        kernel, names, written = given.kernel, given.names, given.written
        found = [(task, _varying(kernel, task)) for task in given.tasks]
        able = [(task, own) for task, own in found if not isinstance(own, str)]
        if not able:
            raise Unwritable(next(str(own) for _, own in reversed(found)))
        arrays = [name for name in given.arrays if name not in written]
        counts = {task: _alike(kernel, task, own, arrays) for task, own in able}
        task, own = max(reversed(able), key=lambda one: counts[one[0]])
        own_words = {"r": names.fresh("r"), "start": names.fresh(f"{task.name}_first")}
        words = Wording({**given.words.words, **own_words})
        made = cls(task, words, not names_in(task.extent) & set(BUILTINS), written, counts[task])
        for name in sorted(own - {task.name}):
            made.add(name)
        return made

    @property
    def start(self) -> str:
        """The name of the first task's index."""
        return str(self.words.words["start"])

    @property
    def count(self) -> str:
        return str(self.words.words["BLOCKED"])

    def add(self, name: str) -> None:
        """A name of which there is one for each task from now on."""
        if self.task is not None:
            self.names[name] = self.words.expr("own[r]", own=name)

    def extent(self, task: Task) -> c.Expr:
        """How many values an index of the tasks takes: the blocked one as many as there are teams for it."""
        if task != self.task or not self.is_counted:
            return task.extent
        return self.words.expr("(n + (BLOCKED - 1)) / BLOCKED", n=task.extent)

    def dims(self, *dims: c.Expr, span: int = 0) -> tuple[c.Expr, ...]:
        """Of an array of which each task has one."""
        if self.task is None:
            return dims
        return (self.words.expr("BLOCKED + span", span=integer(span)) if span else c.Name(self.count), *dims)

    def over(self, stmts: Sequence[c.Stmt], span: int = 0, guarded: bool = True) -> tuple[c.Stmt, ...]:
        """The statements for each of the tasks, and `span` rows more, unrolled."""
        if self.task is None or not stmts:
            return tuple(stmts)
        own = substitute(stmts, self.names)
        words = self.words
        if self.task.name in names_in(own):
            text = "const T b = (T)(start + r);" if self.task.type != "int" else "const T b = start + r;"
            own = (*words.code(text, T=self.task.type, b=self.task.name), *own)
        within = None
        if guarded and self.is_counted:
            # The first is always there: what it loads the others need not load again.
            there, first = self._needs(words.expr("r"), span), "r <= span" if span else "r == 0"
            within = words.expr(f"{first} || there", span=integer(span), there=there)
        return items(str(words.words["r"]), self.dims(span=span)[0], within=within).over(own)

    def _needs(self, row: c.Expr, span: int = 0) -> c.Expr:
        """Whether one of the team's tasks needs that row."""
        assert self.task is not None
        text = "row - span < n - start" if span else "row < n - start"
        return self.words.expr(text, row=row, span=integer(span), n=self.task.extent)

    def declared(self, declare: c.Declare) -> tuple[c.Stmt, ...]:
        """A variable of which each task has one, and its value for each."""
        type_ = replace(declare.type, restrict=False, const=declare.type.const and declare.type.is_pointer)
        made = replace(declare, type=type_, init=None, dims=self.dims(*declare.dims))
        return (made, *self.over(_set(declare)))

    def team_values(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        """Statements of a whole team: those that depend on the task for each, the others once."""
        if self.task is None:
            return tuple(stmts)
        done, run = list[c.Stmt](), list[c.Stmt]()
        own = {self.task.name, *self.names}
        for stmt in stmts:
            if isinstance(stmt, c.Declare) and stmt.name in self.names:
                done += self.over(run)
                run = []
                done += self.declared(stmt)
            elif names_in(stmt) & own:
                run.append(stmt)
            else:
                done += self.over(run)
                run = []
                done.append(stmt)
        return (*done, *self.over(run))

    # -- packs ----------------------------------------------------------------------------------------

    def is_same(self, pack: Pack) -> bool:
        """Whether all tasks of a team read the same."""
        if self.task is None:
            return True
        own = pack.names.isdisjoint((self.task.name, *self.names)) and pack.array not in self.names
        return own and not pack.stores and pack.array not in self.written

    def tables(self, packs: Sequence[Pack], apart: Iterable[Key] = ()) -> tuple[RowTable, ...]:
        """Packs that differ from task to task; those `apart`, and what is stored, share no rows."""
        found: list[RowTable] = []
        alone = set(apart)
        left = [pack for pack in packs if not self.is_same(pack)]
        while left:
            first = left.pop(0)
            rows = {first.key: 0}
            if self._may_overlap(first) and first.key not in alone:
                for other in left:
                    if self._may_overlap(other) and other.key not in alone and _kind(first) == _kind(other):
                        by = self._rows_between(first, other)
                        if by is not None:
                            rows[other.key] = by
            low, high = min(rows.values()), max(rows.values())
            if set(rows.values()) != set(range(low, high + 1)):  # rows that nobody reads stay away
                rows, low, high = {first.key: 0}, 0, 0
            lowest = next(pack for pack in (first, *left) if rows.get(pack.key) == low)
            left = [pack for pack in left if pack.key not in rows]
            found.append(RowTable(lowest, {key: by - low for key, by in rows.items()}, high - low))
        return tuple(found)

    def _may_overlap(self, pack: Pack) -> bool:
        assert self.task is not None
        own = pack.names & {self.task.name, *self.names}
        return own == {self.task.name} and not pack.stores and pack.array not in self.written

    def _rows_between(self, first: Pack, other: Pack) -> int | None:
        if first.offset is not None or other.offset is not None:
            return None
        found = self.between(first.index, other.index)
        return found[0] if found is not None and found[1] == 0 else None

    def between(self, first: c.Expr, other: c.Expr) -> tuple[int, int] | None:
        """By how many tasks, and then elements, the place of an access lies behind another's."""
        assert self.task is not None
        return _between(first, other, self.task.name)

    def row(self, table: str, by: int) -> c.Expr:
        return c.Index(c.Name(table), self._row(by))

    def nearby(
        self,
        body: tuple[c.Stmt, ...],
        tables: Sequence[tuple[RowTable, str]],
        known: Mapping[c.Expr, c.Expr],
        item: c.Expr,
        lane: c.Expr,
        vector: str,
    ) -> dict[c.Expr, c.Expr]:
        """Loads that some turns alone make, of what a table may have: from there if it has.

        `tables`: each with its name; `item` and `lane` say which pack of a row, and which element of that.
        """
        found: dict[c.Expr, c.Expr] = {}
        for table, name in tables:
            if (
                table.first.width != 1
                or table.first.element is not None
                or not self._may_overlap(table.first)
            ):
                continue
            for site in Sites.of(body, [table.first.array]).found:
                if _is_plain_load(site) and site.node not in known and site.node not in found:
                    by = self.between(table.first.index, site.index)
                    if by is not None:
                        pack = self.words.expr("table[row][k]", table=name, row=self._row(by[0]), k=item)
                        value = c.Index(c.Member(pack, "at"), _plus(lane, by[1]))
                        found[site.node] = self._if_there(table, by, value, site.node, lane, vector)
        return found

    def _row(self, by: int) -> c.Expr:
        return _plus(self.words.expr("r"), by)

    def _if_there(
        self, table: RowTable, by: tuple[int, int], value: c.Expr, node: c.Expr, lane: c.Expr, vector: str
    ) -> c.Expr:
        """An element of a table where it is one, and otherwise the load as it stands."""
        (rows, beside), row = by, self._row(by[0])
        tests: list[c.Expr] = []
        if not 0 <= rows <= table.span:
            n = self.dims(span=table.span)[0]
            tests.append(self.words.expr("row >= 0" if rows < 0 else "row < n", row=row, n=n))
            if self.is_counted and rows > table.span:
                tests.append(self._needs(row, table.span))
        if beside:
            text = "at >= 0" if beside < 0 else "at < VEC"
            tests.append(self.words.expr(text, at=_plus(lane, beside), VEC=vector))
        return c.Ternary(chained("&&", *tests), value, node) if tests else value


def _plus(value: c.Expr, by: int) -> c.Expr:
    return c.Binary("+" if by > 0 else "-", value, integer(abs(by))) if by else value


def _is_plain_load(site: AccessSite) -> bool:
    return site.kind == "load" and site.element is None and site.offset is None and not site.loops


def _kind(pack: Pack) -> tuple[object, ...]:
    return pack.array, pack.element, pack.width, pack.unit


def _between(first: c.Expr, other: c.Expr, name: str) -> tuple[int, int] | None:
    wanted = dict(terms(other))
    constant = wanted.pop((), 0)
    for by in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs):
        moved = substitute(first, {name: c.Binary("+", c.Name(name), integer(by))}) if by else first
        found = dict(terms(moved))
        beside = constant - found.pop((), 0)
        if found == wanted and abs(beside) <= _FARTHEST:
            return by, beside
    return None


def _set(declare: c.Declare) -> tuple[c.Stmt, ...]:
    if declare.init is None:
        return ()
    return (c.Evaluate(c.Assign("=", c.Name(declare.name), declare.init), line=declare.line),)


# -- along which index of the tasks ---------------------------------------------------------------------


def _varying(kernel: KernelModel, task: Task) -> frozenset[str] | str:
    """The steps' names for what differs from task to task; or why several cannot be done at once."""
    steps = list(all_steps(kernel.steps))
    found = {task.name, *(staged.name for staged in kernel.staged)}
    found |= {total.name for step in steps if isinstance(step, Each) for total in step.totals}
    lets = [stmt for step in steps if isinstance(step, Let) for stmt in step.body]
    before = 0
    while before != len(found):
        before = len(found)
        for stmt in lets:
            declared = {stmt.name} if isinstance(stmt, c.Declare) else set[str]()
            if (names_in(stmt) | declared) & found:
                found |= declared | assigned_in((stmt,))
    return _fault(kernel, found) or frozenset(found)


def _fault(kernel: KernelModel, varying: set[str]) -> str:
    for step in all_steps(kernel.steps):
        match step:
            case Each() | Repeat():
                ends = names_in(step.start) | names_in(step.stop)
                ends |= names_in(step.step) if isinstance(step, Repeat) else frozenset()
                if ends & varying:
                    return f"how far the loop over {step.index} goes differs from task to task"
            case When(condition=condition) if names_in(condition) & varying:
                return f"tasks go different ways in line {step.line}"
            case Let(body=body):
                for stmt in body:
                    if (word := _unfit(stmt)) and (names_in(stmt) | {word}) & varying:
                        return f"{word} cannot be there once for each of several tasks"
    return ""


def _unfit(stmt: c.Stmt) -> str:
    """The name of a variable that no array can hold, or that cannot be assigned to."""
    if not isinstance(stmt, c.Declare):
        return ""
    plain = stmt.type.base != "auto" and not stmt.type.reference and not stmt.storage and stmt.align is None
    return "" if plain and not (stmt.is_array and stmt.init is not None) else stmt.name


def _alike(kernel: KernelModel, task: Task, varying: frozenset[str], arrays: Sequence[str]) -> int:
    """How many loads are the same for neighbouring tasks, or those of another at a neighbour."""
    count = 0
    for step in all_steps(kernel.steps):
        if isinstance(step, Each):
            loads = [site for site in Sites.of(step.body, arrays).found if site.kind == "load"]
            for site in loads:
                count += not site.names & varying or any(_overlap(site, other, task.name) for other in loads)
    return count


def _overlap(site: AccessSite, other: AccessSite, name: str) -> bool:
    if site.array != other.array or site.offset is not None or other.offset is not None:
        return False
    found = _between(site.index, other.index, name)
    return found is not None and found[0] != 0
