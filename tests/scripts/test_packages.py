"""The table of packages: one row for each package manager, one command for each thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts.played_machine import SCRIPTS, Machine

MANAGERS = ("apt-get", "dnf", "microdnf", "pacman", "apk", "zypper", "brew")
ROW = 'echo "$manager $manager_seen $python_package $linker_package $pocl_package $pocl_by"'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("manager", MANAGERS)
def test_every_row_is_whole(machine: Machine, manager: str) -> None:
    result = machine.program(manager).after("packages.sh", f"find_manager && {ROW}")
    name, seen, python, linker, pocl, by = result.stdout.split()
    assert name == manager
    assert seen in {"seen", "not-seen"}
    assert python.startswith("python")
    assert linker == ("-" if manager == "brew" else "binutils")
    assert "pocl" in pocl
    assert by in {"unpack", "install"}


def test_a_row_is_written_for_each_manager_and_no_other() -> None:
    rows = re.findall(r"^    row (\S+) ", (SCRIPTS / "packages.sh").read_text(), re.MULTILINE)
    assert tuple(rows) == MANAGERS


def test_what_is_unpacked_has_a_way_to_be_unpacked(machine: Machine) -> None:
    text = (SCRIPTS / "packages.sh").read_text()
    assert re.findall(r"^    row (\S+) .* unpack ", text, re.MULTILINE) == ["apt-get", "dnf"]


@pytest.mark.parametrize(
    ("manager", "user", "command"),
    [
        ("dnf", 0, "dnf install -y pocl"),
        ("dnf", 1000, "sudo dnf install -y pocl"),
        ("pacman", 1000, "sudo pacman -S --needed pocl"),
        ("apk", 1000, "sudo apk add pocl"),
        ("zypper", 1000, "sudo zypper install -y pocl"),
        ("brew", 1000, "brew install pocl"),
    ],
)
def test_the_command_that_adds_pocl(machine: Machine, manager: str, user: int, command: str) -> None:
    machine.program(manager).program("id", f"echo {user}")
    result = machine.after("packages.sh", 'find_manager && install_command "$pocl_package"')
    assert result.stdout == f"{command}\n"


def test_apt_is_told_to_read_its_lists_only_where_it_has_none(machine: Machine) -> None:
    machine.program("apt-get")
    for knows, before in (("true", ""), ("false", "apt-get update && ")):
        result = machine.after(
            "packages.sh", f"apt_knows_packages() {{ {knows}; }} && find_manager && install_command x"
        )
        assert result.stdout == f"{before}apt-get install -y x\n"


@pytest.mark.parametrize(
    ("known", "lists", "package"),
    [("3.12", "true", "python3.12-venv"), ("3.9", "true", ""), ("none", "false", "python3-venv")],
)
def test_apt_names_the_newest_python_its_release_has(
    machine: Machine, known: str, lists: str, package: str
) -> None:
    machine.program("apt-get").program("apt-cache", f'case $2 in python{known}-venv) echo "$2" ;; esac')
    look = f"apt_knows_packages() {{ {lists}; }} && find_manager && find_python_package"
    result = machine.after("packages.sh", f'{look}; echo "[$python_package]"')
    assert result.stdout == f"[{package}]\n"


def test_without_a_manager_every_word_is_empty(machine: Machine) -> None:
    assert machine.after("packages.sh", f"find_manager && {ROW}").stdout.strip() == ""
