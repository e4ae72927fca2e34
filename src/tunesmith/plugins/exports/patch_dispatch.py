"""The host's part of a patched CUDA file: the sizes of a launch from what it passes, and who serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.deliver.artefact import (
    Artefact,
    DeviceResult,
    bytes_of,
    is_written,
    within_contract,
)
from tunesmith.deliver.cuda.host import scalar_text, shape_text
from tunesmith.deliver.cuda.source import NamespacedSource
from tunesmith.deliver.expr_text import C_TYPES, c_code, c_names, c_text
from tunesmith.plugins.exports import export_texts, fixed_value
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, DispatchLaunch
from tunesmith.problem.problem import element_type
from tunesmith.space import expr as n
from tunesmith.space.expr import Expr, Node, parse_expr, unparse

_AXES = ("x", "y", "z")


class CannotServe(Exception):
    """Why a launch, or a tuned kernel, cannot be part of a patch."""


@dataclass(frozen=True)
class TunedUnit:
    """A tuned source in its namespace."""

    result: DeviceResult
    entry: DispatchEntry
    namespace: str
    section: NamespacedSource
    capability: int
    image: bytes | None = None  # machine code, in place of a source that is compiled

    @property
    def file(self) -> str:
        return self.entry.file

    def addresses(self) -> str:
        """Inside the namespace, because an entry may name the source's own types and macros."""
        names = enumerate(map(_bare_entry_name, self.entry.launches))
        return "".join(
            f"static const void* const tuned_entry_{k} = (const void*)&{name};\n" for k, name in names
        )


def _bare_entry_name(launch: DispatchLaunch) -> str:
    return " ".join(launch.entry.split()).removeprefix("::")


def _size_names(dispatch: Dispatch) -> dict[str, str]:
    return c_names([size.name for size in dispatch.sizes], "size")


def _described_launches(dispatch: Dispatch, launches: Sequence[DispatchLaunch]) -> list[dict[str, object]]:
    """Of `values`, the addresses of the operator's arguments, each launch takes some."""
    order, sizes = [a.name for a in dispatch.arguments], _size_names(dispatch)
    return [
        {
            "shape": shape_text(number, launch, sizes),
            "args": ", ".join(f"values[{order.index(arg)}]" for arg in launch.args) or "nullptr",
            "is_conditional": launch.when is not None,
            "entry": _bare_entry_name(launch),
        }
        for number, launch in enumerate(launches)
    ]


def dispatch_code(artefact: Artefact, units: Sequence[TunedUnit]) -> str:
    """Functions that run each kernel, and `served`: whether one of them took the launch.

    `values` holds the address of every argument of the operator, in its order."""
    dispatch = artefact.first.dispatch
    names = _size_names(dispatch)
    runs = (_run_function(dispatch, number, unit) for number, unit in enumerate(units))
    devices = []
    for result in artefact.results:
        ours = [unit for unit in units if unit.result is result]
        lines = []
        for entry in result.dispatch.entries[:-1] if ours else ():
            unit = next((unit for unit in ours if unit.entry is entry), None)
            if unit is None and entry.config is not None:
                continue  # left out: whoever comes next serves
            label = entry.file if unit is None else f"{entry.file} in {unit.namespace}"
            passed = ", ".join(["values", *names.values(), "device", "stream"])
            run = "false" if unit is None else f"run_{units.index(unit)}({passed})"
            lines.append((f"{label}: {entry.when}", c_code(parse_expr(entry.when), names), run))
        devices += [(ours[0].capability, lines)] if ours else []
    order = [a.name for a in dispatch.arguments]
    differs, arrays = [], []
    for number, argument in enumerate(dispatch.arguments):
        if argument.role == "scalar" and not argument.follows_sizes:
            differs.append(f"!({_same_bits_test(number, argument)})")
        elif argument.alias:
            differs.append(f"pointer(values, {number}) != pointer(values, {order.index(argument.alias)})")
        elif argument.is_array:
            arrays.append((number, c_code(bytes_of(argument), names), argument.align))
    written = {number for number, argument in enumerate(dispatch.arguments) if is_written(argument)}
    numbers = [number for number, _, _ in arrays]
    pairs = [(b, a) for place, b in enumerate(numbers) for a in numbers[:place] if {a, b} & written]
    contract = c_code(within_contract(dispatch), names)
    served = export_texts("patch_dispatch.j2").served(
        [*names.values()], contract, differs, arrays, pairs, devices
    )
    return f"{''.join(runs)}{served}"


def _run_function(dispatch: Dispatch, number: int, unit: TunedUnit) -> str:
    launches, binary = unit.entry.launches, unit.entry.binary
    described = _described_launches(dispatch, launches)
    for launch, about in zip(launches, described, strict=True) if unit.image is not None else ():
        assert binary is not None, "machine code has symbols"
        about["symbol"] = c_text(binary.symbols[launch.entry])
    is_open = any(launch.when is not None for launch in launches)
    return str(
        export_texts("patch_dispatch.j2").run(
            number, unit, [*_size_names(dispatch).values()], described, is_open
        )
    )


def _same_bits_test(number: int, argument: DispatchArgument) -> str:
    """To the bit, as the kernel gets it."""
    value, element = fixed_value(argument), element_type(argument.type)
    if value is None or not element.holds(value):
        return "false"
    with np.errstate(over="ignore"):
        bits = int.from_bytes(np.array(value).astype(element.numpy).tobytes(), "little")
    return f"same_bits(values[{number}], {bits:#x}ULL, {element.bytes})"


