"""Loops over one range between which a thread's elements can stay, and those that may run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.expert.c.nodes import Expr, Name
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import names_in
from tunesmith.expert.model.affine import terms
from tunesmith.expert.model.kernel import Each, Repeat, Step, When
from tunesmith.expert.model.step_tree import all_steps, own_parts
from tunesmith.expert.writing.beside import Independence, length_of_all, runs
from tunesmith.expert.writing.packs import Key, Pack
from tunesmith.expert.writing.plan import Group, LoopPlan, Plan
from tunesmith.expert.writing.sites import Sites


def group_loops(steps: Sequence[Step], plan: Plan) -> None:
    """Groups among the loops of one list of steps; branches and loops have lists of their own."""
    ranges: dict[tuple[object, object], Group] = {}
    for step in steps:
        match step:
            case Each():
                key = (_range_key(step.start), _range_key(step.stop))
                group = ranges.setdefault(key, Group(step.start, step.stop))
                group.loops.append(plan.loop(step))
            case When(then=then, otherwise=otherwise):
                group_loops(then, plan)
                group_loops(otherwise, plan)
            case Repeat(body=body):
                group_loops(body, plan)
    for group in ranges.values():
        if len(group.loops) > 1 and plan.sizes.node(group.loops[0].extent) is not None:
            _share(group, plan)


def side_by_side(plan: Plan) -> list[tuple[LoopPlan, ...]]:
    """Those that take their elements in one way, none of which could keep them, with no pack over an end."""
    if plan.is_flat:
        return []
    found = []
    for run in runs(plan.kernel.steps, Independence.of(plan.kernel, plan.problem)):
        loops = tuple(plan.loop(each) for each in run)
        packed = {any(pack.width for pack in loop.packs) for loop in loops}
        whole = not any(loop.tail or loop.group is not None for loop in loops)
        if whole and len(packed) == 1 and plan.sizes.node(length_of_all(run)) is not None:
            found.append(loops)
    return found


def _share(group: Group, plan: Plan) -> None:
    kept = {kept.name for kept in plan.kernel.kept}
    touched = _outside(group, plan)
    uses: dict[Key, list[tuple[LoopPlan, Pack]]] = {}
    for loop in group.loops:
        for pack in loop.packs:
            uses.setdefault(pack.key, []).append((loop, pack))
    names = {key: members[0][0].names[key] for key, members in uses.items()}
    for key, members in uses.items():
        array = key[0]
        if len(members) < 2 or (array not in kept and (array in touched or _other_keys(group, key, plan))):
            continue
        useful = any(pack.loads for _, pack in members[1:]) or sum(pack.stores for _, pack in members) > 1
        if not useful:
            continue
        group.shared.add(key)
        for position, (loop, pack) in enumerate(members):
            loop.names[key] = names[key]
            if position and pack.loads:
                loop.reused.add(key)
            if pack.stores and any(p.stores for _, p in members[position + 1 :]):
                loop.dead.add(key)
    if group.shared:
        for loop in group.loops:
            loop.group = group
        if plan.draft.schedule.early is not None:
            _find_early(group, uses, plan)
        plan.groups.append(group)


def _find_early(group: Group, uses: dict[Key, list[tuple[LoopPlan, Pack]]], plan: Plan) -> None:
    """Of arrays nobody writes, at places that need nothing the steps in between compute."""
    known = {p.name for p in plan.kernel.function.parameters} | {task.name for task in plan.kernel.tasks}
    for key, members in uses.items():
        (loop, pack), first = members[0], group.loops[0]
        if key in group.shared or len(members) > 1 or loop is first or not pack.loads or not pack.width:
            continue
        names = names_in(pack.index) | (frozenset() if pack.offset is None else names_in(pack.offset))
        if key[0] not in plan.written and names - {loop.each.index} <= known:
            index = {loop.each.index: Name(first.each.index)}
            offset = None if pack.offset is None else substitute(pack.offset, index)
            group.early[key] = replace(pack, index=substitute(pack.index, index), offset=offset)
            first.names[key] = loop.names[key]


def _outside(group: Group, plan: Plan) -> set[str]:
    """Arrays that the kernel writes and that steps other than the group's loops touch."""
    own = {id(loop.each) for loop in group.loops}
    found: set[str] = set()
    for step in all_steps(plan.kernel.steps):
        if id(step) in own:
            continue
        for part in own_parts(step):
            found |= names_in(part) & plan.written
    return found


def _other_keys(group: Group, key: Key, plan: Plan) -> bool:
    """Whether the group touches a written array also in another way than by this key."""
    array = key[0]
    if array not in plan.written:
        return False
    for loop in group.loops:
        packs = {node: pack.key for pack in loop.packs for node, _ in pack.sites}
        sites = Sites.of(loop.each.body, plan.arrays)
        if array in sites.escaped:
            return True
        if any(site.array == array and packs.get(site.node) != key for site in sites.found):
            return True
    return False


def _range_key(expr: Expr) -> object:
    return frozenset(terms(expr).items())
