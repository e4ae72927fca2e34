"""The pages that are served: whoever wrote the texts, nothing in them acts but our one script."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.core.deliver.reports import FULL, texts
from tests.core.deliver.test_page import ATTRIBUTES, CLASSES, HOSTILE, TAGS, PageReader
from tunesmith.deliver.pages.page import report_page
from tunesmith.plugins.watch.following import FoundComparison, FoundRun, RunFilter, RunSeen
from tunesmith.plugins.watch.pages import (
    comparison_page,
    index_page,
    live_fields,
    live_part,
    run_url,
    watch_script,
    watch_style,
    whole_page,
)
from tunesmith.run.events import Instructed
from tunesmith.run.progress import FloorDistance, RunProgress
from tunesmith.run.state import State
from tunesmith.space.configset import Config

TOKEN = "s3cret"
OURS = {"script", "link", "form", "input", "button", "label", "select", "option", "progress", "code"}
ATTRIBUTES_OF_OURS = {
    "type",
    "value",
    "method",
    "action",
    "maxlength",
    "placeholder",
    "selected",
    "max",
    "rel",
}
DATA = {"data-field", "data-list", "data-events", "data-live", "data-seconds"}


class ServedReader(PageReader):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag in ("input", "link"):
            self.inside.pop()


def harmless(page: str) -> ServedReader:
    read = ServedReader(page)
    assert read.inside == []
    assert {tag for tag, _ in read.elements} <= TAGS | OURS
    for tag, attributes in read.elements:
        assert set(attributes) <= ATTRIBUTES | ATTRIBUTES_OF_OURS | DATA, tag
        assert set(attributes.get("class", "").split()) <= CLASSES | {"said", "filters", "index", "lists"}
        assert re.match(r"#\w+$|/|data:,$", attributes.get("href", "/"))
        assert attributes.get("action", "/").startswith("/")
        assert not attributes.get("href", "/").startswith("//")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert scripts in ([], [watch_script()])
    return read


def seen(said: str, live: bool = True, fault: bool = True) -> RunSeen:
    now = RunProgress(
        said, doing=said, done=3, of=7, best=2.0, best_config=said, queue=(said, said), queued=5,
        floors=(FloorDistance(said, 3.0, 2.0),), left=30.0,
    )  # fmt: skip
    told = (
        Instructed(said, "hint", said, refused=said),
        Instructed("b", "hint", said, Config(((said, 1),))),
        Instructed("c", "stop"),
    )
    found = RunSeen(State(instructed=told), live, waiting=(said,), fault=said if fault else "")
    vars(found)["now"] = now  # instead of what a state would say
    return found


def test_hostile_text_in_every_field_of_a_live_run_does_nothing() -> None:
    part = live_part(HOSTILE, live_fields(seen(HOSTILE)), TOKEN, HOSTILE)
    page = report_page(replace(FULL, problem=HOSTILE), texts(HOSTILE), part)
    tame = live_part("x", live_fields(seen("x")), TOKEN, "x")
    other = report_page(replace(FULL, problem="x"), texts("x"), tame)
    assert [tag for tag, _ in harmless(page).elements][:60] == [tag for tag, _ in harmless(other).elements][
        :60
    ]
    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_hostile_text_in_every_field_of_the_index_does_nothing() -> None:
    run = FoundRun(HOSTILE, "live", 1e9, HOSTILE, HOSTILE, HOSTILE, "2.00×", HOSTILE)
    own = RunFilter(words="", status="", within=HOSTILE)
    for wanted in (RunFilter(), own, RunFilter(HOSTILE, HOSTILE, HOSTILE, HOSTILE)):
        harmless(index_page([run], [FoundComparison(HOSTILE, 1e9)], wanted, TOKEN))
    harmless(whole_page(HOSTILE, []))


def test_what_the_script_is_sent_is_short_and_seen() -> None:
    fields = live_fields(seen(HOSTILE * 50))
    every = [fields.phase, fields.doing, fields.best, *fields.queue, *fields.asked, *fields.floors]
    assert max(map(len, every)) <= 300
    assert not re.search("[\x00-\x1f\u202e\u2066]", "".join(every))


def test_the_script_never_makes_elements_of_text() -> None:
    script = watch_script()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval",
        "Function(",
        "setAttribute",
    ):
        assert word not in script
    assert "</" not in script, "it ends where it should"


def test_the_policy_allows_our_script_and_style_and_the_own_server() -> None:
    page = report_page(FULL, live=live_part("run", live_fields(seen("x")), TOKEN))
    policy = next(a["content"] for tag, a in harmless(page).elements if "http-equiv" in a)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for text, rule in ((watch_script(), "script-src"), (watch_style(), "style-src")):
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
        assert text in page
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == rules["form-action"] == "'self'"
    assert "script-src" not in report_page(FULL), "the file that a run writes has none"


def test_hostile_text_in_a_comparison_does_nothing() -> None:
    cell = HOSTILE.replace("\n", " ")
    lines = (f"# {cell}", cell, f"| {cell} | n |", "|---|---:|", f"| {cell} | 1.5× |", "", f"- {cell}")
    text = "\n".join([*lines, f"## {cell}", f"![{cell}](plots/a.svg)", f"[{cell}](javascript:alert(1))"])
    page = comparison_page("cmp", text, {"a.svg": HOSTILE.encode()}, TOKEN)
    harmless(page)
    assert "<script>alert" not in page
    assert "javascript:" not in re.sub(r">[^<]*<", "><", page), "it leads nowhere"


@pytest.mark.parametrize("piece", ["[", "[a](", "`", "**a"])
def test_no_text_of_a_comparison_takes_long(piece: str) -> None:
    before = time.process_time()
    comparison_page("cmp", piece * 20_000, {}, TOKEN)
    comparison_page("cmp", f"# {piece * 20_000}", {}, TOKEN)
    assert time.process_time() - before < 1.0


def test_what_a_comparison_says_becomes_a_page() -> None:
    text = (
        "# Comparison: a\\_b\n\nAt 1 problem: `tiny`.\n\n| arm | gain |\n|---|---:|\n| a \\| b | 1.50× |\n\n"
        "## Result\n\n- **one** of [two](runs/x)\n\n![All](plots/s.svg)\n![None](plots/other.svg)\n"
    )
    page = comparison_page("cmp-1", text, {"s.svg": b"<svg/>"}, TOKEN)
    for part in (
        "<h1>Comparison: a_b</h1>",
        "<p>At 1 problem: <code>tiny</code>.</p>",
        '<th scope="row">a | b</th><td class="n">1.50×</td>',
        "<h2>Result</h2><ul><li><strong>one</strong> of two</li></ul>",
        'alt="All"',
        "within=cmp-1",
    ):
        assert part in page, part
    assert 'alt="None"' not in page


def test_a_run_that_stopped_has_nothing_at_the_device() -> None:
    over = live_fields(seen("searching", live=False, fault=False))
    assert (over.status, over.phase, over.doing) == ("stopped", "stopped while searching", "nothing")
    assert (over.queue, over.left) == (("nothing",), "not known")


def test_a_live_run_can_be_asked_things_and_one_that_is_over_cannot() -> None:
    live = report_page(FULL, live=live_part("my run", live_fields(seen("x")), TOKEN))
    forms = [a for tag, a in harmless(live).elements if tag == "form"]
    assert [form["action"] for form in forms] == ["/runs/my%20run/instructions"] * 2
    buttons = [a["value"] for tag, a in harmless(live).elements if tag == "button"]
    assert buttons == ["stop", "finish", "hint"]
    over = report_page(FULL, live=live_part("my run", live_fields(seen("x", live=False)), TOKEN))
    assert "<form" not in over


@pytest.mark.parametrize("name", ["a b", "a?b", "a#b", "cmp/runs/one", 'x"y'])
def test_addresses(name: str) -> None:
    url = run_url(name, TOKEN, "/events")
    assert re.fullmatch(r"/runs/[\w%/]+/events\?token=s3cret", url)


def test_the_page_can_be_read_without_a_script() -> None:
    page = harmless(report_page(FULL, live=live_part("run", live_fields(seen("searching")), TOKEN)))
    said = " ".join(page.text)
    for words in ("searching", "2.00×", "about 30 s", "1.50 × its floor", "What was verified"):
        assert words in said


def test_the_index_counts_and_links() -> None:
    runs = [FoundRun(f"r{n}", "finished", 1e9, "p", "d", "", "2.00×") for n in range(3)]
    page = index_page(runs, [], RunFilter(words="r1"), TOKEN)
    assert "1 of 3 runs" in page
    assert 'href="/runs/r1?token=s3cret"' in page
    assert "/runs/r2" not in page
