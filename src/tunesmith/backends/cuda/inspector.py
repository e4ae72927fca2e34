"""Memory filled and compared on the device, by the kernels in inspector.cu."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np

from tunesmith.backends.cuda.compile import build
from tunesmith.backends.cuda.devices import checked, driver
from tunesmith.backends.cuda.entries import unpack
from tunesmith.backends.cuda.overseer import LaunchWords, Overseer
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import Comparison, Difference, NumberRule, Pointer
from tunesmith.problem.device import Device
from tunesmith.problem.problem import ElementType, element_type

THREADS = 256
BLOCKS_PER_SM = 8
LATE_THREADS, LATE_NANOSECONDS = 8 * THREADS, 50_000  # so few that another kernel has room beside them
ENTRIES = ("fill", "scramble", "oversee", "disturb", "copy_late", "spread", "differences", "compare")
# Rounding of a double is not the same on host and device where the compiler fuses; here it may not.
FLAGS = ("--fmad=false",)
NOTHING = (1 << 64) - 1
KINDS = {"float": 0, "int": 1, "uint": 2}
EXPECTED = {"float64": 0, "int64": 2, "uint64": 3}  # 1: of the array's own type
WITHOUT_INFINITY = ("float8_e4m3",)
FOUND = np.dtype(
    [("wrong", "u8"), ("max_error", "f8"), ("squared_error", "f8"), ("squared_ulp", "f8"), ("count", "u8")]
)


class CudaMemory:
    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes


def address(pointer: Pointer) -> int:
    assert isinstance(pointer.memory, CudaMemory)
    return pointer.memory.address + pointer.offset


class CudaInspector:
    def __init__(self, stream: Any, device: Device) -> None:
        self._stream = stream
        self._device = device
        self._blocks = BLOCKS_PER_SM * device.limits.sms
        self._arguments: dict[str, LaunchWords] = {}
        self._scrambled = 0

    def fill(self, to: Pointer, pattern: bytes) -> None:
        word = int.from_bytes(pattern, "little")
        if to.nbytes:
            self._launch("fill", to.nbytes // 16, address(to), to.nbytes, word)

    def disturb(self, first: Pointer, stride: int, slots: int, places: int, seed: int) -> None:
        if first.nbytes:
            words = (address(first), first.nbytes, stride, slots, places, seed)
            self._launch("disturb", slots, *words)

    def scramble(self, is_local: bool) -> None:
        """All shared memory of all multiprocessors, or as many bytes of other memory."""
        shared = self._device.limits.shared
        blocks = 2 * self._device.limits.sms
        self._scrambled += 1
        words = (self._scrambler, shared // 4, self._scrambled, int(is_local))
        pointers = self._arguments.setdefault("scramble", LaunchWords(words)).hold(words)
        shape = (blocks, 1, 1, 4 * THREADS, 1, 1, shared)
        checked(driver().cuLaunchKernel(self._functions["scramble"], *shape, self._stream, pointers, 0))

    @cached_property
    def _scrambler(self) -> int:
        cu, limits = driver(), self._device.limits
        shared = limits.shared
        attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(cu.cuFuncSetAttribute(self._functions["scramble"], attribute, shared))
        return int(checked(cu.cuMemAlloc(2 * limits.sms * shared)))

    def spread(
        self, to: Pointer, block: Pointer, itemsize: int, roll: int, negate: bool, first: int = 0
    ) -> None:
        count = to.nbytes // itemsize
        if count:
            size = block.nbytes // itemsize
            words = (address(to), address(block), count, size, roll, int(negate), itemsize, first)
            self._launch("spread", count, *words)

    def copy_late(self, to: Pointer, source: Pointer) -> None:
        if to.nbytes:
            self._launch("copy_late", LATE_THREADS, address(to), address(source), to.nbytes, LATE_NANOSECONDS)

    def are_like(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> bool:
        return not self._differences(pairs).count

    def differing(self, a: Pointer, b: Pointer) -> Difference:
        return self._differences([(a, b)])

    def unlike(self, a: Pointer, pattern: bytes) -> Difference:
        return self._differences([(a, pattern)])

    def compare(
        self, got: Pointer, type: str, expected: Pointer, expected_type: str, rule: NumberRule
    ) -> Comparison:
        element = element_type(type)
        count = got.nbytes // element.bytes
        kind = EXPECTED.get(expected_type, 1)
        if kind == 1 and expected_type != type:
            raise ValueError(f"{type} cannot be compared with {expected_type}")
        if not count:
            return Comparison(0, 0.0, 0.0, 0.0, 0)
        words = (
            *(address(got), address(expected), count, kind, KINDS[element.kind], element.bytes),
            *(element.mantissa, element.min_exponent, int(element.name in WITHOUT_INFINITY)),
            *(*map(float, _range(element)), float(rule.rtol), float(rule.atol), float(rule.ulps)),
            *(-1.0 if rule.cap is None else float(rule.cap), int(rule.add_ulps), self._results),
        )
        blocks = self._launch("compare", count, *words)
        found = np.empty(blocks, dtype=FOUND)
        checked(driver().cuMemcpyDtoHAsync(found.ctypes.data, self._results, found.nbytes, self._stream))
        checked(driver().cuStreamSynchronize(self._stream))
        error, ulp = float(found["squared_error"].sum()), float(found["squared_ulp"].sum())
        wrong, count = int(found["wrong"].sum()), int(found["count"].sum())
        return Comparison(wrong, float(found["max_error"].max()), error, ulp, count)

    def _differences(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> Difference:
        """Of all of them, added up; where the first and the last are is said of one pair only."""
        if not any(a.nbytes for a, _ in pairs):
            return Difference(0)
        cu = driver()
        found = np.array([0, NOTHING, 0], dtype=np.uint64)
        place = self._results
        checked(cu.cuMemcpyHtoDAsync(place, found.ctypes.data, found.nbytes, self._stream))
        for a, other in pairs:
            if a.nbytes:
                by = (0, int.from_bytes(other, "little")) if isinstance(other, bytes) else (address(other), 0)
                self._launch("differences", a.nbytes // 16, address(a), by[0], a.nbytes, by[1], place)
        checked(cu.cuMemcpyDtoHAsync(found.ctypes.data, place, found.nbytes, self._stream))
        checked(cu.cuStreamSynchronize(self._stream))
        count, first, last = map(int, found)
        return Difference(count, first, last) if count else Difference(0)

    def _launch(self, entry: str, work: int, *words: int | float) -> int:
        blocks = max(1, min(self._blocks, -(-work // THREADS)))
        if entry not in self._arguments:
            self._arguments[entry] = LaunchWords(words)
        shape = (blocks, 1, 1, THREADS, 1, 1, 0)
        pointers = self._arguments[entry].hold(words)
        checked(driver().cuLaunchKernel(self._functions[entry], *shape, self._stream, pointers, 0))
        return blocks

    @cached_property
    def _results(self) -> int:
        return int(checked(driver().cuMemAlloc(max(64, self._blocks * FOUND.itemsize))))

    @cached_property
    def overseer(self) -> Overseer:
        return Overseer(self._functions["oversee"])

    @cached_property
    def _functions(self) -> dict[str, Any]:
        cu = driver()
        source = resources.files("tunesmith.backends.cuda").joinpath("inspector.cu").read_text()
        unit = Unit("inspector.cu", source, "cuda", FLAGS, ENTRIES)
        symbols, cubin = unpack(build(unit, self._device).data)
        self._module = checked(cu.cuModuleLoadData(cubin))
        return {e: checked(cu.cuModuleGetFunction(self._module, symbols[e].encode())) for e in ENTRIES}


def _range(element: ElementType) -> tuple[float, float, float, float]:
    """Below the first, numbers round to one of the type; above the second to infinity, or to NaN. Then the
    least and the largest number of the type."""
    if element.kind != "float":
        return math.inf, math.inf, float(element.bounds[0]), float(element.bounds[1])
    ends = (-element.largest, element.largest)
    if element.bytes == 8:
        return math.inf, element.largest, *ends
    halfway = element.largest + float(element.ulp(np.array([element.largest]))[0]) / 2
    # The host rounds to types that NumPy lacks through float32, and so twice.
    doubt = 2.0**-20 if element.extension else 0.0
    return halfway * (1 - doubt), halfway * (1 + doubt), *ends
