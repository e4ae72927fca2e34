"""Set-up brings an OpenCL device where there is none, and only there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.scripts.played_machine import SCRIPTS, Machine

# An interpreter of a .venv that is sound; it sees a platform where the machine has one or the loader is told.
PYTHON = """
case "$*" in
*'import ctypes'*) echo 'its last words' >&2; exit 1 ;;
*get_platforms*) [ -e platform ] || { [ -n "${OCL_ICD_VENDORS:-}" ] && [ ! -e broken ]; } ;;
*'import pocl_binary_distribution'*) [ -e wheel ] ;;
*uninstall*) rm wheel ;;
*'pip config list'*) cat pip.conf 2>/dev/null ;;
*'pip install'*--editable*) echo pip >>installed ;;
*CS_GNU_LIBC_VERSION*) echo glibc 2.36 ;;
*print*) echo 3.12 ;;
esac
"""
UNPACK = """
echo >>unpacked
[ ! -e offline ] || exit 3
mkdir -p "$1/vendors" && echo >"$1/vendors/pocl.icd" && echo 'export OCL_ICD_VENDORS=x' >"$1/env.sh"
"""


class Project(Machine):
    """A checkout whose .venv is made and installed already, on a machine with apt-get."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.real("basename", "cat", "cksum", "dirname", "mkdir", "rm", "sh", "tail").program("ld")
        self.program("apt-get")
        shutil.copytree(SCRIPTS, self.home / "scripts")
        (self.home / "scripts" / "pocl.sh").write_text(UNPACK)
        self.has("pyproject.toml", "requirements-dev.txt", ".venv/bin/tunesmith", ".venv/bin/python")
        (self.home / ".venv/bin/python").write_text(f"#!{shutil.which('sh')}{PYTHON}")
        for name in ("python", "tunesmith"):
            (self.home / ".venv" / "bin" / name).chmod(0o755)
        inputs = self._sh("-c", "cat pyproject.toml requirements-dev.txt | cksum").stdout
        (self.home / ".venv" / ".installed").write_text(f"{inputs}opencl\n")

    def has(self, *names: str) -> Project:
        for name in names:
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text("")
        return self

    def setup(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self._sh("scripts/setup.sh", "opencl", *args, **environment)

    @property
    def unpacked(self) -> int:
        """How often it was tried."""
        log = self.home / "unpacked"
        return len(log.read_text()) if log.exists() else 0


@pytest.fixture
def arm(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.platform("Linux", "aarch64")
    return project


def test_without_wheel_and_platform_pocl_is_unpacked_once(arm: Project) -> None:
    for _ in range(2):
        result = arm.setup("device")
        assert result.returncode == 0, result.stderr
        assert arm.unpacked == 1
    assert (arm.home / ".venv" / "pocl" / "vendors" / "pocl.icd").is_file()


def test_a_platform_that_is_there_is_used(arm: Project) -> None:
    assert arm.has("platform").setup("device").returncode == 0
    assert arm.unpacked == 0


def test_where_the_wheel_serves_nothing_is_unpacked(tmp_path: Path) -> None:
    project = Project(tmp_path).has("wheel")
    assert project.setup("device").returncode == 0
    assert project.unpacked == 0


def test_the_variable_unpacks_all_the_same_and_removes_the_wheel(tmp_path: Path) -> None:
    project = Project(tmp_path).has("wheel", "platform")
    assert project.setup("device", TUNESMITH_POCL="unpack").returncode == 0
    assert project.unpacked == 1
    assert not (project.home / "wheel").exists()
    assert project.has("wheel").setup("device").returncode == 0, "pip brought it again"
    assert not (project.home / "wheel").exists(), "and one PoCL stays one"
    assert project.unpacked == 1


@pytest.mark.parametrize(("args", "status"), [(("device",), 1), ((), 0)])
def test_only_who_needs_a_device_ends_without_one(arm: Project, args: tuple[str, ...], status: int) -> None:
    result = arm.has("offline").setup(*args)
    assert result.returncode == status
    assert ("going on without" in result.stderr) is (status == 0)


def test_a_choice_that_fails_is_an_error_for_everybody(arm: Project) -> None:
    assert arm.has("offline").setup(TUNESMITH_POCL="unpack").returncode == 1


def test_one_that_does_not_start_is_quoted_and_removed(arm: Project) -> None:
    result = arm.has("broken").setup("device")
    assert result.returncode == 1
    assert "does not start: its last words" in result.stderr
    assert "apt-get install -y pocl-opencl-icd" in result.stderr
    assert not (arm.home / ".venv" / "pocl").exists()


def test_where_it_cannot_be_unpacked_the_command_is_printed(arm: Project) -> None:
    (arm.bin / "apt-get").unlink()
    arm.program("zypper")
    result = arm.setup("device")
    assert result.returncode == 1
    assert "zypper install -y pocl" in result.stderr
    assert arm.unpacked == 0


@pytest.mark.parametrize(
    ("uv", "settings", "installed"),
    [
        ("echo uv >>installed", "", "uv"),
        ("exit 2", "", "pip"),
        (None, "", "pip"),
        ("echo uv >>installed", "global.index-url='https://own.example/simple'", "pip"),
    ],
)
def test_uv_installs_unless_it_cannot_or_pip_has_another_index(
    arm: Project, uv: str | None, settings: str, installed: str
) -> None:
    (arm.home / ".venv" / ".installed").unlink()
    (arm.home / "pip.conf").write_text(settings)
    if uv:
        (arm.home / ".venv/bin/uv").write_text(f"#!{shutil.which('sh')}\n{uv}")
        (arm.home / ".venv/bin/uv").chmod(0o755)
    assert arm.setup("device").returncode == 0
    assert (arm.home / "installed").read_text().split() == [installed]
