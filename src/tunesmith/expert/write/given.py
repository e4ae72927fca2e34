"""What is known of a kernel before anything is decided: its steps, sizes, names, arrays."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from math import gcd

from tunesmith.expert.read.integers import BUILTINS, known_divisor, parameter_values, to_sizes, value_bounds
from tunesmith.expert.read.model import (
    Each,
    KernelModel,
    Let,
    Once,
    Repeat,
    Schedule,
    Step,
    Task,
    TemplateDraft,
    When,
    all_steps,
    map_steps,
    own_parts,
)
from tunesmith.expert.write.sites import Independence, Sites, gather_independent_loops
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import used_words
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.snippets import Wording, parse_snippet
from tunesmith.source.substitution import substitute
from tunesmith.source.text import find_directives, without_comments
from tunesmith.source.types import byte_size, integer_literal
from tunesmith.space.expr import Arithmetic, Compare, Logic, Node, Num, Variable, parse_expr, unparse


class Unwritable(Exception):
    """Why a draft cannot be written as a template, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def wide_integer_type(language: str) -> str:
    """A 64-bit integer."""
    return "long" if language == "opencl" else "long long"


_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
Pairs = Iterable[tuple[str, str]]


class Names:
    """Fresh identifiers: the word asked for, or the same with a number."""

    def __init__(self, texts: Iterable[str], taken: Iterable[str] = ()) -> None:
        self._taken = {*taken, *words_in_texts(texts)}

    def fresh(self, want: str) -> str:
        return walk.fresh_name(want, self._taken)


def words_in_texts(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(without_comments(text)))


def words_in_use(text: str) -> frozenset[str]:
    """Of code without its comments; to define a macro, or to ask whether it is defined, is no use."""
    return used_words(without_comments(text))


def macro_names(problem: Problem) -> frozenset[str]:
    """Those that a build of the template still has: of the problem's defines, and of headers."""
    headers = "\n".join(text for _, text in problem.kernel.headers)
    return frozenset((*(name for name, _ in problem.kernel.defines), *_DEFINE.findall(headers)))


def parenthesize_term(text: str) -> str:
    """As a term or a factor."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def add_distinct_conditions(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """Conditions by name; a name that stands for something else already gets a number."""
    found = dict(have)
    for name, text in more:
        if text not in found.values():
            found[walk.numbered_name(name, found)] = text
    return tuple(found.items())


# What `gpu_packs.cuh` defines.
PACK_WORDS = (
    *("Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once", "settle_word"),
    *("copy_word", "commit_copies", "wait_copies"),
    *("make_barriers", "expect_bytes", "send_run", "await_run", "last_of_team"),
)
VECTOR_WORDS = ("vec", "ivec", "AS_VEC", "AS_IVEC", "unaligned", "LOAD", "STORE")  # `cpu_vectors.cl`
# Words that snippets use all over the writer.
_WORDS = (
    *("lane", "PIECE", "PIECES", "TASK_BLOCK", "TASK_BLOCKS"),  # threads and blocks
    *("task", "tasks", "first", "inside", "kept_bytes"),  # tasks, and what their loops leave in shared memory
    *("base", "CHUNK", "k", "here", "COUNT", "v", "CHAINS", "values", "own"),  # a turn, its packs, an element
    *("TEAM", "WARPS", "WAYS", "turn", "step", "mates", "count", "away", "apart"),  # totals
    *("ring", "ahead", "s", "RING_BYTES", "RING_THREADS", "arrived", "come", "phases"),  # chunks under way
    *("DIVIDED", "REMAINDER", *PACK_WORDS, *VECTOR_WORDS),  # macros, types and functions
)  # fmt: skip


@dataclass(frozen=True)
class Knob:
    """A number of the schedule: a parameter of the template, or fixed."""

    name: str  # of its macro
    values: tuple[int, ...] = (0,)
    default: int = 0
    is_parameter: bool = False

    @property
    def size_text(self) -> str:
        """For the template's expressions, which know parameters only."""
        return self.name if self.is_parameter else str(self.default)

    @property
    def most(self) -> int:
        return max(self.values)

    @property
    def least(self) -> int:
        return min(self.values)


