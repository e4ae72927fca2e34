"""Cases that somebody adds to those that are tested anyway: inside the contract, and not too large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tunesmith.core.checks.cases import Case, Level, cases_at
from tunesmith.core.checks.domain import Domain, domain_of
from tunesmith.core.device import Device
from tunesmith.core.events import ExtraCase
from tunesmith.core.problem import Problem
from tunesmith.core.template import Variant


def misfit(problem: Problem, case: ExtraCase) -> str | None:
    """Why a case cannot be one of this problem; None where it can."""
    sizes = dict(case.sizes)
    if tuple(sizes) != problem.size_names:
        return f"it must give every size, {', '.join(problem.size_names)}, and no other"
    if broken := problem.contract.violations(sizes):
        return broken[0]
    domain = Domain(problem, ())
    points = np.array([list(sizes.values())], dtype=np.int64)
    if domain.bytes(points)[0] > domain.byte_limit():
        return "its arrays are larger than those of any workload"
    return None


def extra_cases(
    problem: Problem,
    variant: Variant,
    device: Device,
    seed: int,
    wanted: Sequence[ExtraCase],
    level: Level = "full",
) -> tuple[Case, ...]:
    """Those at which a variant must be right; for verification with values of their own."""
    if not wanted:
        return ()
    domain = domain_of(problem, variant, device)
    points = np.array([[value for _, value in case.sizes] for case in wanted], dtype=np.int64)
    legal = set(domain.named(domain.allowed(points)))
    return cases_at(domain, [(c.sizes, c.distribution) for c in wanted if c.sizes in legal], seed, level)
