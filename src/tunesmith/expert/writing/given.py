"""What is known of a kernel before anything is decided: its steps, sizes, names, arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.csource.lex import directives
from tunesmith.csource.nodes import Binary, Declare, Expr, Index, Name, Number, Type
from tunesmith.csource.snippets import Wording
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import declared_in, map_nodes, names_in, nodes_in, statements_in
from tunesmith.expert.model.affine import BUILTINS
from tunesmith.expert.model.kernel import (
    Each,
    KernelModel,
    Once,
    Repeat,
    Step,
    Task,
    TemplateDraft,
    When,
    all_steps,
    map_steps,
    own_parts,
)
from tunesmith.expert.writing.naming import Knobs, Names, Unwritable, macro_names, wording, words_of
from tunesmith.expert.writing.sites import Independence, Sites, gathered
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.problem.problem import Problem


@dataclass(frozen=True)
class Given:
    draft: TemplateDraft
    problem: Problem
    kernel: KernelModel  # with a number for every loop
    sizes: Sizes
    knobs: Knobs
    names: Names
    words: Wording
    arrays: Mapping[str, Type]  # pointer parameters
    written: frozenset[str]  # arrays the kernel writes, and their aliases
    element_align: Mapping[str, int]  # bytes at whose multiples callers promise each array to start
    independence: Independence

    @classmethod
    def of(cls, draft: TemplateDraft, problem: Problem) -> Given:
        if len(problem.launches) != 1:
            raise Unwritable("the problem launches several kernels; the writer writes one")
        apart, steps = Independence.of(draft.kernel, problem), _flat_staged(draft.kernel)
        steps = gathered(steps, apart) if "beside" in draft.schedule else steps
        kernel = replace(draft.kernel, steps=_numbered(steps, itertools.count()))
        _refuse_launch_words(kernel)
        texts = [problem.kernel.text, kernel.function.text, *(text for _, text in problem.kernel.headers)]
        taken = [choice.name for choice in draft.schedule.choices]
        names = Names(texts, [*taken, *problem.size_names, *macro_names(problem), *_model_names(kernel)])
        knobs = Knobs.of(kernel, draft.schedule, names)
        arrays = {p.name: p.type for p in kernel.function.parameters if p.type.is_pointer}
        return cls(
            draft, problem, kernel, Sizes.of(kernel, problem), knobs, names, wording(knobs, names), arrays,
            _written(kernel, arrays, problem), _alignments(kernel, problem), apart,
        )  # fmt: skip

    @property
    def language(self) -> str:
        return self.kernel.source.language

    @cached_property
    def lines(self) -> Mapping[str, int]:
        """Where the kernel's variables are declared."""
        declares = [s for s in statements_in(self.kernel.function.body) if isinstance(s, Declare)]
        return {declare.name: declare.line for declare in reversed(declares)}

    @cached_property
    def file_words(self) -> frozenset[str]:
        """Words that mean something in the whole file: of macros, types, constants, functions, headers."""
        source, kernel = self.kernel.source, self.problem.kernel
        texts = [*source.preamble, *(text for _, text in kernel.headers)]
        texts += [one.rest for one in directives(kernel.text) if one.word == "define"]
        own = [f.name for f in source.functions] + [declare.name for declare in source.shared]
        own += [name for name, _ in (*source.constants, *source.aliases)]
        given = [choice.name for choice in self.draft.schedule.choices]
        return words_of(texts) | macro_names(self.problem) | {*own, *given, *self.problem.size_names}

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
        there: only that axis may be long.
        """
        unbounded = [task for task in self.kernel.tasks if names_in(task.extent) & set(BUILTINS)]
        if len(unbounded) > (2 if self.knobs.split.most > 0 else 3):
            raise Unwritable(
                "several indices of the tasks end where today's grid does, and nobody tells where"
            )
        along_x = next((task for task in unbounded if "gridDim.x" in names_in(task.extent)), None)
        return tuple(task for task in unbounded if task != (along_x or unbounded[0]))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The others, which become one index; one whose end nobody tells is the slowest."""
        found = [task for task in self.kernel.tasks if task not in self.outer]
        return tuple(sorted(found, key=lambda task: not names_in(task.extent) & set(BUILTINS)))

    @property
    def counts_tasks(self) -> bool:
        """Whether the kernel is told how many tasks there are; else the grid must be exactly as large."""
        return not any(names_in(task.extent) & set(BUILTINS) for task in self.tasks)

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


def _numbered(steps: Sequence[Step], count: Iterator[int]) -> tuple[Step, ...]:
    """With every loop's number among all of them, in the order of `all_steps`."""
    done = list[Step]()
    for step in steps:
        match step:
            case Each():
                step = replace(step, number=next(count))
            case When():
                then = _numbered(step.then, count)
                step = replace(step, then=then, otherwise=_numbered(step.otherwise, count))
            case Repeat():
                step = replace(step, body=_numbered(step.body, count))
            case _:
                pass
        done.append(step)
    return tuple(done)


def _refuse_launch_words(kernel: KernelModel) -> None:
    """The launch is ours to choose: what a step says of today's would be wrong."""
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    for node in (node for part in parts for node in nodes_in(part)):
        if isinstance(node, Name) and node.name in BUILTINS:
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
            yield from names_in(part)
            yield from declared_in(part)


def _flat_staged(kernel: KernelModel) -> tuple[Step, ...]:
    """`row[i][c]` as `row[i * width + c]`, like any other array."""
    widths = {staged.name: staged.width for staged in kernel.staged if staged.width > 1}
    if not widths:
        return kernel.steps

    def visit(node: Expr) -> Expr:
        match node:
            case Index(base=Index(base=Name(name=name), index=index), index=place) if name in widths:
                width = widths[name]
                product = Binary("*", index, Number(str(width), width))
                return Index(Name(name), Binary("+", product, place))
        return node

    return map_steps(
        kernel.steps,
        lambda step: replace(step, body=map_nodes(step.body, visit)) if isinstance(step, Each) else step,
    )


def _written(kernel: KernelModel, arrays: Mapping[str, Type], problem: Problem) -> frozenset[str]:
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


def _alignments(kernel: KernelModel, problem: Problem) -> dict[str, int]:
    """Bytes at whose multiples callers promise each array to start."""
    found: dict[str, int] = {}
    for parameter, name in zip(kernel.function.parameters, problem.launches[0].args, strict=False):
        argument = problem.argument(name)
        if parameter.type.is_pointer:
            own = byte_size(parameter.type.base) or 1  # what the source itself relies on
            found[parameter.name] = max(argument.align or argument.element.bytes, own)
    return found
