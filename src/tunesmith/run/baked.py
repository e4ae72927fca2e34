"""Builds with sizes in them: at which other sizes they serve, beside their workloads.

A size reaches a build by the template's defines and entries alone, and each leaves a condition in the domain
of what was rendered: wherever that holds, the same text would be rendered. So what was verified over that
domain, and timed there against the original, may serve there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.problem.cases import Case, reach
from tunesmith.problem.domain import Domain, Sizes, domain_of
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Variant
from tunesmith.run.boundary import TimedSize, boundary_over, ratio_of, worst
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.racing import Winners, timing_of
from tunesmith.run.state import State
from tunesmith.space.expr import parse
from tunesmith.space.grammar import tidy
from tunesmith.space.params import Config


@dataclass(frozen=True)
class BakedService:
    """Where a build serves sizes that no workload has; `where` goes with the build's own conditions."""

    config: Config
    variant: Variant
    where: tuple[str, ...]
    rounds: tuple[tuple[TimedSize, ...], ...] = ()  # of sizes at which it was called
    shown: str = ""  # what that rests on, in words; empty: nothing was timed yet


def baked_services(
    problem: Problem, state: State, template_of: TemplateOf, choice: Winners
) -> tuple[BakedService, ...]:
    """Of every build that wins somewhere, unless it was slower wherever it was called, or little is known."""
    groups: dict[tuple[Config, str], tuple[Variant, list[Workload]]] = {}
    for pick in choice.picks:
        if pick.config is None or not template_of(pick.config).bakes_sizes(pick.config):
            continue
        workload = problem.workload(pick.workload)
        variant = template_of(pick.config).render(problem, pick.config, workload.as_dict())
        groups.setdefault((pick.config, variant.digest), (variant, []))[1].append(workload)
    made = (_service(problem, state, config, *own) for (config, _), own in groups.items())
    return tuple(service for service in made if service is not None)


def _service(
    problem: Problem, state: State, config: Config, variant: Variant, workloads: Sequence[Workload]
) -> BakedService | None:
    domain = domain_of(problem, variant, state.device)
    tested = _tested(problem, state, config, domain)
    if tested is None:
        return None
    service = BakedService(config, variant, tested, _rounds(problem, state, config, domain))
    if not service.rounds:
        return service
    own = ((w.sizes, timing_of(state, config, w.name)) for w in workloads)
    timed = [TimedSize(sizes, ratio_of(result)) for sizes, result in own if result is not None]
    boundary = boundary_over(problem, state.device, service.rounds, timed)
    if boundary is None:
        return None
    bounded = {text.rpartition(" ")[0] for text in boundary.conditions}
    where = (*(text for text in tested if text.rpartition(" ")[0] not in bounded), *boundary.conditions)
    fixed = _fixed(problem, variant)
    free = tuple(text for text in where if not parse(text).names <= fixed)
    return replace(service, where=free, shown=boundary.in_words)


def _fixed(problem: Problem, variant: Variant) -> frozenset[str]:
    """Sizes that the build itself has one value of."""
    named = (c.text.replace("(", "").replace(")", "").partition(" == ") for c in variant.domain)
    return frozenset(name for name, _, value in named if name in problem.size_names and value.isdecimal())


def _tested(problem: Problem, state: State, config: Config, domain: Domain) -> tuple[str, ...] | None:
    """How far this very build was verified, as far as the contract promises more; None: nobody says."""
    cases = [case for v in state.verified if v.outcome.trial.config == config for case in v.seen]
    inside = _inside(domain, [case.sizes for case in cases])
    right = [case for case in cases if case.status == Status.OK.value and case.sizes in inside]
    seen = [Case(case.sizes, case.distribution, case.seed, "verify") for case in right]
    if not seen:
        return None
    promised = {rule.name: max(rule.one_of or (rule.max,)) for rule in problem.contract.sizes}
    furthest = reach(problem, seen)
    return tuple(f"{tidy(t)} <= {most}" for t, most in furthest if parse(t).evaluate(promised) > most)


def _rounds(
    problem: Problem, state: State, config: Config, domain: Domain
) -> tuple[tuple[TimedSize, ...], ...]:
    """Calls that this build served, at sizes of no workload: cold or warm, at their worst."""
    named = {w.name for w in problem.workloads}
    found: list[tuple[TimedSize, ...]] = []
    for served in state.served:
        ratios: dict[Sizes, list[float | None]] = {}
        inside = _inside(domain, [call.sizes for call in served.calls])
        for call in served.calls:
            if call.config == config and call.result.workload not in named and call.sizes in inside:
                ratios.setdefault(call.sizes, []).append(ratio_of(call.result))
        if ratios:
            found.append(tuple(TimedSize(sizes, worst(each)) for sizes, each in ratios.items()))
    return tuple(found)


def _inside(domain: Domain, some: Sequence[Sizes]) -> frozenset[Sizes]:
    rows = [[dict(sizes)[name] for name in domain.names] for sizes in some]
    points = np.array(rows, dtype=np.int64).reshape(-1, len(domain.names))
    return frozenset(domain.named(domain.allowed(points)))