_OFF = Knob("")  # nothing is done without a choice, and nothing printed


@dataclass(frozen=True)
class Knobs:
    """By role of the schedule: its choice, or what is done without one."""

    lanes: Knob = field(default=Knob("LANES", (128,), 128))
    tasks: Knob = field(default=Knob("TASKS", (1,), 1))
    vector: Knob = field(default=Knob("VEC", (1,), 1))
    items: Knob = field(default=Knob("ITEMS", (1,), 1))
    split: Knob = field(default=Knob("SPLIT"))
    keep: Knob = field(default=Knob("KEEP"))
    persistent: Knob = field(default=Knob("PERSIST"))
    blocking: Knob = field(default=Knob("BLOCKED", (1,), 1))
    ring: Knob = field(default=Knob("STAGES"))
    bulk: Knob = field(default=Knob("BULK"))
    beside: Knob = field(default=Knob("BESIDE"))
    bake: Knob = _OFF
    bounds: Knob = _OFF
    convert: Knob = _OFF
    divide: Knob = _OFF
    fast: Knob = _OFF
    load_hint: Knob = _OFF
    reciprocal: Knob = _OFF
    store_hint: Knob = _OFF
    unroll: Knob = _OFF

    @classmethod
    def of(cls, kernel: KernelModel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for role, closed in vars(cls()).items():
            choice, name = schedule.get(role), closed.name
            if choice is not None:
                found[role] = Knob(choice.name, choice.values, choice.default, len(choice.values) > 1)
            else:
                found[role] = replace(closed, name=names.fresh(name) if name else "")
        if "lanes" not in schedule:
            lanes = _lanes_today(kernel)
            found["lanes"] = replace(found["lanes"], values=(lanes,), default=lanes)
        return cls(**found)

    def words(self) -> dict[str, str]:
        """What macros are called in snippets -> in the code."""
        return {closed.name: vars(self)[role].name for role, closed in vars(Knobs()).items() if closed.name}


def _lanes_today(kernel: KernelModel) -> int:
    if kernel.team == "thread":
        return 1
    if isinstance(kernel.lanes, c.Number) and isinstance(kernel.lanes.value, int):
        return kernel.lanes.value
    return 32 if kernel.team == "warp" else 128


INT_MAX = 2**31 - 1
_MAX_ROUNDS = 20


@dataclass(frozen=True)
class Sizes:
    """`arguments`: an integer parameter -> what callers pass; `known`: a name -> its one definition."""

    arguments: Mapping[str, Node]
    known: Mapping[str, c.Expr]
    ranges: Mapping[str, tuple[int, int]]  # of the sizes
    steps: Mapping[str, int]  # what divides each size

    @classmethod
    def of(cls, kernel: KernelModel, problem: Problem) -> Sizes:
        arguments = parameter_values(problem, tuple(p.name for p in kernel.function.parameters))
        known = dict(kernel.source.constants) | _uniform_definitions(kernel)
        rules = problem.contract.sizes
        ranges = {r.name: r.span for r in rules}
        steps = {r.name: gcd(*r.one_of) if r.one_of else r.multiple_of for r in rules}
        return cls(arguments, known, ranges, steps)

    def node(self, expr: c.Expr) -> Node | None:
        """The expression over sizes; None where it depends on anything else."""
        for _ in range(_MAX_ROUNDS):  # a definition may name others
            known = {name: self.known[name] for name in walk.names_in(expr) if name in self.known}
            if not known:
                break
            expr = substitute(expr, known)
        text = to_sizes(expr, self.arguments)
        return None if text is None else parse_expr(text).tree

    def text(self, expr: c.Expr) -> str | None:
        found = self.node(expr)
        return None if found is None else unparse(found)

    def divisor(self, expr: c.Expr) -> int:
        """A number that divides every value it has under the contract; 0 where the value is 0."""
        found = self.node(expr)
        return 1 if found is None else known_divisor(found, self.steps)

    def is_plain(self, expr: c.Expr) -> bool:
        """Whether a condition on it would be one that sizes meet: no remainders, no cases."""
        found = self.node(expr)
        return found is not None and _is_plain_arithmetic(found)

    def most(self, expr: c.Expr) -> int | None:
        """The largest value under the contract; None where it is not known."""
        found = self.node(expr)
        known = None if found is None else value_bounds(found, self.ranges)
        return None if known is None else known[1]

    def fits_int(self, *factors: c.Expr) -> bool:
        """Whether the product of these stays well inside 32 bits."""
        product = 1
        for factor in factors:
            most = self.most(factor)
            if most is None:
                return False
            product *= max(most, 1)
        return product <= INT_MAX - 2**20  # a last step beyond the end must not overflow either


def _is_plain_arithmetic(node: Node) -> bool:
    match node:
        case Num() | Variable():
            return True
        case Arithmetic("+" | "-" | "*" | "//", left, right):
            return _is_plain_arithmetic(left) and _is_plain_arithmetic(right)
        case _:
            return False


def flatten_factors(node: Node) -> list[Node]:
    if isinstance(node, Arithmetic) and node.op == "*":
        return [*flatten_factors(node.left), *flatten_factors(node.right)]
    return [node]


def _uniform_definitions(kernel: KernelModel) -> dict[str, c.Expr]:
    """Names that uniform steps define once, and never change."""
    found: dict[str, c.Expr] = {}
    twice: set[str] = set()
    changed: set[str] = set()
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each | Let | Once):
            continue
        changed.update(walk.assigned_in(step.body))
        for stmt in walk.statements_in(step.body):
            if isinstance(stmt, c.Declare):
                twice.update({stmt.name} & found.keys())
                if isinstance(step, Let | Once) and stmt.init is not None and not stmt.is_array:
                    found[stmt.name] = stmt.init
    return {name: value for name, value in found.items() if name not in twice | changed}


