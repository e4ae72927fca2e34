"""A timing over several draws of the inputs, where a kernel's time may depend on what they hold."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.backends.messages import TimingPolicy
from tunesmith.problem.problem import Problem

DRAWS = 4  # of the inputs, where time may depend on them
LEAST_OF_DRAW = 5  # rounds
INDICES = ("int32", "int64", "uint32", "uint64")


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
