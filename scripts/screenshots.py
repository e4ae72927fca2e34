"""Pictures of a run's page for the docs, finished or watched, by the Chromium that is installed.

    python -m scripts.screenshots RUN [--out docs/images]
    python -m scripts.screenshots http://127.0.0.1:PORT/runs/NAME?token=…

Needs the extra `browser`. Each picture is a part of a page as a reader sees it, in light and in dark. The
address is the one that `tunesmith watch RUN` prints.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MAX = 400_000  # bytes of all together
# file, colours, width and height, and what is unfolded and looked at first
Shot = tuple[str, str, tuple[int, int], tuple[str, ...]]
SHOTS: tuple[Shot, ...] = (
    ("report-light.png", "light", (1180, 640), ()),
    ("report-dark.png", "dark", (1060, 980), ("bounds", "best")),
    ("report-kernel-light.png", "light", (1060, 640), ("kernels",)),
    ("report-narrow-dark.png", "dark", (390, 640), ()),
)
LIVE_SHOTS: tuple[Shot, ...] = (
    ("watch-light.png", "light", (1060, 860), ()),
    ("watch-narrow-dark.png", "dark", (390, 640), ()),
)
TOLD = 3000  # milliseconds in which the server tells of what has changed


def shoot(
    browser: Any, page: str, file: Path, scheme: str, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(page)
    if shown.locator("#now").count():
        shown.wait_for_timeout(TOLD)
    there = [key for key in keys if shown.locator(f"#{key}").count()]
    for key in there:
        shown.locator(f"details:has(> #{key}) > summary").click()
    if there:
        shown.evaluate("key => document.getElementById(key).parentElement.scrollIntoView()", there[0])
    shown.mouse.move(0, 0)
    shown.screenshot(path=file)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", help="the folder of a finished run, or the address of one that is watched")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    shots, page = LIVE_SHOTS, given.run
    if not page.startswith("http://127.0.0.1:"):
        file = Path(given.run) / "report.html"
        shots, page = SHOTS, file.resolve().as_uri()
        if not file.is_file():
            parser.error(f"{file} is not there: name the folder of a finished run")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        parser.error(f"none of {', '.join(NAMES)} is here: CONTRIBUTING.md says how to add one")
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        for name, scheme, size, keys in shots:
            shoot(browser, page, given.out / name, scheme, size, keys)
        browser.close()
    taken = sum((given.out / name).stat().st_size for name, *_ in shots)
    print(f"{len(shots)} pictures in {given.out}, {taken:,} bytes")
    if taken > MAX:
        parser.error(f"that is more than {MAX:,} bytes: make them smaller")


if __name__ == "__main__":
    main()
