"""Moves that change the loops themselves: a flat loop as rows, loops that store again left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Cast, Expr, Name, Number
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import declared_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.affine import as_division, from_terms, number, same_value, terms
from tunesmith.expert.model.kernel import Each, Task, TemplateDraft, map_steps
from tunesmith.expert.moves.port import Context, extend, move
from tunesmith.expert.moves.shape import loops, shape_of
from tunesmith.problem.template import Remedy


@move("redundant", (Remedy.ROW_IN_REGISTERS,))
def redundant(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """Loops left out that only store again what an earlier loop of the task has stored.

    That every element they store has been stored before is proved on the model; that the values are the same
    is not, so the whole template stands or falls with the oracle. There is no parameter: without the loop
    the rest of the kernel may be shared otherwise, and nobody wants it back.
    """
    found = [loop for loop in loops(draft.kernel) if loop.again]
    if not found or any(loop.totals for loop in found):
        return "no loop only stores again what an earlier one has stored"
    if context.problem.accuracy.reference is None and not context.problem.accuracy.deterministic:
        return "without a reference and with results that vary nobody could tell whether it was needed"
    steps = map_steps(
        draft.kernel.steps, lambda step: None if isinstance(step, Each) and step.again else step
    )
    return extend(replace(draft, kernel=replace(draft.kernel, steps=steps)), "redundant", {})


SHORTEST = 8  # elements of a row: fewer do not keep a team busy


@move("rows", (Remedy.CHEAP_DIVISION, Remedy.HOIST_INVARIANTS))
def rows(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """A flat loop as rows: `i / d` and `i % d` become a task, the row, and the place in it; nothing is
    divided.

    Proved on the model: the loop runs over whole rows, 0 <= i < n * d, and takes its index apart by d. There
    is no parameter: with tasks the work is shared otherwise altogether.
    """
    kernel = draft.kernel
    if kernel.tasks:
        return "the work is in rows already"
    if len(kernel.steps) != 1 or not isinstance(kernel.steps[0], Each) or kernel.steps[0].totals:
        return "the kernel is more than one flat loop over independent elements"
    loop = kernel.steps[0]
    if not (isinstance(loop.start, Number) and loop.start.value == 0):
        return "the loop does not start at 0"
    found = next(_lengths(loop), None)
    if found is None:
        return "the index is not taken apart by a length that divides the whole"
    rows, length = found
    by_rows = replace(kernel, tasks=(), steps=(), team="block", lanes=None, accesses=())
    row, place = _fresh(draft, "row"), _fresh(draft, f"{loop.index}_in_row")
    inside = _taken_apart(loop, length, row, place)
    by_rows = replace(by_rows, tasks=(Task(row, rows, loop.type),), steps=(inside,))
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
    def rewritten(node: Expr) -> Expr:
        division = as_division(node) if isinstance(node, Binary) else None
        if isinstance(division, Binary) and division.op in ("/", "%") and _bare(division.left) == whole:
            if same_value(division.right, length):
                return Name(row if division.op == "/" else place)
            return node
        return whole if node == Name(loop.index) else node

    whole = Binary("+", Binary("*", Name(row), length), Name(place))
    body = map_statements(loop.body, lambda expr: map_expr(expr, rewritten))
    return replace(loop, index=place, start=number(0), stop=length, body=body)


def _bare(expr: Expr) -> Expr:
    """Without conversions between integers."""
    while isinstance(expr, Cast) and is_integer(expr.type):
        expr = expr.value
    return expr


def _fresh(draft: TemplateDraft, want: str) -> str:
    kernel = draft.kernel
    taken = {p.name for p in kernel.function.parameters} | {name for name, _ in kernel.source.constants}
    taken |= {f.name for f in kernel.source.functions}
    for step in kernel.steps:
        if isinstance(step, Each):
            taken |= {step.index, *declared_in(step.body), *names_in(step.body)}
    while want in taken:
        want += "_"
    return want
