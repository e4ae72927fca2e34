"""The gate where the device is absent: what the host's processor tries of a draft, for how long, and what
follows from it.

All that the gate tries on a device, and each value of every parameter at least once. What is found wrong goes
back to the author; what is found right is believed by nobody: the device's own gate begins from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Checks, Faulty, Passed, examine, gate_plan
from tunesmith.run.outcome import Outcome, Rehearsed, Result, Trial
from tunesmith.space.configset import ConfigSet
from tunesmith.space.params import Config
from tunesmith.text import counted

GATE_SECONDS = 300.0  # for one draft; the first configuration is tried whatever it takes
MOST_NAMED = 3  # of what was wrong when the time was up


@dataclass(frozen=True)
class NextRehearsal:
    config: Config
    whole: bool  # whether on all cases, as the default is; the others on the few of a search
    left: int  # that the gate would try after it


@dataclass(frozen=True)
class HostGate:
    """What is tried of one draft, in which order."""

    template: Template
    configs: ConfigSet
    plan: tuple[Config, ...]  # what the device's gate tries, and values that it leaves out
    seconds: float = GATE_SECONDS

    @classmethod
    def of(cls, template: Template, configs: ConfigSet, seconds: float = GATE_SECONDS) -> HostGate:
        plan = gate_plan(template.space.params, template.default, configs)
        return cls(template, configs, plan, seconds)

    def step(
        self, done: Sequence[Rehearsed], may_mend: bool, is_model: bool
    ) -> NextRehearsal | Faulty | Passed:
        """`done` are those of this draft. Faulty is what goes back to its author, who heeds words if that is
        a model."""
        tried = {one.config: one for one in done if one.config is not None}
        start = self.plan[0]
        if start not in tried:
            return NextRehearsal(start, True, len(self.plan) - 1)
        if tried[start].status is not Status.OK and not tried[start].convicts:
            return Passed()  # nothing can be said of it here
        is_over = sum(one.seconds for one in done) >= self.seconds
        pending = [config for config in self.plan if config not in tried]
        if pending and not tried[start].convicts:
            if is_over:
                return _cut_short(list(tried.values()), may_mend and is_model)
            return NextRehearsal(pending[0], False, len(pending) - 1)
        outcomes = [_as_outcome(number, one) for number, one in enumerate(done)]
        own = (self.template.space.params, self.template.default, self.configs)
        found = examine(*own, outcomes, may_mend)
        if isinstance(found, Checks):
            if is_over:
                return _cut_short(list(tried.values()), may_mend and is_model)
            return NextRehearsal(found.configs[0], False, len(found.configs) - 1)
        if isinstance(found, Faulty):
            return Faulty(f"{found.reason} (on {done[-1].device})", (), found.without)
        return found


def gate_sentence(done: Sequence[Rehearsed]) -> str:
    """What was tried of one draft, in words; empty where its first configuration says all."""
    left = done[-1].left if done and done[0].status is Status.OK else 0
    if len(done) < 2 and not left:
        return ""
    wrong = sum(one.convicts for one in done)
    open_ = sum(not one.convicts and one.status is not Status.OK for one in done)
    parts = [f"{wrong} wrong"] * bool(wrong) + [f"{open_} not checked"] * bool(open_)
    right = f"{len(done) - wrong - open_} of {counted(len(done), 'configuration')} right"
    named = done[-1].config.candidate if done[-1].config is not None else ""
    words = f"the gate{f' of {named}' if named else ''} on {done[-1].device}: {right}"
    words += f", {', '.join(parts)}" if parts else ""
    if left:
        spent = sum(one.seconds for one in done)
        words += f"; its time was up after {spent:.0f} s, {left} were not tried"
    return words if wrong else f"{words}; not timed, and to be passed again on a GPU"


def _cut_short(done: Sequence[Rehearsed], may_mend: bool) -> Faulty | Passed:
    """Whom to blame is not known. A model can mend what it is told; what else was written goes on to the
    device, whose gate finds out."""
    wrong = [one for one in done if one.convicts]
    if not wrong or not may_mend:
        return Passed()
    words = "; ".join(f"at {one.config} it is {one.status}: {one.detail}" for one in wrong[:MOST_NAMED])
    more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return Faulty(f"{words}{more} (on {wrong[-1].device})", ())


def _as_outcome(number: int, one: Rehearsed) -> Outcome:
    """For the gate. What could not be checked here may be right elsewhere, and is nobody's fault."""
    known = one.convicts or one.status is Status.OK
    status = one.status if known else Status.INFEASIBLE
    result = Result("", status, detail=one.detail if one.convicts else "")
    return Outcome(Trial(number, one.config, (), "short", "gate"), (result,), seconds=one.seconds)
