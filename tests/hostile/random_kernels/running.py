"""Many seeds, batch by batch: generated, changed, compared, counted; what fails is kept, and made shorter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.random_kernels.batch import run
from tests.hostile.random_kernels.generator import generate
from tests.hostile.random_kernels.program import Outcome, Program
from tests.hostile.random_kernels.trying import Attempt, attempt, original_alone, racy


@dataclass
class Tally:
    kernels: int = 0
    lifted: int = 0
    beyond: int = 0
    declined: int = 0  # with no template at all
    racy: int = 0  # the original differs from itself, or fails: the generator's fault
    configurations: int = 0
    broken: int = 0  # the expert ended with an exception
    wrong: int = 0  # kernels of which a configuration is wrong
    moves: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def table(self) -> str:
        rows = [(name, value) for name, value in vars(self).items() if isinstance(value, int)]
        lines = [f"{name:16}{value:8}" for name, value in rows]
        for title in ("moves", "tags", "reasons"):
            found = getattr(self, title).most_common(30)
            lines += [f"{title}:", *(f"    {count:6}  {name}" for name, count in found)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Failure:
    program: Program
    seed: int
    attempt: Attempt
    outcomes: tuple[Outcome, ...]
    why: str

    def text(self) -> str:
        head = [f"// {self.program.name}: {self.why}", f"// tags: {', '.join(self.program.tags)}"]
        head += [f"// moves: {', '.join(self.attempt.moves)}"]
        for outcome in self.outcomes:
            sizes = dict(outcome.trial.plan.sizes)
            head.append(f"// {outcome.verdict} {outcome.detail} at {sizes} with {outcome.trial.label}")
        return "\n".join([*head, self.program.source])


def verdict_of(tried: Attempt, outcomes: Sequence[Outcome]) -> tuple[str, tuple[Outcome, ...]]:
    """Why a kernel fails, with the outcomes that show it; empty where it does not."""
    if tried.broken:
        return f"the expert ended: {tried.broken}", ()
    bad = tuple(o for o in outcomes if o.verdict != "ok" and not o.trial.label.startswith("original"))
    if not bad:
        return "", ()
    return f"{bad[0].verdict} {bad[0].detail}".strip(), bad


def run_seeds(
    seeds: Iterable[int], folder: Path, configs: int = 3, sizes: int = 2
) -> tuple[Tally, list[Failure]]:
    """One batch: all of it is compiled as one program."""
    tally, attempts = Tally(), []
    for seed in seeds:
        program = generate(seed)
        attempts.append((seed, attempt(program, seed, configs, sizes)))
    return judged(attempts, folder, tally)


def judged(
    attempts: Sequence[tuple[int, Attempt]], folder: Path, tally: Tally
) -> tuple[Tally, list[Failure]]:
    cases = [case for _, tried in attempts for case in tried.cases]
    by_name: dict[str, list[Outcome]] = {}
    for outcome in run(cases, folder):
        by_name.setdefault(outcome.case.name, []).append(outcome)
    failures = []
    for seed, tried in attempts:
        outcomes = by_name.get(tried.program.name, [])
        tally.kernels += 1
        tally.tags.update(tried.program.tags)
        if racy(outcomes):
            tally.racy += 1
            tally.reasons[f"racy {racy(outcomes)}"[:90]] += 1
            continue
        why, bad = verdict_of(tried, outcomes)
        tally.broken += bool(tried.broken)
        tally.wrong += bool(bad)
        tally.beyond += bool(tried.beyond)
        tally.declined += not tried.moves
        tally.lifted += bool(tried.moves) and not tried.beyond
        tally.configurations += tried.configurations
        tally.moves.update(tried.moves)
        if tried.beyond:
            tally.reasons[_plain(tried.beyond)] += 1
        if why:
            failures.append(Failure(tried.program, seed, tried, bad, why))
    return tally, failures


def _plain(reason: str) -> str:
    """Without names and numbers, so that reasons can be counted."""
    words = ["N" if any(c.isdigit() for c in word) else word for word in reason.split()]
    return " ".join(words)[:90]


# -- a shorter kernel that fails as well


def fails_again(program: Program, failure: Failure, folder: Path) -> bool:
    """With the same moves and seed; what no longer compiles, or is no longer sound, does not count."""
    try:
        tried = attempt(program, failure.seed, 6, 3, failure.attempt.moves)
    except Exception:  # a line was needed: the problem cannot be read without it
        return False
    if failure.attempt.broken:
        return tried.broken.split(":")[0] == failure.attempt.broken.split(":")[0] and not _unsound(
            program, folder
        )
    outcomes = run(tried.cases, folder)
    return not racy(outcomes) and bool(verdict_of(tried, outcomes)[1])


def _unsound(program: Program, folder: Path) -> bool:
    return bool(racy(run(original_alone(program, 1), folder)))


def reduced(program: Program, fails: Callable[[Program], bool], most: int = 150) -> Program:
    """Lines, and blocks of lines between braces, are left out as long as it still fails."""
    tries = 0
    changed = True
    while changed and tries < most:
        changed = False
        lines = program.source.split("\n")
        first = next(place for place, line in enumerate(lines) if line == "{") + 1
        place = len(lines) - 2
        while place > first and tries < most:
            place -= 1
            for part in _parts(lines, place, first):
                shorter = program.with_source("\n".join(part))
                tries += 1
                if fails(shorter):
                    program, lines, changed = shorter, part, True
                    place = min(place, len(lines) - 2)
                    break
    return program


def _parts(lines: list[str], place: int, first: int) -> list[list[str]]:
    """Ways to leave out the line at `place`: the block that ends there, its braces, or the line alone."""
    line = lines[place]
    if place < first or not line.strip():
        return []
    if line.strip() == "}":
        depth = 0
        for start in range(place, first - 1, -1):
            depth += lines[start].count("}") - lines[start].count("{")
            if depth <= 0:
                inner = [text for text in lines[start + 1 : place] if "} else {" not in text]
                return [lines[:start] + lines[place + 1 :], lines[:start] + inner + lines[place + 1 :]]
        return []
    if line.count("{") != line.count("}"):
        return []
    return [lines[:place] + lines[place + 1 :]]
