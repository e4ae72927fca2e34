"""The page of a fleet: what was verified, and nothing that acts."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest

from tunesmith.deliver.fleet import FleetResult, FleetRow, VerifiedCell, weighted_mean
from tunesmith.deliver.fleet_page import fleet_grid, fleet_html, fleet_markdown, total_lines

BAD = "<script>alert(1)</script>|`x`"


def row(status: str = "finished", speedup: float | None = 2.0, weight: float = 1.0, **more: str) -> FleetRow:
    found = None if speedup is None else VerifiedCell(speedup, (1.9, 2.1), 1.25, "w")
    about = {"problem": "softmax", "device": "h200", "author": "expert", **more}
    own = (about["problem"], about["device"], about["author"], status, weight, 36.0, 72.0, 40, 1.5)
    return FleetRow(*own, "runs/a@b+c d", found, about.get("reason", ""))  # type: ignore[arg-type]


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name == "href"]


def test_totals_and_rows() -> None:
    found = FleetResult("night", 1.0, (row(weight=3.0), row(speedup=None, status="paused"), row(speedup=1.0)))
    assert weighted_mean(found.rows) == pytest.approx(math.exp(3 * math.log(2) / 4))
    lines = dict(total_lines(found))
    assert lines["cells"] == "2 finished, 1 paused"
    assert lines["device hours"] == "0.030 of 1, 0.060 with all else"
    first, second, _ = fleet_grid(found).rows
    assert first[3:7] == ("finished", "2.00×", "1.90 to 2.10", "1.25×")
    assert second[4] == "(1.50×)", "what only the search says is in brackets"


def test_nothing_foreign_acts_on_the_page() -> None:
    found = FleetResult(BAD, 1.0, (row(problem=BAD), row("failed", None, reason=BAD)), (BAD,))
    page = fleet_html(found)
    own = Links(page)
    assert "script" not in own.tags
    assert 'http-equiv="Content-Security-Policy" content="default-src' in page
    assert "runs/a%40b%2Bc%20d/report.html" in own.found
    assert sum("report.html" in link for link in own.found) == 1, "who has not ended has no page"
    assert "\\<script>" in fleet_markdown(found)


def test_a_fleet_of_which_nothing_is_known_has_a_page() -> None:
    assert "0 of 1" in fleet_html(FleetResult("new", 1.0, (row("not begun", None),)))
