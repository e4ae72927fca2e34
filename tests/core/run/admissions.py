"""What may be searched, and where it serves: `admissions.txt` has cases, and below each what follows from it.

python -m tests.core.run.admissions      writes what follows anew

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

    == focus                        where a search looks first
    answer wide_access VEC >= 4     what the template has for a remedy, of VEC, BLOCK and U
    found w narrow_access 0.8 unroll  at a workload: a fault, what it costs, and its remedies
    weight w 4                      of a workload, else 1
    dropped wide_access             a remedy that proved wrong
    base too_few_blocks 0.4 unroll  a fault of the original, whose focus stays
    best 8 64 0                     what is looked at instead of the original

    == doubt                        when it no longer does
    focus wide_access VEC >= 4      a condition; 64 of 128 are inside, or as many as `inside` says
    tried 8 64 0.5 -                with VEC and BLOCK: scores, or - where it failed
    rising 20 8 64                  as many, each better than the last
    before 13                       so many had been tried before it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.core.run.decisions import with_what_follows
from tests.drafts import a_draft
from tests.samples import DEVICE, a_problem, a_template, outcome
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Contract, SizeRule
from tunesmith.problem.template import Remedy, configs_of
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind
from tunesmith.run.candidates import Checks, Faulty, examine_draft, rule_text
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import Tried
from tunesmith.run.prior import Answers, focus_of, widen_focus
from tunesmith.run.prior import doubt_focus as doubt_of
from tunesmith.run.race import TimedSize, learn_boundary
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Condition, Focus, Space

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
        step := examine_draft(template.space.params, template.default, configs, done, "last" not in given),
        Checks,
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
    found = learn_boundary(problem, timed["timed"], margin)
    for one in filter(None, (found, found.with_more(timed["more"]) if found and timed["more"] else None)):
        yield f"where {' and '.join(one.conditions) or 'it was verified'}"
        yield one.in_words
        yield f"inside {one.inside}, slower {one.slower}, unable {one.unable}, cut off {one.cut_off}"
    if found is None:
        yield "nowhere"


SPACE = Space((Param("VEC", (1, 2, 4, 8)), Param("BLOCK", (64, 128, 256, 512)), Param("U", tuple(range(8)))))


def diagnosed(*faults: list[str]) -> Diagnosis:
    findings = []
    for kind, gain, *remedies in faults:
        words, cost = tuple(map(Remedy, remedies)), float(gain)
        evidence = (f"{cost:.0%} of it",)
        findings.append(Finding(Kind(kind), cost, 0.5, evidence, words, "static", Bound.LATENCY))
    return Diagnosis(Bound.LATENCY, "so it is", 0.5, tuple(findings))


def focus(lines: list[str]) -> Iterator[str]:
    answers, weights, more = {}, {}, dict[str, object]()
    found: dict[str, list[list[str]]] = {}
    base: list[list[str]] = []
    for line in lines:
        word, name, rest = (*line.split(" ", 2), "")[:3]
        if word == "answer":
            answers[Remedy(name)] = parse_expr(rest)
        elif word == "weight":
            weights[name] = float(rest)
        elif word == "dropped":
            more["dropped"] = frozenset({name})
        elif word == "best":
            values = map(int, line.split()[1:])
            more["subject"] = Config.of(dict(zip(("VEC", "BLOCK", "U"), values, strict=True)))
        elif word == "base":
            base.append(line.split()[1:])
        else:
            found.setdefault(name, []).append(rest.split())
    template = Answers(answers, SPACE.params, SPACE.configs())
    if base:
        more["base"] = focus_of({"w": diagnosed(*base)}, {"w": 1.0}, template)
    seen = {workload: diagnosed(*(f for f in faults if f)) for workload, faults in found.items()}
    weights = {workload: weights.get(workload, 1.0) for workload in seen}
    made = focus_of(seen, weights, template, **more)
    for c in made.conditions if made else ():
        yield f"{c.text}: {c.remedy} of {c.finding}, {c.evidence}, score {c.score:.4f}"
    yield f"inside {made.inside} of {made.of}" if made else "everywhere"


def doubt(lines: list[str]) -> Iterator[str]:
    conditions, inside, before, tried = [], 64, 0, list[Tried]()
    for line in lines:
        word, *given = line.split()
        if word == "focus":
            conditions.append(Condition(given[0], " ".join(given[1:]), "a fault", "seen", 0.4))
        elif word in ("inside", "before"):
            inside, before = (int(given[0]), before) if word == "inside" else (inside, int(given[0]))
        else:
            count = int(given.pop(0)) if word == "rising" else 0
            vec, block, *scores = given
            scores += [str(0.1 * n) for n in range(count)]
            for number, score in enumerate(scores):
                config = Config.of({"VEC": int(vec), "BLOCK": int(block), "U": number % 8})
                tried.append(Tried(config, None if score == "-" else float(score)))
    looked = Focus(tuple(conditions), inside, 128)
    found = doubt_of(looked, tried, 0.01, before=before) if before else doubt_of(looked, tried, 0.01)
    if found is None:
        yield "stays"
        return
    yield f"{' '.join(sorted(found.remedies))} no more: {found.reason}"
    left = widen_focus(looked, found, Answers({}, SPACE.params, SPACE.configs()))
    yield f"left {' and '.join(left.texts)}, inside {left.inside}" if left else "everywhere"


SHOWN = {"gate": gate, "boundary": boundary, "focus": focus, "doubt": doubt}

if __name__ == "__main__":
    CASES.write_text(with_what_follows(CASES.read_text("utf-8"), SHOWN), "utf-8")
