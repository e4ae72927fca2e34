"""The host's part of a patched CUDA file: the sizes of a launch from what it passes, and who serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.deliver.artefact import (
    Artefact,
    DeviceResult,
    bytes_of,
    fixed_value,
    is_written,
    within_contract,
)
from tunesmith.deliver.cuda.host import scalar_text, shape_text
from tunesmith.deliver.cuda.source import NamespacedSource
from tunesmith.deliver.expr_text import C_TYPES, c_code, c_names, c_text, format_comment
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


def _size_parameters(dispatch: Dispatch) -> str:
    return "".join(f"long long {size}, " for size in _size_names(dispatch).values())


def _size_arguments(dispatch: Dispatch) -> str:
    return "".join(f"{size}, " for size in _size_names(dispatch).values())


def dispatch_code(artefact: Artefact, units: Sequence[TunedUnit]) -> str:
    """Functions that run each kernel, and `served`: whether one of them took the launch.

    `values` holds the address of every argument of the operator, in its order."""
    dispatch = artefact.first.dispatch
    parts = [_format_run_function(dispatch, number, unit) for number, unit in enumerate(units)]
    body = [*_as_verified(dispatch)]
    names = _size_names(dispatch)
    for result in artefact.results:
        own = [unit for unit in units if unit.result is result]
        if not own:
            continue
        body.append(f"    if (architecture(device) == {own[0].capability}) {{\n")
        for entry in result.dispatch.entries[:-1]:
            unit = next((unit for unit in own if unit.entry is entry), None)
            if unit is None and entry.config is not None:
                continue  # left out: whoever comes next serves
            label = entry.file if unit is None else f"{entry.file} in {unit.namespace}"
            body.append(format_comment([f"{label}: {entry.when}"], "        "))
            holds = c_code(parse_expr(entry.when), names)
            body.append(f"        undefined = false;\n        holds = {holds};\n")
            passed = f"values, {_size_arguments(dispatch)}device, stream"
            run = "false" if unit is None else f"run_{units.index(unit)}({passed})"
            body.append(f"        if (holds && !undefined) return {run};\n")
        body.append("    }\n")
    head = f"inline bool served(void* const* values, {_size_parameters(dispatch)}cudaStream_t stream) {{\n"
    return "\n".join([*parts, f"{head}{''.join(body)}    return false;\n}}\n"])


def _as_verified(dispatch: Dispatch) -> list[str]:
    """Returns where anything about the call is not as it was while tuning."""
    names = _size_names(dispatch)
    lines = ["    bool undefined = false, holds = true;\n"]
    lines.append("    if (cudaPeekAtLastError() != cudaSuccess) return false;  // the caller is to find it\n")
    lines += [f"    if ({size} < -limit || {size} > limit) return false;\n" for size in names.values()]
    lines.append(f"    holds = {c_code(within_contract(dispatch), names)};\n")
    lines.append("    if (!holds || undefined) return false;\n")
    arrays = []
    for number, argument in enumerate(dispatch.arguments):
        if argument.role == "scalar" and not argument.follows_sizes:
            lines.append(f"    if (!({_same_bits_test(number, argument)})) return false;\n")
        elif argument.alias:
            other = [a.name for a in dispatch.arguments].index(argument.alias)
            lines.append(f"    if (pointer(values, {number}) != pointer(values, {other})) return false;\n")
        elif argument.is_array:
            arrays.append((number, argument))
    for number, argument in arrays:
        lines.append(f"    const long long bytes_{number} = {c_code(bytes_of(argument), names)};\n")
        aligned = f"is_aligned(pointer(values, {number}), {argument.align})"
        lines.append(f"    if (undefined || bytes_{number} < 0 || !{aligned}) return false;\n")
        lines.append(f"    if (bytes_{number} > 0 && pointer(values, {number}) == nullptr) return false;\n")
    for place, (number, argument) in enumerate(arrays):
        for other, before in arrays[:place]:
            if is_written(argument) or is_written(before):
                both = (f"pointer(values, {k}), bytes_{k}" for k in (number, other))
                lines.append(f"    if (overlap({', '.join(both)})) return false;\n")
    lines.append("    const int device = current_device();\n")
    return lines


def _same_bits_test(number: int, argument: DispatchArgument) -> str:
    """To the bit, as the kernel gets it."""
    value, element = fixed_value(argument), element_type(argument.type)
    if value is None or not element.holds(value):
        return "false"
    with np.errstate(over="ignore"):
        bits = int.from_bytes(np.array(value).astype(element.numpy).tobytes(), "little")
    return f"same_bits(values[{number}], {bits:#x}ULL, {element.bytes})"


def _format_run_function(dispatch: Dispatch, number: int, unit: TunedUnit) -> str:
    """Whether it was launched. Where the first launch fails, nothing has begun: the original serves."""
    names = _size_names(dispatch)
    order = [a.name for a in dispatch.arguments]
    body = ["    bool undefined = false;\n"]
    body += [shape_text(k, launch, names) for k, launch in enumerate(unit.entry.launches)]
    body.append("    if (undefined) return false;\n")
    body += _kernel_definitions(unit)
    is_open = any(launch.when is not None for launch in unit.entry.launches)
    body += ["    bool has_begun = false;\n"] if is_open else []
    for k, launch in enumerate(unit.entry.launches):
        listed = ", ".join(f"values[{order.index(arg)}]" for arg in launch.args) or "nullptr"
        body.append(f"    void* args_{k}[] = {{{listed}}};\n")
        begun = f"start(kernel_{k}, shape_{k}, args_{k}, device, stream) != cudaSuccess"
        if is_open:  # sizes decide which launch is the first
            fails = "{\n        if (has_begun) return true;\n"
            fails += "        cudaGetLastError();\n        return false;\n    }"
            asked = f"launched_{k} && " if launch.when is not None else ""
            body.append(f"    if ({asked}{begun}) {fails}\n")
            body.append(f"    has_begun = {'has_begun || launched_' + str(k) if asked else 'true'};\n")
            continue
        fails = "{\n        cudaGetLastError();\n        return false;\n    }" if k == 0 else "return true;"
        body.append(f"    if ({begun}) {fails}\n")
    taken = f"void* const* values, {_size_parameters(dispatch)}int device, cudaStream_t stream"
    head = f"inline bool run_{number}({taken}) {{\n"
    unused = "".join(f"    (void){name};\n" for name in ("values", *names.values()))
    return f"{head}{unused}{''.join(body)}    return {'has_begun' if is_open else 'true'};\n}}\n"


def _kernel_definitions(unit: TunedUnit) -> list[str]:
    """Definitions of `kernel_NUMBER`; where machine code cannot be loaded, the original serves."""
    lines = []
    for k, launch in enumerate(unit.entry.launches):
        if unit.image is None:
            lines.append(f"    static Kernel kernel_{k} = {{{unit.namespace}::tuned_entry_{k}, {{}}}};\n")
            continue
        assert unit.entry.binary is not None, "machine code has symbols"
        symbol = c_text(unit.entry.binary.symbols[launch.entry])
        loaded = f"embedded_kernel(own_{k}, {unit.namespace}::image, {symbol})"
        lines.append(f"    static EmbeddedKernel own_{k};\n    Kernel* const loaded_{k} = {loaded};\n")
        lines.append(f"    if (loaded_{k} == nullptr) return false;\n")
        lines.append(f"    Kernel& kernel_{k} = *loaded_{k};\n")
    return lines


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
    lines, checks = [], []
    known: list[tuple[Node, str]] = []
    for number, argument in enumerate(given):
        if argument.follows_sizes and element_type(argument.type).kind != "float":
            kind = C_TYPES[argument.type][0]
            value = f"static_cast<long long>(*static_cast<const {kind}*>(args[{number}]))"
            lines.append(f"    const long long given_{number} = {value};\n")
            known.append((parse_expr(str(argument.value)).tree, f"given_{number}"))
        elif argument.follows_sizes:
            raise CannotServe(f"{argument.name} is a {argument.type} that follows the sizes")
    for what in ("grid", "block"):
        texts = getattr(launch, what)
        for axis, name in enumerate(_AXES):
            tree = parse_expr(texts[axis]).tree if axis < len(texts) else n.Num(1)
            known.append((tree, f"static_cast<long long>({what}.{name})"))
    lines += _solve_sizes(dispatch, known, names)
    for tree, value in known:
        checks.append(f"{value} == {c_code(Expr(unparse(tree), tree), names)}")
    order = [launch.args.index(a.name) for a in dispatch.arguments]
    tests = "".join(f"    if (undefined || !({check}) || undefined) return false;\n" for check in checks)
    return f"""
