"""What is delivered, called through its own dispatch: at which sizes, and until when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tunesmith.problem.device import Device
from tunesmith.problem.domain import Domain, Sizes, domain_of
from tunesmith.problem.probes import probe_sizes
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant
from tunesmith.run.baked import BakedService
from tunesmith.run.boundary import TimedSize, most_rounds, probes_of, rounds_of
from tunesmith.run.ports import Delivery, SizedCall
from tunesmith.run.racing import Winners
from tunesmith.run.state import State
from tunesmith.space.expr import parse
from tunesmith.text import seed_of

ON_GPU, ON_HOST = 32, 10  # sizes of a round: on a host each takes longer
BAKED_ON_GPU, BAKED_ON_HOST = 12, 5  # of each build that has sizes in it, which are fewer dimensions
SLOWER_ONES, WEAKEST = 6, 3  # beside which others are tried
MOST_BYTES = 192 << 20  # on a GPU, beyond what the largest workload takes


def next_calls(
    problem: Problem,
    state: State,
    choice: Winners,
    made: Delivery,
    general: Variant | None,
    services: Sequence[BakedService] = (),
) -> tuple[SizedCall, ...]:
    """Calls to be made; none when enough was seen.

    The general configuration at sizes over its whole domain, then at fresh ones inside the boundary that
    these gave, until a round has none that is slower: cold and, where a cache can hold the arrays, warm. And
    with the dispatch that is delivered in the end, every workload that a winner serves. Builds with sizes in
    them are tried in the same way, where nobody before them serves.
    """
    probes = _probes(problem, state, choice, general)
    for service in services:
        probes += baked_probes(problem, state, made, service)
    if probes and not (choice.general is not None and rounds_of(state, choice.general)):
        return tuple(probes)
    is_confirmed = bool(state.served) and state.served[-1].dispatch == made.entries_digest
    if is_confirmed and not probes:
        return ()
    picked = (problem.workload(pick.workload) for pick in choice.picks if pick.config is not None)
    return (*(SizedCall(w.sizes, w.name, w.cache) for w in picked), *probes)


def _probes(
    problem: Problem, state: State, choice: Winners, general: Variant | None
) -> tuple[SizedCall, ...]:
    if choice.general is None or general is None:
        return ()
    rounds = [found for served in rounds_of(state, choice.general) if (found := probes_of(problem, served))]
    count = ON_HOST if state.device.is_host else ON_GPU
    domain, sizes = _fresh(problem, state, general, choice.where, rounds, count)
    return tuple(call for one in sizes for call in _temperatures(domain, one, state.device))


def baked_probes(
    problem: Problem, state: State, made: Delivery, service: BakedService
) -> tuple[SizedCall, ...]:
    """Those of its sizes at which the dispatch comes to it."""
    count = BAKED_ON_HOST if state.device.is_host else BAKED_ON_GPU
    parts = (service.variant, service.where, service.rounds, count)
    domain, sizes = _fresh(problem, state, *parts)
    own = [one for one in sizes if made.dispatch.entry_for(dict(one)).digest == service.variant.digest]
    return tuple(call for one in own for call in _temperatures(domain, one, state.device))


def _fresh(
    problem: Problem,
    state: State,
    variant: Variant,
    where: Sequence[str],
    rounds: Sequence[Sequence[TimedSize]],
    count: int,
) -> tuple[Domain, tuple[Sizes, ...]]:
    """Sizes for the next round; none where enough was seen."""
    device = state.device
    domain = domain_of(problem, variant, device)
    if len(rounds) >= most_rounds(device) or (len(rounds) > 1 and all(p.is_good for p in rounds[-1])):
        return domain, ()
    most = domain.byte_limit() if device.is_host else max(domain.byte_limit(), MOST_BYTES)
    inside = [parse(text) for text in where]
    timed = [p for found in rounds for p in found]
    known = {w.sizes for w in problem.workloads} | {p.sizes for p in timed}
    good = [p for p in timed if p.is_good and all(c.holds(dict(p.sizes)) for c in inside)]
    weak = [p for p in reversed(timed) if p.ratio is not None and not p.is_good][:SLOWER_ONES]
    weak += sorted(good, key=lambda p: (p.ratio or 0.0, p.sizes))[:WEAKEST]
    seed = seed_of(state.settings.seed, "served", len(rounds))
    served = [p.sizes for p in good]
    sizes = probe_sizes(domain, seed, count, most, inside, known, served, [p.sizes for p in weak])
    return domain, sizes


def _temperatures(domain: Domain, sizes: Sizes, device: Device) -> tuple[SizedCall, ...]:
    """What the last-level cache of a GPU can hold, the kernel before may have left there."""
    nbytes = domain.bytes(np.array([[value for _, value in sizes]], dtype=np.int64))[0]
    if device.is_host or nbytes > device.limits.llc:
        return (SizedCall(sizes),)
    return SizedCall(sizes), SizedCall(sizes, cache="warm")
