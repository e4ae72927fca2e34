"""The declaration at a template's top: parameters, what must hold, what the usual rules know, the launch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.expert.model.entry_sizes import is_of_entry
from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.writing.merging import merged
from tunesmith.expert.writing.naming import Pairs, distinct
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.rules import Baked, block, blocks_text, grid, rules_of, shared_bytes
from tunesmith.problem.problem import Launch
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.template import Shape, inserted
from tunesmith.problem.template_text import DeclaredParam, Tables, declaration, listed, shared_line
from tunesmith.problem.usual import settled_shape, shape_entries
from tunesmith.space.expr import Node, parse, unparse
from tunesmith.space.grammar import Variable, children
from tunesmith.space.settled import settled, substituted

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
    found = [(name, settled(parse(text), fixed).text) for name, text in conditions]
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
        return declaration(
            self.params,
            self.conditions,
            self.defines,
            self.flags,
            [line for launch in self.launches for line in (title, *launch)],
            shape=self.shape,
            baked=self.baked,
            in_code=self.in_code,
        )


def header(plan: WritingPlan, baked: Baked, in_code: Collection[str]) -> Heading:
    """`in_code`: words that the code uses."""
    draft, choices = plan.draft, plan.draft.schedule.choices
    fixed, number = fixed_values(choices), plan.draft.number
    facts = _facts(plan, fixed) if draft.moves else None
    long = [(name, text) for name, text in facts or () if len(text) > _LONG]
    table = f"shape.{number}" if number else "shape"
    names: dict[Node, Node] = {parse(text).tree: Variable(f"{table}.{name}") for name, text in long}

    def said(text: str) -> str:
        return unparse(substituted(settled(parse(text), fixed).tree, names))

    require = settled_pairs(distinct((), (*rules_of(plan), *draft.require)), fixed)
    insert = {name: str(value) for name, value in fixed.items()}
    baking = baked.switch and baked.switch not in fixed and baked.declared()
    return Heading(
        tuple(declared_params(choices)),
        (
            ("require", tuple((name, said(text)) for name, text in merged(require))),
            ("prefer", settled_pairs(draft.prefer, fixed)),
            ("answers", settled_pairs(draft.answers, fixed)),
        ),
        (
            *((s.macro, s.value) for s in baked.always),
            *(_baked(baked, fixed) if baked.switch in fixed else ()),
        ),
        tuple(inserted(flag, insert) for flag in draft.build_flags),
        (tuple(_launch(plan, said)),),
        None if facts is None else [(table, shape_entries(_shape(facts, fixed, number)))],
        [(baked.switch, baked.declared())] if baking else [],
        frozenset(in_code),
    )


def _launch(plan: WritingPlan, said: Callable[[str], str]) -> Iterator[str]:
    """What the kernel itself decides of its launch."""
    yield from listed("grid", [said(text) for text in grid(plan)])
    yield from listed("block", [said(text) for text in block(plan)])
    if text := shared_bytes(plan):
        yield from shared_line(said(text))
    if plan.kernel.waits:
        yield "pdl = true"


def own_launch(plan: WritingPlan, lines: Sequence[str]) -> tuple[str, ...]:
    """The one launch of a problem: what is as the problem has it is not said again."""
    problem, launch = plan.problem, plan.problem.launches[0]
    return (*_entry(plan), *lines, *said_of_launch(launch, [a.name for a in problem.arguments]))


def _entry(plan: WritingPlan) -> Iterator[str]:
    if plan.problem.launches[0].entry != plan.kernel.function.name:
        yield f'entry = "{plan.kernel.function.name}"'


def said_of_launch(launch: Launch, usual: Sequence[str] = ()) -> Iterator[str]:
    """When it is made and with what, unless these are the arguments that are passed anyway."""
    passed = [name for name in launch.args if not is_of_entry(name)]
    if passed != [name for name in usual if not is_of_entry(name)]:
        yield from listed("args", passed)
    if launch.when is not None:
        yield f"when = {toml_string(launch.when.text)}"


def _baked(baked: Baked, fixed: Mapping[str, int]) -> list[tuple[str, str]]:
    """Sizes of a build that has no choice."""
    return [(name, text if fixed[baked.switch] else "0") for name, text in baked.declared()]


def _facts(plan: WritingPlan, fixed: Mapping[str, int]) -> list[tuple[str, str]]:
    """Of `draft.shape` what the choices need, and what the launch says more than once."""
    roles = plan.draft.schedule
    needed = [p for p in plan.draft.shape if any(role in roles for role in _SAID_FOR.get(p[0], roles))]
    found = [(name, text if name == "kind" else settled(parse(text), fixed).text) for name, text in needed]
    blocks = blocks_text(plan)
    if blocks is not None:
        tree = settled(parse(blocks), fixed).tree
        launch = [settled(parse(text), fixed).tree for text in grid(plan)]
        text = unparse(tree)
        if len(text) > _LONG and sum(_count(whole, tree) for whole in launch) > 1:
            found.append(("blocks", text))
    return found


def _count(node: Node, part: Node) -> int:
    return int(node == part) or sum(_count(child, part) for child in children(node))


def _shape(facts: Pairs, fixed: Mapping[str, int], number: str) -> Shape:
    said = dict(facts)
    on_cpu = said.pop("kind", "gpu") == "cpu"
    return settled_shape(Shape(said, {}, on_cpu), fixed, number)
