"""Second names for elements of arrays, `float4 &here = out[i];`, as what they refer to.

A reference that may be written through has just the type of what it names, so the two are one. What says
which element it is must stay as it was when the reference was made.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.substitution import with_unique_names


def without_references(function: c.Function) -> c.Function:
    """Those that cannot be said so stay."""
    if not any(isinstance(node, c.Declare) and node.type.reference for node in walk.nodes_in(function.body)):
        return function
    body = with_unique_names(function.body, {parameter.name for parameter in function.parameters})
    changed = walk.assigned_in(body)
    places: dict[str, c.Expr] = {}

    def named(node: c.Expr) -> c.Expr:  # one name is one variable by now: nothing is caught
        return places.get(node.name, node) if isinstance(node, c.Name) else node

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        if not isinstance(one, c.Declare) or not _is_second_name(one) or one.init is None:
            return one
        place = walk.map_expr(one.init, named)
        if not _stays(place, changed):
            return one
        places[one.name] = place
        return ()

    body = walk.map_statements(body, on_stmt=stmt)
    return replace(function, body=walk.map_nodes(body, named)) if places else function


def _is_second_name(declare: c.Declare) -> bool:
    type_ = declare.type
    return type_.reference and not type_.const and not type_.pointers and not declare.is_array


def _stays(place: c.Expr, changed: frozenset[str]) -> bool:
    """Whether it is one and the same place from here on."""
    match place:
        case c.Member(base=base, arrow=False):
            return _stays(base, changed)
        case c.Index(base=base, index=index):
            which = (base, index) if not isinstance(base, c.Index) else (index,)
            own = all(is_pure(part) and not walk.names_in(part) & changed for part in which)
            return own and (not isinstance(base, c.Index) or _stays(base, changed))
    return False
