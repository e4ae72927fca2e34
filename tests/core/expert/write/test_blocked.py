"""Several tasks of a team at once: the same results, and what they share is loaded once, into registers."""

from __future__ import annotations

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.comparing import SMALL_MAP, of_the_zoo
from tests.core.expert.write.test_builds import instructions
from tests.cuda_here import needs_nvrtc

BLOCKED = models.choice("BLOCKED", 1, 2, 4, 8)
BLOCKED_MAP = SMALL_MAP.having(blocking=BLOCKED)


@needs_nvrtc
@pytest.mark.parametrize("blocked", [2, 8])
@pytest.mark.few(1)
def test_what_tasks_share_is_loaded_once(blocked: int) -> None:
    found = instructions(of_the_zoo("bias_relu_2d"), BLOCKED_MAP, BLOCKED=blocked, VEC=4, SPLIT=1)
    loads = [a.count for a in found.accesses if (a.space, a.direction) == ("global", "load")]
    assert sum(loads) == blocked + 1  # rows, and the bias
    assert {a.space for a in found.accesses} == {"global"}  # nothing is spilled


@needs_nvrtc
@pytest.mark.long
def test_rows_that_overlap_are_loaded_once() -> None:
    found = instructions(of_the_zoo("stencil5_rows"), BLOCKED_MAP, BLOCKED=4, VEC=4, SPLIT=1)
    loads = [(a.width, a.count) for a in found.accesses if (a.space, a.direction) == ("global", "load")]
    assert sum(count for width, count in loads if width == 16) == 4 + 4  # of 20 that the rows have
    assert sum(count for width, count in loads if width == 4) == 5  # the taps
    assert {a.space for a in found.accesses} == {"global"}


@needs_nvrtc
@pytest.mark.long
def test_rows_that_only_some_turns_read_are_taken_from_the_table() -> None:
    found = instructions(of_the_zoo("stencil2d"), BLOCKED_MAP, BLOCKED=4)
    loads = [a.count for a in found.accesses if (a.space, a.direction) == ("global", "load")]
    # Four rows, one above and one below, two neighbours in each; and one more for the next row, in a team
    # that lacks it.
    assert sum(loads) == 4 + 2 + 8 + 3
    assert {a.space for a in found.accesses} == {"global"}


@needs_nvrtc
@pytest.mark.parametrize("values", [{"STAGES": 2}, {"BLOCKED": 4}])
@pytest.mark.few(1)
@pytest.mark.long
def test_a_template_may_have_a_ring_as_well(values: dict[str, int]) -> None:
    schedule = BLOCKED_MAP.without("split").having(ring=models.choice("STAGES", 0, 2))
    assert instructions(of_the_zoo("bias_relu_2d"), schedule, VEC=4, **values).accesses
