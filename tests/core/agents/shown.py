"""What models are told: each part of a request, of states that are made up, and all requests of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tests.core.run.test_talking import GOOD, model_of
from tests.core.run.test_talking import a_run as a_template_run
from tests.core.session.test_rewriting import BEST, SPEEDS, STORY
from tests.kernel_runs import a_run
from tests.samples import DEVICE, a_problem, config, outcome, state_of
from tests.talkers import Said, plan
from tunesmith.agents import material
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import ExtraCase, Status
from tunesmith.profiles.facts import Diagnosis, Finding
from tunesmith.run.events import (
    Baseline,
    Event,
    Exchange,
    Extended,
    Message,
    Profiled,
    Reply,
    Request,
    Settings,
    Surveyed,
    SurveyedBuild,
    Usage,
)
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.run.ports import MoveCatalogue, MoveOffer
from tunesmith.run.state import State

PROBLEM = a_problem()
FAST = replace(DEVICE, limits=replace(DEVICE.limits, pin_bandwidth=1e9))
TEMPLATES: Mapping[int, Sequence[Said]] = {
    1: [plan()],
    2: [GOOD],
    3: [plan(what="Keep the row.")],
    4: [GOOD.replace("VEC", "WIDE")],
    5: [plan("stop")],
}


def on(device: Device, *events: Event, compiler: str = "") -> State:
    state = state_of(*events)
    assert state.started is not None
    return replace(state, started=replace(state.started, device=device, compiler=compiler))


def pages() -> Iterator[tuple[str, bytes]]:
    for name, text in {**_of_the_task(), **_of_what_is_known()}.items():
        yield f"{name}.txt", text.encode()
    kernels, templates = a_run(STORY, SPEEDS, BEST), a_template_run(TEMPLATES)
    kernels.go()
    templates.go()
    for run, asked in (("kernels", kernels.model.asked), ("templates", model_of(templates).asked)):
        for number, request in enumerate(asked):
            yield (
                f"{run}/{number:02} {request.role}.txt",
                "\n\n".join(m.text for m in request.messages).encode(),
            )


def _of_the_task() -> dict[str, str]:
    known = Diagnosis("bandwidth", "near it", 0.9, (), 1.2, 5e-6, "memory bandwidth")
    beaten = replace(known, floor=2.0)
    of_one, of_none = Profiled(None, "small", known), Profiled(None, "wide", None, ("no counters",))
    with_header = replace(PROBLEM, kernel=replace(PROBLEM.kernel, headers=(("own.h", "#define TWO 2"),)))
    flags = replace(PROBLEM, kernel=replace(PROBLEM.kernel, flags=("-cl-mad-enable",)))
    added = Extended((ExtraCase((("rows", 3), ("d", 24)), "spikes"),))
    place = "loops over i below rows * d (line 3)"
    offers = (
        MoveOffer("items", "Several in flight.", place, ("ITEMS = [1, 2]",), ("unroll",)),
        MoveOffer("lanes", "Threads.", place, ("LANES = [32, 64] # threads to a task",)),
        MoveOffer("bake", "Sizes.", "d"),
        MoveOffer("divide", "Cheaper division.", "", ("DIVIDE = [0, 1] # 1: shifts",)),
    )
    refused = (("keep", "no loop reads again"), ("ring", "it cannot be read"), ("tile", "it cannot be read"))
    line = "x: read as float at [i], side by side; written as float at [i + d], side by side"
    other = "y: read as float at [i], side by side; read as float at [0], once for a task"
    moves, least = material.moves_part(MoveCatalogue((), offers, refused)), material.least_times
    lessons = material.lessons_part("- won, this kernel: 2.00×")
    return {
        "problem": material.problem_part(PROBLEM, on(FAST)).text,
        "problem, no rate": material.problem_part(PROBLEM, on(DEVICE)).text,
        "problem, on a cpu": material.problem_part(PROBLEM, on(replace(FAST, kind="cpu"))).text,
        "problem, measured floor": material.problem_part(PROBLEM, on(FAST, of_one, of_none)).text,
        "floor that is none": repr(least(PROBLEM, on(FAST, Profiled(None, "small", beaten)))["small"]),
        "device": material.device_part(FAST).text,
        "device, a cpu": material.device_part(replace(FAST, kind="cpu")).text,
        "tested": material.tested_part(PROBLEM, state_of()).text,
        "tested, more": material.tested_part(PROBLEM, replace(state_of(), extended=added)).text,
        "kernel and headers": "\n".join(
            f"{part.rank}\n{part.text}" for part in material.kernel_parts(with_header)
        ),
        "moves": f"{moves.summary}\n\n{moves.text}",
        "reading": material.reading_part(MoveCatalogue((line, other))).text,
        "plain build": material.plain_build_part(flags, on(DEVICE, compiler="PoCL")).text,
        "lessons": f"{lessons.rank} {lessons.heading}\n{lessons.text}",
    }


def _of_what_is_known() -> dict[str, str]:
    mean, other = config(128, 2), config(64, 4)
    best = [outcome(1, mean, {"small": 0.5, "wide": 0.5}), outcome(2, other, {"small": 0.4, "wide": 2.0})]
    found = Finding("narrow_access", 0.3, 0.6, ("3 of 4 are narrow",), ("wide_access",), "static", "latency")
    narrow = Diagnosis("latency", "narrow", 0.6, (found,), 2.0, 1e-6, "memory bandwidth")
    nothing = Diagnosis("unknown", "no fault found", 0.2, (), notes=("no hardware counters: none here",))
    near = Diagnosis(
        "bandwidth", "no fault found; far", 0.2, (), 1.3, 1e-6, "memory bandwidth", ("looked at: x",)
    )
    far = replace(near, distance=1.9, notes=("looked at: y",))
    seen = Diagnosis(
        "latency", "slow", 0.5, (), clusters="clusters of 8 blocks: 16 run at once by the driver"
    )
    clusters = [Profiled(mean, "small", seen), Profiled(mean, "wide", seen), Profiled(None, "small", seen)]
    build = SurveyedBuild(("small",), "source", "code", Resources(registers=40), 50)
    absent = replace(state_of(), baseline=None)
    surveyed = replace(absent, surveyed=(Surveyed(None, (build,)),))
    at = Result("small", Status.OK, timing=Timing((1.0,)))
    slow = Baseline(Outcome(Trial(-1, None, ("small",), "long", "sentinel"), (at,)), "reference")
    limits = Settings(rounds=3, seconds=600.0, device_seconds=60.0, tokens=5000, dollars=2.0)
    spent = replace(state_of(settings=limits), elapsed=100.0, device_seconds=12.5)
    asked = Request(1, "planner", (Message("user", "x" * 3500),), "json")
    spent = replace(spent, dialogue=(Exchange(asked, 0, 0, Reply("y" * 350, Usage(dollars=0.5))),))

    def diagnosed(small: Diagnosis, wide: Diagnosis | None = None) -> str:
        events = [Profiled(None, "small", small), *([Profiled(None, "wide", wide)] if wide else [])]
        return material.diagnosis_part(PROBLEM, state_of(*events)).text

    def left(**limits: float) -> str:
        return material.left_words(state_of(settings=Settings(**limits)))  # type: ignore[arg-type]

    return {
        "times": material.times_part(PROBLEM, state_of(*best)).text,
        "times, absent": material.times_part(PROBLEM, absent).text,
        "times, built": material.times_part(PROBLEM, surveyed).text,
        "times, a slow rate": material.times_part(PROBLEM, on(FAST, slow)).text,
        "times, clusters": material.times_part(PROBLEM, state_of(best[0], *clusters)).text,
        "times, no clusters": material.times_part(PROBLEM, state_of(Profiled(None, "small", narrow))).text,
        "diagnosis, alike": diagnosed(narrow, replace(narrow, distance=3.0)),
        "diagnosis, nothing": diagnosed(nothing),
        "diagnosis, no fault": diagnosed(near, far),
        "left, the next share": left(evals=120, rounds=3),
        "left, rounds": left(rounds=3),
        "left, tokens": left(rounds=3, tokens=5000, dollars=2.0),
        "left of all": material.left_words(spent),
    }
