"""A page in a browser, and what it did beside standing there."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from tests.frameworks import need

WIDE, NARROW = (1400, 900), (360, 740)
OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true"


class Opened:
    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        self._contexts: list[Any] = []
        self.wrong: list[str] = []

    def page(self, text: str, **wish: Any) -> Any:
        """Of this text, as a file, which is how people open it."""
        file = self._folder / f"page-{len(self._contexts)}.html"
        file.write_text(text, encoding="utf-8")
        return self.at(file.as_uri(), **wish)

    def at(self, address: str, size: tuple[int, int] = WIDE, scheme: str = "light") -> Any:
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        self._contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda said: self._said(said))
        page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        page.on("popup", lambda other: self.wrong.append(f"opened {other.url}"))
        page.on("request", lambda request: self._asked(request.url, address))
        page.goto(address)
        return page

    def _said(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.wrong.append(f"{said.type} {said.text}")

    def _asked(self, url: str, address: str) -> None:
        origin = "/".join(address.split("/")[:3])
        own = url == address if address.startswith("file:") else url.startswith(f"{origin}/")
        if not own and not url.startswith("data:"):
            self.wrong.append(f"request {url}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def open_all(page: Any) -> None:
    page.evaluate(OPEN_ALL)


def too_wide(page: Any) -> int:
    """By how many pixels a reader would have to scroll sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def violations(page: Any, least: tuple[str, ...] = ("serious", "critical")) -> list[str]:
    """What axe-core finds, of these degrees."""
    need("axe_playwright_python")
    script = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page.evaluate(script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert page.evaluate("axe.version"), "it ran"
    return [
        f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:160]} ({len(one['nodes'])})"
        for one in found
        if one["impact"] in least
    ]
