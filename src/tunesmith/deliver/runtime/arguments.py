"""What a caller passes, in order or by name, as the arrays, sizes and scalars of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .manifest import ManifestArgument
from .operator import Operator


class PassedArguments:
    """`arrays` in the operator's order; `outputs` of them are given back to the caller."""

    def __init__(
        self, arrays: list[Any], sizes: dict[str, Any], scalars: list[Any], outputs: list[Any]
    ) -> None:
        self.arrays, self.sizes, self.scalars, self.outputs = arrays, sizes, scalars, outputs

    @property
    def result(self) -> Any:
        """As a function returns it: nothing, one array, or several."""
        if len(self.outputs) == 1:
            return self.outputs[0]
        return tuple(self.outputs) or None


def passed(
    operator: Operator,
    positional: Sequence[Any],
    named: Mapping[str, Any],
    shape_of: Callable[[ManifestArgument, Any], Sequence[int]],
    allocate: Callable[[ManifestArgument, tuple[int, ...], tuple[int, ...], Any], Any] | None,
) -> PassedArguments:
    """Every array in the kernel's order, or all but the outputs, which are then allocated; any may be named.
    `shape_of` gives a shape in elements; `allocate` an array like one of the caller's."""
    signature = operator.signature
    given = dict(named)
    by_name = {a.name: given.pop(a.name) for a in signature.arrays if a.name in given}
    count = len(positional) + len(by_name)
    with_outputs = count == len(signature.arrays) or any(a.name in by_name for a in signature.outputs)
    order = [a for a in (signature.arrays if with_outputs else signature.given) if a.name not in by_name]
    if len(positional) != len(order) or (not with_outputs and allocate is None):
        every = ", ".join(a.name for a in signature.arrays)
        inputs = ", ".join(a.name for a in signature.given) or "none"
        fewer = f", or without the outputs: {inputs}" if allocate is not None else ""
        raise TypeError(f"{operator.name} takes the arrays {every}{fewer}; got {count}: pass them in order")
    by_name.update({a.name: array for a, array in zip(order, positional)})
    sizes, scalars = operator.named(given)
    if not with_outputs and signature.outputs and allocate is not None:
        shapes: dict[str, Sequence[int]] = {}
        for argument in signature.given:
            shape = shape_of(argument, by_name[argument.name])
            shapes[argument.name] = signature.elements(argument, shape)
            if len(shape) != len(argument.shape):
                signature.check_kind(argument, argument.type, shape)
        known = {n: int(v) for n, v in signature.sizes_of(shapes, sizes).items()}
        like = by_name[signature.given[0].name] if signature.given else None
        for output in signature.outputs:
            shape, strides = signature.memory_layout(output, known)
            by_name[output.name] = allocate(output, shape, strides, like)
    arrays = [by_name[a.name] for a in signature.arrays]
    return PassedArguments(arrays, sizes, scalars, [by_name[a.name] for a in signature.outputs])
