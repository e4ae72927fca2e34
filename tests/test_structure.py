"""What the layout promises: few names at the top, and long files that say why."""

from __future__ import annotations

import ast
from pathlib import Path

import tunesmith

ROOT = Path(tunesmith.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_the_top_level_is_short() -> None:
    modules = [file.stem for file in ROOT.glob("*.py") if not file.stem.startswith("__")]
    packages = [folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()]
    assert len(modules) <= 4, modules
    assert len(packages) <= 15, packages


def test_a_long_file_says_why() -> None:
    """A file is cut by subject; one above 900 lines says in its docstring why it is one."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        if len(text.splitlines()) > 900:
            assert "one subject" in (ast.get_docstring(ast.parse(text)) or ""), file