// What the launch passes tells the sizes; where anything else is not as it was tuned, it stays what it is.
inline bool at_launch(void* const* args, dim3 grid, dim3 block, cudaStream_t stream) {{
    bool undefined = false;
{"".join(lines)}{tests}    void* const values[] = {{{", ".join(f"args[{k}]" for k in order)}}};
    return served(values, {_size_arguments(dispatch)}stream);
}}
"""


def sites_code(artefact: Artefact) -> str:
    """`launch`: a tuned kernel where it serves this grid, block and these arguments, else the user's own.

    Raises CannotServe as `at_launch_code` does.
    """
    widths = ", ".join(map(str, launch_widths(artefact.first.dispatch)))
    return f"""{at_launch_code(artefact)}
template <typename T> struct Same {{ typedef T type; }};
template <typename... P>
inline void launch(const void* tuned, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                   cudaStream_t stream, typename Same<P>::type... args) {{
    const size_t given[] = {{sizeof(P)...}}, wanted[] = {{{widths}}};
    if ((const void*)kernel == tuned && sizeof given == sizeof wanted &&
        memcmp(given, wanted, sizeof wanted) == 0) {{
        void* values[] = {{const_cast<void*>(static_cast<const volatile void*>(&args))...}};
        if (at_launch(values, grid, block, stream)) return;
    }}
    kernel<<<grid, block, shared, stream>>>(args...);
}}
"""


def _solve_sizes(
    dispatch: Dispatch, known: Sequence[tuple[Node, str]], names: Mapping[str, str]
) -> list[str]:
    """Definitions of the sizes, each from a value that the launch passes; bare names first."""
    found: dict[str, str] = {}
    lines: list[str] = []
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
        lines.append(f"    const long long {names[name]} = {value};\n")
        lines.append(f"    if (undefined || {names[name]} < -limit || {names[name]} > limit) return false;\n")
    return lines


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
    """A function at the end of the file that serves a call, by the original where no tuned kernel does."""
    dispatch = artefact.first.dispatch
    sizes = _size_names(dispatch)
    own = c_names([a.name for a in dispatch.arguments], "arg")
    taken, values = [], []
    body = ["    bool undefined = false;\n"]
    for argument in dispatch.arguments:
        kind = C_TYPES[argument.type][0]
        name = own[argument.alias or argument.name]
        if argument.is_array and not argument.alias:
            taken.append(f"{'const ' if argument.role == 'input' else ''}{kind}* {name}")
        elif argument.role == "scalar" and not argument.follows_sizes:
            taken.append(f"{kind} {name}")
        elif argument.role == "scalar":
            body.append(f"    {kind} {name} = static_cast<{kind}>({scalar_text(argument, sizes)});\n")
        values.append(f"(void*)&{name}")
    taken += [f"long long {size}" for size in sizes.values()]
    body += [shape_text(k, launch, sizes) for k, launch in enumerate(dispatch.original.launches)]
    body.append("    if (undefined) return cudaErrorInvalidValue;\n")
    body.append(f"    void* const values[] = {{{', '.join(values)}}};\n")
    body.append(f"    if (served(values, {_size_arguments(dispatch)}stream)) return cudaPeekAtLastError();\n")
    order = [a.name for a in dispatch.arguments]
    for k, launch in enumerate(dispatch.original.launches):
        listed = ", ".join(f"values[{order.index(arg)}]" for arg in launch.args) or "nullptr"
        body.append(f"    static Kernel kernel_{k} = {{(const void*)&::{_bare_entry_name(launch)}, {{}}}};\n")
        body.append(f"    void* args_{k}[] = {{{listed}}};\n")
        # For no device: what shared memory it may have is set each time, because the user's code may set it.
        started = f"start(kernel_{k}, shape_{k}, args_{k}, -1, stream)"
        started = f"launched_{k} ? {started} : cudaSuccess" if launch.when is not None else started
        body.append(f"    const cudaError_t error_{k} = {started};\n")
        body.append(f"    if (error_{k} != cudaSuccess) return error_{k};\n")
    body.append("    return cudaSuccess;\n")
    head = f"inline cudaError_t {artefact.name}_tuned_launch({', '.join([*taken, 'cudaStream_t stream'])})"
    guard = " || ".join(f"{s} < -{namespace}::limit || {s} > {namespace}::limit" for s in sizes.values())
    first = f"    if ({guard}) return cudaErrorInvalidValue;\n" if guard else ""
    return f"{head} {{\n    using namespace ::{namespace};\n{first}{''.join(body)}}}\n"
