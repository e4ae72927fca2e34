"""Tuned kernels for CuPy's arrays, on its current stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupy

from .arguments import passed
from .binding import Array, item_strides
from .cuda_calls import CudaCalls
from .element_types import STAND_INS, plain_type
from .manifest import ManifestArgument
from .operator import Operator


class CupyCalls:
    """Call it with every array in the kernel's order, or without the outputs, which are then returned."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.calls = CudaCalls(operator)

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        return self._run(arrays, named, False)

    def original(self, /, *arrays: Any, **named: Any) -> Any:
        return self._run(arrays, named, True)

    def prepare(self, device: int | None = None) -> None:
        """Load, or compile, all that may serve: before a capture, or to have the first call as fast."""
        ordinal = cupy.cuda.Device().id if device is None else device
        cupy.cuda.Device(ordinal).use()
        self.calls.prepare(ordinal)

    def _run(self, positional: Sequence[Any], named: Mapping[str, Any], original: bool) -> Any:
        own = passed(self.operator, positional, named, _shape, _allocated)
        for array in own.arrays:
            _shape(None, array)
        ordinal = own.arrays[0].device.id if own.arrays else cupy.cuda.Device().id
        kinds = tuple((a.dtype.str, a.dtype.name, a.shape, a.strides, a.device.id) for a in own.arrays)
        call = self.operator.call(
            (kinds, tuple(own.sizes.items())),
            lambda: [
                _described(self.operator.name, a.name, array)
                for a, array in zip(self.operator.signature.arrays, own.arrays)
            ],
            own.sizes,
            lambda: self.calls.device_of(ordinal),
        )
        with cupy.cuda.Device(ordinal):

            def allocate(nbytes: int) -> tuple[int, Any]:
                memory = cupy.cuda.alloc(nbytes)
                return int(memory.ptr), memory

            self.calls.launch(
                call,
                [int(a.data.ptr) for a in own.arrays],
                self.operator.scalar_bytes(own.scalars),
                ordinal,
                int(cupy.cuda.get_current_stream().ptr),
                allocate,
                original,
            )
        return own.result


def _shape(_: ManifestArgument | None, array: Any) -> Sequence[int]:
    if not isinstance(array, cupy.ndarray):
        raise TypeError(f"arrays are cupy.ndarray, got {type(array).__name__}: convert it with cupy.asarray")
    shape: Sequence[int] = array.shape
    return shape


def _described(owner: str, name: str, array: Any) -> Array:
    strides = item_strides(owner, name, array)
    return Array(plain_type(array.dtype.name), tuple(array.shape), strides, f"cuda:{array.device.id}")


def _allocated(
    argument: ManifestArgument, shape: tuple[int, ...], strides: tuple[int, ...], like: Any
) -> Any:
    """A type that CuPy does not have is an array of its bits."""
    try:
        dtype = cupy.dtype(argument.type)
    except TypeError:
        dtype = cupy.dtype(STAND_INS[argument.type][0])
    with cupy.cuda.Device(like.device.id if like is not None else cupy.cuda.Device().id):
        if not argument.strides:
            return cupy.empty(shape, dtype)
        items = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
        memory = cupy.empty(items, dtype)
        return cupy.ndarray(shape, dtype, memory.data, tuple(s * dtype.itemsize for s in strides))
