"""The body of a loop over elements, made to stand on its own.

What the team knows by then replaces the names it reads; totals and what is merely set in every turn are told
apart; shared memory becomes known values or `Kept` arrays (see `kept`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.csource.nodes import Call, Declare, Expr, For, Name, Stmt, Type, Verbatim
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import assigned_in, declared_in, names_in, nodes_in, stored_in
from tunesmith.expert.model.exits import structured
from tunesmith.expert.model.independence import clash
from tunesmith.expert.model.kept import SharedPlaces
from tunesmith.expert.model.loops import Head
from tunesmith.expert.model.team_memory import Threads, blame, one_value
from tunesmith.expert.model.team_values import Poison, expr_of
from tunesmith.expert.model.totals import Update, carried, is_set_first, update_in

if TYPE_CHECKING:
    from tunesmith.expert.model.team_names import Named

COOPERATION = (
    "__syncthreads", "barrier", "work_group_", "__shfl", "sub_group_", "__syncwarp", "__ballot", "__any",
    "__all", "__reduce_", "__match", "__activemask",
)  # fmt: skip


@dataclass(frozen=True)
class Element:
    body: tuple[Stmt, ...]
    updates: Mapping[str, Update]
    stores: bool


def cooperates(body: Sequence[Stmt]) -> Call | None:
    return next(
        (n for n in nodes_in(body) if isinstance(n, Call) and n.function.startswith(COOPERATION)), None
    )


def element_body(
    team: Named,
    loop: For,
    head: Head,
    active: Threads,
    index: str,
    span: tuple[Expr, Expr, int],
    shared_by_team: bool,
) -> Element:
    """`index` is the name the loop's index will have; `span` its start, stop and unit in the source."""
    team.line = loop.line
    call = cooperates(loop.body)
    if call is not None:
        raise team.beyond(f"{call.function} inside a loop over elements")
    body = structured(loop.body)
    for node in nodes_in(body):
        if isinstance(node, Verbatim):
            raise team.beyond(f"'{node.text.strip().splitlines()[0][:60]}' is not understood")
    own = frozenset(declared_in(body)) | {head.index}
    body, updates, locals_ = _carried(team, body, own)
    places = SharedPlaces(team, head, own, active, index, span, stored_in(body))
    body = places.in_body(body)
    body = _known(team, body, own | set(updates) | locals_ | {index}, places.known, active)
    trouble = clash(body, head.index, team.arrays, team.aliases, shared_by_team)
    if trouble is not None:
        kind = "elements" if shared_by_team else "turns"
        raise team.beyond(f"the {kind} of the loop over '{head.index}' depend on each other: {trouble}")
    return Element(body, updates, bool(stored_in(body) & set(team.arrays)) or _has_atomic(body))


def _has_atomic(body: Sequence[Stmt]) -> bool:
    return any(isinstance(n, Call) and "atomic" in n.function.lower() for n in nodes_in(body))


def _carried(
    team: Named, body: tuple[Stmt, ...], own: frozenset[str]
) -> tuple[tuple[Stmt, ...], dict[str, Update], frozenset[str]]:
    updates: dict[str, Update] = {}
    locals_: list[Declare] = []
    for name in sorted(carried(body, own)):
        if name in team.shared:
            continue
        if f"{name}[]" in team.variables:
            raise team.beyond(f"the array '{name}' is carried from one element to the next")
        if name not in team.types:
            raise team.beyond(f"'{name}' is changed in a loop over elements")
        update = update_in(body, name)
        if update is not None:
            updates[name] = update
        elif is_set_first(body, name):
            locals_.append(Declare(Type(team.types[name].base), name, line=team.line))
            lost = Poison(f"'{name}' is what the last element left, whichever that is", team.line)
            team.forget(name, lost)
        else:
            raise team.beyond(
                f"'{name}' is carried from one element to the next in a way that is no sum, product, "
                "maximum or minimum"
            )
    return (*locals_, *body), updates, frozenset(declare.name for declare in locals_)


def _known(
    team: Named, body: tuple[Stmt, ...], own: frozenset[str], shared: Mapping[str, Expr], active: Threads
) -> tuple[Stmt, ...]:
    """Names from before the loop replaced by what the team knows them to be."""
    values: dict[str, Expr] = dict(shared)
    changed = assigned_in(body)
    for name in sorted(names_in(body) - own - set(shared)):
        if name in team.arrays or name in team.kept_names:
            continue
        if f"{name}[]" in team.variables:
            raise team.beyond(f"the array '{name}' is filled before the loop that reads it")
        if name in team.shared:
            raise team.beyond(f"shared memory '{name}' is used in a way that is not followed")
        held = team.eval(Name(name), active)
        value = one_value(held, active)
        expr = None if value is None else expr_of(value)
        if expr is None:
            raise team.beyond(f"the loop reads '{name}': {blame(held, active)}")
        if name in changed:
            raise team.beyond(f"'{name}' is changed in a loop over elements")
        if expr != Name(name):
            values[name] = expr
    return substitute(body, values) if values else body
