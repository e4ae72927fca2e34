"""A draft as the text of a template file: one kernel, every choice of its schedule a macro."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.read.contract import is_of_entry
from tunesmith.expert.read.model import Each, Let, Once, ParameterChoice, Repeat, Step, TemplateDraft, When
from tunesmith.expert.write.cpu import CpuLoops
from tunesmith.expert.write.fast_math import (
    FastMath,
    helper_text,
    known_types,
    preamble_lines,
    used_functions,
)
from tunesmith.expert.write.given import (
    Knob,
    LoopAxis,
    Pairs,
    SourceComments,
    add_distinct_conditions,
    at_line,
    merge_setting_conditions,
    wide_integer_type,
    words_in_use,
)
from tunesmith.expert.write.horizontal_fusion import SideBySide
from tunesmith.expert.write.loops import add_unroll_pragmas
from tunesmith.expert.write.names import SourceNames, with_plain_names
from tunesmith.expert.write.plan import WritingPlan, make_plan
from tunesmith.expert.write.ring import RingLoops
from tunesmith.expert.write.rules import Baked, block_sizes, blocks_text, grid_sizes, rules_of, shared_bytes
from tunesmith.expert.write.tile import TileText
from tunesmith.problem.default_rules import settled_shape, shape_entries, usual_name
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.reduced import without_unused
from tunesmith.problem.template import WORD, Shape, fill_placeholders, find_block
from tunesmith.problem.template_file import (
    DeclaredParam,
    Tables,
    expression_list_lines,
    format_declaration,
    shared_line,
)
from tunesmith.source import tree as c
from tunesmith.source.printing import print_function, print_kernel, print_statements
from tunesmith.source.snippets import Wording, chain_operator, parse_snippet
from tunesmith.source.walk import names_in, prepend_comments
from tunesmith.space.expr import Node, Variable, operands_of_node, parse_expr, unparse
from tunesmith.space.space import bind_and_simplify, substitute_trees

# What of the kernel a choice makes worth saying, by its role.
_SAID_FOR = {
    "element": ("vector",), "loaded": ("items",), "kept": ("keep",), "copied": ("ring",),
    "own": ("blocking",), "alike": ("blocking",), "tasks": ("keep",), "rows": ("persistent", "blocking"),
    "beside": ("beside",), "piece": ("bulk",),
}  # fmt: skip
_LONG = 24  # letters that are worth a name


def declared_params(choices: Iterable[ParameterChoice]) -> list[DeclaredParam]:
    """What has one value is no parameter."""
    several = [c for c in choices if len(c.values) > 1]
    return [DeclaredParam(c.name, tuple(c.values), c.default, c.categorical, c.note) for c in several]


def fixed_values(choices: Iterable[ParameterChoice]) -> dict[str, int]:
    """Of choices that have one value."""
    return {c.name: c.default for c in choices if len(c.values) == 1}


def settled_pairs(conditions: Pairs, fixed: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """With known values in them; what holds anyway is left out."""
    found = [(name, bind_and_simplify(parse_expr(text), fixed).text) for name, text in conditions]
    return tuple((name, text) for name, text in found if text != "1")


@dataclass(frozen=True)
class Heading:
    """A template's declaration, before it is text."""

    params: tuple[DeclaredParam, ...]
    conditions: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # by table: each with its name
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    launches: tuple[tuple[str, ...], ...] = ()  # the lines of each, below its title
    shape: Tables | None = None
    baked: Tables = ()
    in_code: frozenset[str] = frozenset()  # words that the code uses

    def lines(self) -> list[str]:
        title = "[[launch]]" if len(self.launches) > 1 else "[launch]"
        return format_declaration(
            self.params,
            self.conditions,
            self.defines,
            self.flags,
            [line for launch in self.launches for line in (title, *launch)],
            shape=self.shape,
            baked=self.baked,
            in_code=self.in_code,
        )


