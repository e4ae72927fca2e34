"""What several comparisons say together, against figures that are worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.experiment import experiment_runs, experiment_sections
from tests.comparisons import BUDGET, facts, plan, ran
from tests.wording import says
from tunesmith.deliver.compared import compare
from tunesmith.deliver.comparing import RunFacts
from tunesmith.deliver.comparison import comparison_markdown
from tunesmith.deliver.experiment import (
    ArmFigures,
    ExperimentFigures,
    arm_label,
    estimate,
    figures,
)
from tunesmith.deliver.findings import SearchGain, StoppedCounts

Given = dict[tuple[str, str], list[RunFacts | float | str]]


def told(
    given: Given, arms: str = "template,rewrite", problems: str = "p,q,r", repeats: int = 2
) -> ExperimentFigures:
    planned = plan(arms, problems, repeats)
    return figures(experiment_runs([(planned, ran(planned, given))]))


def sections(found: ExperimentFigures) -> dict[str, list[str]]:
    return experiment_sections(found, [BUDGET])


def arm(found: ExperimentFigures, name: str) -> ArmFigures:
    return next(one for one in found.arms if one.arm == name)


STEADY: Given = {(p, a): [s, s] for p in "pqr" for a, s in (("template", 4.0), ("rewrite", 2.0))}
VARIED: Given = {
    ("p", "template"): [2.0, 2.0],
    ("q", "template"): [4.0, 4.0],
    ("r", "template"): [8.0, 8.0],
    ("p", "rewrite"): [1.0, 1.0],
    ("q", "rewrite"): [2.0, 2.0],
    ("r", "rewrite"): [4.0, "failed"],
}


class TestIntervals:
    def test_where_nothing_differs_the_interval_is_the_mean(self) -> None:
        own = arm(told(STEADY), "template").mean
        assert (own.value, own.low, own.high) == (4.0, 4.0, 4.0)

    def test_problems_are_drawn_and_the_same_ones_for_both_arms(self) -> None:
        found = told(VARIED)
        own = arm(found, "template").mean
        assert own.value == 4.0
        assert own.low is not None
        assert own.high is not None
        assert 2.0 <= own.low < 3.0 < 6.0 < own.high <= 8.0
        (ratio,) = found.ratios
        # 2 at p and at q; at r the mean of 8 over that of 4 and 1.
        assert ratio.ratio.value == pytest.approx((2 * 2 * 4) ** (1 / 3), rel=1e-5)
        assert ratio.ratio.low == pytest.approx(2.0), "paired by problem: it is at least 2 at each"
        assert arm(found, "rewrite").worst == 1.0

    def test_repeats_are_drawn_as_well(self) -> None:
        given: Given = {(p, "expert"): [1.0, 4.0] for p in "pqr"}
        own = arm(told(given, "expert"), "expert").mean
        assert own.value == 2.0
        assert own.low is not None
        assert own.low < 1.5, "the same problem thrice with other repeats is another mean"

    def test_of_two_problems_there_is_none_and_the_page_says_so(self) -> None:
        given = {key: runs for key, runs in VARIED.items() if key[0] != "r"}
        found = told(given, problems="p,q")
        assert arm(found, "template").mean.low is None
        assert "no intervals" in "\n".join(sections(found)["Over problems and repeats"])

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=4), min_size=3, max_size=6))
    def test_the_mean_lies_between_the_ends_and_all_is_the_same_again(
        self, groups: list[list[float]]
    ) -> None:
        found = estimate(groups)
        assert found == estimate(groups)
        assert found.low is not None
        assert found.high is not None
        every = [math.exp(value) for group in groups for value in group]
        assert min(every) * 0.999 <= found.low <= found.high <= max(every) * 1.001


class TestRoundsAndTokens:
    RUN = facts(8.0, rounds=(2.0, 8.0), round_tokens=(15_000, 30_000), tokens_by_length=30_000)
    SHORT = facts(2.0, rounds=(2.0,), round_tokens=(5_000,), tokens_by_length=10_000)

    def test_what_each_round_added_and_one_that_ended_adds_nothing(self) -> None:
        found = arm(told({("p", "template"): [self.RUN, self.SHORT]}, "template", "p"), "template")
        assert [gain.value for gain in found.gains] == [2.0, 2.0]
        assert [after.value for after in found.after] == [2.0, 4.0]

    def test_gain_for_each_10000_tokens_is_all_gain_over_all_tokens(self) -> None:
        found = arm(told({("p", "template"): [self.RUN, self.SHORT]}, "template", "p"), "template")
        assert found.tokens == 20_000
        assert found.per_tokens is not None
        assert found.per_tokens.value == 2.0  # 16× for 40,000 tokens
        assert found.within == ((10_000, 1.41421), (20_000, 2.0), (40_000, 4.0))

    def test_of_the_expert_there_are_none(self) -> None:
        found = told({("p", "expert"): [2.0, 2.0]}, "expert", "p")
        assert arm(found, "expert").per_tokens is None
        assert sections(found)["Gain per 10000 tokens"] == ["No model was asked."]

    def test_facts_from_before_tokens_were_counted_by_round(self) -> None:
        found = told({("p", "template"): [facts(tokens_by_length=900)] * 2}, "template", "p")
        assert arm(found, "template").within == ()
        assert "900" in "\n".join(sections(found)["Gain per 10000 tokens"])


def test_what_the_search_adds_to_every_template() -> None:
    searches = (SearchGain("1", 1.0, 2.0, 30), SearchGain("2", 0.5, 4.0, 30))
    found = told({("p", "template"): [facts(searches=searches), facts(searches=())]}, "template", "p")
    own = arm(found, "template").searches
    assert own is not None
    assert (own.templates, own.gain.value, own.least, own.most) == (2, 4.0, 2.0, 8.0)
    assert own.default == pytest.approx(math.sqrt(0.5), rel=1e-5)
    row = sections(found)["What the search adds to a template"][-1]
    says(row, "template", "2", "0.71×", "2.83×", "4.00×", "2.00 to 8.00")


def test_what_each_arm_spent_stands_side_by_side_and_where_it_was_not_the_same() -> None:
    models = facts(of_budget=40, sent=9000, received=1000, dollars=None, searched_seconds=30.0)
    given: Given = {("p", "template"): [models], ("p", "expert"): [facts(of_budget=20, sent=0, received=0)]}
    found = told(given, "template,expert", "p", 1)
    lines = sections(found)["What each arm spent"]
    assert lines[2] == (
        "| arm | evaluations of 40 | device-seconds | seconds | tokens in | tokens out | money |"
    )
    assert lines[4:6] == [
        "| template | 40 | 30.0 | 4.0 | 9000 | 1000 | unknown |",
        "| expert | 20 | 2.0 | 4.0 | 0 | 0 | $0.0000 |",
    ]
    says(
        lines[-1], "Not the same", "evaluations from 20 (expert) to 40 (template)", "device-seconds from 2.0"
    )
    assert "seconds from 4.0" not in lines[-1], "as long, all of them"
    other = replace(BUDGET, evals=80)
    unlike = experiment_sections(found, [BUDGET, other])["What each arm spent"]
    assert unlike[2].startswith("| arm | evaluations |")
    says(unlike[-1], "allowed", "40 evaluations", "80 evaluations")


def test_what_was_stopped_is_added_up() -> None:
    stopped = StoppedCounts(
        replies=5, unusable=1, drafts=4, admitted=1, form=1, build=1, wrong=1, tried=50, late=2
    )
    found = told({("p", "template"): [facts(stopped=stopped), facts(stopped=stopped)]}, "template", "p")
    drafts, trials = (line for line in sections(found)["What was stopped"] if "| template" in line)
    assert drafts == "| template | 8 | 2 | 2 | 2 | 2 | 0 | 0 | 0 | 6 (75 %) |"
    assert trials == "| template | 100 | 0 | 0 | 0 | 0 | 4 | 10 | 2 |"


def test_several_drafts_are_an_arm_of_their_own_beside_the_others() -> None:
    one, several = plan("template,rewrite", "p,q,r", 2), plan("template", "p,q", 2)
    several = replace(several, drafts=3)
    given: Given = {(p, "template"): [6.0, 6.0] for p in "pq"}
    found = figures(experiment_runs([(one, ran(one, STEADY)), (several, ran(several, given))]))
    assert [(a.arm, len(a.problems)) for a in found.arms] == [
        ("template", 3),
        ("rewrite", 3),
        ("template, 3 drafts", 2),
    ]
    ratio = next(r for r in found.ratios if (r.first, r.second) == ("template", "template, 3 drafts"))
    assert (ratio.problems, ratio.ratio.value) == (("p", "q"), pytest.approx(2 / 3, rel=1e-5))
    assert arm_label("expert", several) == "expert"


def test_an_unfinished_problem_is_left_out_and_named() -> None:
    given = {**STEADY, ("r", "rewrite"): ["waiting", "not begun"]}
    found = told(given)
    assert (found.problems, found.left_out) == (("p", "q"), ("r",))
    assert "there: r." in sections(found)["Over problems and repeats"][-7]


def test_the_page_of_a_comparison_answers_the_questions() -> None:
    planned = plan("template,rewrite", "p,q,r", 2)
    text = comparison_markdown(compare(planned, ran(planned, VARIED)))
    for title in (
        "Over problems and repeats",
        "Gain per 10000 tokens",
        "What the search adds to a template",
        "What was stopped",
    ):
        assert f"\n## {title}\n" in text
    says(text, "template", "3", "6", "4.00× (", "6 of 6")
    says(text, "bootstrap")
