"""Whether a kernel takes less time where local memory still holds what its own last launch has left there.

Its results may be right, because it recognises what it finds. But nobody promises that anything is left, and
where a program runs another kernel in between nothing is: the time that was measured is no program's.

Which of the two comes first in a pair is drawn. To a kernel that does not care both are alike, so that of the
shortest launches of all each is the one or the other by a coin's toss, whatever a neighbour does: that of the
first 23 three at most come after the kernel that fills local memory happens once in 4096 times.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from tunesmith.backends.abilities import Scrambling
from tunesmith.backends.port import Session
from tunesmith.lab.looks import CHANCE

FEWEST, PAIRS = 5, 60  # of launches: to be believed, and to be turned away
NEEDED, MISSED = 20, 3  # that are shorter, than all but so many of the others
MARGIN = 1.25  # by so much


def tell_left_over(session: Session, sample: Callable[[], float]) -> str:
    """The reason not to believe its times, or nothing. `sample` gives the seconds of one launch."""
    if not isinstance(session, Scrambling):
        return ""
    kept: list[float] = []
    fresh: list[float] = []
    while len(kept) < PAIRS:
        for is_local in CHANCE.sample((True, False), 2):
            # After another kernel that fills local memory, or that fills as much elsewhere.
            session.scramble(is_local, is_patient=True)
            (fresh if is_local else kept).append(sample())
        quarter = len(kept) // 4
        if len(kept) >= FEWEST and sorted(fresh)[quarter] <= MARGIN * sorted(kept)[quarter]:
            return ""
    if sum(MARGIN * seconds < sorted(fresh)[MISSED] for seconds in kept) < NEEDED:
        return ""
    return (
        f"it takes {median(kept) * 1e6:.3g} µs where local memory holds what its last launch left there, and "
        f"{median(fresh) * 1e6:.3g} µs where another kernel has run since: nobody promises what it holds"
    )
