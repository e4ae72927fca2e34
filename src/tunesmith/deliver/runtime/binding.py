"""Arrays that a caller brings, bound to an operator's arguments: sizes are inferred, the rest is checked.

An error says the rule, the value and the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .element_types import PACKED, accepts
from .expressions import Expression, NoValue, solved
from .manifest import Manifest, ManifestArgument


class Array(NamedTuple):
    """What a call needs to know of an array. `strides` count elements; None: dense, the last axis fastest."""

    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: Any


def dense_strides(shape: Sequence[Any]) -> tuple[Any, ...]:
    strides: list[Any] = []
    step: Any = 1
    for length in reversed(shape):
        strides.append(step)
        step = step * length
    return tuple(reversed(strides))


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last, both included."""
    if any(length <= 0 for length in shape):
        return 0
    return 1 + sum((length - 1) * stride for length, stride in zip(shape, strides))


def item_strides(owner: str, name: str, array: Any) -> tuple[int, ...]:
    """The strides of an array of NumPy's kind, in elements. What a count of elements cannot say is refused:
    bytes in another order, and steps that are no whole number of elements."""
    dtype = array.dtype
    if not dtype.isnative:
        raise TypeError(
            f"{owner}: {name} has its bytes in this machine's order, got {dtype.str}: convert it before the "
            "call, e.g. with .astype(x.dtype.newbyteorder('='))"
        )
    steps = [stride if length > 1 else 0 for length, stride in zip(array.shape, array.strides)]
    if any(step % dtype.itemsize for step in steps):
        raise ValueError(
            f"{owner}: {name} has steps of whole elements of {dtype.itemsize} bytes, got steps of {steps} "
            "bytes: copy it before the call, e.g. with .copy()"
        )
    return tuple(stride // dtype.itemsize for stride in array.strides)


class Signature:
    """The arguments of an operator as a caller sees them."""

    def __init__(self, dispatch: Manifest) -> None:
        self.name = dispatch.problem
        self.arguments = {argument.name: argument for argument in dispatch.arguments}
        own = [a for a in dispatch.arguments if a.is_array and not a.alias and a.role != "workspace"]
        self.arrays = tuple(own)  # that a caller may bring
        self.given = tuple(a for a in own if a.role != "output")
        self.outputs = tuple(a for a in own if a.role == "output")
        self.workspace = tuple(a for a in dispatch.arguments if a.role == "workspace" and not a.alias)
        self.scalars = tuple(a for a in dispatch.arguments if a.role == "scalar" and not a.follows_sizes)
        self.sizes = tuple(size.name for size in dispatch.sizes)
        self.unshown = self._unshown(self.given)  # sizes that a call without outputs must name
        self.unshown_by_all = self._unshown(self.arrays)

    def _unshown(self, arrays: Sequence[ManifestArgument]) -> tuple[str, ...]:
        """Whether a size follows from shapes does not depend on how long they are."""
        known: dict[str, Any] = {}
        self._infer({a.name: _symbols(a) for a in arrays}, known)
        return tuple(name for name in self.sizes if name not in known)

    def sizes_of(self, shapes: Mapping[str, Sequence[Any]], named: Mapping[str, Any]) -> dict[str, Any]:
        """From shapes, in elements; sizes that are named must agree. Also of symbols."""
        known: dict[str, Any] = {}
        self._infer(shapes, known)
        for name, value in named.items():
            if name in known and known[name] != value:
                raise ValueError(
                    f"{self.name}: {name} = {value} is passed, the shapes say {name} = {known[name]}: "
                    f"leave {name} out, or pass arrays of that size"
                )
            known[name] = value
        self._infer(shapes, known)
        if missing := [name for name in self.sizes if name not in known]:
            raise TypeError(
                f"{self.name}: no shape tells the size {missing[0]}: pass it by name, {missing[0]}=..."
            )
        return known

    def _infer(self, shapes: Mapping[str, Sequence[Any]], known: dict[str, Any]) -> None:
        """Bare names first, then what can be turned round, until nothing new is found."""
        pairs: list[tuple[Expression, Any]] = []
        for name, shape in shapes.items():
            pairs += zip(self.arguments[name].shape, shape)
        for expression, length in pairs:
            if expression.text in self.sizes:
                known.setdefault(expression.text, length)
        found = True
        while found:
            found = False
            for expression, length in pairs:
                answer = solved(expression, known, length)
                if answer is not None:
                    known[answer[0]] = answer[1]
                    found = True

    def elements(self, argument: ManifestArgument, shape: Sequence[Any]) -> tuple[Any, ...]:
        """A shape in elements: where several share a byte, arrays have bytes along the last axis."""
        packed = PACKED.get(argument.type, 1)
        return (*shape[:-1], shape[-1] * packed) if packed > 1 and shape else tuple(shape)

    def check_kind(self, argument: ManifestArgument, type_: str, shape: Sequence[Any]) -> None:
        if not accepts(argument.type, type_):
            raise TypeError(
                f"{self.name}: {argument.name} has elements of type {argument.type}, got {type_}: "
                "convert it before the call"
            )
        if len(shape) != len(argument.shape):
            wanted = ", ".join(e.text for e in argument.shape)
            raise ValueError(
                f"{self.name}: {argument.name} has the shape [{wanted}], {len(argument.shape)} axes, "
                f"got {len(shape)}: reshape it before the call"
            )

    def bind(self, arrays: Mapping[str, Array], named: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a call whose arrays fit the operator; else TypeError or ValueError."""
        devices = {array.device for array in arrays.values()}
        if len(devices) > 1:
            listed = ", ".join(f"{name} on {array.device}" for name, array in arrays.items())
            raise ValueError(
                f"{self.name}: all arrays lie on one device, got {listed}: move them to one before the call"
            )
        shapes: dict[str, tuple[int, ...]] = {}
        for name, array in arrays.items():
            self.check_kind(self.arguments[name], array.type, array.shape)
            shapes[name] = self.elements(self.arguments[name], array.shape)
        sizes: dict[str, int] = {}
        for name, value in self.sizes_of(shapes, named).items():
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"{self.name}: the size {name} is an integer, got {value!r}: pass an int")
            sizes[name] = value.__index__()
        for name, array in arrays.items():
            self._check_layout(self.arguments[name], array, shapes[name], sizes)
        return sizes

    def _check_layout(
        self, argument: ManifestArgument, array: Array, shape: tuple[int, ...], sizes: dict[str, int]
    ) -> None:
        wanted = self.shape_of(argument, sizes)
        if shape != wanted:
            rule = ", ".join(e.text for e in argument.shape)
            at = ", ".join(f"{name} = {value}" for name, value in sizes.items())
            raise ValueError(
                f"{self.name}: {argument.name} has the shape [{rule}], which is {list(wanted)} for {at}; "
                f"got {list(shape)}: pass arrays whose shapes agree"
            )
        in_memory, strides = self.memory_layout(argument, sizes)
        given = array.strides if array.strides is not None else dense_strides(array.shape)
        for length, want, got in zip(in_memory, strides, given):
            if length > 1 and want != got:
                words = "dense, the last axis fastest" if not argument.strides else f"strides {list(strides)}"
                raise ValueError(
                    f"{self.name}: {argument.name} lies in memory with {words}, got strides {list(given)} "
                    f"of shape {list(array.shape)}: copy it before the call, e.g. with .contiguous() or "
                    ".copy()"
                )

    def shape_of(self, argument: ManifestArgument, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(max(0, self._valued(argument, e, sizes)) for e in argument.shape)

    def strides_of(self, argument: ManifestArgument, sizes: Mapping[str, int]) -> tuple[int, ...]:
        if not argument.strides:
            return dense_strides(self.shape_of(argument, sizes))
        return tuple(self._valued(argument, e, sizes) for e in argument.strides)

    def memory_layout(
        self, argument: ManifestArgument, sizes: Mapping[str, int]
    ) -> tuple[tuple[int, ...], ...]:
        """Shape and strides as an array in memory has them: packed elements as the bytes they share."""
        shape, strides = self.shape_of(argument, sizes), self.strides_of(argument, sizes)
        return _in_memory(argument, shape), _strides_in_memory(argument, strides)

    def symbolic_shape(self, argument: ManifestArgument, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
        """In memory's items, of symbols."""
        return _in_memory(argument, tuple(e.symbolic(sizes) for e in argument.shape))

    def _valued(self, argument: ManifestArgument, expression: Expression, sizes: Mapping[str, int]) -> int:
        try:
            return int(expression.evaluate(sizes))
        except NoValue as error:
            raise ValueError(
                f"{self.name}: {expression.text!r} of {argument.name} has no value here ({error}): "
                "pass arrays of another size"
            ) from error


def _in_memory(argument: ManifestArgument, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    packed = PACKED.get(argument.type, 1)
    return (*shape[:-1], -(-shape[-1] // packed)) if packed > 1 and shape else shape


def _strides_in_memory(argument: ManifestArgument, strides: tuple[int, ...]) -> tuple[int, ...]:
    packed = PACKED.get(argument.type, 1)
    return (*(s // packed for s in strides[:-1]), strides[-1]) if packed > 1 and strides else strides


def _symbols(argument: ManifestArgument) -> tuple[int, ...]:
    return tuple(720720 for _ in argument.shape)
