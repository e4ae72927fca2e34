"""The expression language: its grammar, its values one at a time, and whole columns at once."""

from tunesmith.core.expr.expression import LIMIT, Expr, ExprError, Node, Undefined, is_name, parse, unparse

__all__ = ["LIMIT", "Expr", "ExprError", "Node", "Undefined", "is_name", "parse", "unparse"]
