"""Reports as files: JSON for programs, Markdown that nobody's compiler can write into."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.markdown_reader import acting, read, tokens
from tests.samples import DEVICE, a_problem, a_template, config, finalist, outcome, state_of, verified
from tests.wording import says
from tunesmith.deliver.report import plot_files, report_html, report_json, report_markdown
from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.plan import Status
from tunesmith.run.budget import BudgetUse, Spent
from tunesmith.run.events import Extended, Stopped
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.report import BoundReport, Failure, PriorReport, Report, WorkloadReport, build_report
from tunesmith.run.rounds import BY_SEARCH, RoundReport
from tunesmith.run.survey import Span, Spilling, SurveyReport

PROBLEM = a_problem()
A = config(64)
STATE = state_of(
    outcome(0, A, {"small": 0.5, "wide": 0.5}),
    outcome(1, config(128), {"small": Status.WRONG, "wide": Status.WRONG}),
    finalist(2, A, {"small": 2.0, "wide": 1.0}),
    verified(A, {"small": 2.0, "wide": 1.0}),
    Stopped("every configuration has been tried"),
)
REPORT = build_report(PROBLEM, STATE, ("tuned/dispatch.json",))


def failing(detail: str) -> Report:
    return replace(REPORT, failures=(Failure({"BLOCK": 64}, "build_failed", detail),))


def first_screen(markdown: str) -> list[str]:
    return markdown[: markdown.index("<details>")].rstrip().splitlines()


def test_the_first_screen_has_what_was_verified_and_no_more() -> None:
    one = WorkloadReport(
        "decode_long", {"rows": 16384, "d": 4096}, 1.0, 12655.1, 1547.2, 8.29, (7.41, 9.09), {}
    )
    many = tuple(replace(one, name=f"{one.name}_{i}") for i in range(7))
    notes = ("workers are sandboxed (files)", "at wide the launch has " + "many " * 60)
    report = replace(REPORT, workloads=many, rounds=(a_round(),), templates={"t.cl": "1"}, notes=notes)
    screen = first_screen(report_markdown(report))
    assert sum(max(1, -(-len(line) // 100)) for line in screen) <= 24
    text = "\n".join(screen)
    says(text, "geometric mean", "1.19×", "verified on 7 fresh cases", "right by the float64 reference")
    says(text, "delivered", "1 of 1 tuned kernel", "tuned/dispatch.json")
    says(text, "next", "tunesmith export")
    assert "| decode_long_6 | rows=16384 d=4096 | 12655.1 µs | 1547.2 µs | 8.29× | 7.41 to 9.09 |" in screen
    assert not [word for word in ("round", "BLOCK", "evaluation", "by the search") if word in text]
    assert text.count("many") < 20, "the whole note is behind it"
    assert notes[1].strip() in report_markdown(report)


def test_a_winner_that_is_not_delivered_is_told_with_the_reason() -> None:
    choice = ("BLOCK=64 needs flags that <launch.cu> cannot hold",)
    made = Dispatch(PROBLEM.name, "opencl", DEVICE.name, (), left_out=choice)
    report = build_report(PROBLEM, STATE, dispatch=made)
    assert (report.winners, report.left_out) == (1, choice)
    screen = "\n".join(first_screen(report_markdown(report)))
    says(screen, "delivered", "0 of 1 tuned kernel")
    says(screen, "not delivered", "BLOCK=64 needs flags", "\\<launch.cu>")
    none = build_report(PROBLEM, state_of(STATE.outcomes[1], Stopped("enough")))
    assert none.winners == 0
    says(report_markdown(none), "delivered", "nothing, the original stays")


def test_everything_else_is_folded() -> None:
    report = replace(EXPLAINED, rounds=(replace(a_round(), changes=("+a", "-b")),))
    text = report_markdown(report)
    opened = text.count("<details>")
    assert opened == text.count("</details>") >= 5
    assert all(t.content.startswith(("<details>", "</details>")) for t in tokens(text) if "html" in t.type)
    assert "```diff\n+a\n-b\n```" in text


def test_what_the_search_found_is_never_called_anything_else() -> None:
    one = replace(a_round(), speedup=22.5, best=22.5, default=2.0, gain=22.5, kept=True)
    text = report_markdown(replace(EXPLAINED, rounds=(one,)))
    for section in text.split("<details>")[1:]:
        if "×" in section and "What bounds" not in section:
            assert BY_SEARCH in section, section
    says(text, "As it was written 2.00×", "11.25× on top", BY_SEARCH)
    assert BY_SEARCH in report_html(EXPLAINED, "run", "")
    assert all(BY_SEARCH in data.decode() for name, data in plot_files(EXPLAINED).items() if "best" in name)


def test_a_run_at_work_is_no_stopped_one() -> None:
    half = build_report(PROBLEM, state_of(outcome(0, A, {"small": 0.5, "wide": 0.5})))
    for shown in (report_markdown, lambda r: report_html(r, "run", "tunesmith resume run")):
        stopped = shown(replace(half, seconds=7.2))
        says(
            stopped.lower(), "stopped: not finished, after 7 s; best so far 2.00× by the search, not verified"
        )
        says(stopped, "tunesmith resume")
        live = shown(replace(half, live=True, reason="running", seconds=7.2))
        says(live.lower(), "live: running, 7 s so far; best so far 2.00× by the search, not verified")
        assert not [
            word for word in ("resume", "not finished", "stopped", "interrupted") if word in live.lower()
        ]


def test_the_markdown_says_against_what_and_a_planners_reason_does_nothing() -> None:
    text = report_markdown(replace(REPORT, reason="enough <img src=x> | **done**"))
    says(text, "Before:", "original", "scale", "kernel.cl", "problem file")
    says(text, "verification", "fresh process")
    assert "enough \\<img src=x> \\| \\*\\*done\\*\\*" in text
    assert not [t for t in tokens(text) if t.type in ("html_inline", "strong_open")]
    kernels = report_markdown(replace(REPORT, strategy="rewrite"))
    says(kernels, "2 evaluations", "1 ok", "1 wrong", "kernels", "written", "configuration")


def test_notes_on_the_launch_stand_beside_the_speed_ups() -> None:
    text = report_markdown(replace(REPORT, notes=("at wide it has 64 times <b>too many</b>",)))
    assert "- note: at wide it has 64 times \\<b>too many" in first_screen(text)[-5]
    assert "note:" not in report_markdown(REPORT).lower()


def test_what_a_planner_says_at_length_stands_at_the_end_of_the_story() -> None:
    long = "every workload is within two per cent of its floor, " * 9
    text = report_markdown(replace(REPORT, reason=long, rounds=(a_round(),)))
    summary, story = text.split("How it came about")
    says(summary, "end of the story")
    assert long.strip(" ,") not in summary
    says(story, "The end.", "every workload")
    short = report_markdown(replace(REPORT, reason="nothing is left", rounds=(a_round(),)))
    assert "; nothing is left. " in short
    assert "The end." not in short


def test_the_json_has_everything_a_claim_needs() -> None:
    table = json.loads(report_json(REPORT))
    assert table["problem"] == "scale"
    assert table["device"] == "a device"
    small, wide = table["workloads"]
    assert small["baseline_us"] == pytest.approx(1e6)
    assert small["tuned_us"] == pytest.approx(5e5)
    assert small["speedup"] == pytest.approx(2.0)
    assert small["interval"] == pytest.approx([2.0, 2.0])
    assert small["config"] == {"BLOCK": 64, "VEC": 1}
    assert (wide["speedup"], wide["config"]) == (1.0, None)
    assert wide["baseline_us"] == wide["tuned_us"]
    assert table["geometric_mean"] == pytest.approx(2 ** (1 / 4))
    assert table["evaluations"] == {"ok": 1, "wrong": 1}
    assert set(table["digests"]) >= {"problem", "original source", "original binary", "template"}
    assert table["versions"]["tunesmith"]
    assert table["tuned"] == ["tuned/dispatch.json"]
    assert report_json(REPORT).endswith(b"}\n")


def test_an_unfinished_report_is_json_too() -> None:
    table = json.loads(report_json(build_report(PROBLEM, state_of())))
    assert (table["finished"], table["geometric_mean"], table["general"]) == (False, None, None)


def rows(markdown: str) -> list[list[str]]:
    """The cells of every table row, as a reader of GitHub's Markdown splits them."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_markdown_tells_the_story() -> None:
    text = report_markdown(REPORT)
    assert text.startswith("# scale\n\nscale on a device.\n")
    assert rows(text)[2:4] == [
        ["small", "rows=16 d=256", "1000000.0 µs", "500000.0 µs", "2.00×", "2.00 to 2.00"],
        ["wide", "rows=4 d=2048", "1000000.0 µs", "1000000.0 µs", "1.00×", "the original stays"],
    ]
    assert rows(text)[6:8] == [["small", "BLOCK=64 VEC=1"], ["wide", "original"]]
    proven = "verified on 7 fresh cases; right by the float64 reference: close within rtol 0.0001"
    assert f"\n- geometric mean: 1.19×, {proven}" in text
    assert "General configuration: BLOCK=64 VEC=1." in text
    assert "2 evaluations (1 ok, 1 wrong) of 12 feasible configurations, 12 combinations" in text
    assert "every configuration has been tried" in text
    assert ["BLOCK=128 VEC=1", "wrong", "it had to be"] in rows(text)
    for value in (*REPORT.digests.values(), *REPORT.versions.values()):
        assert f": {value}\n" in text


