"""How the house stands: packages, circles of imports, what core and plugins take of each other, long files.

Every import counts, under TYPE_CHECKING and in functions, too. The import contract in pyproject.toml has the
floors. Bounds are what was counted last: they may only fall. `pytest -s` prints the figures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "tunesmith"
PACKAGES = 16  # with plugins
MAY_IMPORT = {
    ("fleet", "hosts"),
    ("fleet", "repo"),
    ("mcp", "studies"),
    ("mcp", "watch"),
    ("repo", "exports"),
    ("watch", "studies"),
}
BELOW = ("base", "space", "source", "problem", "run")  # open to every plugin
LONG = 900  # lines; above, the docstring says why
Edge = tuple[str, str, str]  # importing module, imported module, name


@cache
def modules() -> dict[str, Path]:
    found = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = file
    return found


@cache
def edges() -> frozenset[Edge]:
    return frozenset(edge for name, file in modules().items() for edge in imports_of(name, file))


def imports_of(name: str, file: Path) -> Iterator[Edge]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith("tunesmith."):
            base = node.module.partition("tunesmith")[2].lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield (name, inner, "") if inner in modules() else (name, base, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                inner = alias.name.removeprefix("tunesmith").lstrip(".")
                if alias.name.startswith("tunesmith") and inner in modules():
                    yield name, inner, ""


def circles() -> list[frozenset[str]]:
    """Sets of modules that all reach each other, the largest first (Tarjan)."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for importing, imported, _ in edges():
        if imported and importing and importing != imported:
            graph[importing].add(imported)
    index, low, stack, found = dict[str, int](), dict[str, int](), list[str](), list[frozenset[str]]()

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            place = stack.index(name)
            found.append(frozenset(stack[place:]))
            del stack[place:]

    for name in graph:
        if name not in index:
            visit(name)
    return sorted((one for one in found if len(one) > 1), key=len, reverse=True)


def plugin_of(module: str) -> str:
    """Empty: the core."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "plugins" else ""


def test_the_top_level_is_short() -> None:
    found = [file.stem for file in ROOT.glob("*.py") if not file.stem.startswith("__")]
    packages = [folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()]
    assert found == ["api"]
    assert len(packages) <= PACKAGES, packages


def test_a_long_file_says_why() -> None:
    for file in modules().values():
        text = file.read_text(encoding="utf-8")
        if len(text.splitlines()) > LONG:
            assert "Long, because" in (ast.get_docstring(ast.parse(text)) or ""), file


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles() == []


def test_the_core_imports_no_plugin() -> None:
    assert sorted({(a, b) for a, b, _ in edges() if not plugin_of(a) and plugin_of(b)}) == []


def test_plugins_import_few_others() -> None:
    pairs = {(plugin_of(a), plugin_of(b)) for a, b, _ in edges()}
    found = {(a, b) for a, b in pairs if a and b and a != b}
    print(f"{len(found)} pairs of plugins", *sorted(found), sep="\n  ")
    assert found <= MAY_IMPORT


def test_names_of_the_core_that_plugins_use() -> None:
    used = {(b, name) for a, b, name in edges() if plugin_of(a) and b and not plugin_of(b)}
    above = {(b, name) for b, name in used if b.partition(".")[0] not in BELOW}
    print(f"{len(used)} names of {len({b for b, _ in used})} core modules, {len(above)} from above run")
    assert len(used) <= 415
    assert len(above) <= 190