def launch_widths(dispatch: Dispatch) -> tuple[int, ...]:
    """Bytes of each argument that the original's one launch passes."""
    arguments = {a.name: a for a in dispatch.arguments}
    given = [arguments[name] for name in dispatch.original.launches[0].args]
    return tuple(8 if a.is_array else element_type(a.type).bytes for a in given)


def at_launch_code(artefact: Artefact) -> str:
    """`at_launch`: whether a tuned kernel took a launch of this grid and block with these arguments.

    Raises CannotServe where they do not tell the sizes.
    """
    dispatch = artefact.first.dispatch
    (launch,) = dispatch.original.launches
    arguments = {a.name: a for a in dispatch.arguments}
    given = [arguments[name] for name in launch.args]
    if missing := [a.name for a in dispatch.arguments if a.name not in launch.args]:
        raise CannotServe(f"the kernel does not take {missing[0]}")
    names = _size_names(dispatch)
    numbers: list[tuple[int, str]] = []
    known: list[tuple[Node, str]] = []
    for number, argument in enumerate(given):
        if argument.follows_sizes and element_type(argument.type).kind == "float":
            raise CannotServe(f"{argument.name} is a {argument.type} that follows the sizes")
        if argument.follows_sizes:
            numbers.append((number, C_TYPES[argument.type][0]))
            known.append((parse_expr(str(argument.value)).tree, f"given_{number}"))
    for what in ("grid", "block"):
        texts = getattr(launch, what)
        for axis, name in enumerate(_AXES):
            tree = parse_expr(texts[axis]).tree if axis < len(texts) else n.Num(1)
            known.append((tree, f"static_cast<long long>({what}.{name})"))
    solved = _solve_sizes(dispatch, known, names)
    checks = [f"{value} == {c_code(Expr(unparse(tree), tree), names)}" for tree, value in known]
    values = [f"args[{launch.args.index(a.name)}]" for a in dispatch.arguments]
    return str(
        export_texts("patch_dispatch.j2").at_launch(numbers, solved, checks, values, [*names.values()])
    )


def sites_code(artefact: Artefact) -> str:
    """`launch`: a tuned kernel where it serves this grid, block and these arguments, else the user's own.

    Raises CannotServe as `at_launch_code` does.
    """
    widths = ", ".join(map(str, launch_widths(artefact.first.dispatch)))
    return str(export_texts("patch_dispatch.j2").sites(at_launch_code(artefact), widths))


def _solve_sizes(
    dispatch: Dispatch, known: Sequence[tuple[Node, str]], names: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The variable of each size, and its value from one that the launch passes; bare names first."""
    found: dict[str, str] = {}
    solved: list[tuple[str, str]] = []
    wanted = [size.name for size in dispatch.sizes]
    while len(found) < len(wanted):
        options = [
            (depth, number, *solution)
            for number, (tree, value) in enumerate(known)
            if (left := set(n.iterate_variable_names(tree)) - found.keys()) and len(left) == 1
            for depth, solution in [_invert_expression(tree, value, next(iter(left)), found)]
            if solution is not None
        ]
        if not options:
            name = next(name for name in wanted if name not in found)
            raise CannotServe(f"nothing that it passes tells the size {name}")
        _, _, name, value = min(options)
        found[name] = names[name]
        solved.append((names[name], value))
    return solved


# The operation, and whether the size stands left of it -> how the size's side is found.
_INVERSE: dict[tuple[str, bool], str] = {
    **dict.fromkeys((("+", True), ("+", False)), "subtract({value}, {side}, undefined)"),
    ("-", True): "add({value}, {side}, undefined)",
    ("-", False): "subtract({side}, {value}, undefined)",
    **dict.fromkeys((("*", True), ("*", False)), "divide({value}, {side}, undefined)"),
}


def _invert_expression(
    tree: Node, value: str, name: str, found: Mapping[str, str]
) -> tuple[int, tuple[str, str] | None]:
    """The size as C++, where `value` is the tree's; what does not fit is refused by the check behind it."""
    depth = 0
    while not isinstance(tree, n.Variable):
        depth += 1
        if not isinstance(tree, n.Arithmetic):
            return depth, None
        on_left = name in set(n.iterate_variable_names(tree.left))
        if on_left and name in set(n.iterate_variable_names(tree.right)):
            return depth, None
        other = tree.right if on_left else tree.left
        side = c_code(Expr(unparse(other), other), found)
        operation = _INVERSE.get((tree.op, on_left))
        if operation is None:
            return depth, None
        value = operation.format(value=value, side=side)
        tree = tree.left if on_left else tree.right
    return depth, (tree.id, value)


def format_launcher(artefact: Artefact, namespace: str) -> str:
    dispatch = artefact.first.dispatch
    sizes, variables = _size_names(dispatch), c_names([a.name for a in dispatch.arguments], "arg")
    taken, scalars, values = [], [], []
    for argument in dispatch.arguments:
        kind, name = C_TYPES[argument.type][0], variables[argument.alias or argument.name]
        if argument.is_array and not argument.alias:
            taken.append(f"{'const ' if argument.role == 'input' else ''}{kind}* {name}")
        elif argument.role == "scalar" and not argument.follows_sizes:
            taken.append(f"{kind} {name}")
        elif argument.role == "scalar":
            scalars.append((kind, name, scalar_text(argument, sizes)))
        values.append(f"(void*)&{name}")
    taken += [f"long long {size}" for size in sizes.values()]
    launches = _described_launches(dispatch, dispatch.original.launches)
    about = (artefact.name, namespace, taken, scalars, values, launches, [*sizes.values()])
    return str(export_texts("patch_dispatch.j2").launcher(*about))
