"""In a notebook a run is drawn anew below its cell while it goes on; it shows its table when it has ended."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import tunesmith
from tests.core.api.problems import built, template
from tests.core.deliver.test_page import HOSTILE, IMAGE
from tunesmith.session import progress, result
from tunesmith.session.progress import listener_of


class Screen:
    """What a notebook has below a cell."""

    def __init__(self) -> None:
        self.drawn: list[list[str]] = []

    def display(self, html: str, display_id: bool) -> SimpleNamespace:
        assert display_id
        self.drawn.append([html])
        return SimpleNamespace(update=self.drawn[-1].append)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    found, ipython, inside = Screen(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    inside.HTML, inside.display = str, found.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    return found


def test_a_run_is_drawn_while_it_goes_on(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tunesmith.tune(
        built(),
        template=template(tmp_path),
        budget=3,
        out=tmp_path / "run",
        cache_dir=str(tmp_path / "cache"),
        library=False,
        builders=1,
    )
    (drawn,) = screen.drawn
    assert len(drawn) > 5, "one place, drawn anew"
    pictured = [html for html in drawn if IMAGE in html]
    assert "1 evaluation, 0 failed; by the search, not verified" in "".join(pictured)
    assert "3 evaluations" in drawn[-1]
    assert IMAGE not in drawn[0], "nothing was measured by then"
    html = run._repr_html_()
    assert "<table>" in html
    assert f"{run.result.geometric_mean:.2f}×" in html
    assert html.count(IMAGE) >= 2

    shown = iter([True, True, False])
    monkeypatch.setattr(progress.time, "sleep", lambda _seconds: None)

    def standing(folder: object) -> tunesmith.Run:
        done = looked(folder)
        live = next(shown)
        changed = {"live": live, "finished": not live}
        return replace(done, result=replace(done.result, **changed))

    looked = result.as_it_stands
    monkeypatch.setattr(result, "as_it_stands", standing)
    assert not run.follow().result.live
    assert len(screen.drawn[1]) == 3
    assert "running, " in screen.drawn[1][0]
    assert "running, " not in screen.drawn[1][-1]


def test_what_others_say_does_nothing() -> None:
    html = progress.progress_html(None, HOSTILE, [HOSTILE])
    assert "<script" not in html
    assert "<img" not in html


def test_a_browser_is_not_waited_for() -> None:
    now = 0.0
    drawn: list[str] = []
    area = progress.NotebookArea(lambda html, display_id: SimpleNamespace(update=drawn.append), str)
    listener = progress.NotebookListener(area, lambda: now)
    listener.note("first")
    for _ in range(1000):
        now += 0.01
        listener.note("again")
    assert 8 <= len(drawn) <= 10, "once a second"


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_elsewhere_nothing_is_drawn(screen: Screen, shell: object) -> None:
    sys.modules["IPython"].get_ipython = lambda: shell  # type: ignore[attr-defined]
    listener_of(None).say("x")
    assert screen.drawn == []
