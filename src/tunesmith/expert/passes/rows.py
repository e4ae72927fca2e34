"""The move `rows`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Cast, Expr, Name
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import declared_in, map_nodes, names_in, nodes_in
from tunesmith.expert.model.affine import as_division, from_terms, is_narrow, number, terms
from tunesmith.expert.model.kernel import Each, Task, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import all_loops, loops, shape_of
from tunesmith.expert.writing.sites import starts_at_zero
from tunesmith.problem.template import Remedy

SHORTEST = 8  # elements of a row: fewer do not keep a team busy


@move(
    "rows",
    needs="one flat loop over `n * d` elements that takes its index apart by `d`, rows of 8 elements or more",
    turn="seldom",
    remedies=(Remedy.CHEAP_DIVISION, Remedy.HOIST_INVARIANTS),
    places=all_loops,
)
def rows(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """A flat loop as rows: `i / d` and `i % d` become a task, the row, and the place in it; nothing is
    divided.

    Proved on the model: the loop runs over whole rows, 0 <= i < n * d, and takes its index apart by d. Of
    several lengths it is one that leaves nothing of a row to be divided: `i / k / d` is `row / k` then. There
    is no parameter: with tasks the work is shared otherwise altogether.
    """
    kernel = draft.kernel
    if kernel.tasks:
        return "the work is in rows already"
    if len(kernel.steps) != 1 or not isinstance(kernel.steps[0], Each) or kernel.steps[0].totals:
        return "the kernel is more than one flat loop over independent elements"
    loop = kernel.steps[0]
    if not starts_at_zero(loop):
        return "the loop does not start at 0"
    row, place = _fresh(draft, "row"), _fresh(draft, f"{loop.index}_in_row")
    found = [(rows, _taken_apart(loop, length, row, place)) for rows, length in _lengths(loop)]
    if not found:
        return "the index is not taken apart by a length that divides the whole"
    # Of several lengths the first that leaves nothing of a row to be divided.
    rows, by_row = next((one for one in found if not _divides(one[1])), found[0])
    tasks, steps = (Task(row, rows, loop.type),), (by_row,)
    by_rows = replace(kernel, tasks=tasks, steps=steps, team="block", lanes=None, accesses=())
    if min(shape_of(TemplateDraft(by_rows), context).extents, default=0) < SHORTEST:
        return f"rows of fewer than {SHORTEST} elements do not keep a team busy, or their length is unknown"
    return extend(replace(draft, kernel=by_rows), "rows", {})


def _lengths(loop: Each) -> Iterator[tuple[Expr, Expr]]:
    """How many rows, and how long: for each divisor of the index that is a factor of the whole."""
    changing = {loop.index, *declared_in(loop.body)}
    for node in nodes_in(loop.body):
        division = as_division(node) if isinstance(node, Binary) else None
        if not isinstance(division, Binary) or division.op not in ("/", "%"):
            continue
        if _bare(division.left) != Name(loop.index) or names_in(division.right) & changing:
            continue
        rows = _quotient(loop.stop, division.right)
        if rows is not None:
            yield rows, division.right


def _quotient(whole: Expr, length: Expr) -> Expr | None:
    """`tokens * d` by d; None where it is no factor."""
    product, divisor = terms(whole), terms(length)
    if len(product) != 1 or len(divisor) != 1:
        return None
    (factors, count), (parts, scale) = next(iter(product.items())), next(iter(divisor.items()))
    rest = list(factors)
    for part in parts:
        if part not in rest:
            return None
        rest.remove(part)
    return from_terms({tuple(rest): count // scale}) if count % scale == 0 else None


def _taken_apart(loop: Each, length: Expr, row: str, place: str) -> Each:
    """The loop over a row. `i / (k * d)` is `row / k`: what divides the whole and is rows together."""

    def rewritten(node: Expr) -> Expr:
        division = as_division(node) if isinstance(node, Binary) else None
        if isinstance(division, Binary) and division.op in ("/", "%"):
            by = _divisor(division, whole)
            rows = None if by is None or _quotient(loop.stop, by) is None else _quotient(by, length)
            if by is None or rows is None:
                return node
            if division.op == "/":
                return Name(row) if rows == number(1) else Binary("/", Name(row), rows)
            if division.right == by:
                among = Binary("*", Binary("%", Name(row), rows), length)
                return Name(place) if rows == number(1) else Binary("+", among, Name(place))
            return node
        if isinstance(node, Binary) and node.op == "-" and _bare(node.left) == whole:
            return Name(place) if terms(node.right) == terms(whole.left) else node
        return whole if node == Name(loop.index) else node

    whole = Binary("+", Binary("*", Name(row), length), Name(place))
    return replace(loop, index=place, start=number(0), stop=length, body=map_nodes(loop.body, rewritten))


def _divisor(division: Binary, whole: Expr) -> Expr | None:
    """What the whole index is divided by: `i / a / b` by a * b. None where something else is divided."""
    left = _bare(division.left)
    if left == whole:
        return division.right
    if isinstance(left, Binary) and left.op == "/" and division.op == "/":
        inner = _divisor(left, whole)
        return None if inner is None else Binary("*", inner, division.right)
    return None


def _divides(loop: Each) -> bool:
    """Whether the place in a row is divided."""
    for node in nodes_in(loop.body):
        division = as_division(node) if isinstance(node, Binary) else None
        if (
            isinstance(division, Binary)
            and division.op in ("/", "%")
            and loop.index in names_in(division.left)
        ):
            return True
    return False


def _bare(expr: Expr) -> Expr:
    """Without conversions between integers that cut nothing off."""
    while isinstance(expr, Cast) and is_integer(expr.type) and not is_narrow(expr.type):
        expr = expr.value
    return expr


def _fresh(draft: TemplateDraft, want: str) -> str:
    kernel = draft.kernel
    taken = {p.name for p in kernel.function.parameters} | {name for name, _ in kernel.source.constants}
    taken |= {f.name for f in kernel.source.functions}
    for loop in loops(kernel):
        taken |= {loop.index, *declared_in(loop.body), *names_in(loop.body)}
    while want in taken:
        want += "_"
    return want
