"""Reports of runs that are made up: some that tests change, and all whose pages are kept."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.samples import (
    DEVICE,
    TEMPLATE,
    a_problem,
    a_template,
    baseline,
    config,
    finalist,
    outcome,
    records,
    started,
    state_of,
    verified,
)
from tunesmith.deliver.pages.page import PageKernel, PageTexts, WritingStep
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.plan import ExtraCase, Status
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import BudgetUse, Spent
from tunesmith.run.events import Admitted, Decided, Exchange, Extended, Message, Reply, Request, Stopped
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.report import (
    BoundReport,
    Failure,
    PriorReport,
    PrunedReport,
    Report,
    Span,
    Spilling,
    SurveyReport,
    UnfinishedBest,
    WorkloadReport,
    build_report,
)
from tunesmith.run.rounds import Best, ChainEnd, DraftReport, History, RoundReport
from tunesmith.run.state import fold_records

PROBLEM = a_problem()
A = config(64)
WRONG = {"small": Status.WRONG, "wide": Status.WRONG}
STATE = state_of(
    outcome(0, A, {"small": 0.5, "wide": 0.5}),
    outcome(1, config(128), WRONG),
    finalist(2, A, {"small": 2.0, "wide": 1.0}),
    verified(A, {"small": 2.0, "wide": 1.0}),
    Stopped("every configuration has been tried"),
)
REPORT = build_report(PROBLEM, STATE, ("tuned/dispatch.json",))
EXPLAINED = build_report(
    PROBLEM,
    state_of(
        outcome(0, A, {"small": 0.5, "wide": 0.5}),
        outcome(1, config(64, 2), {"small": 1.0, "wide": 1.0}),
        outcome(2, config(64, 4), {"small": 0.7, "wide": 0.7}),
        outcome(3, config(128), WRONG),
        outcome(4, config(256, 2), {"small": 0.8, "wide": 0.8}),
        finalist(5, A, {"small": 2.0, "wide": 2.0}),
        verified(A, {"small": 2.0, "wide": 2.0}),
        Stopped("enough"),
    ),
    template_of=lambda _config: a_template(PROBLEM),
)


def a_round(**said: str) -> RoundReport:
    texts = {"reason": "narrow loads", "what": "", **said}
    return RoundReport(
        1, texts["reason"], (), "", (), {}, 0, None, 1.0, False, "no template", what=texts["what"]
    )


ROUND = replace(
    a_round(),
    moves=("widen loads",),
    drafts=(DraftReport("1", "searched", why="why", feasible=12, notes=("a note",)),),
    refused={"tile": "no loop"},
    changes=("@@ -1 +1 @@", "-a", "+b"),
    analysis="- it waits",
    author="a model",
    speedup=2.0,
    gain=2.0,
    what="widen",
)
BOUNDS = (
    BoundReport(
        "small", "memory", 3.1, "copy", "it waits for memory", tuned_bound="memory", tuned_distance=1.5
    ),
    BoundReport("wide", "", None, "", "", note="no counters"),
)
FULL = replace(
    EXPLAINED,
    bounds=BOUNDS,
    rounds=(ROUND,),
    notes=("a note",),
    failures=(Failure({"BLOCK": 64}, "wrong", "it differs", "1"),),
    pruned=(PrunedReport("spills", 3, {"BLOCK": 64}, "too many"),),
    steering=(PriorReport(3, "BLOCK=64", 4, "it waits"),),
    talk=Spent(1, 1, 100, 100, 0.1),
    models="a model",
    budgets=(BudgetUse("rounds", 1.0, 3.0),),
    profile_notes=("no counters",),
    sanitizers=("nothing found",),
    priors=("earlier",),
    left_out=("BLOCK=64 needs flags",),
    where=("d % 4 == 0",),
    shown="shown by hand",
    beyond="d > 4",
    origin="a run",
    compiler="nvcc 13",
    history=History((1.0, None, 2.0), (Best("", ((1, 1.0), (3, 2.0))),), ((1, "1"),), (1,)),
)
TINY = Report(
    problem="tiny",
    backend="fake",
    device="simulated",
    driver="1",
    finished=True,
    reason="all was tried",
    judged_by="right by the float64 reference",
    workloads=(
        WorkloadReport("a", {"n": 1}, 1.0, 20.0, 10.0, 2.0, (1.9, 2.1), {"BLOCK": 64}),
        WorkloadReport("b", {"n": 2}, 1.0, 5.0, 5.0, 1.0, (1.0, 1.0), None),
    ),
    geometric_mean=1.41,
    general={"BLOCK": 64},
    evaluations={"ok": 3, "wrong": 1},
    space={},
    verified_cases=1,
    failures=(Failure({"BLOCK": 32}, "wrong", "off by one\nmore"),),
    digests={},
    versions={},
    search="default",
    seed=0,
    seconds=1.0,
    tuned=("tuned/dispatch.json",),
    winners=1,
    serves="n <= 4096",
    timed=41,
    least=1.02,
    language="opencl",
)
UNFINISHED = replace(TINY, finished=False, reason="not finished", geometric_mean=None, tuned=())


def exchange(said: str) -> Exchange:
    request = Request(1, "author", (Message("system", said), Message("user", said)), "file")
    return Exchange(request, 0, 0, Reply(said))


def texts(said: str) -> PageTexts:
    before = PageKernel(f"kernel.cl{said}", said, f"int a;\n// {said}\n{said}\nsame\n")
    config, steps = {f"BLOCK{said}": 64}, (WritingStep(1, f"{said}\nint b;\n"),)
    text = f"#define BLOCK 64\nint b;\n/* {said} */\n{said}\nsame\n"
    after = PageKernel(f"tuned/k.cl{said}", said, text, config, steps)
    return PageTexts(before, (after,), (exchange(said), replace(exchange(said), reply=None, failed=said)))


def every(value: Any, end: str, kept: frozenset[str] = frozenset({"strategy", "source"})) -> Any:
    """The same with this behind every text in it, but for words that mean something to us."""
    if isinstance(value, str):
        return value + end
    if isinstance(value, BudgetUse):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(value, **{n: v if n in kept else every(v, end) for n, v in parts.items()})
    if isinstance(value, dict):
        return {every(key, end): every(one, end) for key, one in value.items()}
    return tuple(every(one, end) for one in value) if isinstance(value, tuple) else value


def _many() -> Report:
    sizes = {"rows": 16384, "d": 4096}
    one = WorkloadReport("decode_long", sizes, 1.0, 12655.1, 1547.2, 8.29, (7.41, 9.09), {})
    rows = tuple(replace(one, name=f"{one.name}_{i}") for i in range(7))
    notes = ("workers are sandboxed (files)", "at wide the launch has <b>far</b> " + "too many " * 60)
    return replace(REPORT, workloads=rows, rounds=(a_round(),), templates={"t.cl": "1"}, notes=notes)


def _seven() -> Report:
    row = WorkloadReport(
        "prefill-long", {"tokens": 16384, "hidden": 32768}, 1.0, 12345.6, 1234.5, 10.0, (9.91, 10.12), {}
    )
    return replace(
        TINY,
        device="NVIDIA H200 (MIG 1g.18gb)",
        compiler="nvrtc 13.4",
        workloads=tuple(replace(row, name=f"{row.name}-{i}") for i in range(7)),
        rounds=(_KEPT,) * 5,
        templates={"template.cu": "2"},
        left_out=("the winner at prefill-long-1 needs a compiler flag that launch.cu cannot hold",),
        winners=3,
        serves="tokens <= 4096 and (hidden >= 64 or tokens * hidden <= 1048576)",
        language="cuda",
    )


def _by_model() -> Explanation:
    value = ValueEffect(2, "model", 1.4, (1.2, 1.63), best=1.3)
    param = ParamEffect("VEC", 1, 1.4, 2, "model", (ValueEffect(1, "winner", 1.0), value))
    doubtful = replace(param, name="PAD", values=(param.values[0], replace(value, interval=(0.9, 2.2))))
    return Explanation("wide", {"VEC": 1, "PAD": 1}, (param, doubtful), 96, 0.83)


_KEPT = RoundReport(1, "", ("vec",), "", (), {}, 4, 4.0, 4.0, True, "kept: 4.00×, 1.00× before it")
_SIZES = (("rows", 3), ("d", 24))
_ADDED = Extended(
    (ExtraCase(_SIZES, "spikes", "odd"),), ((ExtraCase(_SIZES, "normal"), "the original fails"),)
)
_USED = (
    BudgetUse("rounds", 2, 3),
    BudgetUse("evaluations", 93, 120),
    BudgetUse("seconds", 613.24, None),
    BudgetUse("device_seconds", 41.26, 60.0),
    BudgetUse("tokens", 41385, 50_000, by_length=True),
    BudgetUse("dollars", None, 2.0),
)
_BOUNDS = (
    BoundReport("small", "latency", 3.5, "memory bandwidth", "narrow access: 3 of 3", "bandwidth", 1.04),
    BoundReport("wide", "", None, "", "", note="OSError: <b>gone</b>"),
)
_STEERING = (
    PriorReport(0, "VEC >= 4", 40, "the original shows narrow_access"),
    PriorReport(9, "VEC >= 4", 40, "nothing more that the template answers", moved=False),
    PriorReport(17, "", 0, "the last 24 found nothing better"),
)
_SURVEY = SurveyReport(
    planned=9,
    statuses={"ok": 6, "build_failed": 1},
    spans={
        "registers": Span(22, 21, 30.5, 255),
        "shared": Span(0, 0, 0, 64),
        "private": Span(8, 0, 0, 16),
        "occupancy": Span(None, 50, 100, 100),
    },
    spilling=tuple(Spilling({"BLOCK": 64 * n}, 80 - n) for n in range(1, 6)),
)
_NOT_BUILT = (
    Failure({"BLOCK": 32}, "build_failed", "no such type\nmore"),
    Failure({"BLOCK": 8}, "build_failed", "a second"),
    Failure({"BLOCK": 16}, "over_limits", ""),
)
_HALF = replace(build_report(PROBLEM, state_of(outcome(0, A, {"small": 0.5, "wide": 0.5}))), seconds=7.2)
_SO_FAR = UnfinishedBest("2", "abc", "searched", "mailbox", 2.5, {"VEC": 4}, "template.cl")
_HISTORY = History((26.1,), (Best("", ((1, 26.1),)),))
_AT_WORK = replace(UNFINISHED, workloads=(), seconds=312.4, history=_HISTORY)
_LEFT_OUT = ("BLOCK=64 needs flags that <launch.cu> cannot hold",)
_WAITING = replace(
    UNFINISHED, workloads=(), compiler="nvrtc 13.4", survey=_SURVEY, failures=_NOT_BUILT, tuned=()
)

# Of a run with all that can come of a trial.
_FOUND = (
    outcome(0, config(32), {"small": 0.5, "wide": 0.5}),
    outcome(1, A, WRONG),
    outcome(2, None, {"small": 1.0, "wide": 1.0}, "sentinel"),
    outcome(3, config(128), {"small": Status.INFEASIBLE, "wide": Status.BUILD_FAILED}),
    finalist(4, config(32), {"small": 2.0, "wide": 2.0}),
)
_SPAN = (*_FOUND, verified(config(32), {"small": 1.8, "wide": 2.2}))


def _ended(*events: Any, problem: Problem = PROBLEM, baked: str = "", **original: float) -> Report:
    """`baked`: the template has sizes built in where this holds."""
    defines = f'// [defines]\n// D = "d if {baked} else 0"\n// [launch]'
    text = TEMPLATE.replace("// [launch]", defines).replace("int k =", "int k = D +") if baked else TEMPLATE
    state = state_of(*events, Decided("finish", "enough"), Stopped("enough"), original=original or None)
    return build_report(problem, state, template_of=lambda _config: a_template(PROBLEM, text))


_LOOSE = replace(PROBLEM, accuracy=replace(PROBLEM.accuracy, rtol=1e9))
_BY_ORIGINAL = replace(baseline({"small": 1.0, "wide": 1.0}), judged_by="original")
KEPT: dict[str, Report] = {
    "a span": _ended(*_SPAN),
    "a span, on a slower device": _ended(*_SPAN, small=1.5, wide=1.5),
    "a span, not finished": build_report(PROBLEM, state_of(*_SPAN)),
    "a span, sizes built in": _ended(*_SPAN, baked="BLOCK == 32"),
    "a span, sizes built in elsewhere": _ended(*_SPAN, baked="BLOCK == 64"),
    "a span, a crash after it": _ended(*_SPAN, verified(A, {"small": Status.CRASHED})),
    "a span, a gate": _ended(*_SPAN, outcome(5, config(16), {"small": 0.5, "wide": 0.5}, "gate")),
    "a span, anything is right": _ended(*_SPAN, problem=_LOOSE),
    "the original stays at one": _ended(*_FOUND, verified(config(32), {"small": 1.0, "wide": 2.0})),
    "gains nothing": _ended(*_FOUND, verified(config(32), {"small": 1.0, "wide": 1.0})),
    "fell": _ended(*_FOUND, verified(config(32), WRONG)),
    "nothing was right": _ended(_FOUND[1]),
    "only begun": build_report(PROBLEM, fold_records(records([started()]))),
    "judged by the original": build_report(
        PROBLEM, fold_records(records([started(), _BY_ORIGINAL, Admitted("t", 1, 1)]))
    ),
    "plain": REPORT,
    "explained": EXPLAINED,
    "full": FULL,
    "many workloads": _many(),
    "seven workloads": _seven(),
    "left out": build_report(
        PROBLEM, STATE, dispatch=Dispatch(PROBLEM.name, "opencl", DEVICE.name, (), left_out=_LEFT_OUT)
    ),
    "no winner": build_report(PROBLEM, state_of(STATE.outcomes[1], Stopped("enough"))),
    "nothing to explain": build_report(
        PROBLEM,
        state_of(outcome(0, A, WRONG), Stopped("enough")),
        template_of=lambda _config: a_template(PROBLEM),
    ),
    "nothing yet": build_report(PROBLEM, state_of()),
    "stopped": _HALF,
    "live": replace(_HALF, live=True, reason="running"),
    "rewritten": replace(REPORT, strategy="rewrite"),
    "a round": replace(
        EXPLAINED, rounds=(replace(a_round(), speedup=22.5, best=22.5, default=2.0, gain=22.5, kept=True),)
    ),
    "a long reason": replace(
        REPORT, reason="every workload is within two per cent of its floor, " * 9, rounds=(a_round(),)
    ),
    "a short reason": replace(REPORT, reason="nothing is left", rounds=(a_round(),)),
    "a long plan": replace(
        REPORT, rounds=(a_round(what=" ".join(f"PARAMETER_{i} in 1, 2, 4;" for i in range(60)) + " no more"),)
    ),
    "compiler": replace(REPORT, compiler="nvrtc 13.4"),
    "a model": replace(EXPLAINED, explanations=(_by_model(),)),
    "no failures": replace(REPORT, failures=()),
    "a long log": replace(REPORT, failures=(Failure({"BLOCK": 64}, "build_failed", "|" * 10_000),)),
    "conditions": replace(REPORT, where=("tokens <= 4096 and (tokens) * (2 * d) <= 77 and d < 9",)),
    "a tester": replace(REPORT, rounds=(a_round(),), talk=Spent(1, 1, None, None, None), added=_ADDED),
    "budgets": replace(REPORT, budgets=_USED),
    "failed attempts": replace(
        REPORT, rounds=(a_round(),), talk=Spent(2, 1, 300, 40, 0.5, lost=120, uncounted=2)
    ),
    "bounds": replace(
        REPORT, bounds=_BOUNDS, steering=_STEERING, profile_notes=("fp16 was not measured: <i>why</i>",)
    ),
    "a gate": replace(REPORT, gated=1),
    "broken chain": replace(FULL, unproven="the chain is broken", verified_cases=0),
    "tiny": TINY,
    "tiny, served everywhere": replace(TINY, serves="", language="cuda"),
    "tiny, timed nowhere else": replace(TINY, serves="n % 8 == 0", least=None),
    "tiny, at every size": replace(TINY, serves="", least=None),
    "tiny, workloads alone": replace(TINY, serves=None, least=None),
    "tiny, a long condition": replace(TINY, serves="a <= 4096 and (d >= 64 or a * d <= 77)", least=0.99),
    "tiny, no winner": replace(TINY, winners=0),
    "tiny, a chain": replace(
        TINY,
        rounds=(replace(_KEPT, changes=("+__m512 a_b;", "-x")),),
        chain=ChainEnd("1", 4.0),
        notes=("a <b> & \\_note",),
    ),
    "tiny, unproven": replace(
        TINY, workloads=(), geometric_mean=None, tuned=(), unproven="changed at line 7"
    ),
    "tiny, a gate": replace(TINY, reason="the budget is used up", gated=3),
    "tiny, again": replace(TINY, templates={"template.cl": ""}, origin="run rmsnorm-1"),
    "tiny, written": replace(TINY, templates={"template.cl": ""}),
    "tiny, unfinished": UNFINISHED,
    "tiny, live": replace(_AT_WORK, live=True, reason="running"),
    "tiny, stopped": _AT_WORK,
    "tiny, so far": replace(UNFINISHED, so_far=_SO_FAR),
    "tiny, drafted": replace(UNFINISHED, so_far=replace(_SO_FAR, status="drafted", speedup=None)),
    "tiny, unmeasured": replace(UNFINISHED, so_far=replace(_SO_FAR, speedup=None)),
    "tiny, nothing worked": replace(
        TINY, evaluations={"wrong": 1}, failures=(Failure({"BLOCK": 32}, "wrong", ""),)
    ),
    "surveyed": _WAITING,
    "surveying": replace(_WAITING, live=True),
    "surveyed, measured": replace(REPORT, survey=_SURVEY),
}
