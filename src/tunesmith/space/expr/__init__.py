"""The expression language: its grammar, its values one at a time, and whole columns at once."""

from tunesmith.space.expr.expression import Expr, Undefined, parse
from tunesmith.space.expr.grammar import ExprError, is_name
from tunesmith.space.expr.nodes import LIMIT, Node, unparse

__all__ = ["LIMIT", "Expr", "ExprError", "Node", "Undefined", "is_name", "parse", "unparse"]