def template_heading(plan: WritingPlan, baked: Baked, in_code: Collection[str]) -> Heading:
    """`in_code`: words that the code uses."""
    draft, choices = plan.draft, plan.draft.schedule.choices
    fixed, number = fixed_values(choices), plan.draft.number
    facts = _shape_facts(plan, fixed) if draft.moves else None
    long = [(name, text) for name, text in facts or () if len(text) > _LONG]
    table = f"shape.{number}" if number else "shape"
    names: dict[Node, Node] = {parse_expr(text).tree: Variable(f"{table}.{name}") for name, text in long}

    def in_facts(text: str) -> str:
        return unparse(substitute_trees(bind_and_simplify(parse_expr(text), fixed).tree, names))

    require = settled_pairs(add_distinct_conditions((), (*rules_of(plan), *draft.require)), fixed)
    insert = {name: str(value) for name, value in fixed.items()}
    baking = baked.switch and baked.switch not in fixed and baked.declared()
    is_set = baked.switch in fixed  # a build without a choice
    sizes = [(n, text if fixed[baked.switch] else "0") for n, text in baked.declared()] if is_set else []
    return Heading(
        tuple(declared_params(choices)),
        (
            ("require", tuple((name, in_facts(text)) for name, text in merge_setting_conditions(require))),
            ("prefer", settled_pairs(draft.prefer, fixed)),
            ("answers", settled_pairs(draft.answers, fixed)),
        ),
        (*((s.macro, s.value) for s in baked.always), *sizes),
        tuple(fill_placeholders(flag, insert) for flag in draft.build_flags),
        (tuple(_kernel_launch_lines(plan, in_facts)),),
        None if facts is None else [(table, shape_entries(_settle_shape_facts(facts, fixed, number)))],
        [(baked.switch, baked.declared())] if baking else [],
        frozenset(in_code),
    )


def _kernel_launch_lines(plan: WritingPlan, said: Callable[[str], str]) -> Iterator[str]:
    """What the kernel itself decides of its launch."""
    yield from expression_list_lines("grid", [said(text) for text in grid_sizes(plan)])
    yield from expression_list_lines("block", [said(text) for text in block_sizes(plan)])
    if text := shared_bytes(plan):
        yield from shared_line(said(text))
    if plan.kernel.waits:
        yield "pdl = true"


def own_launch(plan: WritingPlan, lines: Sequence[str]) -> tuple[str, ...]:
    """The one launch of a problem: what is as the problem has it is not said again."""
    problem, launch = plan.problem, plan.problem.launches[0]
    entry = plan.kernel.function.name
    named = () if launch.entry == entry else (f'entry = "{entry}"',)
    return (*named, *lines, *said_of_launch(launch, [a.name for a in problem.arguments]))


def said_of_launch(launch: Launch, usual: Sequence[str] = ()) -> Iterator[str]:
    """When it is made and with what, unless these are the arguments that are passed anyway."""
    passed = [name for name in launch.args if not is_of_entry(name)]
    if passed != [name for name in usual if not is_of_entry(name)]:
        yield from expression_list_lines("args", passed)
    if launch.when is not None:
        yield f"when = {toml_string(launch.when.text)}"


def _shape_facts(plan: WritingPlan, fixed: Mapping[str, int]) -> list[tuple[str, str]]:
    """Of `draft.shape` what the choices need, and what the launch says more than once."""
    roles = plan.draft.schedule
    needed = [p for p in plan.draft.shape if any(role in roles for role in _SAID_FOR.get(p[0], roles))]
    found = [
        (name, text if name == "kind" else bind_and_simplify(parse_expr(text), fixed).text)
        for name, text in needed
    ]
    blocks = blocks_text(plan)
    if blocks is not None:
        tree = bind_and_simplify(parse_expr(blocks), fixed).tree
        launch = [bind_and_simplify(parse_expr(text), fixed).tree for text in grid_sizes(plan)]
        text = unparse(tree)
        if len(text) > _LONG and sum(_count_subtrees(whole, tree) for whole in launch) > 1:
            found.append(("blocks", text))
    return found


