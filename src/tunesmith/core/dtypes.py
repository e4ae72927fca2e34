"""Element types of kernel arguments: their size, their NumPy twin, and how far apart their values lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.errors import BadInput

Kind = Literal["float", "int", "uint"]


@dataclass(frozen=True)
class ElementType:
    """`bytes` is the size of what lies in memory: an element, or the byte that `packed` of them share."""

    name: str
    bytes: int
    kind: Kind
    mantissa: int = 0  # stored bits of the fraction; floats only
    min_exponent: int = 0  # exponent of the smallest normal number; floats only
    extension: bool = False  # NumPy has no such type; ml_dtypes does
    packed: int = 1  # elements in one byte, the first in its lowest bits

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """What NumPy computes with; packed elements are computed with one to a byte."""
        if self.packed > 1:
            return np.dtype(f"{self.kind}8")
        if not self.extension:
            return np.dtype(self.name)
        try:
            import ml_dtypes
        except ImportError as error:
            raise BadInput(
                f"element type {self.name} needs the package ml_dtypes, which is not installed",
                hint="install it with: pip install ml_dtypes",
            ) from error
        name = {"float8_e4m3": "float8_e4m3fn"}.get(self.name, self.name)
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found

    @property
    def memory(self) -> np.dtype[Any]:
        """What lies in memory, as NumPy sees it."""
        return np.dtype(np.uint8) if self.packed > 1 else self.numpy

    def nbytes(self, count: int) -> int:
        return -(-count // self.packed) * self.bytes

    @cached_property
    def largest(self) -> float:
        """The largest finite value."""
        if self.kind != "float":
            return self.bounds[1]
        if not self.extension:
            return float(np.finfo(self.numpy).max)
        # All there are: 65536 at most.
        every = np.arange(1 << 8 * self.bytes, dtype=f"u{self.bytes}").view(self.numpy)
        with np.errstate(invalid="ignore"):  # NaNs are among them
            values = every.astype(np.float64)
        return float(values[np.isfinite(values)].max())

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest value of an integer type."""
        bits = 8 * self.bytes // self.packed
        return (0, 2**bits - 1) if self.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def holds(self, value: float) -> bool:
        """Whether an integer type has the value; floats round and are not asked."""
        return self.kind == "float" or (value == int(value) and self.bounds[0] <= value <= self.bounds[1])

    def ulp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance between neighbouring numbers of this type at each value (integers: 1)."""
        if self.kind != "float":
            return np.ones_like(values)
        _, exponent = np.frexp(np.abs(values))  # |v| = m * 2**e with m in [0.5, 1)
        floor = np.where(values == 0, self.min_exponent, np.maximum(exponent - 1, self.min_exponent))
        return np.asarray(np.ldexp(1.0, floor - self.mantissa), dtype=np.float64)


TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("float16", 2, "float", 10, -14),
        ElementType("bfloat16", 2, "float", 7, -126, extension=True),
        ElementType("float32", 4, "float", 23, -126),
        ElementType("float64", 8, "float", 52, -1022),
        ElementType("float8_e4m3", 1, "float", 3, -6, extension=True),
        ElementType("float8_e5m2", 1, "float", 2, -14, extension=True),
        *(ElementType(f"int{b}", b // 8, "int") for b in (8, 16, 32, 64)),
        *(ElementType(f"uint{b}", b // 8, "uint") for b in (8, 16, 32, 64)),
        ElementType("int4", 1, "int", packed=2),
        ElementType("uint4", 1, "uint", packed=2),
    )
}


def element_type(name: str) -> ElementType:
    """The type called `name`, or BadInput that lists what there is."""
    found = TYPES.get(name)
    if found is None:
        raise BadInput(
            f"unknown element type {name!r}; known are {', '.join(TYPES)}",
            hint='write e.g. type = "float32*" for an array or type = "int32" for a scalar',
        )
    return found