@dataclass(frozen=True)
class Given:
    draft: TemplateDraft
    problem: Problem
    kernel: KernelModel  # with a number for every loop
    sizes: Sizes
    knobs: Knobs
    names: Names
    words: Wording
    arrays: Mapping[str, c.Type]  # pointer parameters
    written: frozenset[str]  # arrays the kernel writes, and their aliases
    element_align: Mapping[str, int]  # bytes at whose multiples callers promise each array to start
    independence: Independence

    @classmethod
    def of(cls, draft: TemplateDraft, problem: Problem) -> Given:
        if len(problem.launches) != 1:
            raise Unwritable("the problem launches several kernels; the writer writes one")
        apart, steps = Independence.of(draft.kernel, problem), _flat_staged(draft.kernel)
        steps = gather_independent_loops(steps, apart) if "beside" in draft.schedule else steps
        kernel = replace(draft.kernel, steps=_number_loops(steps, itertools.count()))
        _refuse_launch_words(kernel)
        texts = [problem.kernel.text, kernel.function.text, *(text for _, text in problem.kernel.headers)]
        taken = [choice.name for choice in draft.schedule.choices]
        names = Names(texts, [*taken, *problem.size_names, *macro_names(problem), *_model_names(kernel)])
        knobs = Knobs.of(kernel, draft.schedule, names)
        arrays = {p.name: p.type for p in kernel.function.parameters if p.type.is_pointer}
        # The same words for the same things all over a kernel: none that the source uses.
        words = Wording({**{word: names.fresh(word) for word in _WORDS}, **knobs.words()})
        return cls(
            draft, problem, kernel, Sizes.of(kernel, problem), knobs, names, words, arrays,
            _find_written_arrays(kernel, arrays, problem), _promised_alignments(kernel, problem), apart,
        )  # fmt: skip

    @property
    def language(self) -> str:
        return self.kernel.source.language

    @cached_property
    def lines(self) -> Mapping[str, int]:
        """Where the kernel's variables are declared."""
        declares = [s for s in walk.statements_in(self.kernel.function.body) if isinstance(s, c.Declare)]
        return {declare.name: declare.line for declare in reversed(declares)}

    @cached_property
    def file_words(self) -> frozenset[str]:
        """Words that mean something in the whole file: of macros, types, constants, functions, headers."""
        source, kernel = self.kernel.source, self.problem.kernel
        texts = [*source.preamble, *(text for _, text in kernel.headers)]
        texts += [one.rest for one in find_directives(kernel.text) if one.word == "define"]
        defined = [f.name for f in source.functions] + [declare.name for declare in source.shared]
        defined += [name for name, _ in (*source.constants, *source.aliases)]
        given = [choice.name for choice in self.draft.schedule.choices]
        return (
            words_in_texts(texts) | macro_names(self.problem) | {*defined, *given, *self.problem.size_names}
        )

    def word(self, word: str) -> str:
        """What a word of the snippets is called in this kernel."""
        return str(self.words.words[word])

    @property
    def is_flat(self) -> bool:
        return not self.kernel.tasks

    @property
    def outer(self) -> tuple[Task, ...]:
        """Further indices of the tasks that only today's grid tells the end of: axes z and y of the grid.

        Axis y is free where no task is split over several blocks. What lies along x today stays
        there: only that axis may be long."""
        unbounded = [task for task in self.kernel.tasks if walk.names_in(task.extent) & set(BUILTINS)]
        if len(unbounded) > (2 if self.knobs.split.most > 0 else 3):
            raise Unwritable(
                "several indices of the tasks end where today's grid does, and nobody tells where"
            )
        along_x = next((task for task in unbounded if "gridDim.x" in walk.names_in(task.extent)), None)
        return tuple(task for task in unbounded if task != (along_x or unbounded[0]))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The others, which become one index; one whose end nobody tells is the slowest."""
        found = [task for task in self.kernel.tasks if task not in self.outer]
        return tuple(sorted(found, key=lambda task: not walk.names_in(task.extent) & set(BUILTINS)))

    @property
    def counts_tasks(self) -> bool:
        """Whether the kernel is told how many tasks there are; else the grid must be exactly as large."""
        return not any(walk.names_in(task.extent) & set(BUILTINS) for task in self.tasks)

    @property
    def is_spread(self) -> bool:
        """Whether several blocks share a task's elements."""
        return self.is_flat or self.knobs.split.most > 0

    @property
    def has_totals(self) -> bool:
        return any(each.totals for each in loops_in(self.kernel.steps))


