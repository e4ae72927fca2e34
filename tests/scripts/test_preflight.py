"""The preflight script names what a machine lacks and the one command that adds it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).parents[2] / "scripts" / "preflight.sh"
OLD_PYTHON = 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac'
NO_ENSUREPIP = f'case "$2" in *ensurepip*) exit 1 ;; esac; exec "{sys.executable}" "$@"'

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="plays a Linux machine with glibc")


class Machine:
    """A PATH that holds exactly the programs given, on the platform given."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.home = root / "project"
        self.bin.mkdir()
        self.home.mkdir()
        self.program("id", "echo 0")
        self.program("uname", "case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac")

    def program(self, name: str, body: str = "exit 0") -> Machine:
        path = self.bin / name
        path.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        path.chmod(0o755)
        return self

    def python(self, name: str = "python3") -> Machine:
        return self.program(name, f'exec "{sys.executable}" "$@"')

    def preflight(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(shutil.which("sh")), str(PREFLIGHT)],
            cwd=self.home,
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )


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


def test_where_pocl_has_no_wheel_no_linker_is_asked_for(machine: Machine) -> None:
    machine.program("uname", "case $1 in -s) echo Darwin ;; -m) echo arm64 ;; esac")
    result = machine.python().preflight()
    assert result.returncode == 0, result.stderr
    assert "Darwin arm64" in result.stderr
    assert "another OpenCL platform" in result.stderr


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
    machine.program("uname", f"case $1 in -s) echo {system} ;; -m) echo {chip} ;; esac")
    result = subprocess.run(
        [str(shutil.which("sh")), "-c", f'. "{PREFLIGHT}" && echo "[$cuda]"'],
        cwd=machine.python().program("ld").home,
        env={"PATH": str(machine.bin)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout == f"[{extra}]\n", result.stderr
