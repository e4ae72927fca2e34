"""What the layout promises: few names at the top, no class name twice, files that fit a sitting."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import tunesmith

ROOT = Path(tunesmith.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_the_top_level_is_short() -> None:
    modules = [file.stem for file in ROOT.glob("*.py") if not file.stem.startswith("__")]
    packages = [folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()]
    assert len(modules) <= 4, modules
    assert len(packages) <= 16, packages


def test_no_class_name_is_used_twice() -> None:
    found = defaultdict(list)
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"^\s*class\s+_*(\w+)", text, re.MULTILINE):
            found[name].append(file)
    assert len(found) > 500
    # Of texts that stand in a file as strings only the parser knows.
    twice = {
        name: [file for file in dict.fromkeys(files) for one in classes_of(file) if one == name]
        for name, files in found.items()
        if len(files) > 1
    }
    assert {name: files for name, files in twice.items() if len(files) > 1} == {}


@cache
def classes_of(file: Path) -> list[str]:
    parsed = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [node.name.lstrip("_") for node in parsed if isinstance(node, ast.ClassDef)]


def test_every_file_fits_a_sitting() -> None:
    long = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: lines for name, lines in long.items() if lines > 450} == {}