def loops_in(steps: Sequence[Step]) -> Iterator[Each]:
    return (step for step in all_steps(steps) if isinstance(step, Each))


def has_nested_totals(steps: Sequence[Step]) -> bool:
    """Totals that some tasks of a block may reach and others not."""
    nested = [step for step in steps if isinstance(step, When | Repeat)]
    return any(each.totals for each in loops_in(nested))


def _number_loops(steps: Sequence[Step], count: Iterator[int]) -> tuple[Step, ...]:
    """With every loop's number among all of them, in the order of `all_steps`."""
    done = list[Step]()
    for step in steps:
        match step:
            case Each():
                step = replace(step, number=next(count))
            case When():
                then = _number_loops(step.then, count)
                step = replace(step, then=then, otherwise=_number_loops(step.otherwise, count))
            case Repeat():
                step = replace(step, body=_number_loops(step.body, count))
            case _:
                pass
        done.append(step)
    return tuple(done)


def _refuse_launch_words(kernel: KernelModel) -> None:
    """The launch is ours to choose: what a step says of today's would be wrong."""
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    for node in (node for part in parts for node in walk.nodes_in(part)):
        if isinstance(node, c.Name) and node.name in BUILTINS:
            raise Unwritable(f"a step asks for {node.name}, which another launch changes")


