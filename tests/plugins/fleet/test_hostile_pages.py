"""Pages of comparisons, fleets and profiles: whatever anybody is called, nothing acts."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

from tests.comparisons import facts, plan, ran
from tests.core.deliver.shown.comparisons import fleet_row, profile_page
from tests.markdown_reader import acting
from tunesmith.base.text import seconds_text
from tunesmith.deliver.pages.plots import roofline_svg
from tunesmith.deliver.pages.profile import page_lines
from tunesmith.plugins.fleet.record import FleetResult, fleet_html, fleet_markdown
from tunesmith.plugins.studies.pages import comparison_markdown, comparison_plots
from tunesmith.plugins.studies.result import ComparisonResult, summarize_runs

HOSTILE = "<img src=x> | [click](http://x) `rm` \x1b[31m & **bold**"
BAD = "<script>alert(1)</script>|`x`"


def compared(words: str) -> ComparisonResult:
    planned = plan("template", repeats=1, model=words)
    bad = facts(reason=words, device=words, driver=words)
    return summarize_runs(planned, ran(planned, {("p", "template"): [bad]}))


def test_words_of_models_and_drivers_do_nothing_in_a_comparison() -> None:
    found = compared(HOSTILE)
    text = comparison_markdown(found)
    assert acting(text) == acting(comparison_markdown(compared("harmless")))
    assert "\x1b" not in text
    assert not re.search(r"&#?\w+;", text), "a terminal shows it as it is"
    for data in comparison_plots(found).values():
        assert b"\x1b" not in data
        ElementTree.fromstring(data)


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name == "href"]


def test_nothing_foreign_acts_on_the_page_of_a_fleet() -> None:
    found = FleetResult(BAD, 1.0, (fleet_row(problem=BAD), fleet_row("failed", None, reason=BAD)), (BAD,))
    page = fleet_html(found)
    links = Links(page)
    assert "script" not in links.tags
    assert 'http-equiv="Content-Security-Policy" content="default-src' in page
    assert "runs/a%40b%2Bc%20d/report.html" in links.found
    assert sum("report.html" in link for link in links.found) == 1, "who has not ended has no page"
    assert "\\<script>" in fleet_markdown(found)


def test_names_cannot_act_in_a_profile() -> None:
    workload = replace(profile_page().workloads[0], name="a\x1b]0;x\x07b")
    bad = profile_page(device="\x1b[31mred\x07", workloads=(workload,))
    assert not any("\x1b" in line or "\x07" in line for line in page_lines(bad))
    assert ElementTree.fromstring(roofline_svg(profile_page(device="<&\x00"))).tag.endswith("svg")


def test_times_read_well() -> None:
    assert [seconds_text(s) for s in (2.5e-6, 1.2345e-3, 0.0123)] == ["2.5 µs", "1234.5 µs", "12.3 ms"]
