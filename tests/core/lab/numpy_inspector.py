"""An inspector in NumPy, over the memory of the simulated device, and a backend whose sessions have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.fake import FakeBackend, FakeSession
from tunesmith.backends.port import Comparison, Difference, NumberRule, Pointer, Session
from tunesmith.problem.device import Device
from tunesmith.problem.problem import element_type

Bytes = NDArray[np.uint8]


class NumpyInspector:
    def fill(self, to: Pointer, pattern: bytes) -> None:
        memory_at(to)[:] = repeated(pattern, to.nbytes)

    def disturb(self, first: Pointer, stride: int, slots: int, places: int, seed: int) -> None:
        if not first.nbytes:
            return
        rng = np.random.default_rng(seed)
        within = rng.integers(first.nbytes, size=(slots, places, 1)) // 16 * 16 + np.arange(16)
        at = first.offset + stride * np.arange(slots)[:, None, None] + within
        by = np.broadcast_to(rng.integers(64, 192, (slots, places, 1)), at.shape).astype(np.uint8)
        is_inside = within < first.nbytes
        np.add.at(np.frombuffer(first.memory.data, np.uint8), at[is_inside], by[is_inside])

    def spread(self, to: Pointer, block: Pointer, itemsize: int, roll: int, negate: bool) -> None:
        word = np.dtype(f"u{itemsize}")
        values = np.frombuffer(memory_at(block).tobytes(), dtype=word)
        places = np.arange(to.nbytes // itemsize)
        turns = places // max(values.size, 1)
        taken = values[(places + turns * roll) % max(values.size, 1)]
        if negate:
            taken[turns % 2 == 1] ^= word.type(1 << 8 * itemsize - 1)
        memory_at(to)[:] = taken.view(np.uint8)

    def copy_late(self, to: Pointer, source: Pointer) -> None:
        memory_at(to)[:] = memory_at(source)

    def are_like(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> bool:
        return not any(
            (self.unlike(a, other) if isinstance(other, bytes) else self.differing(a, other)).count
            for a, other in pairs
        )

    def differing(self, a: Pointer, b: Pointer) -> Difference:
        return _difference(memory_at(a), memory_at(b))

    def unlike(self, a: Pointer, pattern: bytes) -> Difference:
        return _difference(memory_at(a), repeated(pattern, a.nbytes))

    def compare(
        self, got: Pointer, type: str, expected: Pointer, expected_type: str, rule: NumberRule
    ) -> Comparison:
        element = element_type(type)
        output = _values(got, type)
        wanted = _values(expected, expected_type)
        if expected_type in ("int64", "uint64"):
            return Comparison(int(np.count_nonzero(output != wanted)), 0.0, 0.0, 0.0, output.size)
        with np.errstate(all="ignore"):
            g, e = output.astype(np.float64), wanted.astype(np.float64)
            if rule.add_ulps:
                low = -element.largest if element.kind == "float" else float(element.bounds[0])
                e = np.clip(e, low, element.largest)
            rounded = e.astype(output.dtype).astype(np.float64) if element.kind == "float" else e
            inside = np.isfinite(rounded)
            outside_right = (g == rounded) | (np.isnan(g) & np.isnan(rounded))
            error, ulp = np.abs(g - e), element.ulp(np.where(inside, e, 0.0))
            tolerance = rule.atol + rule.rtol * np.abs(e)
            by_ulps = rule.ulps * ulp
            bound = by_ulps + tolerance if rule.add_ulps else np.maximum(tolerance, by_ulps)
            right = np.isfinite(error) & (error <= bound)
            if rule.cap is not None:
                right &= error <= rule.cap + ulp
            if rule.add_ulps and element.kind != "float":
                right &= np.abs(g - np.rint(e)) <= 1
            counted = inside & np.isfinite(error)
            errors, ulps = error[counted], ulp[counted]
            return Comparison(
                wrong=int(np.count_nonzero(~np.where(inside, right, outside_right))),
                max_error=float(errors.max(initial=0.0)),
                squared_error=float(np.sum(errors**2)),
                squared_ulp=float(np.sum(ulps**2)),
                count=errors.size,
            )


class InspectingBackend(FakeBackend):
    """The simulated device as one that judges for itself."""

    def devices(self) -> tuple[Device, ...]:
        return tuple(replace(device, inspects=True) for device in super().devices())

    def open(self, device: Device) -> Session:
        session = FakeSession(device)
        session.inspector = NumpyInspector()
        return session


def memory_at(pointer: Pointer) -> Bytes:
    """The bytes pointed to, to be read and written."""
    found = np.frombuffer(pointer.memory.data, dtype=np.uint8)[pointer.offset :][: pointer.nbytes]
    assert found.size == pointer.nbytes, "a pointer beyond its memory"
    return found


def repeated(pattern: bytes, nbytes: int) -> Bytes:
    return np.frombuffer((pattern * (nbytes // len(pattern) + 1))[:nbytes], dtype=np.uint8)


def _values(pointer: Pointer, type: str) -> NDArray[Any]:
    return np.frombuffer(memory_at(pointer).tobytes(), dtype=element_type(type).numpy)


def _difference(a: Bytes, b: Bytes) -> Difference:
    places = np.flatnonzero(a != b)
    return Difference(places.size, int(places[0]), int(places[-1])) if places.size else Difference(0)
