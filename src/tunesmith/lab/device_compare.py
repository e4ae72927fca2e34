"""An output and the original's, compared on the device: whether they are surely alike, and where they may not
be. What is not sure the host looks at."""

from __future__ import annotations

from tunesmith.backends.port import Inspector, Pointer
from tunesmith.lab import memory as guards
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import element_type

SPAN = 1 << 12  # elements that the host looks at, where one of them may be unlike
SPANS = 1 << 8  # so many at most


def is_like(inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer) -> bool:
    """Surely within the rule; where this is not sure the host looks at every element."""
    different = inspector.differing(got, other).count
    if not different:
        return True
    if b.extent != b.count or b.packed > 1 or _too_many(b, different):
        return False
    return _are_near(inspector, b, got, other)


def _too_many(b: BufferPlan, different: int) -> bool:
    return b.compare == "codes" and different > max(1, b.count // 100)


def _are_near(inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer) -> bool:
    """Every element, by itself."""
    if b.compare == "codes":
        # Neighbours, seen from either: across a power of two the step below is the smaller one.
        pairs = ((got, other), (other, got))
        return not any(inspector.compare(g, b.type, e, b.type, guards.NEIGHBOURS).wrong for g, e in pairs)
    if b.compare == "close" and element_type(b.type).kind == "float":
        return not inspector.compare(got, b.type, other, b.type, guards.original_rule(b)).wrong
    return not inspector.differing(got, other).count


def unlike_spans(
    inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer
) -> tuple[list[tuple[int, int]], bool]:
    """Where elements may be unlike, by halving: first element and end of each; and whether these are all."""
    found: list[tuple[int, int]] = []
    if _too_many(b, inspector.differing(got, other).count):
        return found, False
    waiting = [(0, b.count)]
    while waiting and len(found) < SPANS:
        first, end = waiting.pop()
        part = first * b.itemsize, (end - first) * b.itemsize
        if first == end or _are_near(inspector, b, got.part(*part), other.part(*part)):
            continue
        if end - first <= SPAN:
            found.append((first, end))
            continue
        middle = first + max(SPAN, (end - first) // 2 // SPAN * SPAN)
        waiting += [(middle, end), (first, middle)]
    return found, not waiting
