"""Whether a kernel takes less time where local memory still holds what its own last launch has left there.

Its results may be right, because it recognises what it finds. But nobody promises that anything is left, and
where a program runs another kernel in between nothing is: the time that was measured is no program's.

Which of the two comes first in a pair is drawn. To a kernel that does not care both are alike, so that it is
slower by MARGIN after the one with a chance of a half at most, in each pair anew, whatever a neighbour does:
that happens in NEEDED of PAIRS less than once in 7000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from tunesmith.backends.abilities import Scrambling
from tunesmith.backends.port import Session
from tunesmith.lab.disturbance import TAKEN, Sample
from tunesmith.lab.looks import CHANCE

PAIRS, NEEDED = 24, 21  # of launches, and in how many it is slower
MARGIN = 1.25  # by so much
SECONDS = 0.5  # in which pairs that others have disturbed are taken again


def tell_left_over(session: Session, launch: Callable[[], Sample]) -> str:
    """The reason not to believe its times, or nothing."""
    if not isinstance(session, Scrambling):
        return ""
    pairs: list[dict[bool, Sample]] = []
    end = time.perf_counter() + SECONDS
    while sum(not _is_slower(pair) for pair in pairs) <= PAIRS - NEEDED:
        if len(pairs) == PAIRS:
            own, other = (
                median(pair[is_local].seconds for pair in pairs) * 1e6 for is_local in (False, True)
            )
            return (
                f"it takes {own:.3g} µs where local memory holds what its last launch left there, and "
                f"{other:.3g} µs where another kernel has run since: nobody promises what it holds"
            )
        pair: dict[bool, Sample] = {}
        for is_local in CHANCE.sample((True, False), 2):
            # After another kernel that fills local memory, or that fills as much elsewhere.
            session.scramble(is_local)
            pair[is_local] = launch()
        if time.perf_counter() > end or max(sample.waited for sample in pair.values()) <= TAKEN:
            pairs.append(pair)
    return ""


def _is_slower(pair: dict[bool, Sample]) -> bool:
    return pair[True].seconds > MARGIN * pair[False].seconds
