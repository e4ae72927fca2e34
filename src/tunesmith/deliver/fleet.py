"""What a fleet has come to, cell by cell and altogether: values that its page and its data share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.run.figures import Figure
from tunesmith.run.outcome import geometric_mean
from tunesmith.run.report import Report
from tunesmith.text import digest_of

FLEET_VERSION = 1  # of `FleetResult` as JSON: raised when a field changes its meaning or goes
CellStatus = Literal["not begun", "at work", "paused", "finished", "failed", "waiting", "no device"]
STATUSES: tuple[CellStatus, ...] = (
    *("finished", "at work", "paused", "waiting", "no device", "failed", "not begun"),
)


@dataclass(frozen=True)
class VerifiedCell:
    """What a finished run delivers, over its workloads by their weights."""

    speedup: float  # geometric mean; 1: the original stays
    interval: tuple[float, float]  # 95 %
    floor: float | None  # how many times its floor it takes, in the geometric mean; None: not known
    winner: str  # digest of the configurations that won
    doubt: str = ""  # why it is not certified

    @property
    def figure(self) -> Figure:
        return Figure(self.speedup, *self.interval, self.doubt)

    @staticmethod
    def of(report: Report) -> VerifiedCell | None:
        """None: it is not finished, or nobody could prove it."""
        if not report.finished or report.unproven:
            return None
        figure = report.figure
        if figure is None:
            return VerifiedCell(1.0, (1.0, 1.0), None, "")
        distances = [b.tuned_distance or b.distance for b in report.bounds]
        known = [distance for distance in distances if distance]
        floor = geometric_mean(known) if known and len(known) == len(report.workloads) else None
        chosen = [f"{w.name} {sorted((w.config or {}).items())}" for w in report.workloads]
        interval, winner = (figure.low, figure.high), digest_of(*chosen)[:16]
        return VerifiedCell(figure.value, interval, floor, winner, figure.doubt)


@dataclass(frozen=True)
class FleetRow:
    """One problem on one kind of device by one author."""

    problem: str
    device: str
    author: str
    status: CellStatus
    weight: float
    device_seconds: float
    seconds: float  # in which somebody worked on it
    evaluations: int
    best: float  # by the search, not verified
    run: str  # its folder, from the fleet's
    verified: VerifiedCell | None = None
    reason: str = ""
    code: int = 0  # the exit code that the reason would have had


@dataclass(frozen=True)
class FleetResult:
    name: str
    hours: float  # that it may use
    rows: tuple[FleetRow, ...]
    notes: tuple[str, ...] = ()
    version: int = FLEET_VERSION

    @property
    def used(self) -> float:
        """Hours of devices."""
        return sum(row.device_seconds for row in self.rows) / 3600

    @property
    def held(self) -> float:
        """Hours in which somebody worked: builds, races, verification and models that think included."""
        return sum(row.seconds for row in self.rows) / 3600

    @property
    def counts(self) -> Counter[CellStatus]:
        return Counter(row.status for row in self.rows)

    @property
    def mean(self) -> float | None:
        return weighted_mean(self.rows)

    def by_device(self) -> list[tuple[str, float | None, int, int]]:
        """Name, weighted mean, how many are finished, and of how many."""
        names = dict.fromkeys(row.device for row in self.rows)
        rows = {name: [row for row in self.rows if row.device == name] for name in names}
        return [
            (n, weighted_mean(r), sum(x.status == "finished" for x in r), len(r)) for n, r in rows.items()
        ]


def weighted_mean(rows: Sequence[FleetRow]) -> float | None:
    """Of what was verified; None where nothing was."""
    known = [(row.weight, math.log(row.verified.speedup)) for row in rows if row.verified is not None]
    whole = sum(weight for weight, _ in known)
    return math.exp(sum(weight * log for weight, log in known) / whole) if whole else None
