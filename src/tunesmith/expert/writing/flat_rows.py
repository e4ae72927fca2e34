"""Flat kernels that take their index apart: i / d and i % d become a task and a loop over its d elements.

One thread per element of all rows costs a division for each, and packs only where VEC divides d. As rows the
division is gone, and what is left of a row can be handled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.expert.c.nodes import Binary, Cast, Expr, Name, Number, Type
from tunesmith.expert.c.walk import map_expr, map_statements, nodes_in
from tunesmith.expert.model.affine import Terms, from_terms, same_value, terms
from tunesmith.expert.model.kernel import Each, Kernel, Task
from tunesmith.expert.model.value_types import is_integer
from tunesmith.expert.writing.naming import Names


def as_rows(kernel: Kernel) -> Kernel | None:
    """The same kernel with tasks; None where it is not one flat loop over an index that is divided."""
    if kernel.tasks or len(kernel.steps) != 1 or not isinstance(kernel.steps[0], Each):
        return None
    each = kernel.steps[0]
    if each.totals or each.start != Number("0", 0):
        return None
    for length in _divisors(each):
        count = _quotient(each.stop, length)
        if count is not None:
            return _split(kernel, each, length, count)
    return None


def _divisors(each: Each) -> Iterator[Expr]:
    """What the index itself is divided by, each once."""
    seen: list[Expr] = []
    for node in nodes_in(each.body):
        if not isinstance(node, Binary) or node.op not in ("/", "%") or not _is_index(node.left, each.index):
            continue
        if not any(same_value(node.right, other) for other in seen):
            seen.append(node.right)
            yield node.right


def _is_index(expr: Expr, index: str) -> bool:
    while isinstance(expr, Cast) and is_integer(expr.type):
        expr = expr.value
    return expr == Name(index)


def _quotient(total: Expr, by: Expr) -> Expr | None:
    """total / by, where every term of the one has all factors of the other."""
    divisor = terms(by)
    if len(divisor) != 1:
        return None
    (factors, times), found = next(iter(divisor.items())), Terms()
    for key, count in terms(total).items():
        rest = list(key)
        for factor in factors:
            if factor not in rest:
                return None
            rest.remove(factor)
        if count % times:
            return None
        found[tuple(rest)] = count // times
    return from_terms(found)


def _split(kernel: Kernel, each: Each, length: Expr, count: Expr) -> Kernel:
    names = Names([kernel.function.text], [each.index])
    row, column = names.fresh("row"), names.fresh("column")
    whole = Binary("+", Binary("*", Name(row), Cast(Type(each.type), length)), Name(column))

    def visit(node: Expr) -> Expr:
        if isinstance(node, Binary) and node.op in ("/", "%") and is_whole(node.left):
            if same_value(node.right, length):
                return Name(row) if node.op == "/" else Name(column)
            return node
        return whole if node == Name(each.index) else node

    def is_whole(expr: Expr) -> bool:
        while isinstance(expr, Cast) and is_integer(expr.type):
            expr = expr.value
        return expr == whole  # the walk is from the leaves up: the index is replaced already

    body = map_statements(each.body, lambda expr: map_expr(expr, visit))
    # What depends on the row alone stays in the body: its loads are under way beside the elements' there.
    loop = replace(each, index=column, stop=length, body=body)
    return replace(kernel, tasks=(Task(row, count, each.type),), steps=(loop,))