def test_the_compiler_is_named_where_there_is_a_choice() -> None:
    text = report_markdown(replace(REPORT, compiler="nvrtc 13.4"))
    assert text.startswith("# scale\n\nscale on a device, built with nvrtc 13.4.\n")


def test_a_survey_tells_what_the_builds_tell_and_claims_nothing() -> None:
    survey = SurveyReport(
        planned=9,
        statuses={"ok": 6, "build_failed": 1},
        spans={"registers": Span(22, 21, 30.5, 255), "occupancy": Span(None, 50, 100, 100)},
        spilling=(Spilling({"BLOCK": 64}, 16),),
    )
    none = replace(REPORT, workloads=(), geometric_mean=None, finished=False, tuned=())
    text = report_markdown(replace(none, survey=survey, compiler="nvrtc 13.4"))
    assert "which is not here" in report_html(replace(REPORT, survey=survey), "run", "")
    says(text, "a device", "not here", "nvrtc 13.4")
    says(text, "configurations", "7 of 9 built", "6 can run", "1 build_failed")
    assert ["registers", "22", "21", "30.5", "255"] in rows(text)
    assert ["occupancy, %", "", "50", "100", "100"] in rows(text)
    assert ["BLOCK=64", "16"] in rows(text)
    assert ["BLOCK=128 VEC=1", "wrong", "it had to be"] in rows(text)
    assert "speed-up" not in text
    assert "geometric mean" not in text


