"""A pointer that a branch chooses among arrays: what follows is done in each branch, with its own pointer.

const float *from;                                if (i < n) {
if (i < n) from = a + i;                              const float *from = a + i;  out[k] = from[0];
else from = b + (i - n);                ->        } else {
out[k] = from[0];                                     const float *from = b + (i - n);  out[k] = from[0];
                                                  }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.substitution import with_unique_names
from tunesmith.expert.model.totals import cooperates

_NOTHING = (None, c.Name("nullptr"), c.Name("NULL"), c.Number("0", 0))
_LONGEST = 400  # nodes of what follows: it stands twice


def with_branches_for_pointers(
    body: tuple[c.Stmt, ...], parameters: Sequence[c.Parameter]
) -> tuple[c.Stmt, ...]:
    """At the top level of a kernel; names are each declared once."""
    for at, stmt in enumerate(body):
        if not isinstance(stmt, c.If) or not stmt.otherwise:
            continue
        rest = body[at + 1 :]
        chosen = {
            declare.name: declare
            for declare in body[:at]
            if isinstance(declare, c.Declare)
            and declare.type.is_pointer
            and declare.init in _NOTHING
            and not declare.is_array
            and _is_chosen(declare.name, stmt, body[:at])
        }
        if not chosen or not rest or not _may_stand_twice(rest):
            continue
        sides = [(*_declared(side, chosen), *rest) for side in (stmt.then, stmt.otherwise)]
        before = tuple(one for one in body[:at] if one not in chosen.values())
        done = (*before, replace(stmt, then=sides[0], otherwise=sides[1]))
        return with_unique_names(done, {parameter.name for parameter in parameters})
    return body


def _is_chosen(name: str, branch: c.If, before: Sequence[c.Stmt]) -> bool:
    """Whether each branch sets it once, before it is used, to an array of its own."""
    if name in walk.names_in(before) | walk.names_in(branch.condition):
        return False
    arrays: list[str | None] = []
    for side in (branch.then, branch.otherwise):
        uses = [stmt for stmt in side if name in walk.names_in(stmt)]
        value = _set_to(uses[0], name) if uses else None
        if value is None or name in walk.names_in(value) or name in walk.assigned_in(uses[1:]):
            return False
        arrays.append(walk.root(c.Index(value, c.Number("0", 0)))[0])
    return None not in arrays and arrays[0] != arrays[1]


def _set_to(stmt: c.Stmt, name: str) -> c.Expr | None:
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=own), value=value)) if own == name:
            return value
    return None


def _declared(side: Sequence[c.Stmt], chosen: dict[str, c.Declare]) -> list[c.Stmt]:
    done: list[c.Stmt] = []
    for stmt in side:
        for name, declare in chosen.items():
            value = _set_to(stmt, name)
            if value is not None:
                stmt = replace(declare, init=value, line=stmt.line)
                break
        done.append(stmt)
    return done


def _may_stand_twice(rest: Sequence[c.Stmt]) -> bool:
    declares = any(isinstance(node, c.Declare) and node.storage for node in walk.nodes_in(rest))
    return not declares and cooperates(rest) is None and sum(1 for _ in walk.nodes_in(rest)) <= _LONGEST
