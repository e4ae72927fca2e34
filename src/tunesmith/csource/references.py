"""Second names for variables and elements, `float4 &here = out[i];`, as what they refer to.

A reference that may be written through has just the type of what it names, so the two are one. What says
which element it is must stay as it was when the reference was made.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.substitution import with_unique_names
from tunesmith.csource.types import Types, declared_types, type_of


def without_references(function: c.Function) -> c.Function:
    """Those that cannot be said so stay."""
    if not any(isinstance(node, c.Declare) and node.type.reference for node in walk.nodes_in(function.body)):
        return function
    body = with_unique_names(function.body, {parameter.name for parameter in function.parameters})
    changed, stored = walk.assigned_in(body), walk.stored_in(body)
    types = declared_types(replace(function, body=body))
    texts = {name for n in walk.nodes_in(body) if isinstance(n, c.Opaque | c.Verbatim) for name in n.names}
    places: dict[str, c.Expr] = {}

    def named(node: c.Expr) -> c.Expr:  # one name is one variable by now: nothing is caught
        return places.get(node.name, node) if isinstance(node, c.Name) else node

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        if not isinstance(one, c.Declare) or not _is_second_name(one) or one.init is None:
            return one
        place = walk.map_expr(one.init, named)
        if one.name in texts or not _stays(place, changed):
            return one
        if one.type.const and not _is_needed(one, place, types, changed | stored):
            return one
        places[one.name] = place
        return ()

    body = walk.map_statements(body, on_stmt=stmt)
    return replace(function, body=walk.map_nodes(body, named)) if places else function


def _is_second_name(declare: c.Declare) -> bool:
    type_ = declare.type
    return type_.reference and not type_.pointers and not declare.is_array


def _is_needed(declare: c.Declare, place: c.Expr, types: Types, changed: frozenset[str]) -> bool:
    """Of a const one: whether what it names may change, and has its type. Else it is as good as a copy."""
    own = type_of(place, types)
    same = own is not None and not own.pointers and declare.type.base in ("auto", own.base)
    return same and walk.root(place)[0] in changed


def _stays(place: c.Expr, changed: frozenset[str]) -> bool:
    """Whether it is one and the same place from here on."""
    match place:
        case c.Name():
            return True
        case c.Member(base=base, arrow=False):
            return _stays(base, changed)
        case c.Index(base=base, index=index):
            which = (base, index) if not isinstance(base, c.Index) else (index,)
            own = all(is_pure(part) and not walk.names_in(part) & changed for part in which)
            return own and (not isinstance(base, c.Index) or _stays(base, changed))
    return False
