"""The pages: links lead somewhere, the long ones stay short, and no page names a file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_SOURCE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py)?)(?:\.[A-Za-z_]+)?`")


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize(("name", "words"), [("README.md", 600), ("docs/architecture.md", 3000)])
def test_a_page_stays_short(name: str, words: int) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= words


@pytest.mark.parametrize("name", ["architecture", "lab", "searching", "expert", "profiling", "strategies"])
def test_files_that_a_page_names_are_there(name: str) -> None:
    source = ROOT / "src" / "tunesmith"
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    packages = {folder.name for folder in source.iterdir() if folder.is_dir()}
    named = {path for path in _SOURCE.findall(text) if path.split("/")[0] in packages}
    gone = [p for p in named if not any((source / f"{p}{end}").exists() for end in ("", ".py"))]
    assert sorted(gone) == []