EXPLAINED = build_report(
    PROBLEM,
    state_of(
        outcome(0, A, {"small": 0.5, "wide": 0.5}),
        outcome(1, config(64, 2), {"small": 1.0, "wide": 1.0}),
        outcome(2, config(64, 4), {"small": 0.7, "wide": 0.7}),
        outcome(3, config(128), {"small": Status.WRONG, "wide": Status.WRONG}),
        outcome(4, config(256, 2), {"small": 0.8, "wide": 0.8}),
        finalist(5, A, {"small": 2.0, "wide": 2.0}),
        verified(A, {"small": 2.0, "wide": 2.0}),
        Stopped("enough"),
    ),
    template_of=lambda _config: a_template(PROBLEM),
)


def test_the_markdown_explains_the_winner() -> None:
    text = report_markdown(EXPLAINED)
    section = text[text.index("Effect of each parameter") : text.index("What did not work")]
    assert "For the general configuration, BLOCK=64 VEC=1:" in section
    assert rows(section) == [
        ["parameter", "winner", "effect", "from", "other values"],
        ["---", "---:", "---", "---", "---"],
        ["VEC", "1", "2.00× slower with 2", "measured", "2: 2.00×, 4: 1.40×"],
        [
            "BLOCK",
            "64",
            "1.60× at best with 256",
            "others changed too",
            "32: not tried, 128: wrong, 256: not tried, at best 1.60×",
        ],
    ]
    assert "](plots/effects.svg)" in section
    assert "](plots/best-so-far.svg)" in section
    assert sorted(plot_files(EXPLAINED)) == ["best-so-far.svg", "effects.svg"]


def test_the_json_tells_it_too() -> None:
    table = json.loads(report_json(EXPLAINED))
    (explanation,) = table["explanations"]
    vec = explanation["params"][0]
    assert (vec["name"], vec["effect"], vec["with_value"], vec["source"]) == ("VEC", 2.0, 2, "measured")
    assert table["history"]["speedups"] == [2.0, 1.0, pytest.approx(1 / 0.7, rel=1e-5), None, 1.25]
    assert table["history"]["best"][0] == {"workload": "", "steps": [[1, 2.0]]}


def test_where_the_original_stays_there_is_no_winner_to_explain() -> None:
    failed = outcome(0, A, {"small": Status.WRONG, "wide": Status.WRONG})
    report = build_report(
        PROBLEM, state_of(failed, Stopped("enough")), template_of=lambda _config: a_template(PROBLEM)
    )
    text = report_markdown(report)
    says(text, "original stays", "no winner")
    assert "effects" not in text
    assert list(plot_files(report)) == ["best-so-far.svg"]


