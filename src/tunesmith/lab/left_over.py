"""Whether a kernel takes less time where local memory still holds what its own last launch has left there.

Its results may be right, because it recognises what it finds. But nobody promises that anything is left, and
where a program runs another kernel in between nothing is: the time that was measured is no program's.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from tunesmith.backends.abilities import Scrambling
from tunesmith.backends.port import Session

SECONDS = 0.05  # of launches on either side, where these are not slow
FEWEST, MOST = 3, 12  # launches on either side
ATTEMPTS = 3  # each of which must tell the same
MARGIN, MOST_OF = 1.25, 0.75  # so much slower, in so many of the pairs


def tell_left_over(session: Session, sample: Callable[[], float]) -> str:
    """The reason not to believe its times, or nothing. `sample` gives the seconds of one launch."""
    if not isinstance(session, Scrambling):
        return ""
    words = ""
    for _ in range(ATTEMPTS):
        words = _compare(session, sample)
        if not words:
            break
    return words


def _compare(session: Scrambling, sample: Callable[[], float]) -> str:
    fresh: list[float] = []
    kept: list[float] = []
    # In turns, after another kernel that fills local memory, and after one that fills as much elsewhere.
    while len(kept) < FEWEST or (len(kept) < MOST and sum(fresh) < SECONDS):
        for is_local, samples in ((True, fresh), (False, kept)):
            session.scramble(is_local)
            samples.append(sample())
    slower = sum(a > MARGIN * b for a, b in zip(fresh, kept, strict=True))
    if slower < MOST_OF * len(kept):
        return ""
    own, other = median(kept) * 1e6, median(fresh) * 1e6
    return (
        f"it takes {own:.3g} µs where local memory holds what its last launch left there, and {other:.3g} µs "
        "where another kernel has run since: nobody promises what it holds"
    )