def _model_names(kernel: KernelModel) -> Iterator[str]:
    """Every name in the steps: the reader may have made some that the source does not have."""
    yield from (name for task in kernel.tasks for name in (task.name, task.count) if name)
    yield from (staged.name for staged in kernel.staged)
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Repeat):
            yield step.index
        if isinstance(step, Each):
            yield from (total.name for total in step.totals)
        for part in own_parts(step):
            yield from walk.names_in(part)
            yield from walk.declared_in(part)


def _flat_staged(kernel: KernelModel) -> tuple[Step, ...]:
    """`row[i][c]` as `row[i * width + c]`, like any other array."""
    widths = {staged.name: staged.width for staged in kernel.staged if staged.width > 1}
    if not widths:
        return kernel.steps

    def visit(node: c.Expr) -> c.Expr:
        match node:
            case c.Index(base=c.Index(base=c.Name(name=name), index=index), index=place) if name in widths:
                width = widths[name]
                product = c.Binary("*", index, c.Number(str(width), width))
                return c.Index(c.Name(name), c.Binary("+", product, place))
        return node

    return map_steps(
        kernel.steps,
        lambda step: replace(step, body=walk.map_nodes(step.body, visit)) if isinstance(step, Each) else step,
    )


def _find_written_arrays(
    kernel: KernelModel, arrays: Mapping[str, c.Type], problem: Problem
) -> frozenset[str]:
    by_name = dict(zip(problem.launches[0].args, (p.name for p in kernel.function.parameters), strict=False))
    found: set[str] = set()
    for argument in problem.arguments:
        name = by_name.get(argument.name, argument.name)
        if argument.is_written or argument.role == "workspace" or argument.alias is not None:
            found.add(name)
            if argument.alias is not None:
                found.add(by_name.get(argument.alias, argument.alias))
    # What the model stores to, whatever the problem says of it.
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Once):
            sites = Sites.of(step.body, arrays)
            found |= sites.escaped | sites.stored
    return frozenset(found & arrays.keys())


def _promised_alignments(kernel: KernelModel, problem: Problem) -> dict[str, int]:
    """Bytes at whose multiples callers promise each array to start."""
    found: dict[str, int] = {}
    for parameter, name in zip(kernel.function.parameters, problem.launches[0].args, strict=False):
        argument = problem.argument(name)
        if parameter.type.is_pointer:
            element_bytes = byte_size(parameter.type.base) or 1  # what the source itself relies on
            found[parameter.name] = max(argument.align or argument.element.bytes, element_bytes)
    return found


def at_line(stmts: Iterable[c.Stmt], line: int) -> tuple[c.Stmt, ...]:
    """Made from what stood there: the first of them has its comments."""
    found = tuple(stmts)
    return (replace(found[0], line=line), *found[1:]) if found else ()


class SourceComments:
    """By line: a statement may become another, or a step of the model, and has its line still.

    A loop that is printed in several forms has its comments in the first of them."""

    def __init__(self, source: c.Source) -> None:
        self._by_line: dict[int, list[c.Comment]] = {}
        for stmt in (stmt for function in source.functions for stmt in walk.statements_in(function.body)):
            if stmt.comments:
                self._by_line.setdefault(stmt.line, []).extend(stmt.comments)

    def statements(self, stmts: Iterable[c.Stmt]) -> tuple[c.Stmt, ...]:
        """With the comments of their lines, and those that are ours."""
        return tuple(walk.map_blocks(self._told(stmt), self.statements) for stmt in stmts)

    def _told(self, stmt: c.Stmt) -> c.Stmt:
        ours = [said for said in stmt.comments if not said.line]
        theirs = self._by_line.pop(stmt.line, [])
        if isinstance(stmt, c.Alternative):  # what closes the line of an #if is about the choice
            theirs = [replace(said, behind=False) for said in theirs]
        return replace(stmt, comments=(*ours, *theirs))


def render_template_part(file: str, name: str, **words: str) -> str:
    """A part of a file, with words in the places of @WORD@."""
    return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1)], _load_file_parts(file)[name])