def test_before_the_end_nothing_is_explained() -> None:
    assert "Effect of each parameter" not in report_markdown(build_report(PROBLEM, state_of()))


def test_a_model_is_called_one() -> None:
    value = ValueEffect(2, "model", 1.4, (1.2, 1.63), best=1.3)
    param = ParamEffect("VEC", 1, 1.4, 2, "model", (ValueEffect(1, "winner", 1.0), value))
    doubtful = replace(param, name="PAD", values=(param.values[0], replace(value, interval=(0.9, 2.2))))
    explanation = Explanation("wide", {"VEC": 1, "PAD": 1}, (param, doubtful), 96, 0.83)
    text = report_markdown(replace(EXPLAINED, explanations=(explanation,)))
    says(text, "at wide", "VEC=1 PAD=1")
    assert ["VEC", "1", "1.40× slower with 2", "model", "2: 1.40× (model, 1.20 to 1.63)"] in rows(text)
    assert ["PAD", "1", "not clear", "model", "2: 1.40× (model, 0.90 to 2.20)"] in rows(text)
    says(text, "96 configurations", "left out", "83%", "variance")
    assert "](plots/effects-wide.svg)" in text


def test_without_failures_there_is_no_table_of_them() -> None:
    assert "What did not work" not in report_markdown(replace(REPORT, failures=()))


HOSTILE = [
    "error: a | b || c",
    "use of `undeclared` identifier ``x``",
    "<script>alert(1)</script>",
    "<!-- comment",
    "![pixel](https://example.com/track.png)",
    "[click](javascript:alert(1))",
    "line one\nline two\r\n\n## A heading\n- a list\n> a quote\n```\ncode",
    "**bold** __bold__ ~~gone~~ $math$",
    "trailing backslash \\",
    "\\| escaped pipe \\` and tick",
    "&lt;already&gt; &amp; &#124;",
    "<https://example.com>",
    "a\u2028b\x0bc\x85d",
]


@pytest.mark.parametrize("detail", HOSTILE)
def test_nothing_a_compiler_says_acts_in_the_markdown(detail: str) -> None:
    text = report_markdown(failing(detail))
    cell = rows(text)[-1]
    assert cell[:2] == ["BLOCK=64", "build_failed"]
    assert len(cell) == 3
    assert not re.search(r"&#?\w+;", cell[2].replace("\\&", "")), "a terminal shows it as it is"
    assert acting(text) == acting(report_markdown(failing("")))
    assert " ".join(detail.split()) in read(text)  # it reads as it was written


@given(st.text())
def test_a_failure_is_one_row_of_three_cells(detail: str) -> None:
    plain = report_markdown(failing(""))
    text = report_markdown(failing(detail))
    assert len(text.splitlines()) == len(plain.splitlines())
    assert len(rows(text)[-1]) == 3


@given(st.text("ab1 _*`~<>&#;![]()|\\$-+=.:/\n", max_size=40))
def test_whatever_anybody_says_reads_as_it_was_written(said: str) -> None:
    """In a table, in a list and at the start of a line."""
    hostile = replace(failing(said), sanitizers=(f"{said} x",), notes=(said,))
    text = report_markdown(hostile)
    assert acting(text) == acting(report_markdown(replace(failing(""), sanitizers=("x",), notes=("y",))))
    assert " ".join(f"{said} x".split()) in read(text)


def test_names_read_in_a_terminal_as_they_are() -> None:
    text = report_markdown(failing("narrow_access && a_b__c: VEC >= 4"))
    assert rows(text)[-1][2] == "narrow_access && a_b__c: VEC >= 4"


def test_conditions_read_in_a_terminal_as_they_are() -> None:
    said = "tokens <= 4096 and (tokens) * (2 * d) <= 77 and d < 9"
    assert rows(report_markdown(failing(said)))[-1][2] == said
    assert said in report_markdown(replace(REPORT, where=(said,)))


def test_a_long_log_is_cut_before_it_is_made_harmless() -> None:
    cell = rows(report_markdown(failing("|" * 10_000)))[-1][2]
    assert cell == "\\|" * 299 + "…"


def test_a_device_cannot_write_into_the_report_either() -> None:
    text = report_markdown(replace(REPORT, device="<b>GPU</b>\n# x", driver="![](http://e)"))
    assert acting(text) == acting(report_markdown(REPORT))
    assert "<b>GPU</b> # x." in read(text)
    assert "driver: ![](http://e)" in read(text)


def a_round(**said: str) -> RoundReport:
    texts = {"reason": "narrow loads", "what": "", **said}
    return RoundReport(
        1, texts["reason"], (), "", (), {}, 0, None, 1.0, False, "no template", what=texts["what"]
    )


