"""The declaration at a template's top: parameters, what must hold, what the usual rules know, the launch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.writing.merging import merged
from tunesmith.expert.writing.naming import Pairs, distinct
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.rules import Baked, block, blocks_text, grid, rules_of, shared_bytes
from tunesmith.problem.template import Shape, inserted
from tunesmith.problem.template_text import DeclaredParam, declaration, listed, shared_line
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


def header(plan: WritingPlan, baked: Baked, in_code: Collection[str]) -> list[str]:
    """`in_code`: words that the code uses."""
    draft, choices = plan.draft, plan.draft.schedule.choices
    fixed = fixed_values(choices)
    facts = _facts(plan, fixed) if draft.moves else None
    long = [(name, text) for name, text in facts or () if len(text) > _LONG]
    names: dict[Node, Node] = {parse(text).tree: Variable(f"shape.{name}") for name, text in long}

    def said(text: str) -> str:
        return unparse(substituted(settled(parse(text), fixed).tree, names))

    require = settled_pairs(distinct((), (*rules_of(plan), *draft.require)), fixed)
    conditions = [
        ("require", tuple((name, said(text)) for name, text in merged(require))),
        ("prefer", settled_pairs(draft.prefer, fixed)),
        ("answers", settled_pairs(draft.answers, fixed)),
    ]
    insert = {name: str(value) for name, value in fixed.items()}
    return declaration(
        declared_params(choices),
        conditions,
        [
            *((s.macro, s.value) for s in baked.always),
            *(_baked(baked, fixed) if baked.switch in fixed else ()),
        ],
        [inserted(flag, insert) for flag in draft.build_flags],
        [
            "[launch]",
            *_entry(plan),
            *listed("grid", [said(text) for text in grid(plan)]),
            *listed("block", [said(text) for text in block(plan)]),
            *(line for text in [shared_bytes(plan)] if text for line in shared_line(said(text))),
        ],
        shape=None if facts is None else shape_entries(_shape(facts, fixed)),
        baked=(baked.switch, () if baked.switch in fixed else baked.declared()),
        in_code=in_code,
    )


def _baked(baked: Baked, fixed: Mapping[str, int]) -> list[tuple[str, str]]:
    """Sizes of a build that has no choice."""
    return [(name, text if fixed[baked.switch] else "0") for name, text in baked.declared()]


def _entry(plan: WritingPlan) -> Iterator[str]:
    if plan.problem.launches[0].entry != plan.kernel.function.name:
        yield f'entry = "{plan.kernel.function.name}"'


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


def _shape(facts: Pairs, fixed: Mapping[str, int]) -> Shape:
    said = dict(facts)
    on_cpu = said.pop("kind", "gpu") == "cpu"
    return settled_shape(Shape(said, {}, on_cpu), fixed)
