"""How the house stands, by its syntax alone: circles of imports, what core and plugins take of each other.

Every import counts, under TYPE_CHECKING and in functions, too. The bounds are what was counted last: they may
only fall. `pytest -s` prints the figures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "tunesmith"
# What is to stand beside the core, by the modules that it consists of today; under no name what stays there.
PLUGINS = {
    "": "deliver.exports.artefact deliver.exports.terms",
    "repo": "capture session.extract session.apply session.git session.repositories "
    "cli.capturing cli.applying deliver.exports.swap",
    "exports": "deliver.exports cli.exports",
    "fleet": "session.fleet cli.fleets deliver.fleet deliver.fleet_page",
    "hosts": "cli.hosts lab.remote session.hosts session.worker_host session.ray_driver session.ray_workers",
    "cpu_device": "backends.cpu session.standing_in session.host_watch",
    "mcp": "cli.mcp cli.agents",
    "watch": "session.watching session.loopback cli.watching",
    "studies": "session.studies session.comparison session.benching session.bench_worker cli.bench "
    "deliver.comparing deliver.comparison deliver.comparison_page deliver.compared deliver.findings "
    "deliver.experiment deliver.experiment_page deliver.difference deliver.difference_page",
}
MAY_IMPORT = {
    ("fleet", "hosts"),
    ("fleet", "repo"),
    ("mcp", "studies"),
    ("mcp", "watch"),
    ("repo", "exports"),
    ("watch", "studies"),
}
BELOW = ("errors", "text", "base", "space", "csource", "problem", "run")  # open to every plugin
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
    """Empty: the core. The longest name that fits counts."""
    owners = {prefix: plugin for plugin, names in PLUGINS.items() for prefix in names.split()}
    fitting = [prefix for prefix in owners if module == prefix or module.startswith(f"{prefix}.")]
    return owners[max(fitting, key=len)] if fitting else ""


def test_circles() -> None:
    found = circles()
    print(f"{len(found)} circles of {[len(one) for one in found]} modules")
    assert len(found) <= 10
    assert max(map(len, found)) <= 3


def test_the_core_imports_of_plugins() -> None:
    taken = sorted({(a, b) for a, b, _ in edges() if not plugin_of(a) and plugin_of(b)})
    print(f"{len(taken)} imports from the core to plugins", *taken, sep="\n  ")
    assert taken == []


def test_plugins_import_of_each_other() -> None:
    pairs = {(plugin_of(a), plugin_of(b)) for a, b, _ in edges()}
    found = sorted((a, b) for a, b in pairs if a and b and a != b)
    print(f"{len(found)} pairs of plugins", *found, sep="\n  ")
    assert set(found) <= MAY_IMPORT


def test_names_of_the_core_that_plugins_use() -> None:
    used = {(b, name) for a, b, name in edges() if plugin_of(a) and b and not plugin_of(b)}
    above = {(b, name) for b, name in used if b.partition(".")[0] not in BELOW}
    print(f"{len(used)} names of {len({b for b, _ in used})} core modules, {len(above)} from above run")
    assert len(used) <= 423
    assert len(above) <= 196


def test_every_part_of_a_plugin_is_there() -> None:
    prefixes = {prefix for names in PLUGINS.values() for prefix in names.split()}
    missing = [p for p in sorted(prefixes) if p not in modules()]
    assert missing == [], "adapt the table: they have moved"
