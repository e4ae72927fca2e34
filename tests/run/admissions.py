"""What may be searched, and where it serves: `admissions.txt` has cases, and below each what follows from it.

python -m tests.run.admissions      writes what follows anew

    == gate                         what the gate tries of a template, and what it says of it
    params A=1,2 B=0,1              the values of each parameter; the first are the default
    require A * B <= 8              a rule, and with `block` an expression for the block
    fault wrong A=8 B=1             how a trial ends that has all of these; else it is right
    last                            the author is not asked again

    == boundary                     where the general configuration serves
    timed 16 256 1.5                rows, d, and how much faster it was there; - where it cannot run
    more 16 256 1.5                 the same, after the boundary was found
    margin 2.0                      how far it stays from slower sizes
    one_of 64 128                   all that d may be
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.drafts import a_draft
from tests.run.decisions import with_what_follows
from tests.samples import DEVICE, a_problem, a_template, outcome
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Contract, SizeRule
from tunesmith.problem.template import configs_of
from tunesmith.run.boundary import TimedSize, learn
from tunesmith.run.candidates import Checks, Faulty, examine, rule_text
from tunesmith.run.outcome import Outcome

CASES = Path(__file__).with_name("admissions.txt")
PROBLEM = a_problem()


def values_of(words: list[str]) -> dict[str, int]:
    return {name: int(value) for name, _, value in (word.partition("=") for word in words)}


def gate(lines: list[str]) -> Iterator[str]:
    given: dict[str, str] = {}
    faults: list[tuple[Status, dict[str, int]]] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "fault":
            status, *about = rest.split()
            faults.append((Status(status), values_of(about)))
        given[word] = rest
    params = {}
    for name, _, values in (word.partition("=") for word in given["params"].split()):
        params[name] = [int(value) for value in values.split(",")]
    template = a_template(PROBLEM, a_draft(params, given.get("require", ""), given.get("block", "64")))
    configs, done = configs_of(PROBLEM, template, DEVICE), list[Outcome]()
    while isinstance(
        step := examine(template.space.params, template.default, configs, done, "last" not in given), Checks
    ):
        assert step.configs, "or it would go on for ever"
        assert {o.trial.config for o in done}.isdisjoint(step.configs)
        yield f"tries {len(step.configs)}, first {step.configs[0]}"
        for config in step.configs:
            values = config.as_dict().items()
            status = next((status for status, bad in faults if bad.items() <= values), None)
            found = 1.0 if status is None else status
            done.append(outcome(len(done), config, {"small": found, "wide": found}, "gate"))
    if isinstance(step, Faulty):
        without = " ".join(f"{name}={value}" for name, value in step.without)
        yield f"turned away: {step.reason}"
        yield f"by trials {' '.join(map(str, step.trials)) or 'none'}, to be left out: {without or 'nothing'}"
    else:
        yield f"passed, forbidden: {'; '.join(map(rule_text, step.rules)) or 'nothing'}"


def boundary(lines: list[str]) -> Iterator[str]:
    margin, problem = 1.0, PROBLEM
    timed: dict[str, list[TimedSize]] = {"timed": [], "more": []}
    for line in lines:
        word, *given = line.split()
        if word == "margin":
            margin = float(given[0])
        elif word == "one_of":
            known = tuple(map(int, given))
            rules = (SizeRule("rows", 1, 4096), SizeRule("d", known[0], known[-1], one_of=known))
            problem = replace(problem, contract=Contract(rules))
        else:
            rows, d, ratio = given
            sizes = (("rows", int(rows)), ("d", int(d)))
            timed[word].append(TimedSize(sizes, None if ratio == "-" else float(ratio)))
    found = learn(problem, timed["timed"], margin)
    for one in filter(None, (found, found.with_more(timed["more"]) if found and timed["more"] else None)):
        yield f"where {' and '.join(one.conditions) or 'it was verified'}"
        yield one.in_words
        yield f"inside {one.inside}, slower {one.slower}, unable {one.unable}, cut off {one.cut_off}"
    if found is None:
        yield "nowhere"


SHOWN = {"gate": gate, "boundary": boundary}

if __name__ == "__main__":
    CASES.write_text(with_what_follows(CASES.read_text("utf-8"), SHOWN), "utf-8")
