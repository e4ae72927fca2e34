"""What the outputs of a problem file say of their order, their keys and functions that compare them: read
with all arguments at hand, because one names another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tunesmith.problem.argument_tables import Read, read_function
from tunesmith.problem.problem import ANY_ORDER, Argument
from tunesmith.problem.toml_table import Table, show
from tunesmith.space.grammar import suggestion

ListedArguments = Sequence[tuple[Table, Argument]]
GIVEN = ("got", "expected", "rtol", "atol")  # what a function of the user's is called with, besides arguments


def read_orders(listed: ListedArguments, sizes: Collection[str], read: Read) -> tuple[Argument, ...]:
    """The arguments, with the axis of those that go with another, and functions that compare."""
    by_name = {argument.name: argument for _, argument in listed}
    found: list[Argument] = []
    for table, argument in listed:
        read_one = argument
        if argument.order:
            read_one = _with_order(table, argument, by_name)
        if argument.keys:
            _check_keys(table, argument, by_name)
        if argument.compare == "function":
            _check_given(table, (*sizes, *by_name))
            read_one = replace(read_one, checker=read_function(table, "compare", read))
        found.append(read_one)
    return tuple(found)


def _with_order(table: Table, argument: Argument, by_name: dict[str, Argument]) -> Argument:
    if not argument.shape:
        table.fault("order", "order needs an axis, and the shape has none", "remove it")
        return argument
    if argument.compare == "function":
        table.fault("order", "order says nothing where a function compares", "let the function allow for it")
    if argument.order == ANY_ORDER:
        return argument
    others = [
        name
        for name, one in by_name.items()
        if one.is_written and not one.alias and one is not argument and one.order in ("", ANY_ORDER)
    ]
    leader = by_name.get(argument.order)
    if leader is None or argument.order not in others:
        rule = f'be "{ANY_ORDER}" or another output with an order of its own'
        hint = suggestion(argument.order, (ANY_ORDER, *others)) or "name one of these"
        table.must("order", f"{rule} ({', '.join(others) or 'there is none'})", hint)
        return argument
    if leader.compare == "function":
        table.fault("order", f"{leader.name} is compared by a function, which says all", "remove order")
    if "along" in table:
        table.fault("along", f"along is said at {leader.name}, which it goes with", "put it there")
    along = leader.along if leader.along is not None else len(leader.shape) - 1
    axes, needed = ([e.text for e in a.shape[: along + 1]] for a in (argument, leader))
    if axes != needed:
        rule = f"what goes with {leader.name} must have its axes up to the one that is ordered"
        table.fault("order", f"{rule}, {', '.join(needed)}; got {', '.join(axes)}", "give it that shape")
    return replace(argument, along=along)


def _check_keys(table: Table, argument: Argument, by_name: dict[str, Argument]) -> None:
    inputs = [name for name, one in by_name.items() if one.role == "input" and not one.alias]
    if argument.keys not in inputs:
        hint = suggestion(argument.keys, inputs) or "name the array that the indices point into"
        table.must("keys", f"name an array of role input ({', '.join(inputs) or 'there is none'})", hint)
    if argument.element.kind == "float" or argument.element.packed > 1:
        rule = f"keys goes with indices, which are whole numbers; got {argument.type}"
        table.fault("keys", rule, "remove it")
    if argument.compare not in (None, "exact"):
        rule = f"indices are compared by their keys, which are equal or not; got {argument.compare}"
        table.fault("compare", rule, "remove it, or keys")
    if not argument.shape or argument.along not in (None, len(argument.shape) - 1):
        table.fault("keys", "indices with keys lie along the last axis", "remove along")


def _check_given(table: Table, names: Collection[str]) -> None:
    for name in sorted({*GIVEN} & {*names}):
        rule = f"a function that compares is given {', '.join(GIVEN)}, so that no argument or size is called"
        table.fault("compare", f"{rule} {show(name)}", f"rename {name}")
