"""The expression language: its grammar, its values one at a time, and whole columns at once."""

from tunesmith.space.expr.expression import Expr, Undefined, parse
from tunesmith.space.expr.grammar import LIMIT, ExprError, Node, is_name, unparse

__all__ = ["LIMIT", "Expr", "ExprError", "Node", "Undefined", "is_name", "parse", "unparse"]