def _count_subtrees(node: Node, part: Node) -> int:
    return int(node == part) or sum(_count_subtrees(child, part) for child in operands_of_node(node))


def _settle_shape_facts(facts: Pairs, fixed: Mapping[str, int], number: str) -> Shape:
    said = dict(facts)
    on_cpu = said.pop("kind", "gpu") == "cpu"
    return settled_shape(Shape(said, {}, on_cpu), fixed, number)


# As assembly: NVRTC has functions for these only with the header of the device's runtime.
_WAIT = c.Verbatim('asm volatile("griddepcontrol.wait;" ::: "memory");')
_START = c.Verbatim('asm volatile("griddepcontrol.launch_dependents;" ::: "memory");')
_HAS_WAITS = "__CUDA_ARCH__ >= 900"


class KernelText:
    def __init__(self, plan: WritingPlan, fast: FastMath, baked: Baked, loops: RingLoops | CpuLoops) -> None:
        self._plan, self._fast, self._baked, self.loops = plan, fast, baked, loops
        self._w, self._tasks = loops.words, c.Name(plan.word("tasks"))

    def defines(self) -> tuple[c.Stmt, ...]:
        plan, define = self._plan, self._w.define
        pieces = (define("PIECE", "blockIdx.x"), define("PIECES", "gridDim.x"))
        alone = (define("PIECE", "0"), define("PIECES", "1"))

        def rows(axis: str) -> tuple[c.Stmt, ...]:
            return (define("TASK_BLOCK", f"blockIdx.{axis}"), define("TASK_BLOCKS", f"gridDim.{axis}"))

        found: tuple[c.Stmt, ...] = pieces if plan.is_flat else rows("x")
        if not plan.is_flat and plan.knobs.split.most > 0:
            said = "blocks side by side on one task"
            found = self._w.when("SPLIT", (*pieces, *rows("y")), (*alone, *rows("x")), said)
        return (*found, *self.loops.defines())

    def text(self) -> str:
        plan = self._plan
        function = plan.kernel.function
        scope = {p.name for p in function.parameters}
        parameters = self._baked.without_baked(self._parameters())
        macros = names_in(self.defines())
        taken = frozenset({*macros, *plan.file_words, *(p.name for p in parameters)})
        body = (
            *self._overlap_statements(),
            *self._baked.declare(),
            *SourceNames.of(function, plan.language).in_body(
                (*self.loops.declare(), *self._work(scope)), taken, self.loops.division.functions
            ),
        )
        named = with_plain_names(body, [p.name for p in parameters], plan.file_words, macros)
        made = replace(
            function, parameters=parameters, body=SourceComments(plan.kernel.source).statements(named)
        )
        return print_kernel(made, self._head(), plan.language)

    def _overlap_statements(self) -> tuple[c.Stmt, ...]:
        """The wait for the launch ahead, before all else; then the launch behind may start."""
        order, waits = self._plan.draft.order, self._plan.kernel.waits
        done = list[c.Stmt]()
        if condition := order.waits_if or (_HAS_WAITS if waits else ""):
            done += Wording({}).when(condition, (_WAIT,), said="the launch ahead has ended")
        if order.starts_if:
            done += Wording({}).when(order.starts_if, (_START,))
        return tuple(done)

    def _work(self, scope: set[str]) -> tuple[c.Stmt, ...]:
        if "tile" in self._plan.draft.schedule:
            return TileText(self._plan, self._fast).text()
        is_flat, steps = self._plan.is_flat, self._plan.kernel.steps
        return self._steps(steps, scope) if is_flat else self._over_tasks(scope)

    def _head(self) -> str:
        knobs = self._plan.knobs
        threads = knobs.lanes.name
        if knobs.tasks.is_parameter or knobs.tasks.default > 1:
            threads = f"{threads} * {knobs.tasks.name}"
        if self._plan.language == "opencl":
            size = f"reqd_work_group_size({knobs.lanes.name}, {knobs.tasks.name}, 1)"
            return f"__kernel __attribute__(({size})) void"
        head = 'extern "C" __global__ void __launch_bounds__'
        if not knobs.bounds.is_parameter:
            return f"{head}({threads})"
        if self._plan.language == "hip":
            return f"{head}({threads}) __attribute__((amdgpu_waves_per_eu({knobs.bounds.name})))"
        return f"{head}({threads}, {knobs.bounds.name})"

    def _parameters(self) -> list[c.Parameter]:
        """`__restrict__` where callers promise that no two arrays overlap."""
        plan = self._plan
        disjoint = all(argument.alias is None for argument in plan.problem.arguments)
        # What a launch ahead writes may not be read before the wait.
        handed = plan.draft.order.handed

        def promised(p: c.Parameter) -> c.Parameter:
            if not p.type.is_pointer or not (disjoint or p.name in handed):
                return p
            return replace(p, type=replace(p.type, restrict=p.name not in handed))

        return list(map(promised, plan.kernel.function.parameters))

    def _over_tasks(self, scope: set[str]) -> tuple[c.Stmt, ...]:
        plan, knobs, w = self._plan, self._plan.knobs, self._w
        extents = [plan.blocking.extent(task) for task in plan.tasks]
        most = [task.extent for task in plan.tasks]  # there are as many teams, or fewer
        fits = plan.sizes.fits_int(*most, c.Number("2", 2)) if plan.counts_tasks else True
        type_ = "int" if fits else wide_integer_type(plan.language)
        count = w.expr("(T)TASK_BLOCKS * TASKS", T=type_)
        if plan.counts_tasks:
            first = extents[0] if fits else c.Cast(c.Type(type_), extents[0])
            count = chain_operator("*", first, *extents[1:])
        several = ["PERSIST"] if knobs.persistent.most > 0 else []
        if knobs.split.most > 0 and plan.counts_tasks:  # else there is a block for every task
            several.append("SPLIT")
        body = (
            *self._task_names(type_),
            *self._shared_rows(),
            *self._steps(plan.kernel.steps, scope | {task.name for task in plan.kernel.tasks}),
        )
        first, step = (w.expr(text, T=type_) for text in ("(T)TASK_BLOCK * TASKS", "(T)TASK_BLOCKS * TASKS"))
        turns = LoopAxis(plan.word("first"), self._tasks, first, step, type_)
        whole = turns.at_start(body)
        if several:
            said, goes_on = "blocks go on to further tasks", w.expr(" || ".join(several))
            comments = (c.Comment(said, behind=True),)
            whole = (c.Alternative(goes_on, turns.over(()), turns.at_start(), body, comments=comments),)
        return (*w.code("const T tasks = count;", T=type_, count=count), *prepend_comments(whole, (c.BLANK,)))

    def _task_names(self, type_: str) -> tuple[c.Stmt, ...]:
        plan, w = self._plan, self._w
        place = w.expr("first + (T)threadIdx.y" if plan.knobs.tasks.most > 1 else "first", T=type_)
        truth = "int" if plan.language == "opencl" else "bool"
        text = "const T task = place;"
        if plan.guards:
            text = """const U inside = place < tasks;  // the last block may lack tasks
                const T task = inside ? place : tasks - 1;"""
        elif plan.knobs.tasks.most > 1:
            text += "if (task >= tasks) return;"
        done = [*w.code(text, T=type_, U=truth, place=place)]
        for outer, axis in zip(plan.outer, "zy", strict=False):
            done += _declare_if_named(outer.type, outer.name, c.Name(f"blockIdx.{axis}"))
            done += _declare_if_named("unsigned int", outer.count, c.Name(f"gridDim.{axis}"))
        names, rest = list(plan.tasks), w.expr("task")
        extents = [plan.blocking.extent(task) for task in names]
        for number, (task, extent) in enumerate(zip(reversed(names), reversed(extents), strict=True)):
            value = rest if number == len(names) - 1 else c.Binary("%", rest, extent)
            value = value if task.type == type_ else c.Cast(c.Type(task.type), value)
            # Nobody tells its count, so it is the slowest, and the grid is exactly as large.
            count = (
                c.Binary("/", self._tasks, chain_operator("*", *extents[1:])) if extents[1:] else self._tasks
            )
            name = task.name
            if task == plan.blocking.task:
                name, several = plan.blocking.start, c.Name(plan.blocking.count)
                value, count = c.Binary("*", value, several), c.Binary("*", count, several)
            done += at_line(_declare_if_named(task.type, name, value), plan.lines.get(task.name, 0))
            rest = c.Binary("/", rest, extent)
            done += _declare_if_named("unsigned int", task.count, count)
        return tuple(done)

    def _shared_rows(self) -> tuple[c.Stmt, ...]:
        plan, w, blocking = self._plan, self._w, self._plan.blocking
        if not plan.shared:
            return ()
        done = [*w.code("extern __shared__ __align__(16) unsigned char kept_bytes[];")]
        before = w.expr("kept_bytes + RING_BYTES" if self.loops.ring else "kept_bytes")
        for row in plan.shared:
            at = w.expr("before + threadIdx.y * size", before=before, size=row.bytes)
            if blocking.task is None:
                done += parse_snippet("T *row = (T *)at;", T=row.type.base, row=row.name, at=at)
                before = w.expr("before + TASKS * size", before=before, size=row.bytes)
                continue
            mine = blocking.words.expr("at + r * TASKS * size", at=at, size=row.bytes)
            pointer = c.Type(row.type.base, 1)
            done += blocking.declared(c.Declare(pointer, row.name, c.Cast(pointer, mine)))
            before = w.expr("before + BLOCKED * TASKS * size", before=before, size=row.bytes)
        kept = w.when("!KEEP" if plan.keeps_staged else "", done)
        return prepend_comments(kept, (c.Comment("What a loop leaves for a later one."),))

    def _steps(self, steps: Sequence[Step], scope: set[str]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for step in steps:
            match step:
                case Each():
                    done += self.loops.write(self._plan.loop(step), scope)
                case Let(body=body):
                    done += self._plan.blocking.team_values(self._statements(body))
                case Once(body=body):
                    several = self._plan.is_flat or self._plan.knobs.split.most > 0
                    alone = " && PIECE == 0" if several else ""
                    condition = self._w.expr(f"lane == 0{alone}{' && inside' if self._plan.guards else ''}")
                    done += self._plan.blocking.over([c.If(condition, self._statements(body))])
                case When(condition=condition, then=then, otherwise=otherwise):
                    yes, no = (self._steps(part, set(scope)) for part in (then, otherwise))
                    done.append(c.If(condition, yes, no, line=step.line))
                case Repeat():
                    inner = self._steps(step.body, scope | {step.index})
                    turns = LoopAxis(step.index, step.stop, step.start, step.step, step.type)
                    done += at_line(turns.over(inner), step.line)
        return tuple(done)

    def _statements(self, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        stmts, _ = self._fast.statements(body, known_types(self._plan.kernel))
        return add_unroll_pragmas(stmts, self._plan)


def _declare_if_named(type_: str, name: str, value: c.Expr) -> tuple[c.Stmt, ...]:
    """Nothing where there is no name for it."""
    return (c.Declare(c.Type(type_, const=True), name, value),) if name else ()


_USING = ("", "[defines]", "[build]", "[launch]")  # tables whose words are uses; "": build.flags
_OF_CODE = frozenset(("VEC", "ITEMS"))


def default_lines(name: str, value: object) -> tuple[str, ...]:
    """A macro's value where a build gives it none."""
    return f"#ifndef {name}", f"#define {name} {value}", "#endif"


def _table_lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a template's declaration, each with the title above it."""
    title = ""
    for line in find_block(text, "template").toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        yield title, "" if line.startswith("[") else line


def declared_parameters(text: str) -> list[tuple[str, str]]:
    """Name and line of each parameter, with the remark behind it."""
    lines = [line for title, line in _table_lines(text) if title == "[params]"]
    return [(name, " ".join(line.split())) for line in lines for name in _declared_parameter_names(line)]


def _declared_parameter_names(line: str) -> list[str]:
    """Of a parameter, or of several that are declared alike: `"LANES_1, LANES_2" = [32, 64]`."""
    return WORD.findall(line.split('"')[1]) if line.startswith('"') else WORD.findall(line)[:1]


def unused_choices(choices: Iterable[ParameterChoice], text: str) -> list[ParameterChoice]:
    """Those that a template's text does not declare, or has nowhere in its code, its launch or its flags.

    What has one value is no parameter, and not meant. How much a thread takes at once is the code's to say:
    in the launch alone it only changes how many blocks there are."""
    words = {word for title, line in _table_lines(text) if title in _USING for word in WORD.findall(line)}
    words = {word for word in words if usual_name(word)[0] not in _OF_CODE}
    used = {name for name, _ in declared_parameters(text)} & (words | words_in_use(text))
    return [choice for choice in choices if choice.name not in used and len(choice.values) > 1]


def render_draft(draft: TemplateDraft, problem: Problem) -> str:
    """The template's text; raises `Unwritable`, with the reason, where the scheme does not carry.

    Choices that change nothing in this kernel are left out, and what is said of them holds for their default.
    """
    text = _render_draft_page(draft, problem)
    idle = unused_choices(draft.schedule.choices, text)
    return _render_draft_page(drop_choices(draft, idle), problem) if idle else text


@dataclass(frozen=True)
class KernelPage:
    """A kernel of a template before it is text: what a file says of it, and its code piece by piece."""

    plan: WritingPlan
    heading: Heading  # its one launch as far as the kernel itself decides of it
    preamble: tuple[str, ...]  # what it takes of the user's file
    code: tuple[str, ...]  # the last is the kernel

    @property
    def entry(self) -> str:
        return self.plan.kernel.function.name


def page_of(draft: TemplateDraft, problem: Problem) -> KernelPage:
    plan = make_plan(draft, problem)
    on_cpu, fast, baked = plan.language == "opencl", fast_math(plan), Baked.of(plan)
    loops = CpuLoops(plan, fast) if on_cpu else SideBySide(plan, fast)
    scalar = FastMath(plan.language, plan.names) if on_cpu else fast  # a CPU's fast forms are for vectors
    kernel, helpers = KernelText(plan, scalar, baked, loops), helper_texts(plan, scalar)
    body = kernel.text()  # first of all: it asks for macros and functions
    functions = [print_function(function, plan.language).strip() for function in loops.functions()]
    macros = (fast.macros([*helpers, *functions, body]), loops.division.macros())
    defines = print_statements(kernel.defines(), 0, plan.language)
    code = (
        *("\n".join(default_definitions(plan, baked)), defines, *loops.before()),
        *(*macros, *helpers, *functions, body),
    )
    above = forward_declare_helpers(preamble_lines(plan.kernel.source), helpers)
    return KernelPage(plan, template_heading(plan, baked, ()), tuple(above), code)


def forward_declare_helpers(lines: Sequence[str], helpers: Iterable[str]) -> list[str]:
    """What stands above all else, with a declaration of each helper that a type there calls."""
    done = list(lines)
    for helper in helpers:
        head = helper.partition("{")[0].strip()
        name = re.search(r"(\w+)\s*\(", head)
        if name is None or "#" in head or "=" in head:
            continue
        calls = re.compile(rf"\b{name[1]}\s*\(")
        at = next((at for at, line in enumerate(done) if calls.search(line)), None)
        if at is not None:
            done.insert(at, f"{head};")
    return done


def _render_draft_page(draft: TemplateDraft, problem: Problem) -> str:
    page = page_of(draft, problem)
    # Of macros, helpers and their methods only what some configuration uses.
    text = without_unused(pieces_text(("\n".join(page.preamble), *page.code)), ())
    launch = own_launch(page.plan, page.heading.launches[0])
    heading = replace(page.heading, launches=(launch,), in_code=in_code(draft.schedule.choices, text))
    return "\n".join([*heading.lines(), *about_comment(page.plan), "", text])


def pieces_text(pieces: Iterable[str]) -> str:
    return "\n\n".join(piece.rstrip("\n") for piece in pieces if piece.strip()) + "\n"


def in_code(choices: Iterable[ParameterChoice], text: str) -> frozenset[str]:
    """Parameters whose defaults the text has."""
    return frozenset(choice.name for choice in choices if f"#ifndef {choice.name}\n" in text)


def drop_choices(draft: TemplateDraft, idle: Sequence[ParameterChoice]) -> TemplateDraft:
    """The draft without some of its choices; conditions are taken at their defaults."""
    values = {choice.name: choice.default for choice in idle}
    gone = [role for role, choice in draft.schedule.items() if choice in idle]
    return replace(
        draft,
        schedule=draft.schedule.without(*gone),
        require=settled_pairs(draft.require, values),
        prefer=settled_pairs(draft.prefer, values),
        answers=settled_pairs(draft.answers, values),
        shape=tuple(
            (name, text if name == "kind" else bind_and_simplify(parse_expr(text), values).text)
            for name, text in draft.shape
        ),
    )


def fast_math(plan: WritingPlan) -> FastMath:
    knobs, source = plan.knobs, plan.kernel.source
    functions = tuple(f for f in source.functions if not f.template)
    return FastMath(
        plan.language, plan.names, knobs.fast.name, knobs.reciprocal.name, functions, dict(source.aliases)
    )


def helper_texts(plan: WritingPlan, fast: FastMath) -> list[str]:
    hardware = dict(plan.draft.hardware)
    return [
        helper_text(function, fast, plan.language, hardware.get(function.name, ""), plan.knobs.convert.name)
        for function in used_functions(plan.kernel)
    ]


def default_definitions(plan: WritingPlan, baked: Baked) -> list[str]:
    """Parameters with their defaults; what is no parameter is a plain constant."""
    lines: list[str] = []
    fixed = fixed_values(plan.draft.schedule.choices)
    for choice in plan.draft.schedule.choices:
        lines += default_lines(choice.name, choice.default) if choice.name not in fixed else ()
    for size in baked.sizes:
        lines += default_lines(size.macro, 0)
    for size in baked.always:
        value = parse_expr(size.value).evaluate(plan.problem.workloads[0].as_dict())
        lines += default_lines(size.macro, value)
    knobs: list[Knob] = list(vars(plan.knobs).values())
    fixed |= {knob.name: knob.default for knob in knobs if knob.name and not knob.is_parameter}
    return lines + [f"#define {name} {value}" for name, value in fixed.items()]


def about_comment(plan: WritingPlan) -> list[str]:
    """What the file is, for whoever opens it."""
    moves = f"Written by Tunesmith from {plan.problem.kernel.path.rsplit('/', 1)[-1]}."
    return ["//", f"// {plan.problem.name}: {moves}", f"// {how_shared(plan)}"]


def how_shared(plan: WritingPlan) -> str:
    """How the kernel's threads share its work, in a sentence."""
    if plan.is_flat:
        return "Elements stand alone: blocks take runs of them, threads neighbouring vectors of a run."
    if "tile" in plan.draft.schedule:
        return "A block takes a tile: along one axis into shared memory, along another out of it."
    over = ", ".join(task.name for task in plan.kernel.tasks)
    return f"A task is one ({over}); {plan.knobs.lanes.name} threads share it."
