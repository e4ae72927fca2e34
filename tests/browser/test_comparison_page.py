"""The page of a comparison in a browser: of real runs, in any light and width; hostile text does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser.opened import NARROW, WIDE, Opened, too_wide, violations
from tests.core.deliver.test_page import HOSTILE
from tests.end_to_end.replaying import unpacked
from tests.frameworks import need
from tunesmith.plugins.watch.following import RunsBelow
from tunesmith.plugins.watch.guard import AccessPolicy, open_listener

pytestmark = pytest.mark.browser

uvicorn = need("uvicorn")
server = need("tunesmith.plugins.watch.server")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs, with a comparison of four strategies on two OpenCL kernels, as it ended elsewhere."""
    folder = tmp_path_factory.mktemp("compared")
    return unpacked("opencl", folder)


@pytest.fixture(scope="module")
def place(compared: Path) -> Iterator[str]:
    """The address of a server of that folder, without a path."""
    own = open_listener(0)
    door = AccessPolicy.new(own.getsockname()[1])
    with closing(server.WatchServer(RunsBelow(compared), door)) as watching:
        config = uvicorn.Config(watching.app(), log_config=None, lifespan="off", ws="none")
        serving = uvicorn.Server(config)
        thread = Thread(target=serving.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        yield f"{door.address}{{path}}?token={door.token}"
        serving.should_exit = True
        thread.join(timeout=60)


def body(page: Any) -> str:
    return str(page.locator("body").inner_text())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_what_the_runs_of_a_comparison_say(
    opened: Opened, place: str, size: tuple[int, int], scheme: str
) -> None:
    page = opened.at(place.format(path="/comparisons/compared"), size=size, scheme=scheme)
    assert page.locator("table tbody tr").count() >= 2
    assert "rewrite" in body(page)
    assert page.locator("img").count() >= 2
    assert too_wide(page) <= 0
    assert violations(page) == []
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    page.get_by_role("link", name="The runs of compared").click()
    assert "8 of 8 runs" in body(page)
    assert too_wide(page) <= 0
    page.get_by_role("link", name="compared/runs/softmax/template-1").click()
    assert page.locator("h1").inner_text() == "softmax"
    assert opened.wrong == []


def test_hostile_text_in_a_comparison_does_nothing(opened: Opened, place: str, compared: Path) -> None:
    bad = compared / "bad"
    bad.mkdir()
    (bad / "plots").mkdir()
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">{HOSTILE}</svg>'
    (bad / "plots" / "a.svg").write_text(picture)
    (bad / "compare.json").write_bytes((compared / "compared" / "compare.json").read_bytes())
    link, cell = f"[{HOSTILE}](javascript:alert(1))", HOSTILE.replace("|", "")
    table = f"| a | b |\n|---|---|\n| {cell} | {link} |\n"
    text = f"# {HOSTILE}\n\n{link}\n\n![x](plots/a.svg)\n\n## {HOSTILE}\n\n{table}"
    (bad / "compare.md").write_text(text)
    page = opened.at(place.format(path="/comparisons/bad"))
    assert "<script>alert(1)</script>" in body(page)
    assert page.locator("main script, main svg, main iframe, main form").count() == 0
    links = page.evaluate("[...document.links].map(a => a.getAttribute('href'))")
    assert links
    assert all(link.startswith("/") for link in links)
    page.wait_for_timeout(100)
    assert opened.wrong == []
