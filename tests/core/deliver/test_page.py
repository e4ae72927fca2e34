"""The page of a run: one file, with nothing in it that acts, whoever wrote the texts."""

from __future__ import annotations

import re
import time
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.deliver.reports import FULL, REPORT, ROUND, every, exchange, texts
from tunesmith.base.text import strip_controls
from tunesmith.deliver.pages.page import ELSEWHERE, PageKernel, coloured_lines, report_page
from tunesmith.run.report import Failure
from tunesmith.run.rounds import Best, History

BIDI = "\u202eevil\u2066"
HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>` onmouseover=x style=x </style></title></pre>"
    f"</td></table></details>]]><!-- <svg onload=x> &lt;b&gt; javascript:x \x00\x1b[2J{BIDI}\ufffe"
)
TAGS_TEXT = """
html head meta title style body header main footer section nav h1 h2 h3 h4 p a ul li dl dt dd
table caption thead tbody tr th td div details summary figure img pre span strong
"""
TAGS = frozenset(TAGS_TEXT.split())
ATTRIBUTES_TEXT = """
charset http-equiv content name lang id class href role aria-label tabindex scope colspan src
alt
"""
ATTRIBUTES = frozenset(ATTRIBUTES_TEXT.split())
CLASSES_TEXT = """
n wide no gap key add del c s m k d code scroll plot small aside inside about figures good skip why
"""
CLASSES = frozenset(CLASSES_TEXT.split())
IMAGE = "data:image/svg+xml;base64,"


class PageReader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.inside: list[str] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "img"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag, "every element ends where it should"

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        return [own for name, own in self.elements if name == tag]

    @property
    def without_images(self) -> list[tuple[str, dict[str, str]]]:
        return [(tag, {n: v for n, v in own.items() if n != "src"}) for tag, own in self.elements]


def images(page: str) -> list[str]:
    return [b64decode(own["src"].removeprefix(IMAGE)).decode() for own in PageReader(page).of("img")]


def harmless(page: str) -> PageReader:
    found = PageReader(page)
    assert found.inside == []
    assert found.other == [], "no comment, no declaration"
    for tag, own in found.elements:
        assert tag in TAGS
        assert set(own) <= ATTRIBUTES, (tag, own)
        assert set(own.get("class", "").split()) <= CLASSES
        assert own.get("href", "#").startswith("#")
        assert tag == "meta" or own.get("src", IMAGE).startswith(IMAGE)
        assert not any("alert" in value or "evil" in value for value in own.values())
    for image in found.of("img"):
        drawn = ElementTree.fromstring(b64decode(image["src"].removeprefix(IMAGE)))
        tags = {one.tag.rpartition("}")[2] for one in drawn.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "line", "circle", "polyline", "polygon", "text"}
    return found


def test_foreign_text_in_every_field_makes_no_element_and_no_attribute() -> None:
    assert harmless(report_page(every(FULL, HOSTILE))).without_images == (
        harmless(report_page(every(FULL, "x" * len(HOSTILE)))).without_images
    )
    unfinished = replace(FULL, finished=False, workloads=(), geometric_mean=None)
    harmless(report_page(every(unfinished, HOSTILE), texts(HOSTILE)))


def test_kernels_and_models_do_nothing_but_stand_there() -> None:
    page = report_page(FULL, texts(HOSTILE))
    found = harmless(page)
    shown = "".join(found.text)
    said = strip_controls(HOSTILE).replace("\ufffe", "\ufffd")
    assert shown.count(said) >= 6
    assert not re.search("[\x00\x1b\u202a-\u202e\u2066-\u2069]", page)
    spans = [own.get("class") for own in found.of("span")]
    assert {"k", "c"} <= set(spans)


@pytest.mark.parametrize("line", ["x" * 300_000, "<" * 300_000, "/*" * 100_000, '"' * 100_000])
def test_a_very_long_line_is_cut(line: str) -> None:
    page = report_page(every(FULL, line[:20_000]), texts(line))
    harmless(page)
    assert len(page.encode()) < 1_000_000


def test_the_policy_takes_this_style_alone() -> None:
    page = report_page(FULL)
    policy = next(own["content"] for own in PageReader(page).of("meta") if "http-equiv" in own)
    style = page[page.index("<style>") + len("<style>") : page.index("</style>")]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "img-src data:;" in policy
    assert "unsafe" not in policy
    assert not [word for word in ("<", "url(", "@import", "http") if word in style]
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_people_who_hear_or_type_find_their_way() -> None:
    found = PageReader(report_page(FULL, texts("said")))
    tags = [tag for tag, _ in found.elements]
    assert [tags.count(tag) for tag in ("h1", "header", "main", "nav", "footer")] == [1] * 5
    assert found.of("html") == [{"lang": "en"}]
    assert tags.count("table") == tags.count("caption") > 4
    assert all(own["alt"] for own in found.of("img"))
    assert all(own.get("scope") in ("col", "row") for own in found.of("th"))
    ids = [own["id"] for _, own in found.elements if "id" in own]
    assert len(ids) == len(set(ids))
    assert {own["href"][1:] for own in found.of("a")} <= set(ids)
    without = PageReader(report_page(REPORT, texts("said")))
    ids = [own["id"] for _, own in without.elements if "id" in own]
    assert {own["href"][1:] for own in without.of("a")} <= set(ids), "no rounds, no link to them"
    levels = [int(tag[1]) for tag in tags if tag in ("h1", "h2", "h3")]
    assert levels[:2] == [1, 2]
    regions = [own for own in found.of("div") if own.get("class") == "scroll"]
    assert all(own["tabindex"] == "0" and own["aria-label"] for own in regions)


def test_colours_can_be_read_in_light_and_dark() -> None:
    page = report_page(REPORT)
    schemes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in page.split("@media")[:2]]
    assert "prefers-color-scheme: dark" in page.split("@media")[1]
    for own in schemes:
        for ink in ("ink", "muted", "accent", "good", "keyword", "string", "number", "comment", "directive"):
            for paper in ("paper", "panel", "added", "removed"):
                assert contrast(own[ink], own[paper]) >= 4.5, (ink, paper)


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_five_thousand_trials_fit_a_megabyte_and_take_no_time() -> None:
    failures = tuple(Failure({"BLOCK": i, "VEC": 4}, "wrong", f"{i} it differs " * 40) for i in range(5000))
    speedups = tuple(None if i % 5 == 0 else 1 + i / 5000 for i in range(5000))
    steps = tuple((i + 1, 1 + i / 5000) for i in range(5000))
    rounds = tuple(replace(ROUND, number=i, changes=("+" + "y" * 190,) * 160) for i in range(1, 60))
    long = replace(
        FULL,
        failures=failures,
        rounds=rounds,
        history=History(speedups, tuple(Best(n, steps) for n in ("", "small", "wide")), ((1, "1"),), (1, 9)),
        explanations=FULL.explanations * 30,
    )
    kernel = "".join(f"  acc[{i}] += {i}.0f * x[{i}]; // {i}\n" for i in range(2400))
    many = replace(texts("said"), dialogue=(exchange("word " * 20_000),) * 200)
    many = replace(many, tuned=(PageKernel("tuned/k.cl", "", kernel),) * 6)
    began = time.process_time()
    page = report_page(long, many)
    took = time.process_time() - began
    found = harmless(page)
    assert len(page.encode()) < 1_000_000
    assert took < 1.0, took
    assert page == report_page(long, many)
    shown = "".join(found.text)
    assert "the first 250 of 5,000" in shown
    assert ELSEWHERE in shown
    headings = [own["id"] for own in found.of("div") if "id" in own]
    assert headings == [
        "bounds",
        "best",
        "effects",
        "kernels",
        "rounds",
        "failures",
        "talk",
        "run",
        "digests",
    ]


@given(st.one_of(st.text(max_size=80), st.text(alphabet="#/*\"'\\\n a1.", max_size=60)))
def test_colours_leave_nothing_of_a_text_out(text: str) -> None:
    lines = ["".join(piece for _, piece in line) for line in coloured_lines(text)]
    assert "\n".join(lines) == text.removesuffix("\n")
