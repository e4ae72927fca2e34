"""Markdown that nobody can write into: neither a compiler, nor a model, nor a device."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.deliver.reports import REPORT, a_round
from tests.markdown_reader import acting, read
from tunesmith.deliver.pages.page import report_markdown
from tunesmith.run.report import Failure, Report


def failing(detail: str) -> Report:
    return replace(REPORT, failures=(Failure({"BLOCK": 64}, "build_failed", detail),))


def rows(markdown: str) -> list[list[str]]:
    """The cells of every table row, as a reader of GitHub's Markdown splits them."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


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


def test_a_device_cannot_write_into_the_report_either() -> None:
    text = report_markdown(replace(REPORT, device="<b>GPU</b>\n# x", driver="![](http://e)"))
    assert acting(text) == acting(report_markdown(REPORT))
    assert "<b>GPU</b> # x." in read(text)
    assert "driver: ![](http://e)" in read(text)


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
