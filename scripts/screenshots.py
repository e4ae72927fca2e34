"""Pictures of a finished run's page for the docs, by the Chromium that is installed.

    python -m scripts.screenshots RUN [--out docs/images]

Needs the extra `browser`. Each picture is a part of report.html as a reader sees it, in light and in dark.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MOST = 400_000  # bytes of all together
# file, colours, width and height, and what is unfolded and looked at first
SHOTS = (
    ("report-light.png", "light", (1180, 640), ()),
    ("report-dark.png", "dark", (1060, 980), ("bounds", "best")),
    ("report-kernel-light.png", "light", (1060, 640), ("kernels",)),
    ("report-narrow-dark.png", "dark", (390, 640), ()),
)


def shoot(
    browser: Any, page: Path, file: Path, scheme: str, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(page.resolve().as_uri())
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
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    page = given.run / "report.html"
    if not page.is_file():
        parser.error(f"{page} is not there: name the folder of a finished run")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        parser.error(f"none of {', '.join(NAMES)} is here: CONTRIBUTING.md says how to add one")
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        for name, *wish in SHOTS:
            shoot(browser, page, given.out / name, *wish)
        browser.close()
    taken = sum((given.out / name).stat().st_size for name, *_ in SHOTS)
    print(f"{len(SHOTS)} pictures in {given.out}, {taken:,} bytes")
    if taken > MOST:
        parser.error(f"that is more than {MOST:,} bytes: make them smaller")


if __name__ == "__main__":
    main()
