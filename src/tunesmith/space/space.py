"""The search space of a template: parameters, constraints, and the part that a search looks at first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.errors import BadInput
from tunesmith.space.configset import Config, ConfigSet, Param, ParamRule, build_combo_tables
from tunesmith.space.expr import (
    Arithmetic,
    Expr,
    FunctionCall,
    Logic,
    Neg,
    Node,
    Not,
    Num,
    OneOf,
    iterate_nodes,
    map_operands,
    parse_expr,
    shorten_text,
    suggest_name,
    unparse,
)
from tunesmith.space.expr_arrays import evaluate_truth

Values = Mapping[str, int]
_NOTHING: Values = {}


@dataclass(frozen=True)
class Constraint:
    """`require`: outside it a variant must not run. `prefer`: outside it there is no point in running it."""

    name: str
    expr: Expr
    kind: Literal["require", "prefer"] = "require"

    @property
    def needs_build(self) -> bool:
        """Whether it can be judged only after compiling."""
        return any(name.startswith("resources.") for name in self.expr.names)


@dataclass(frozen=True)
class Space:
    params: tuple[Param, ...]
    constraints: tuple[Constraint, ...] = ()
    candidate: str = ""  # which of a run's templates it belongs to, and all its configurations

    def __post_init__(self) -> None:
        declared = [param.name for param in self.params]
        labels = [f"{constraint.kind} {constraint.name}" for constraint in self.constraints]
        for label in [f"parameter {name}" for name in _repeated_labels(declared)] + _repeated_labels(labels):
            raise BadInput(f"{label} is declared twice", hint="rename one of the two")

    @property
    def combinations(self) -> int:
        """How many configurations there would be without constraints."""
        return prod(len(param.values) for param in self.params)

    def broken(self, config: Config, sizes: Values, device: Values = _NOTHING) -> tuple[Constraint, ...]:
        """What the configuration breaks, of both kinds; what only a build tells is not judged."""
        self._check_sizes(sizes)
        known = {**sizes, **device, **config.as_dict()}
        found: list[Constraint] = []
        for constraint in self.constraints:
            missing = [name for name in constraint.expr.names if name not in known]
            _check_known(constraint, [name for name in missing if not name.startswith("resources.")], known)
            if not missing and not constraint.expr.holds(known):
                found.append(constraint)
        return tuple(found)

    def configs(self, workloads: Sequence[Values] = (_NOTHING,), device: Values = _NOTHING) -> ConfigSet:
        """The configurations that at least one workload allows by every constraint known before a build."""
        if not workloads:
            raise BadInput("a space is listed for at least one workload, got none", hint="name a workload")
        places = {param.name: index for index, param in enumerate(self.params)}
        possible = (1 << len(workloads)) - 1
        rules: list[ParamRule] = []
        for constraint in self.constraints:
            if constraint.needs_build:
                continue
            for expr, bits in self._cases(constraint, workloads, device):
                scope = frozenset(places[name] for name in expr.names if name in places)
                if scope:
                    rules.append(ParamRule(expr, scope, bits))
                elif not expr.holds({}):
                    possible &= ~bits
        if not possible:
            return ConfigSet(self.params, (), len(workloads), possible, self.candidate)
        live = [ParamRule(rule.expr, rule.scope, rule.workloads & possible) for rule in rules]
        grown = build_combo_tables(self.params, [rule for rule in live if rule.workloads], possible)
        return ConfigSet(self.params, grown, len(workloads), possible, self.candidate)

    def _cases(
        self, constraint: Constraint, workloads: Sequence[Values], device: Values
    ) -> list[tuple[Expr, int]]:
        """The constraint over parameters alone, with the workloads for which it reads so."""
        declared = [param.name for param in self.params]
        merged: dict[Node, tuple[Expr, int]] = {}
        for place, sizes in enumerate(workloads):
            self._check_sizes(sizes)
            known = {**sizes, **device}
            _check_known(constraint, constraint.expr.names.difference(known, declared), [*known, *declared])
            expr = constraint.expr.bind(known)
            _, bits = merged.get(expr.tree, (expr, 0))
            merged[expr.tree] = (expr, bits | 1 << place)
        return list(merged.values())

    def _check_sizes(self, sizes: Values) -> None:
        for param in self.params:
            if param.name in sizes:
                raise BadInput(f"{param.name} is both a parameter and a size", hint="rename the parameter")


def _repeated_labels(labels: Sequence[str]) -> list[str]:
    return sorted({label for label in labels if labels.count(label) > 1})


def _check_known(constraint: Constraint, missing: Collection[str], known: Collection[str]) -> None:
    for name in sorted(missing):
        rule = f'{constraint.kind} {constraint.name}, "{shorten_text(constraint.expr.text)}", uses {name}'
        hint = suggest_name(name, known) or "use a parameter, a size of the problem or a device limit"
        listed = ", ".join(sorted(known)) or "no names"
        raise BadInput(f"{rule}, which has no value here: known are {listed}", hint=hint)


Side = Literal["inside", "outside"]
Numbers = NDArray[np.int64]
MAX = 50_000  # configurations that are looked at; of larger spaces a part, drawn once and for all
OUTSIDE_EVERY = 8  # picks, of which one is outside: a focus that is never left cannot prove wrong


@dataclass(frozen=True)
class Condition:
    """What configurations must have, in the template's words, and why."""

    remedy: str
    text: str
    finding: str
    evidence: str  # the numbers, in words
    score: float  # share of the time at stake × how sure that is, over all workloads


