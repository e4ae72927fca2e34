"""When a time is believed: what timed launches left is right. Where its first places are not enough, all
of it is looked at, over as many requests as that takes, which are one measurement; so are those over
several draws of the inputs, where time may depend on what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tunesmith.backends.messages import Timed, TimingPolicy
from tunesmith.lab import memory
from tunesmith.lab.look_judge import LookJudge
from tunesmith.lab.memory import Verdict, bytes_of_look, is_divisible
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.problem.freedom import judged_whole
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import Problem, Workload

DRAWS = 4  # of the inputs, where time may depend on them
LEAST_OF_DRAW = 5  # rounds
INDICES = ("int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class Believer:
    _runner: Runner
    _looks: LookJudge
    _layout_seconds: Callable[[int], float]  # of so many bytes
    _rate: float  # bytes a second that are sent and judged at the very least

    def believed(
        self,
        workload: Workload,
        plan: Plan,
        race: Race,
        run: RaceRun | Verdict,
        deadline: float,
        is_last: bool,
    ) -> Timed | Verdict:
        """A time whose outputs are right. Where they are not, another kernel may have spoilt the data that
        all share: it is laid out anew, and only what is wrong again is guilty."""
        if isinstance(run, Verdict):
            return run
        if race.original is None:
            return run.timed
        found = self._judged(workload, plan, race, run, deadline)
        if is_last or not isinstance(found, Verdict):
            return found
        self._runner.restart()
        deadline += self._layout_seconds(plan.nbytes) - self.sending_seconds(plan, race.policy)
        race = replace(race, policy=replace(race.policy, looks=race.policy.min_rounds, give_up=None))
        deadline += self.sending_seconds(plan, race.policy)
        again = self._runner.time(race, deadline)
        return again if isinstance(again, Verdict) else self._judged(workload, plan, race, again, deadline)

    def sending_seconds(self, plan: Plan, policy: TimingPolicy) -> float:
        """What looks may take that send at once what cannot be judged in parts. Of others little is sent."""
        whole = judged_whole(plan)
        travels = [
            b for b in plan.compared() if b.name in whole or b.compare == "codes" or not is_divisible(b)
        ]
        nbytes = 2 * policy.looks * sum(b.nbytes for b in travels)
        return min(nbytes, memory.MOST_SENT) / self._rate

    def _judged(
        self, workload: Workload, plan: Plan, race: Race, run: RaceRun, deadline: float
    ) -> Timed | Verdict:
        """Where looks have sent the first places alone that are unlike the original, and these are right, as
        many looks again send all: what they saw elsewhere nobody knows. The times are those of all requests:
        a kernel that counts launches knows which is the last, and need not be right in half of that."""
        verdict = self._looks.judge(workload, plan, race, run)
        if not verdict.ok:
            return verdict
        if not any(look.partial for look in run.timed.looks):
            return run.timed
        parts: list[Timed] = []
        for looks in spread(race.policy.looks, bytes_of_look(plan)):
            part = self._whole(workload, plan, race, looks, deadline)
            if isinstance(part, Verdict):
                return part
            parts.append(part)
        return together(parts)

    def _whole(
        self, workload: Workload, plan: Plan, race: Race, looks: int, deadline: float
    ) -> Timed | Verdict:
        """One request. What it has sent is gone before the next sends as much."""
        policy = replace(race.policy, looks=looks, give_up=None)
        whole = replace(race, sends_all=True, policy=policy)
        run = self._runner.time(whole, deadline + looks * bytes_of_look(plan) / self._rate)
        if isinstance(run, Verdict):
            return run
        verdict = self._looks.judge(workload, plan, whole, run)
        return run.timed if verdict.ok else verdict


def spread(looks: int, nbytes: int) -> list[int]:
    """How many looks each request has, where one sends so many bytes. As even as can be: the times of a
    request in which fewer look count as much."""
    most = max(1, memory.MOST_SENT // max(1, nbytes))
    requests = -(-looks // most)
    return [looks * (n + 1) // requests - looks * n // requests for n in range(requests)]


def together(parts: Sequence[Timed]) -> Timed:
    """Requests as one measurement; clocks as they stood in the end."""
    samples = tuple(tuple(chain(*each)) for each in zip(*(part.samples for part in parts), strict=True))
    discarded, busy = sum(part.discarded for part in parts), sum(part.busy for part in parts)
    disturbance = next((part.disturbance for part in parts if part.disturbance), "")
    disturbed = sum(part.disturbed for part in parts)
    return Timed(
        samples, discarded, busy, clocks=parts[-1].clocks, disturbed=disturbed, disturbance=disturbance
    )


def times_vary(problem: Problem) -> bool:
    """Whether a kernel's time may depend on what its inputs hold: where they are made by the user's function,
    or some are as wide as indices, offsets and lengths are. Other arrays hold so many numbers drawn alike
    that one draw takes as long as another; two sittings, which have one each, would tell."""
    given = [a for a in problem.arguments if a.role in ("input", "inout") and a.shape and a.formula is None]
    return problem.inputs is not None or any(a.type in INDICES for a in given)


def dealt(policy: TimingPolicy, draws: int) -> list[TimingPolicy]:
    """The same rounds, looks and seconds, dealt out evenly."""
    share = replace(
        policy,
        rounds=max(LEAST_OF_DRAW, -(-policy.rounds // draws)),
        min_rounds=max(min(LEAST_OF_DRAW, policy.min_rounds), -(-policy.min_rounds // draws)),
        max_seconds=policy.max_seconds / draws,
        looks=-(-policy.looks // draws),
    )
    return [share] * draws if draws > 1 else [policy]
