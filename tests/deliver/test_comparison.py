"""Comparisons as people get them: figures in their places, unknown ones named so, nothing hostile acts."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from tests.comparisons import facts, plan, ran
from tests.markdown_reader import acting
from tests.wording import says
from tunesmith.deliver.compared import ComparisonResult, compare
from tunesmith.deliver.comparing import RunFacts
from tunesmith.deliver.comparison import comparison_json, comparison_markdown, comparison_plots

HOSTILE = "<img src=x> | [click](http://x) `rm` \x1b[31m & **bold**"


def two_by_two() -> ComparisonResult:
    planned = plan("template,expert", "p,q", repeats=2, model="mailbox")
    talked = facts(3.0, requests=7, tokens=None, dollars=None, tokens_by_length=900, repairs=2)
    runs: dict[tuple[str, str], list[RunFacts | float | str]] = {
        ("p", "template"): [talked, talked],
        ("p", "expert"): [2.0, 2.5],
        ("q", "template"): ["failed", 6.0],
        ("q", "expert"): [1.0, 40.0],
    }
    return compare(planned, ran(planned, runs))


def rows(text: str, heading: str) -> list[list[str]]:
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in part.splitlines()
        if line.startswith("|") and not line.startswith("|---")
    ]


def test_tells_what_on_what_against_what_and_how_sure() -> None:
    text = comparison_markdown(two_by_two())
    assert text.startswith("# Comparison: template and expert\n")
    assert "At 2 problems: p and q. On a device (7)." in text
    assert "Against the original kernel" in text
    assert "3 rounds, 40 evaluations; no limit on time, device-seconds, tokens and money" in text
    assert "2 repeats, with the seeds 0 to 1" in text
    assert "| p | right by the float64 reference | only | n=64 | 20.0 µs |" in text
    result = rows(text, "Result")
    assert result[1][:5] == ["p", "template", "2", "3.00×", "3.00 to 3.00"]
    assert result[3] == ["q", "template", "2", "2.45×", "1.00 to 6.00", "too few repeats", "1.00×", "1 of 2"]
    assert result[5][:2] == ["**all 2**", "template"]
    assert rows(text, "Result")[-1] == ["template", "expert", "0.72×", "100 %"]
    assert [r[2] for r in rows(text, "Every run")[1:]] == [
        *("3.00×", "3.00×", "2.00×", "2.50×"),
        *("1.00×", "6.00×", "1.00×", "40.00×"),
    ]
    assert "failed for a reason" in text


def test_what_is_not_known_is_called_unknown_and_what_was_not_asked_none() -> None:
    costs = {tuple(r[:2]): r for r in rows(comparison_markdown(two_by_two()), "What it cost")}
    head = costs["problem", "arm"]
    template, expert = costs["p", "template"], costs["p", "expert"]
    assert template[head.index("tokens")] == "unknown, about 900 by length"
    assert template[head.index("cost")] == "unknown"
    assert template[head.index("repairs")] == "2.0"
    assert [expert[head.index(name)] for name in ("tokens", "cost")] == ["none", "none"]


def test_one_repeat_and_no_run_yet() -> None:
    planned = plan("template,expert", repeats=1)
    found = compare(planned, ran(planned, {("p", "template"): ["waiting"], ("p", "expert"): ["not begun"]}))
    text = comparison_markdown(found)
    says(text, "One run of each")
    says(text, "0 of 2 runs")
    assert "no device so far" in text
    for data in comparison_plots(found).values():
        assert "counts" in data.decode()


def test_words_of_models_and_drivers_do_nothing() -> None:
    def told(words: str) -> ComparisonResult:
        planned = plan("template", repeats=1, model=words)
        bad = facts(reason=words, device=words, driver=words)
        return compare(planned, ran(planned, {("p", "template"): [bad]}))

    found = told(HOSTILE)
    text = comparison_markdown(found)
    assert acting(text) == acting(comparison_markdown(told("harmless")))
    assert "\x1b" not in text
    assert not re.search(r"&#?\w+;", text), "a terminal shows it as it is"
    for data in comparison_plots(found).values():
        assert b"\x1b" not in data
        ElementTree.fromstring(data)


@pytest.mark.parametrize("name", ["speed-ups.svg", "gain-per-round.svg"])
def test_plots_are_drawn_and_always_the_same(name: str) -> None:
    data = comparison_plots(two_by_two())[name]
    assert data == comparison_plots(two_by_two())[name]
    drawn = ElementTree.fromstring(data)
    space = "{http://www.w3.org/2000/svg}"
    width, height = float(drawn.get("width") or 0), float(drawn.get("height") or 0)
    dots = drawn.findall(f"{space}circle")
    for dot in dots:
        assert 0 <= float(dot.get("cx") or -1) <= width
        assert 0 <= float(dot.get("cy") or -1) <= height
    tips = [dot.findtext(f"{space}title") or "" for dot in dots]
    if name == "speed-ups.svg":
        assert len(dots) == 8
        assert "q/template-1: 1.00×, failed" in tips
    else:
        assert sum("expert, after" in tip for tip in tips) == 3, "the original, and two rounds"


def test_the_data_have_it_all() -> None:
    found = json.loads(comparison_json(two_by_two()))
    assert len(found["comparison"]["runs"]) == 8
    assert found["comparison"]["plan"]["arms"] == ["template", "expert"]
    assert found["comparison"]["cells"][0]["costs"]["tokens"] is None
    assert any("runs failed" in text for text in found["limits"])


def test_no_dot_hides_another_and_a_picture_says_on_what() -> None:
    planned = plan("template,expert", "p,q", repeats=5)
    runs: dict[tuple[str, str], list[RunFacts | float | str]] = {
        ("p", "template"): ["failed"] * 5,
        ("p", "expert"): [2.0, 2.001, 2.002, 3.0, 9.0],
        ("q", "template"): ["waiting"] * 5,
        ("q", "expert"): [1.0] * 5,
    }
    plots = comparison_plots(compare(planned, ran(planned, runs)))
    space = "{http://www.w3.org/2000/svg}"
    drawn = ElementTree.fromstring(plots["speed-ups.svg"])
    places = [(float(d.get("cx") or 0), float(d.get("cy") or 0)) for d in drawn.findall(f"{space}circle")]
    assert len(set(places)) == len(places) == 15
    assert max(y for _, y in places[:5]) < min(y for _, y in places[5:10]), "each in the row of its arm"
    assert "5 repeats; a bar is the geometric mean" in plots["speed-ups.svg"].decode()
    assert "geometric mean over runs at p; on a device" in plots["gain-per-round.svg"].decode()
    once = compare(plan(repeats=1), ran(plan(repeats=1), {("p", a): [1.0] for a in ("template", "expert")}))
    picture = comparison_plots(once)["speed-ups.svg"].decode()
    assert "one run each; a hollow dot" in picture
    assert "0.998" not in picture, "an axis that shows noise as if it were much"