@dataclass(frozen=True)
class Focus:
    """All conditions at once. An event holds it, so it is made of words and numbers alone."""

    conditions: tuple[Condition, ...]
    inside: int  # configurations that meet them
    of: int

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(condition.text for condition in self.conditions)

    def holds(self, config: Config) -> bool:
        return meets_conditions(config, self.texts)

    def without(self, remedies: frozenset[str]) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.remedy not in remedies)

    def __str__(self) -> str:
        several = len(self.texts) > 1
        return " and ".join(f"({text})" if several and " or " in text else text for text in self.texts)


@dataclass(frozen=True)
class Region:
    """The configurations of a set on one side of a focus, in the set's order."""

    configs: ConfigSet
    numbers: Numbers = field(compare=False)
    texts: tuple[str, ...] = ()
    side: Side = "inside"

    @property
    def is_whole(self) -> bool:
        """Whether `numbers` are all that lie on this side; of a large space they are a part."""
        return len(self.configs) <= MAX

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Config:
        return self.configs[int(self.numbers[index])]

    def __iter__(self) -> Iterator[Config]:
        return (self.configs[int(number)] for number in self.numbers)

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Config) and config in self.configs and self.is_beside(config)

    def is_beside(self, config: Config) -> bool:
        """Whether a configuration lies on this side, feasible or not."""
        return meets_conditions(config, self.texts) == (self.side == "inside")


def meets_conditions(config: Config, texts: tuple[str, ...]) -> bool:
    values = config.as_dict()
    return all(_parse_condition(text).holds(values) for text in texts)


@lru_cache(maxsize=64)
def _parse_condition(text: str) -> Expr:
    return parse_expr(text)


@lru_cache(maxsize=8)  # pure; every question of a run asks for the same two
def build_region(configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...], side: Side) -> Region:
    numbers, inside = _split_by_conditions(configs, params, texts)
    return Region(configs, numbers[inside if side == "inside" else ~inside], texts, side)


def count_configs(configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...]) -> int:
    """How many meet all conditions; of a large space as many as its part lets expect."""
    numbers, inside = _split_by_conditions(configs, params, texts)
    return round(int(inside.sum()) * len(configs) / max(1, len(numbers)))


@lru_cache(maxsize=32)
def _split_by_conditions(
    configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...]
) -> tuple[Numbers, NDArray[np.bool_]]:
    total = len(configs)
    drawn = np.random.default_rng(0).integers(total, size=MAX) if total > MAX else np.arange(total)
    numbers = np.unique(drawn)
    values = configs.values_matrix(numbers)
    columns = {param.name: values[:, place] for place, param in enumerate(params)}
    inside = np.ones(len(numbers), dtype=np.bool_)
    for text in texts:
        inside &= evaluate_truth(_parse_condition(text), columns)
    return numbers, inside


def bind_and_simplify(expr: Expr, fixed: Mapping[str, int]) -> Expr:
    """With the known values in it, and nothing multiplied by 1 for their sake."""
    tree = _simplify_node(expr.bind(fixed).tree)
    return Expr(unparse(tree), tree)


def substitute_trees(node: Node, meanings: Mapping[Node, Node]) -> Node:
    """The tree with other trees in place of some of its parts."""
    if node in meanings:
        return meanings[node]
    return map_operands(node, lambda operand: substitute_trees(operand, meanings))


def _simplify_node(node: Node) -> Node:
    match node:
        case Arithmetic(op, left, right):
            left, right = _simplify_node(left), _simplify_node(right)
            if (op in ("*", "//") and right == Num(1)) or (op in ("+", "-") and right == Num(0)):
                return left
            if (op == "*" and left == Num(1)) or (op == "+" and left == Num(0)):
                return right
            return Arithmetic(op, left, right)
        case FunctionCall("ceildiv" | "round_up", (value, Num(1))):
            return _simplify_node(value)
        case Logic(_, (*_, Num(last))) if not _may_fail(node):
            return Num(int(bool(last)))  # the last settles it, whatever the others say
        case Neg() | Not() | OneOf():
            return node
    return map_operands(node, _simplify_node)


def _may_fail(node: Node) -> bool:
    """Whether it may have no value: it divides, or calls what does."""
    return any(
        isinstance(part, FunctionCall) or (isinstance(part, Arithmetic) and part.op in ("//", "%"))
        for part in iterate_nodes(node)
    )
