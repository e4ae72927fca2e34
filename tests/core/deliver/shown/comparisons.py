"""What comparisons, fleets and profiles show, of figures that are made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.experiment import experiment_runs, experiment_sections
from tests.comparisons import BUDGET, facts, plan, ran
from tests.core.deliver.test_plots import a_history, a_param, an_explanation
from tests.core.lab.labs import device_of
from tunesmith.base.codec import encode_json
from tunesmith.deliver.pages.plots import (
    best_so_far_svg,
    effects_svg,
    floors_svg,
    roofline_svg,
    run_roofline_svg,
)
from tunesmith.deliver.pages.profile import page_lines
from tunesmith.deliver.pages.terminal import table_text
from tunesmith.plugins.fleet.record import FleetResult, FleetRow, VerifiedCell, fleet_html, fleet_markdown
from tunesmith.plugins.studies.commands import comparison_table
from tunesmith.plugins.studies.experiment import ExperimentFigures, experiment_figures
from tunesmith.plugins.studies.pages import comparison_json, comparison_markdown, comparison_plots
from tunesmith.plugins.studies.plan import RunFacts, SearchGain, StoppedCounts
from tunesmith.plugins.studies.result import ComparisonResult, summarize_runs
from tunesmith.problem.device import Resources
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import (
    BlockTime,
    Ceilings,
    Counters,
    Experiments,
    Instructions,
    LaunchFacts,
    LaunchPart,
    MemoryAccess,
    Mix,
    Operations,
    Point,
    Profile,
    ProfilePage,
    RoofFacts,
    StaticFacts,
    View,
    WorkloadPage,
    WorkNeeded,
)
from tunesmith.run.explain import ParamEffect, ValueEffect
from tunesmith.run.report import BoundReport
from tunesmith.run.rounds import Best, History

Runs = dict[tuple[str, str], list[RunFacts | float | str]]
Pages = Iterator[tuple[str, bytes]]


def pages() -> Pages:
    for name, found in COMPARED.items():
        yield f"{name}/comparison.md", comparison_markdown(found).encode()
        yield f"{name}/comparison.json", comparison_json(found)
        yield f"{name}/terminal.txt", table_text(None, *comparison_table(found)).encode()
        yield from ((f"{name}/{plot}", data) for plot, data in comparison_plots(found).items())
    for name, (shown, budgets) in EXPERIMENTS.items():
        text = "".join(
            f"## {title}\n" + "\n".join(lines) + "\n"
            for title, lines in experiment_sections(shown, budgets).items()
        )
        yield f"experiments/{name}.md", text.encode()
        yield f"experiments/{name}.json", encode_json(shown)
    for name, fleet in FLEETS.items():
        yield f"fleets/{name}.html", fleet_html(fleet).encode()
        yield f"fleets/{name}.md", fleet_markdown(fleet).encode()
    for name, profile in PROFILES.items():
        yield f"profiles/{name}.txt", "\n".join(page_lines(profile)).encode()
        yield f"profiles/{name}.svg", roofline_svg(profile)
    for name, bounds in ROOFLINES.items():
        yield f"rooflines/{name}.svg", run_roofline_svg(bounds, "rms<norm>") or b"none"
        yield f"rooflines/{name} floors.svg", floors_svg(bounds)
    for name, (history, rounds) in HISTORIES.items():
        yield f"plots/{name}.svg", best_so_far_svg(history, "rmsnorm", rounds)
    for name, explanation in EFFECTS.items():
        yield f"plots/{name}.svg", effects_svg(explanation, "<b>&amp;")


def compared(arms: str, problems: str, repeats: int, runs: Runs, model: str = "") -> ComparisonResult:
    """What is not named waits."""
    planned = plan(arms, problems, repeats, **({"model": model} if model else {}))
    every: Runs = {(p, a): ["waiting"] * repeats for p in problems.split(",") for a in arms.split(",")}
    return summarize_runs(planned, ran(planned, every | runs))


_TALKED = facts(3.0, requests=7, tokens=None, dollars=None, tokens_by_length=900, repairs=2)
_ODD = facts(early=True, unanswered=2, evaluations=90, tokens=None, requests=5, backend="fake")
_OTHER = facts(device="another", versions=(("tunesmith", "1"),))
_APART: Runs = {
    ("p", "template"): [3.0, 4.0], ("p", "expert"): [1.0, 2.0],
    ("q", "template"): [6.0, 8.0], ("q", "expert"): [2.0, 4.0],
    ("r", "template"): [1.5, 2.0], ("r", "expert"): [1.0, 1.0],
}  # fmt: skip
_MIXED: Runs = {
    ("p", "template"): [3.0, 4.0], ("p", "expert"): [2.0, 1.0],
    ("q", "template"): [2.0, 4.0], ("q", "expert"): [6.0, 16.0], ("r", "expert"): [1.0, 1.0],
}  # fmt: skip
_OVERLAP: Runs = {
    ("p", "template"): [3.0, 4.0], ("p", "expert"): [1.0, 2.0],
    ("q", "template"): [1.5, 2.0], ("q", "expert"): [1.8, 3.0],
}  # fmt: skip
_TWO_BY_TWO: Runs = {
    ("p", "template"): [_TALKED, _TALKED], ("p", "expert"): [2.0, 2.5],
    ("q", "template"): ["failed", 6.0], ("q", "expert"): [1.0, 40.0],
}  # fmt: skip
_CROWDED: Runs = {
    ("p", "template"): ["failed"] * 5, ("p", "expert"): [2.0, 2.001, 2.002, 3.0, 9.0],
    ("q", "expert"): [1.0] * 5,
}  # fmt: skip
_UNFINISHED: Runs = {
    ("p", "template"): [4.0, "failed", "waiting"], ("p", "expert"): ["no device", "not begun", "stopped"],
}  # fmt: skip
_VARIED: Runs = {
    ("p", "template"): [2.0, 2.0], ("q", "template"): [4.0, 4.0], ("r", "template"): [8.0, 8.0],
    ("p", "rewrite"): [1.0, 1.0], ("q", "rewrite"): [2.0, 2.0], ("r", "rewrite"): [4.0, "failed"],
}  # fmt: skip
COMPARED = {
    "two by two": compared("template,expert", "p,q", 2, _TWO_BY_TWO, "mailbox"),
    "no run yet": compared("template,expert", "p", 1, {("p", "expert"): ["not begun"]}),
    "crowded": compared("template,expert", "p,q", 5, _CROWDED),
    "once": compared("template,expert", "p", 1, {("p", "template"): [1.0], ("p", "expert"): [1.0]}),
    "one run": compared("expert", "p", 1, {("p", "expert"): [2.0]}),
    "unfinished": compared("template,expert", "p", 3, _UNFINISHED),
    "overlapping": compared("template,expert", "p,q", 2, _OVERLAP),
    "apart": compared("template,expert", "p,q,r", 2, _APART),
    "mixed": compared("template,expert", "p,q,r", 2, _MIXED),
    "nothing in common": compared("template,expert", "p,q,r", 2, {}),
    "five apart": compared(
        "template,expert", "p", 5, {("p", "template"): [2.0] * 5, ("p", "expert"): [3.0] * 5}
    ),
    "one repeat": compared("template,expert", "p", 1, {("p", "template"): [9.0], ("p", "expert"): [1.0]}),
    "odd runs": compared(
        "template,expert", "p", 2, {("p", "template"): [_ODD, 2.0], ("p", "expert"): [_OTHER, 2.0]}, "mailbox"
    ),
    "lucky": compared(
        "template,expert",
        "p",
        1,
        {("p", "template"): [facts(1.0, rounds=(1.4, 2.8))], ("p", "expert"): [2.0]},
    ),
    "one arm": compared("expert", "p", 2, {("p", "expert"): [2.0, 2.1]}),
    "varied": compared("template,rewrite", "p,q,r", 2, _VARIED),
}


def experiment(
    runs: Runs, arms: str = "template", problems: str = "p", repeats: int = 2
) -> ExperimentFigures:
    planned = plan(arms, problems, repeats)
    every: Runs = {(p, a): ["waiting"] * repeats for p in problems.split(",") for a in arms.split(",")}
    return experiment_figures(experiment_runs([(planned, ran(planned, every | runs))]))


_LONG = facts(8.0, rounds=(2.0, 8.0), round_tokens=(15_000, 30_000), tokens_by_length=30_000)
_SHORT = facts(2.0, rounds=(2.0,), round_tokens=(5_000,), tokens_by_length=10_000)
_GAINS = (SearchGain("1", 1.0, 2.0, 30), SearchGain("2", 0.5, 4.0, 30))
_STOPPED = facts(
    stopped=StoppedCounts(
        replies=5, unusable=1, drafts=4, admitted=1, form=1, build=1, wrong=1, tried=50, late=2
    )
)
_MODELS = facts(of_budget=40, sent=9000, received=1000, dollars=None, searched_seconds=30.0)
_SPENT = experiment(
    {("p", "template"): [_MODELS], ("p", "expert"): [facts(of_budget=20, sent=0, received=0)]},
    "template,expert",
    repeats=1,
)
_STEADY: Runs = {(p, a): [s, s] for p in "pqr" for a, s in (("template", 4.0), ("rewrite", 2.0))}


def _with_drafts() -> ExperimentFigures:
    one, several = plan("template,rewrite", "p,q,r", 2), replace(plan("template", "p,q", 2), drafts=3)
    given: Runs = {(p, "template"): [6.0, 6.0] for p in "pq"}
    return experiment_figures(experiment_runs([(one, ran(one, _STEADY)), (several, ran(several, given))]))


_USUAL = [BUDGET]
EXPERIMENTS = {
    "varied": (experiment(_VARIED, "template,rewrite", "p,q,r"), _USUAL),
    "two problems": (
        experiment({k: r for k, r in _VARIED.items() if k[0] != "r"}, "template,rewrite", "p,q"),
        _USUAL,
    ),
    "one unfinished": (
        experiment({k: r for k, r in _STEADY.items() if k != ("r", "rewrite")}, "template,rewrite", "p,q,r"),
        _USUAL,
    ),
    "rounds and tokens": (experiment({("p", "template"): [_LONG, _SHORT]}), _USUAL),
    "no model": (experiment({("p", "expert"): [2.0, 2.0]}, "expert"), _USUAL),
    "tokens of old": (experiment({("p", "template"): [facts(tokens_by_length=900)] * 2}), _USUAL),
    "searches": (experiment({("p", "template"): [facts(searches=_GAINS), facts(searches=())]}), _USUAL),
    "spent": (_SPENT, _USUAL),
    "spent of others": (_SPENT, [BUDGET, replace(BUDGET, evals=80)]),
    "stopped": (experiment({("p", "template"): [_STOPPED, _STOPPED]}), _USUAL),
    "several drafts": (_with_drafts(), _USUAL),
}


def fleet_row(
    status: str = "finished", speedup: float | None = 2.0, weight: float = 1.0, **more: str
) -> FleetRow:
    found = None if speedup is None else VerifiedCell(speedup, (1.9, 2.1), 1.25, "w")
    about = {"problem": "softmax", "device": "h200", "author": "expert", **more}
    row = (about["problem"], about["device"], about["author"], status, weight, 36.0, 72.0, 40, 1.5)
    return FleetRow(*row, "runs/a@b+c d", found, about.get("reason", ""))  # type: ignore[arg-type]


FLEETS = {
    "a night": FleetResult(
        "night", 1.0, (fleet_row(weight=3.0), fleet_row("paused", None), fleet_row(speedup=1.0))
    ),
    "not begun": FleetResult("new", 1.0, (fleet_row("not begun", None),)),
    "failed": FleetResult("bad", 1.0, (fleet_row("failed", None, reason="no driver"),), ("a note",)),
}

CEILINGS = Ceilings(
    copy=tuple(Point(4**k << 16, 1e-6 + (4**k << 16) / 4e12) for k in range(8)),
    read=tuple(Point(4**k << 16, 1e-6 + (4**k << 16) / 4.2e12) for k in range(8)),
    launch=2.1e-6,
    graph_launch=1.2e-6,
    fp32=60e12,
    fp16=120e12,
    cache_bytes=50 << 20,
    cache_bandwidth=8e12,
)
LAUNCH = LaunchFacts((4, 1, 1), (128, 1, 1), 128, 4, 16, waves=0.25, occupancy=50, limited_by=("threads",))


def view(kernel: str, workload: str, seconds: float | None, moved: int = 64 << 20) -> View:
    known = seconds is not None
    profile = Profile(
        kernel=kernel,
        workload=workload,
        seconds=seconds,
        limits=device_of("fake").limits,
        work=WorkNeeded(moved // 2, moved // 2, Operations(fp32=2e9)),
        launch=LAUNCH,
        ceilings=CEILINGS,
        experiments=Experiments(warm=1e-5, cold=2e-5, whole_grid=2e-5, half_grid=1e-5)
        if known
        else Experiments(),
        counters=Counters(dram=0.42, load_sectors=16.0, stalls=(("memory", 0.7),)) if known else None,
        no_counters="" if known else "nobody is permitted",
    )
    return View(profile, diagnose_profile(profile), ("said by the lab",))


def profile_page(*views: View, **changes: object) -> ProfilePage:
    """Of these kernels, or of two workloads with two of them."""
    first = WorkloadPage(
        "decode", {"n": 4}, False, (view("original", "decode", 9e-4), view("BLOCK=64 VEC=8", "decode", 2e-5))
    )
    second = WorkloadPage("prefill", {"n": 99}, True, (view("original", "prefill", 3e-5, 1 << 20),))
    workloads = (WorkloadPage("large", {}, False, views),) if views else (first, second)
    whole = ProfilePage("softmax", "a device", "driver 1", "nvrtc 13.0", CEILINGS, workloads)
    return replace(whole, **changes)  # type: ignore[arg-type]


_ACCESSES = (
    MemoryAccess("global", "load", 16, "strided", True, 4, 16),
    MemoryAccess("global", "load", 2, "strided", True, 1, 2),
    MemoryAccess("global", "store", 8, "strided", False, 3, 8),
    MemoryAccess("shared", "load", 4, "strided", True, 9, 4),
)
_MIX = Mix(total=200, fp64=3, division=1, local_load=5, local_store=7, tensor=2, slow_conversion=4)
_STATIC = StaticFacts(
    Resources(registers=40, shared=0, spills=8, private=64), Instructions(_MIX, _MIX, _ACCESSES)
)
_COUNTED = Counters(
    dram=0.4,
    eligible_warps=0.31,
    load_sectors=4.0,
    store_sectors=8.0,
    shared_wavefronts=200.0,
    shared_conflicts=50.0,
    stalls=(("memory", 0.6), ("barrier", 0.2), ("math", 0.12), ("branch", 0.05)),
)


def with_profile(**changes: object) -> View:
    changed = replace(view("original", "large", 2e-4).profile, **changes)  # type: ignore[arg-type]
    return View(changed, diagnose_profile(changed))


def _as_sure(confidence: float) -> View:
    seen = view("original", "large", 2e-4)
    one = replace(seen.diagnosis.findings[0], confidence=confidence, gain=0.5)
    return replace(seen, diagnosis=replace(seen.diagnosis, findings=(one,)))


_PARTS = (
    LaunchPart("first", view("", "", 1.0).profile.static, replace(LAUNCH, blocks=7), 0.25),
    LaunchPart("second", view("", "", 1.0).profile.static, LAUNCH, 0.75),
)
_CANNOT = Profile("BLOCK=4096", "large", cannot_run="4096 threads are too many")
_ODD_LAUNCH = replace(LAUNCH, blocks=1, waves=1.25, last_wave=0.25, idle_lanes=0.375, idle_threads=0.5)
PROFILES = {
    "two workloads": profile_page(notes=("a note",), plot="somewhere/roofline.svg"),
    "build, code and launch": profile_page(with_profile(static=_STATIC, launch=_ODD_LAUNCH)),
    "counted": profile_page(with_profile(counters=_COUNTED)),
    **{f"findings, {sure}": profile_page(_as_sure(sure)) for sure in (0.9, 0.65, 0.35)},
    "cannot run": profile_page(View(_CANNOT, diagnose_profile(_CANNOT))),
    "without measurements": profile_page(
        view("original", "decode", None), missing="it is elsewhere", ceilings=Ceilings()
    ),
    "blocks": profile_page(
        with_profile(experiments=Experiments(blocks=(BlockTime(64, 1e-5), BlockTime(128, 2e-5))))
    ),
    "several launches": profile_page(with_profile(parts=_PARTS)),
    "no operations": profile_page(with_profile(work=WorkNeeded(1, 1))),
    "three kernels": profile_page(
        *(view(f"kernel {n}", "decode", s) for n, s in enumerate((9e-4, 2e-5, 5e-5)))
    ),
    "no ceilings": profile_page(ceilings=Ceilings()),
    "launch alone": profile_page(ceilings=Ceilings(launch=1.0)),
    "one copy": profile_page(ceilings=Ceilings(copy=(Point(64, 0.0),), launch=1e-6)),
    "measured earlier": profile_page(ceilings=replace(CEILINGS, measured_on="of another day")),
    "no workloads": profile_page(workloads=()),
}

_MOVED = RoofFacts(1 << 30, 0.0, (("memory bandwidth", 1e-3), ("launch", 2e-6)))
_ROW = BoundReport(
    "decode", "memory", 4.0, "memory bandwidth", "it waits", tuned_bound="memory", tuned_distance=1.25
)
_BYTES = replace(_ROW, roof=_MOVED)
ROOFLINES = {
    "bytes": (
        _BYTES,
        replace(_ROW, workload="small", roof=RoofFacts(1 << 20, 0.0, _MOVED.floors[1:]), tuned_distance=None),
    ),
    "operations": (
        replace(_ROW, roof=RoofFacts(1 << 30, 4e9, (("memory bandwidth", 1e-3), ("fp32 rate", 1e-4)))),
        replace(
            _ROW,
            workload="dense",
            roof=RoofFacts(1 << 30, 1e12, (("fp32 rate", 2.5e-2), ("memory bandwidth", 1e-3))),
        ),
    ),
    "no roof": (replace(_ROW, roof=None),),
    "no bytes": (replace(_ROW, roof=RoofFacts(0, 0.0, _MOVED.floors)),),
    "no ceilings": (replace(_ROW, roof=RoofFacts(1 << 20)),),
    "no distance": (replace(_BYTES, distance=None),),
}  # fmt: skip


_GATED = History(
    tuple(None if n == 3 else 1 + n / 40 for n in range(40)),
    (Best("", tuple((n, 1 + (n - 1) / 40) for n in range(1, 41) if n != 4)),),
    ((1, "1"), (21, "2")),
    (1, 2, 21),
)
HISTORIES: dict[str, tuple[History, list[tuple[int, int]]]] = {
    "a hundred": (a_history(100), []),
    "nothing tried": (History(), []),
    "nothing right": (History((None, None), (Best("", ()),)), []),
    "gate and rounds": (_GATED, [(1, 1), (21, 2)]),
}
_UNKNOWN = (ValueEffect(1, "winner", 1.0), ValueEffect(2, "unknown", None))
EFFECTS = {
    "two effects": an_explanation(a_param(), a_param("BLOCK", 1.2), workload="wide"),
    "nothing known": an_explanation(ParamEffect("VEC", 1, None, None, "unknown", _UNKNOWN)),
}
