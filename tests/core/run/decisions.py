"""What a run decides by what it has measured: `decisions.txt` has cases, and below each what follows from it.

python -m tests.core.run.decisions       writes what follows anew

    == race                         what is shown: races, claims, pruning, scores or effects
    # a title
    workloads only                  or narrow, three; instead of small with weight 1, wide with weight 3
    original 1.5 3                  seconds of the original, by workload; else one second
    search A 2.0 wrong key=x,y      a short look: speed-ups or a status, and keys of launched code
    race A 2.0 - ~0.05              a long one: not at the second workload; noise of its samples
    verify A 2.0 1.9                in a fresh process
    sentinel 1.04 1.0               seconds of the original, looked at in between
    build A code=x spills=8         also launches=, occupancy=, refused= a status; `build original`
    prune A cannot_run              a verdict of the pruning
    finalists 1, baking EXPRESSION  of the settings, and of the template
    stopped                         the run has ended
    > ...                           what follows

Configurations: A to D are BLOCK=32 to 256, E is BLOCK=32 VEC=2; others are named by BLOCK, or BLOCKxVEC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.samples import a_problem, a_template, built, config, finalist, outcome, state_of, verified
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Admitted, Event, Pruned, Settings, Stopped
from tunesmith.run.explain import explain_winners, history_of
from tunesmith.run.library import best_of
from tunesmith.run.outcome import Outcome
from tunesmith.run.race import (
    Winners,
    choose_winners,
    finalist_entries,
    plan_heat,
    unverified_winners,
    verified_choice,
)
from tunesmith.run.scores import measurement_noise, prune_pool, score_configs
from tunesmith.run.state import State
from tunesmith.space.configset import Config

CASES = Path(__file__).with_name("decisions.txt")
LETTERS = {"A": config(32), "B": config(64), "C": config(128), "D": config(256), "E": config(32, 2)}
NAMES = {chosen: letter for letter, chosen in LETTERS.items()}
BOTH, ONE = a_problem(), a_problem(workloads="only = { rows = 16, d = 256 }")
NARROW = a_problem(workloads="small = { rows = 16, d = 16 }\n")  # whole: d % (8 * VEC) == 0
THREE = a_problem(workloads="".join(f"{name} = {{ rows = {n}, d = 8 }}\n" for n, name in enumerate("abc", 1)))
PROBLEMS = {"both": BOTH, "only": ONE, "narrow": NARROW, "three": THREE}


def named(word: str) -> Config:
    block, _, vec = word.partition("x")
    return LETTERS[word] if word in LETTERS else config(int(block), int(vec or 1))


def name_of(chosen: Config | None) -> str:
    if chosen is None:
        return "the original"
    block, vec = (value for _, value in chosen.items)
    return NAMES.get(chosen, f"{block}x{vec}" if vec > 1 else str(block))


def value_of(word: str) -> float | Status:
    return Status(word) if word[0].isalpha() else float(word)


class Case:
    def __init__(self, lines: list[str]) -> None:
        self.problem, self.settings, self.number = BOTH, Settings(), 0
        self.original: dict[str, float] | None = None
        self.events: list[Outcome | Event] = []
        for line in lines:
            word, *given = line.split()
            getattr(self, f"add_{word}")(*given)

    @property
    def state(self) -> State:
        original = self.original or {w.name: 1.0 for w in self.problem.workloads}
        return state_of(*self.events, original=original, settings=self.settings)

    def by_workload(self, words: tuple[str, ...]) -> dict[str, str]:
        names = [w.name for w in self.problem.workloads]
        return {name: word for name, word in zip(names, words, strict=True) if word != "-"}

    def values(self, *words: str) -> dict[str, float | Status]:
        return {name: value_of(word) for name, word in self.by_workload(words).items()}

    def next_number(self) -> int:
        self.number += 1
        return self.number - 1

    def add_workloads(self, name: str) -> None:
        self.problem = PROBLEMS[name]

    def add_original(self, *seconds: str) -> None:
        self.original = {name: float(word) for name, word in self.by_workload(seconds).items()}

    def add_finalists(self, count: str) -> None:
        self.settings = replace(self.settings, finalists=int(count))

    def add_baking(self, *words: str) -> None:
        self.events.append(Admitted("t", 12, 12, baking=(" ".join(words),)))

    def add_search(self, chosen: str, *words: str) -> None:
        speeds = self.values(*(word for word in words if "=" not in word))
        seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in speeds.items()}
        found = outcome(self.next_number(), named(chosen), seconds)
        for keys in (word.removeprefix("key=").split(",") for word in words if "=" in word):
            results = zip(found.results, keys, strict=True)
            keyed = tuple(replace(r, key=f"{key} at {r.workload}") for r, key in results)
            found = replace(found, results=keyed, code_digest="all the same")
        self.events.append(found)

    def add_race(self, chosen: str, *words: str) -> None:
        apart = [float(word[1:]) for word in words if word[0] == "~"]
        speeds = self.values(*(word for word in words if word[0] != "~"))
        self.events.append(finalist(self.next_number(), named(chosen), speeds, *apart))

    def add_verify(self, chosen: str, *words: str) -> None:
        self.events.append(verified(named(chosen), self.values(*words)))

    def add_sentinel(self, *words: str) -> None:
        self.number += 16
        self.events.append(outcome(self.number, None, self.values(*words), "sentinel"))

    def add_build(self, chosen: str, *words: str) -> None:
        about = dict(word.split("=") for word in words)
        names = [w.name for w in self.problem.workloads if "refused" in about]
        refused = {name: Status(about["refused"]) for name in names}
        numbers = {n: int(about[n]) for n in ("spills", "occupancy") if n in about}
        code, launches = about.get("code"), about.get("launches", "as always")
        of = None if chosen == "original" else named(chosen)
        self.events.append(built(of, code, launches=launches, refused=refused, **numbers))

    def add_stopped(self) -> None:
        self.events.append(Stopped("done"))

    def add_prune(self, chosen: str, rule: str) -> None:
        self.events.append(Pruned(named(chosen), rule, "because"))


Shown = Callable[[Problem, State], Iterator[str]]
Follows = Callable[[list[str]], Iterator[str]]  # from the lines of a case


def race(problem: Problem, state: State) -> Iterator[str]:
    for chosen, entry in finalist_entries(problem, state, state.settings.finalists).items():
        general = " in general" if entry.is_general else ""
        yield f"{name_of(chosen)} enters at {' and '.join(sorted(entry.workloads))}{general}"
    for chosen, workloads in plan_heat(problem, state):
        yield f"{name_of(chosen)} is timed at {' and '.join(workloads)}"


def winners(told: str, choice: Winners) -> Iterator[str]:
    for pick in choice.picks:
        speedup = pick.speedup
        figure = f", {speedup.value:.4f} ({speedup.low:.4f} to {speedup.high:.4f})" if pick.config else ""
        yield f"{told} {pick.workload}: {name_of(pick.config)}{figure}"
    yield f"{told.removesuffix(' at')} in general: {name_of(choice.general)}"


def claims(problem: Problem, state: State) -> Iterator[str]:
    yield from winners("chosen at", choose_winners(problem, state))
    for chosen, workloads in unverified_winners(problem, state):
        yield f"{name_of(chosen)} is to be verified at {' and '.join(workloads)}"
    yield from winners("delivered at", verified_choice(problem, state))
    yield f"worth trying elsewhere: {' '.join(map(name_of, best_of(problem, state, ''))) or 'nothing'}"


def pruning(problem: Problem, state: State) -> Iterator[str]:
    for verdict in prune_pool(state, lambda: score_configs(problem, state)):
        yield f"{name_of(verdict.config)} is left out, {verdict.rule}: {verdict.reason}"


def scored(problem: Problem, state: State) -> Iterator[str]:
    for tried in score_configs(problem, state):
        at = ", ".join("-" if score is None else f"{score:.5f}" for score in tried.at)
        yield f"{name_of(tried.config)} scores {'-' if tried.score is None else f'{tried.score:.5f}'} ({at})"
    yield f"noise {measurement_noise(state):.5f}"


def effects(problem: Problem, state: State) -> Iterator[str]:
    template = a_template(problem)
    for one in explain_winners(problem, lambda _config: template, state, verified_choice(problem, state)):
        for param in one.params:
            for value in param.others:
                slower = f" {value.slower:.5f}" if value.slower is not None else ""
                best = f", at best {value.best:.5f}" if value.best is not None else ""
                why = f" ({value.why})" if value.why else ""
                told = f"{param.name}={value.value} {value.source}{slower}{why}{best}"
                yield f"{one.workload or 'in general'}: {told}"
    found = history_of(problem, state)
    yield f"speed-ups {' '.join('-' if s is None else f'{s:.5f}' for s in found.speedups)}"
    for best_at in found.best:
        steps = ", ".join(f"{speed:.5f} at trial {number}" for number, speed in best_at.steps)
        yield f"best {best_at.workload or 'in general'}: {steps or 'none'}"


def of_case(shown: Shown) -> Follows:
    def follows(lines: list[str]) -> Iterator[str]:
        case = Case(lines)
        return shown(case.problem, case.state)

    return follows


SHOWN: dict[str, Follows] = {
    "race": of_case(race),
    "claims": of_case(claims),
    "pruning": of_case(pruning),
    "scores": of_case(scored),
    "effects": of_case(effects),
}


def with_what_follows(text: str, shown: Mapping[str, Follows]) -> str:
    """The same with the lines that follow from each case as they are now."""
    blocks, section = [], ""
    for block in text.strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith(">")]
        heading = [lines.pop(0)] if lines[0].startswith("== ") else []
        section = heading[0].removeprefix("== ") if heading else section
        found = shown[section]([line for line in lines if not line.startswith("#")])
        blocks.append("\n".join([*heading, *lines, *([f"> {line}" for line in found] or ["> nothing"])]))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    CASES.write_text(with_what_follows(CASES.read_text("utf-8"), SHOWN), "utf-8")
