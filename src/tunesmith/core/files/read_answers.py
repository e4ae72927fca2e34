"""Read `[answers]`: which configurations of a template have the remedies that a diagnosis may name."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.core.expr import Expr
from tunesmith.core.files.toml_table import Table
from tunesmith.core.profile.remedies import Remedy


def read_answers(root: Table, params: Sequence[str]) -> tuple[tuple[Remedy, Expr], ...]:
    """Conditions over parameters alone: what a search looks at first must be known before any size."""
    table = root.table("answers", "[answers]")
    if table is None:
        return ()
    known = [remedy.value for remedy in Remedy]
    table.only(known)
    found: list[tuple[Remedy, Expr]] = []
    for name in table.data:
        expr = table.expr(name, params) if name in known else None
        if expr is None:
            continue
        if not expr.names:
            rule = f"{name} must be a condition on parameters, got {expr.text!r}, which names none"
            table.fault(name, rule, f'write e.g. {name} = "{params[0] if params else "BLOCK"} >= 2"')
            continue
        found.append((Remedy(name), expr))
    return tuple(found)
