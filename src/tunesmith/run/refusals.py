"""What refused finalists have in common: finalists that have all of it are not looked at either.

A finalist may be as fast as one likes and be refused after all, because it adds in another order and the
problem allows no more rounding. The next in line are mostly its neighbours. So the refused configurations
of a template are held against the one with which the template does what the kernel did:

1. Parameters in which every one of them differs from it are under suspicion; one that a verified
   configuration differs in as well is not. A finalist with other values in all of those is passed over: the
   next one keeps at least one of them, so that each refusal says more.
2. Where that has not helped, only those are looked at that add in the kernel's own order, by the parameters
   that say how a sum is shared out and what stands for divisions and functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tunesmith.problem.plan import Status
from tunesmith.problem.usual import usual_name
from tunesmith.run.state import State
from tunesmith.space.params import Config

LEARNED = 3  # refused finalists of a template from which on they are compared
DESPAIRED = 6  # from which on the kernel's own order is kept
ROUNDING = frozenset({"LANES", "VEC", "ITEMS", "KEEP", "SPLIT", "BESIDE", "FAST", "RECIP", "CONVERT"})


@dataclass(frozen=True)
class TemplateDoubts:
    """Of one template: how it was before anything was chosen, and what not to look at."""

    first: Mapping[str, int]
    suspects: frozenset[str] = frozenset()  # others than before in all of these: passed over
    kept: frozenset[str] = frozenset()  # other than before in one of these: passed over

    def doubts(self, config: Config) -> bool:
        changed = {name for name, value in config.as_dict().items() if value != self.first.get(name)}
        return bool(self.kept & changed) or (bool(self.suspects) and self.suspects <= changed)


def doubted(state: State, raced_wrong: Collection[Config]) -> frozenset[Config]:
    """Configurations that were tried and are passed over; `raced_wrong`: finalists whose long look failed."""
    wrong, passed = set(raced_wrong), set[Config]()
    for verified in state.verified:
        config, results = verified.outcome.trial.config, verified.outcome.results
        if config is not None and any(r.status is Status.WRONG for r in results):
            wrong.add(config)
        elif config is not None and all(r.ok for r in results):
            passed.add(config)
    if len(wrong) < LEARNED:
        return frozenset()
    of = {
        candidate: found
        for candidate in {config.candidate for config in wrong}
        if (found := _of_template(state, candidate, wrong, passed)) is not None
    }
    tried = (o.trial.config for o in state.searched if o.trial.config is not None)
    return frozenset(c for c in tried if c.candidate in of and c not in passed and of[c.candidate].doubts(c))


def _of_template(
    state: State, candidate: str, wrong: Collection[Config], passed: Collection[Config]
) -> TemplateDoubts | None:
    refused = [config.as_dict() for config in wrong if config.candidate == candidate]
    before = [o.trial.config for o in (*state.gated(candidate), *state.searched)]
    first = next((c.as_dict() for c in before if c is not None and c.candidate == candidate), None)
    if len(refused) < LEARNED or first is None:
        return None
    held = [config.as_dict() for config in passed if config.candidate == candidate]
    suspects = {
        name
        for name, value in first.items()
        if all(other.get(name) != value for other in refused)
        and all(other.get(name) == value for other in held)
    }
    kept = {name for name in first if usual_name(name)[0] in ROUNDING}
    in_order = [all(other.get(name) == first[name] for name in kept) for other in refused]
    other_order = [any(other.get(name) != first[name] for name in kept) for other in held]
    # Where one of another order holds, or one that keeps the order is refused too, that is not it.
    despairs = len(refused) >= DESPAIRED and not any(in_order) and not any(other_order)
    return TemplateDoubts(first, frozenset(suspects), frozenset(kept if despairs else ()))
