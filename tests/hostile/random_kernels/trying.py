"""One kernel through the expert: moves and values drawn at random, and the cases that compare the results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.core.expert.moves.kernels import CPU
from tests.core.expert.write.building import DEVICE, read
from tests.hostile.random_kernels.program import Case, Outcome, Program, Trial
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.author import try_read_kernel as read_kernel
from tunesmith.expert.moves import PARAMETERS
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, original_variant
from tunesmith.run.ports import Declined, Refactoring
from tunesmith.space.configset import Config

# The kernel's own numbers are a proposal, not proved: whether they may change is for the gate to say.
PROVED_MOVES = tuple(name for name in PARAMETERS if name != "knobs")
_UNSEEN = ("BOUNDS", "REGS", "LEVEL")  # what only steers the GPU's compiler makes no difference on the host
_TRIES = 60  # draws for a configuration that is legal at a size


@dataclass(frozen=True)
class Attempt:
    """What the expert made of a kernel, and what is to be compared. `moves` empty: it made nothing."""

    program: Program
    beyond: str  # why it was not read; empty where it was
    moves: tuple[str, ...]
    template: str
    cases: tuple[Case, ...]
    broken: str = ""  # the expert itself failed

    @property
    def configurations(self) -> int:
        return sum(len(case.trials) - 2 for case in self.cases)


def device_for(problem: Problem) -> Device:
    return CPU if problem.kernel.language == "opencl" else DEVICE


def attempt(
    program: Program, seed: int, configs: int = 3, sizes: int = 2, moves: Sequence[str] = ()
) -> Attempt:
    """Everything is drawn from `seed`; `moves` are drawn as well unless given."""
    rng = random.Random(seed)
    problem = program.problem()
    chosen = tuple(moves) or _some_moves(rng)
    try:
        reading = read_kernel(problem)
        written = ExpertAuthor().write(Refactoring(chosen), problem, device_for(problem))
        beyond = reading if isinstance(reading, str) else ""
        if isinstance(written, Declined):
            return Attempt(program, beyond or written.reason, (), "", ())
        if not written.moves:  # none of them applies: there is nothing that a search would try
            return Attempt(program, beyond, (), "", ())
        template = read(written.text, problem)
    except Exception as error:  # told with the kernel: the expert must refuse in words
        return Attempt(program, "", (), "", (), f"{type(error).__name__}: {error}")
    places = list(program.sizes)
    rng.shuffle(places)
    cases = []
    for where in places[:sizes]:
        trials = _trials(problem, template, dict(where), configs, rng)
        if len(trials) > 2:
            inputs = program.inputs(trials[0].plan, rng.randrange(1 << 30))
            cases.append(Case(program.name, tuple(trials), inputs))
    return Attempt(program, beyond, written.moves, written.text, tuple(cases))


def original_alone(program: Program, seed: int) -> list[Case]:
    """The original with itself in another order: a kernel that was refused may still be run."""
    problem = program.problem()
    cases = []
    for where in program.sizes[:1]:
        plan = _planned(problem, original_variant(problem, dict(where)), dict(where))
        if plan is not None:
            made = original_variant(problem, dict(where))
            trials = (
                Trial(made, plan, 2 * seed + 1, "original"),
                Trial(made, plan, 2 * seed + 2, "original again"),
            )
            cases.append(Case(program.name, trials, program.inputs(plan, seed)))
    return cases


def racy(outcomes: Sequence[Outcome]) -> str:
    """What is wrong with the original itself: nothing, unless the generator is to blame."""
    for outcome in outcomes:
        if outcome.trial.label.startswith("original") and outcome.verdict != "ok":
            return f"{outcome.trial.label}: {outcome.verdict} {outcome.detail}"
    return ""


def _some_moves(rng: random.Random) -> tuple[str, ...]:
    every = PROVED_MOVES
    if rng.random() < 0.4:
        return every
    kept = rng.uniform(0.3, 0.9)
    some = tuple(name for name in every if rng.random() < kept)
    return some or every


def _trials(
    problem: Problem, template: Template, sizes: dict[str, int], configs: int, rng: random.Random
) -> list[Trial]:
    """The original twice, in two orders of its threads; then the template at values drawn at random."""
    first = original_variant(problem, sizes)
    plan = _planned(problem, first, sizes)
    if plan is None:
        return []
    trials = [
        Trial(first, plan, rng.randrange(1, 1 << 40) * 2, "original"),
        Trial(first, plan, rng.randrange(1, 1 << 40) * 2 + 1, "original again"),
    ]
    seen: set[Config] = set()
    for turn in range(_TRIES):
        if len(seen) >= configs:
            break
        config = template.default if turn == 0 and rng.random() < 0.3 else _config(template, rng)
        names = {**sizes, **config.as_dict(), **device_for(problem).limits.names()}
        rules = [
            c for c in template.space.constraints if c.kind == "require" and c.expr.names <= names.keys()
        ]
        if config in seen or not all(rule.expr.holds(names) for rule in rules):
            continue
        made = template.render(problem, config, sizes)
        own = _planned(problem, made, sizes)
        if own is not None:
            seen.add(config)
            trials.append(Trial(made, own, rng.randrange(1, 1 << 40), str(config)))
    return trials


def _config(template: Template, rng: random.Random) -> Config:
    """Half of the values as they are by default: extremes alone hide each other."""
    default = template.default.as_dict()
    share = rng.choice((0.2, 0.5, 1.0))
    return Config.of(
        {
            p.name: rng.choice(p.values)
            if p.name not in _UNSEEN and rng.random() < share
            else default[p.name]
            for p in template.space.params
        }
    )


def _planned(problem: Problem, made: Variant, sizes: dict[str, int]) -> Plan | None:
    found = plan_launch(problem, made, sizes, device_for(problem), None)
    return found if isinstance(found, Plan) else None
