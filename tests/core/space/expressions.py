"""Random expressions, and values to try them with."""

from __future__ import annotations

from hypothesis import strategies as st

from tunesmith.space.expr import (
    LIMIT,
    Arithmetic,
    Compare,
    Conditional,
    Expr,
    FunctionCall,
    Logic,
    Neg,
    Node,
    Not,
    Num,
    OneOf,
    Undefined,
    Variable,
)

NAMES = ("a", "b", "c", "device.sms")
ROUND = (2**31, 2**32 + 1, 2**40, 2**61, LIMIT - 1, LIMIT)


def numbers() -> st.SearchStrategy[int]:
    large = st.sampled_from(ROUND)
    return st.one_of(st.integers(-3, 9), st.integers(-300, 300), large, large.map(lambda n: -n))


def trees() -> st.SearchStrategy[Node]:
    leaves: st.SearchStrategy[Node] = st.one_of(
        st.builds(Num, numbers()), st.builds(Variable, st.sampled_from(NAMES))
    )
    return st.recursive(leaves, _grown, max_leaves=12)


def _grown(node: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    comparison = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    links = st.lists(st.tuples(comparison, node), min_size=1, max_size=3).map(tuple)
    two = st.tuples(node, node)
    several = st.lists(node, min_size=2, max_size=3).map(tuple)
    options = st.lists(numbers(), min_size=1, max_size=3).map(tuple)
    arithmetic = st.sampled_from(["+", "-", "*", "//", "%"])
    return st.one_of(
        st.builds(Arithmetic, arithmetic, node, node),
        st.builds(Compare, node, links),
        st.builds(Logic, st.sampled_from(["and", "or"]), several),
        st.builds(Conditional, node, node, node),
        st.builds(FunctionCall, st.sampled_from(["min", "max"]), several),
        st.builds(FunctionCall, st.sampled_from(["ceildiv", "round_up"]), two),
        st.builds(FunctionCall, st.sampled_from(["next_pow2", "is_pow2"]), st.tuples(node)),
        st.builds(Not, node),
        node.filter(lambda operand: not isinstance(operand, Num)).map(Neg),
        st.builds(OneOf, node, options, st.booleans()),
    )


def values() -> st.SearchStrategy[dict[str, int]]:
    """A value for most names; some out of range."""
    beyond = st.sampled_from([LIMIT + 1, -LIMIT - 1, 2**63, -(2**70)])
    return st.dictionaries(st.sampled_from(NAMES), st.one_of(numbers(), numbers(), beyond))


def outcome(expr: Expr, given: dict[str, int]) -> int | None:
    """The value, None where there is none."""
    try:
        return expr.evaluate(given)
    except Undefined:
        return None