@cache
def _load_file_parts(file: str) -> dict[str, str]:
    text = resources.files("tunesmith.expert.write").joinpath(file).read_text(encoding="utf-8")
    return dict(one.split("\n", 1) for one in text.split("//= ")[1:])


Conditions = tuple[tuple[str, str], ...]


def merge_setting_conditions(conditions: Pairs) -> Conditions:
    """`A == 0 or V` and `A == 0 or W` as `A == 0 or V and W`: where the first of them stood, by its name."""
    found: dict[str, Node] = {}
    settings: dict[Node, tuple[str, dict[Node, None]]] = {}  # -> the first condition, and what all ask for
    for name, text in conditions:
        tree = parse_expr(text).tree
        match tree:
            case Logic("or", (Compare(Variable(), (("==", Num()),)) as setting, *rest)):
                asked = rest[0] if len(rest) == 1 else Logic("or", tuple(rest))
                is_all = isinstance(asked, Logic) and asked.op == "and"
                first, parts = settings.setdefault(setting, (name, {}))
                parts |= dict.fromkeys(asked.operands if is_all and isinstance(asked, Logic) else (asked,))
                found[first] = tree if first == name else Logic("or", (setting, Logic("and", tuple(parts))))
            case _:
                found[name] = tree
    return tuple((name, unparse(tree)) for name, tree in found.items())


# -- Loop nests as data: axes from the outermost to the innermost, and the one place that prints them.
#
# An axis says which values an index takes here. Who takes the others is in where it starts and how it steps:
#
#     tasks of a block        first = TASK_BLOCK * TASKS, on by TASK_BLOCKS * TASKS    serial
#     turns of a thread       base = lane * VEC, on by CHUNK                           serial
#     packs of a turn         k below ITEMS, `own`: here = base + k * (LANES * VEC)    registers: unrolled
#     elements of a pack      v below VEC, `own`: i = here + v                         registers: unrolled
#     tasks taken at once     r below BLOCKED, `own`: the task's index                 registers: unrolled
#     chunks under way        s below STAGES                                           registers: unrolled


Body = Sequence[c.Stmt]
_ZERO, _ONE = integer_literal(0), integer_literal(1)


@dataclass(frozen=True)
class LoopAxis:
    name: str
    stop: c.Expr
    start: c.Expr = _ZERO
    step: c.Expr = _ONE
    type: str = "int"
    unrolled: bool = False  # whole, so that arrays it goes through stay in registers
    own: tuple[c.Stmt, ...] = ()  # what follows from its value
    within: c.Expr | None = None  # that there is something to do at its value

    def over(self, body: Body) -> tuple[c.Stmt, ...]:
        inside = tuple(body) if self.within is None else (c.If(self.within, tuple(body)),)
        text = "for (T i = start; i < stop; i++) { own; inside; }"
        if self.step != _ONE:
            text = text.replace("i++", "i += step")
        return parse_snippet(
            f"#pragma unroll\n{text}" if self.unrolled else text, T=self.type, i=self.name, start=self.start,
            stop=self.stop, step=self.step, own=self.own, inside=inside,
        )  # fmt: skip

    def at_start(self, body: Body = ()) -> tuple[c.Stmt, ...]:
        """A block in place of the loop, where there is one value only."""
        first = parse_snippet("const T i = start;", T=self.type, i=self.name, start=self.start)
        return (c.Scope((*first, *body)),)


def nest_loops(axes: Sequence[LoopAxis], body: Body) -> tuple[c.Stmt, ...]:
    """The body for every value of all axes; the first is the outermost."""
    for axis in reversed(axes):
        body = axis.over(body)
    return tuple(body)


def item_axis(name: str, count: c.Expr, first: Body = (), within: c.Expr | None = None) -> LoopAxis:
    """So many places of an array in registers."""
    return LoopAxis(name, count, unrolled=True, own=tuple(first), within=within)
