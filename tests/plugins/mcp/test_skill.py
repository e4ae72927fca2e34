"""The skill for coding agents: every command it names is there, with these options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from tests.running import tunesmith
from tunesmith.cli.app import app
from tunesmith.plugins.mcp.commands import SKILL, skill_files

FILES = skill_files()
_INLINE = re.compile(r"`(tunesmith [^`]+)`")
_FENCED = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def commands(text: str) -> list[list[str]]:
    lines = [line for block in _FENCED.findall(text) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in [*lines, *_INLINE.findall(text)] if line]


NAMED = [(name, command) for name, text in FILES.items() for command in commands(text)]


def test_many_commands_are_named() -> None:
    assert len(NAMED) > 20
    assert {command[1] for _, command in NAMED} >= {"init", "check", "explain", "tune", "resume", "export"}


@pytest.mark.parametrize("command", [command for _, command in NAMED], ids=" ".join)
def test_each_command_is_there_with_these_options(command: list[str]) -> None:
    program, called, *words = command
    assert program == "tunesmith"
    group = get_command(app)
    own = group.commands[called]  # type: ignore[attr-defined]
    if words:  # parsed as it would be, and not run; a name alone is only a name
        own.make_context(called, words)


def test_it_begins_as_agents_expect() -> None:
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", FILES[SKILL])
    assert head is not None
    assert head[1] == Path(SKILL).parent.name
    assert len(head[2]) <= 1024
    assert len(FILES[SKILL].splitlines()) < 200, "what is read at once is short"


def test_links_lead_to_files_of_the_skill() -> None:
    for name, text in FILES.items():
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert str(Path(name).parent / link) in FILES, (name, link)


def test_whoever_has_only_the_program_can_write_it(tmp_path: Path) -> None:
    shown = tunesmith(tmp_path, "skill")
    assert shown.out.rstrip() == FILES[SKILL].rstrip()
    for _ in range(2):  # an older one is replaced
        ended = tunesmith(tmp_path, "skill", "--out", ".claude/skills", "--json")
        assert sorted(ended.json["files"]) == sorted(FILES)
    for name, text in FILES.items():
        assert (tmp_path / ".claude" / "skills" / name).read_text() == text
    (tmp_path / "file").write_text("")
    assert tunesmith(tmp_path, "skill", "--out", "file").code == 2


def test_the_repository_has_it_where_agents_look() -> None:
    root = Path(__file__).parents[3] / "skills"
    if not root.exists():
        pytest.skip("not a clone of the repository")
    assert {name: (root / name).read_text() for name in FILES} == FILES