@pytest.mark.parametrize("words", HOSTILE)
def test_what_a_model_says_acts_nowhere_in_the_markdown(words: str) -> None:
    """Why it stopped, its plans, what an analyst said before, and what a template of its changed."""

    def told(said: str) -> str:
        shown = replace(a_round(reason=said, what=said), changes=(f"+{said.splitlines()[0]}\x1b[2J",))
        shown = replace(shown, analysis=" ".join(said.split()))
        return report_markdown(replace(REPORT, reason=said, rounds=(shown,)))

    text = told(words)
    assert "\x1b" not in text
    assert acting(text) == acting(told("harmless"))
    assert read(text).count(" ".join(words.split())) == 4


def test_a_plan_is_shown_whole_and_ends_in_a_full_stop() -> None:
    plan = " ".join(f"PARAMETER_{i} in 1, 2, 4;" for i in range(60)) + " and nothing else"
    text = report_markdown(replace(REPORT, rounds=(a_round(what=plan),)))
    assert f"What to change: {plan}.\n" in text


def test_cases_of_a_tester_are_listed_with_their_reasons() -> None:
    sizes = (("rows", 3), ("d", 24))
    added = Extended(
        (ExtraCase(sizes, "spikes", "odd"),), ((ExtraCase(sizes, "normal"), "the original fails"),)
    )
    talk = Spent(1, 1, None, None, None)
    text = report_markdown(replace(REPORT, rounds=(a_round(),), talk=talk, added=added))
    assert "The tester added 1 case.\n\n- rows=3, d=24 (spikes): odd\n" in text
    assert "- set aside: rows=3, d=24 (normal), the original fails\n" in text


def test_what_was_used_of_each_budget_is_told() -> None:
    used = (
        BudgetUse("rounds", 2, 3),
        BudgetUse("evaluations", 93, 120),
        BudgetUse("seconds", 613.24, None),
        BudgetUse("device_seconds", 41.26, 60.0),
        BudgetUse("tokens", 41385, 50_000, by_length=True),
        BudgetUse("dollars", None, 2.0),
    )
    text = report_markdown(replace(REPORT, budgets=used))
    says(text, "2 of 3 rounds", "93 of 120 evaluations", "613.2 s (no limit)", "41.3 of 60 s on the device")
    says(text, "about 41385 of 50000 tokens", "unknown of", "2 of money")


def test_what_failed_attempts_took_is_told() -> None:
    talk = Spent(2, 1, 300, 40, 0.5, lost=120, uncounted=2)
    text = report_markdown(replace(REPORT, rounds=(a_round(),), talk=talk))
    says(
        text, "300 tokens sent", "40 tokens received", "120 of these tokens", "failed", "2 attempts broke off"
    )


def test_what_bounds_it_and_where_the_search_looked() -> None:
    bounds = (
        BoundReport("small", "latency", 3.5, "memory bandwidth", "narrow access: 3 of 3", "bandwidth", 1.04),
        BoundReport("wide", "", None, "", "", note="OSError: <b>gone</b>"),
    )
    steering = (
        PriorReport(0, "VEC >= 4", 40, "the original shows narrow_access"),
        PriorReport(9, "VEC >= 4", 40, "nothing more that the template answers", moved=False),
        PriorReport(17, "", 0, "the last 24 found nothing better"),
    )
    notes = ("fp16 was not measured: <i>why</i>",)
    report = replace(REPORT, bounds=bounds, steering=steering, profile_notes=notes)
    text = report_markdown(report)
    assert "| small | latency | 3.50 | bandwidth | 1.04 | narrow access: 3 of 3 |" in text
    assert "| wide | not known |  | the original stays |  | OSError: \\<b>gone\\</b> |" in text
    says(text, "after 0 evaluations", "VEC >= 4", "40 configurations", "narrow_access")
    says(text, "after 9 evaluations", "as before", steering[1].reason)
    says(text, "fp16", "not measured", "\\<i>why\\</i>")
    says(text, "after 17 evaluations", "everywhere", steering[2].reason)
    assert "What bounds it" not in report_markdown(REPORT)
    assert json.loads(report_json(report))["steering"][2]["after"] == 17


def test_what_the_gate_tried_is_beside_the_budget() -> None:
    done = sum(REPORT.evaluations.values())
    text = report_markdown(replace(REPORT, gated=1))
    says(text, f"{done - 1} of the search", "1 of the gate", "beside the budget")
    assert "of the gate" not in report_markdown(REPORT)
