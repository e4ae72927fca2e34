"""Every process that the package starts: Python without the current folder, variables by a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "tunesmith"
SHIPPED = "deliver/runtime/"  # parts of exports, which start in programs of others
# Those that inherit all variables, and why they may: nothing of a problem, a run or a template is run there.
INHERITING = {
    "plugins/repo/capture/capture.py": (
        "the user's own program, and one of ours with the library that watches"
    ),
    "plugins/mcp/jobs.py": "this command line again, as its server was started",
    "plugins/hosts/transport.py": "the user's own command, which leads to a host",
    "plugins/repo/apply/commands.py": "the user's own tests, build and benchmark",
    "plugins/fleet/head.py": "this command line again, for one run of a fleet",
    "plugins/hosts/ray.py": "Ray, which has variables of its own, and the host of workers on a node",
    "backends/tool_process.py": "a shell that waits for our end to kill a group",
}


def files_with(word: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        name, text = path.relative_to(SRC).as_posix(), path.read_text()
        if word in text and not name.startswith(SHIPPED):
            yield name, ast.parse(text)


STARTS = ("subprocess.run", "subprocess.Popen")


def calls() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in files_with("subprocess."):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "subprocess.run",
                "subprocess.Popen",
            ):
                yield name, node


def test_what_inherits_all_variables_is_on_the_list() -> None:
    found = set()
    for name, call in calls():
        env = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "env"), "")
        if not env or "**os.environ" in env or env in ("os.environ", "self.environment"):
            found.add(name)
    given = {"plugins/repo/capture/capture.py"}  # a variable, which is made of all of them
    assert found <= INHERITING.keys(), "give these env=passed_on(…) or worker_environment(…)"
    assert INHERITING.keys() - found == given


def test_python_starts_without_the_current_folder() -> None:
    starts = [
        (name, ast.unparse(node.elts[1]))
        for name, tree in files_with("sys.executable")
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple) and "sys.executable" in map(ast.unparse, node.elts[:1])
    ]
    assert len(starts) > 5, "this looks for what is no longer there"
    assert [name for name, option in starts if option != "'-P'"] == []


def test_git_is_run_in_one_place() -> None:
    assert [name for name, call in calls() if "'git'" in ast.unparse(call)] == ["plugins/repo/git.py"]
