"""What is delivered, called through its own dispatch: at which sizes, and until when."""

from __future__ import annotations

from tunesmith.problem.domain import Sizes, domain_of
from tunesmith.problem.probes import probe_sizes
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant
from tunesmith.run.ports import Delivery, SizedCall
from tunesmith.run.racing import Winners, boundary_of, probes_of, rounds_of
from tunesmith.run.state import State
from tunesmith.space.expr import parse
from tunesmith.text import seed_of

FIRST, LATER = 32, 16  # sizes of a round
FIRST_ON_HOST, LATER_ON_HOST = 10, 6  # where each takes longer
ROUNDS = 4
MOST_BYTES = 192 << 20  # on a GPU, beyond what the largest workload takes


def next_calls(
    problem: Problem, state: State, choice: Winners, made: Delivery, general: Variant | None
) -> tuple[SizedCall, ...]:
    """Calls to be made; none when enough was seen.

    The general configuration at sizes over its whole domain, then at fresh ones inside the boundary that
    these gave, until a round has none that is slower. And with the dispatch that is delivered in the end,
    every workload that a winner serves.
    """
    probes = [SizedCall(sizes) for sizes in _probes(problem, state, choice, general)]
    if probes and not (choice.general is not None and rounds_of(state, choice.general)):
        return tuple(probes)
    is_confirmed = bool(state.served) and state.served[-1].dispatch == made.entries_digest
    if is_confirmed and not probes:
        return ()
    picked = (problem.workload(pick.workload) for pick in choice.picks if pick.config is not None)
    return (*(SizedCall(w.sizes, w.name, w.cache) for w in picked), *probes)


def _probes(problem: Problem, state: State, choice: Winners, general: Variant | None) -> tuple[Sizes, ...]:
    if choice.general is None or general is None:
        return ()
    device = state.device
    rounds = [found for served in rounds_of(state, choice.general) if (found := probes_of(problem, served))]
    boundary = boundary_of(problem, state, choice.general) if rounds else None
    if len(rounds) >= ROUNDS or (len(rounds) > 1 and all(p.is_good for p in rounds[-1])):
        return ()
    domain = domain_of(problem, general, device)
    most = domain.byte_limit() if device.is_host else max(domain.byte_limit(), MOST_BYTES)
    inside = [parse(text) for text in choice.where]
    known = {w.sizes for w in problem.workloads}
    known |= {p.sizes for found in rounds for p in found}
    counts = (FIRST_ON_HOST, LATER_ON_HOST) if device.is_host else (FIRST, LATER)
    seed = seed_of(state.settings.seed, "served", len(rounds))
    count = counts[1] if boundary is not None else counts[0]
    return probe_sizes(domain, seed, count, most, inside, known, ends=boundary is None)
