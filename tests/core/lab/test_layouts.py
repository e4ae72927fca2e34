"""Where a case's arrays lie: as programs lay theirs, drawn from the case's seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.core.lab.labs import device_of
from tests.core.lab.test_guards import buffer
from tunesmith.lab.memory import GUARD, MOVED_BYTES, PAGE, CaseLayout, layouts_of

DEVICE = device_of("fake")
SEEDS = range(400)


def layouts(align: int = 4, sizes: tuple[int, ...] = (256, 1000, 0, 4096), **limits: int) -> list[CaseLayout]:
    device = replace(DEVICE, limits=replace(DEVICE.limits, **{"alignment": 1, **limits}))
    arrays = [replace(buffer(), name=f"a{n}", extent=size // 4, align=align) for n, size in enumerate(sizes)]
    return [layout for seed in SEEDS for layout in layouts_of(arrays, device, seed)]


@pytest.mark.parametrize("align", [1, 4, 16, 128, 4096, 65536])
def test_no_two_overlap_all_are_aligned_and_many_no_better_than_promised(align: int) -> None:
    found = layouts(align)
    for layout in found:
        parts = sorted(layout.parts, key=lambda p: (p.block, p.start))
        assert all(p.place % align == 0 and min(p.zone_sizes) >= 0 for p in parts)
        assert all(a.start + a.total <= b.start for a, b in pairwise(parts) if a.block == b.block)
        assert parts[0].zone_sizes[0] >= GUARD <= parts[-1].zone_sizes[1]
    odd = sum(p.place % (2 * align) != 0 for layout in found for p in layout.parts)
    assert odd > 0.1 * 4 * len(found)


def test_every_arrangement_order_and_neighbourhood_is_drawn() -> None:
    found = layouts()
    kinds = Counter(layout.arrangement for layout in found)
    assert min(kinds[kind] for kind in ("together", "apart", "far", "fenced")) > 0.08 * len(found)
    orders = {tuple(sorted(range(4), key=lambda n: layout.parts[n].place)) for layout in found}
    assert len(orders) == 24
    gaps = [
        b.place - a.place - a.nbytes
        for f in found
        for a, b in pairwise(sorted(f.parts, key=lambda p: p.place))
    ]
    assert min(gaps) == 0
    assert max(gaps) > 1 << 18
    assert {p.place % PAGE // 512 for f in found for p in f.parts} == set(range(8))
    ends = [(p.place + p.nbytes) % PAGE for f in found for p in f.parts[:1] if f.arrangement == "fenced"]
    assert 0 < ends.count(0) < len(ends)


def test_what_is_large_stays_and_what_one_allocation_cannot_hold_has_several() -> None:
    assert len(layouts(sizes=(MOVED_BYTES,))) == len(SEEDS)
    found = layouts(sizes=(1 << 20, 1 << 20), max_allocation=(1 << 20) + 3 * GUARD, memory=1 << 30)
    assert {len(layout.blocks) for layout in found} == {2}
    assert all(max(layout.blocks) <= (1 << 20) + 3 * GUARD for layout in found)
