"""The preflight script names what a machine lacks and the one command that adds it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scripts.played_machine import Machine

OLD_PYTHON = 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac'
NO_ENSUREPIP = f'case "$2" in *ensurepip*) exit 1 ;; esac; exec "{sys.executable}" "$@"'

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="plays a Linux machine with glibc")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_complete_machine_passes(machine: Machine) -> None:
    result = machine.python().program("ld").preflight()
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "apt-get install -y binutils"),
        ("dnf", "dnf install -y binutils"),
        ("pacman", "pacman -S --needed binutils"),
        ("apk", "apk add binutils"),
        ("zypper", "zypper install -y binutils"),
    ],
)
def test_a_missing_linker_is_named_with_its_command(machine: Machine, manager: str, command: str) -> None:
    result = machine.python().program(manager).preflight()
    assert result.returncode == 1
    assert "a linker, ld" in result.stderr
    assert command in result.stderr


def test_without_a_package_manager_the_package_is_still_named(machine: Machine) -> None:
    result = machine.python().preflight()
    assert result.returncode == 1
    assert "package manager: binutils" in result.stderr


@pytest.mark.parametrize(
    ("prepare", "complaint"),
    [
        (lambda machine: machine, "no python3 on PATH"),
        (lambda machine: machine.program("python3", OLD_PYTHON), "python3 is 3.9"),
    ],
)
def test_everything_missing_is_one_command(
    machine: Machine, prepare: Callable[[Machine], Machine], complaint: str
) -> None:
    result = prepare(machine.program("dnf")).preflight()
    assert result.returncode == 1
    assert complaint in result.stderr
    assert "dnf install -y python3.12 binutils" in result.stderr


def test_debian_splits_venv_into_a_package_of_its_own(machine: Machine) -> None:
    result = machine.program("python3", NO_ENSUREPIP).program("ld").program("apt-get").preflight()
    assert result.returncode == 1
    assert f"python{sys.version_info[0]}.{sys.version_info[1]}-venv" in result.stderr


def test_a_launcher_with_nothing_behind_it_is_passed_over(machine: Machine) -> None:
    result = machine.program("python3.13", "exit 127").python().program("ld").preflight()
    assert result.returncode == 0, result.stderr
    assert "bin/python3)" in result.stderr


def test_the_interpreter_named_is_the_one_that_counts(machine: Machine) -> None:
    result = machine.python().program("ld").preflight(PYTHON="/nowhere/python3")
    assert result.returncode == 1
    assert "PYTHON=/nowhere/python3" in result.stderr


def test_an_old_python_without_a_newer_package_is_one_command_all_the_same(machine: Machine) -> None:
    result = machine.program("python3", OLD_PYTHON).program("ld").preflight()
    assert result.returncode == 1
    assert "python3 is 3.9" in result.stderr
    assert "uv python install" in result.stderr.replace('"', "").replace("$HOME/.local/bin/", "")
    assert "make demo PYTHON=" in result.stderr


def test_where_pocl_must_be_installed_by_hand_no_linker_is_asked_for(machine: Machine) -> None:
    result = machine.platform("Darwin", "arm64").python().preflight()
    assert result.returncode == 0, result.stderr
    assert "Darwin arm64" in result.stderr
    assert "another OpenCL platform" in result.stderr


def test_where_pocl_is_unpacked_a_linker_is_asked_for(machine: Machine) -> None:
    result = machine.platform("Linux", "aarch64").python().program("dnf").preflight()
    assert result.returncode == 1
    assert "dnf install -y binutils" in result.stderr


@pytest.mark.parametrize(
    ("system", "chip", "manager", "choice", "how"),
    [
        ("Linux", "x86_64", "apt-get", "", "wheel"),
        ("Linux", "x86_64", "apt-get", "unpack", "unpack"),
        ("Linux", "x86_64", "dnf", "unpack", "unpack"),
        ("Linux", "aarch64", "apt-get", "", "unpack"),
        ("Linux", "aarch64", "dnf", "", "unpack"),
        ("Linux", "aarch64", "pacman", "", "install"),
        ("Linux", "riscv64", "apt-get", "", "unpack"),
        ("Darwin", "arm64", "brew", "", "install"),
    ],
)
@pytest.mark.few(4)
def test_how_pocl_gets_here(
    machine: Machine, system: str, chip: str, manager: str, choice: str, how: str
) -> None:
    machine.platform(system, chip).python().program("ld").program(manager)
    result = machine.after("preflight.sh", 'echo "[$pocl]"', TUNESMITH_POCL=choice)
    assert result.stdout == f"[{how}]\n", result.stderr


@pytest.mark.parametrize(
    ("manager", "choice", "rule"),
    [
        ("apt-get", "wheel", "may be 'unpack' or unset"),
        ("pacman", "unpack", "needs Linux with glibc and apt-get or dnf"),
    ],
)
def test_a_choice_that_cannot_be_had_is_refused(
    machine: Machine, manager: str, choice: str, rule: str
) -> None:
    result = machine.python().program("ld").program(manager).preflight(TUNESMITH_POCL=choice)
    assert result.returncode == 1
    assert rule in result.stderr
    assert choice in result.stderr
    assert "unset TUNESMITH_POCL" in result.stderr


@pytest.mark.parametrize(
    ("system", "chip", "extra"),
    [
        ("Linux", "x86_64", "cuda"),
        ("Linux", "aarch64", "cuda"),
        ("Linux", "riscv64", ""),
        ("Darwin", "arm64", ""),
    ],
)
def test_cuda_is_installed_where_it_has_wheels(machine: Machine, system: str, chip: str, extra: str) -> None:
    result = machine.platform(system, chip).python().program("ld").after("preflight.sh", 'echo "[$cuda]"')
    assert result.stdout == f"[{extra}]\n", result.stderr
