"""The distribution's own PoCL, unpacked without root, and how our processes come to see it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tunesmith
from tests.scripts.played_machine import SCRIPTS, SH, Machine
from tunesmith.backends.opencl import pocl_environment
from tunesmith.session import place as machine

NO_DOWNLOAD = 3  # pocl.sh's exit status where nothing could be downloaded

# Alternatives, a virtual package, a program, a cycle, what is installed already: as apt-cache prints them.
DEPENDS = """
for name do case $name in
pocl-opencl-icd) printf '%s\\n' pocl-opencl-icd '  Depends: libpocl2' ;;
libpocl2) printf '%s\\n' libpocl2 '  Depends: libpocl2-common' '  Depends: clang-15' '  Depends: libc6' \\
  ' |Depends: libhwloc15' '  Depends: libhwloc14' ' |Depends: libone' '  Depends: libtwo' \\
  '  PreDepends: libclang-cpp15' '  Depends: libx-dev' '  Depends: <libvirtual>' '    libreal' ;;
libclang-cpp15) printf '%s\\n' libclang-cpp15 '  Depends: libpocl2' '  Depends: libfar' ;;
esac; done
"""
INSTALLED = r"""
echo 'libc6 arm64 installed'; echo 'libtwo arm64 installed'; echo 'libfar amd64 installed'
echo 'libhwloc15 arm64 config-files'
"""
APT_GET = """
for name do case $name in lib* | pocl*) case " $* " in
*' --print-uris '*) echo "'http://x' $name.deb 1500000 SHA256:0" ;;
*' download '*) echo >"$name.deb" ;;
esac ;; esac; done
"""
DPKG_DEB = """
name=${2##*/}; folder=$3/usr/lib/aarch64-linux-gnu; mkdir -p "$folder" && echo >"$folder/${name%.deb}.so.1"
case $name in libpocl2.deb) echo >"$folder/libpocl.so.2.10.0" ;; esac
"""
CLOSURE = {"pocl-opencl-icd", "libpocl2", "libpocl2-common", "libhwloc15", "libclang-cpp15", "libfar"}


@pytest.fixture
def debian(tmp_path: Path) -> Machine:
    """A machine whose package manager is played."""
    machine = Machine(tmp_path).program("ld").program("tar").program("apt-get", APT_GET)
    machine.real("basename", "cat", "dirname", "ln", "mkdir", "mv", "rm").program("dpkg", "echo arm64")
    machine.program("apt-cache", f"case $3 in show) echo known ;; *) {DEPENDS} ;; esac")
    return machine.program("dpkg-query", INSTALLED).program("dpkg-deb", DPKG_DEB)


def test_what_is_unpacked_is_what_the_system_lacks_of_libraries(debian: Machine) -> None:
    result = debian.run("pocl.sh", "pocl")
    assert result.returncode == 0, result.stderr
    folder = debian.home / "pocl"
    assert {path.name.removesuffix(".so.1") for path in (folder / "lib").glob("*.so.1")} == CLOSURE
    assert all(path.is_file() for path in (folder / "lib").iterdir()), "no link leads nowhere"
    library = Path((folder / "vendors" / "pocl.icd").read_text().strip())
    assert library.is_absolute()
    assert library.is_file()
    assert library.name == "libpocl.so.2.10.0"
    assert "6 packages, 9 MB" in result.stderr
    assert sorted(path.name for path in debian.home.iterdir()) == ["pocl"]
    assert sorted(path.name for path in folder.iterdir()) == ["env.sh", "lib", "root", "vendors"]


@pytest.mark.parametrize(
    ("program", "body", "status", "words"),
    [
        ("apt-cache", "exit 100", NO_DOWNLOAD, "has pocl-opencl-icd"),
        (
            "apt-get",
            'case " $* " in *print-uris*) echo "u f 1 s" ;; *download*) exit 100 ;; esac',
            NO_DOWNLOAD,
            "could not download",
        ),
        ("dpkg-deb", "exit 2", 1, "could not unpack"),
        ("dpkg-deb", "exit 0", 1, "no library libpocl.so"),
    ],
)
def test_a_failure_says_why_and_leaves_nothing(
    debian: Machine, program: str, body: str, status: int, words: str
) -> None:
    result = debian.program(program, body).run("pocl.sh", "pocl")
    assert result.returncode == status
    assert words in result.stderr
    assert "apt-get install -y pocl-opencl-icd" in result.stderr, "the command that helps"
    assert list(debian.home.iterdir()) == []


def test_an_earlier_one_outlives_a_failure(debian: Machine) -> None:
    assert debian.run("pocl.sh", "pocl").returncode == 0
    assert debian.program("dpkg-deb", "exit 2").run("pocl.sh", "pocl").returncode == 1
    assert (debian.home / "pocl" / "vendors" / "pocl.icd").is_file()


@pytest.mark.parametrize("lacking", ["dpkg-deb", "tar", "ld"])
def test_a_program_that_is_missing_is_named(debian: Machine, lacking: str) -> None:
    (debian.bin / lacking).unlink()
    result = debian.run("pocl.sh", "pocl")
    assert result.returncode == 1
    assert lacking in result.stderr


def test_a_system_that_cannot_unpack_prints_its_command(debian: Machine) -> None:
    (debian.bin / "apt-get").unlink()
    result = debian.program("pacman").run("pocl.sh", "pocl")
    assert result.returncode == 1
    assert "pacman -S --needed pocl" in result.stderr


class TestEnvironment:
    @pytest.fixture
    def prefix(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for name in ("OCL_ICD_VENDORS", "LD_LIBRARY_PATH"):
            monkeypatch.delenv(name, raising=False)
        (tmp_path / "pocl" / "vendors").mkdir(parents=True)
        (tmp_path / "pocl" / "vendors" / "pocl.icd").write_text("/x/libpocl.so.2\n")
        return tmp_path

    def test_the_loaders_are_pointed_at_it(self, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        own = {"OCL_ICD_VENDORS": f"{prefix}/pocl/vendors", "LD_LIBRARY_PATH": f"{prefix}/pocl/lib"}
        assert pocl_environment(prefix, os.environ) == own
        monkeypatch.setenv("LD_LIBRARY_PATH", "/given")
        assert pocl_environment(prefix, os.environ)["LD_LIBRARY_PATH"] == f"{prefix}/pocl/lib:/given"

    def test_where_there_is_none_nothing_is_set(self, prefix: Path) -> None:
        assert pocl_environment(prefix / "elsewhere", os.environ) == {}

    def test_the_users_choice_wins(self, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OCL_ICD_VENDORS", "/etc/OpenCL/vendors")
        assert pocl_environment(prefix, os.environ) == {}

    @pytest.mark.parametrize(("backend", "told"), [("opencl", True), ("fake", False)])
    def test_workers_are_started_with_it(
        self, prefix: Path, monkeypatch: pytest.MonkeyPatch, backend: str, told: bool
    ) -> None:
        monkeypatch.setattr(sys, "prefix", str(prefix))
        started: list[dict[str, str]] = []
        monkeypatch.setattr(
            "tunesmith.session.place.WorkerProcess", lambda _command, env, *_: started.append(env)
        )
        machine.WorkerSite(backend, prefix).spawn("test")
        assert (started[0].get("OCL_ICD_VENDORS") == f"{prefix}/pocl/vendors") is told


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.long
def test_a_kernel_runs_on_the_pocl_of_this_distribution(tmp_path: Path) -> None:
    """The real thing, on whatever machine this is: 30 to 70 MB are downloaded."""
    manager = next((name for name in ("apt-get", "dnf") if shutil.which(name)), "apt-get")
    unpackers = {"apt-get": ("apt-get", "dpkg-deb"), "dnf": ("rpm2cpio", "cpio")}
    for program in (*unpackers[manager], "ld"):
        if not shutil.which(program):
            pytest.skip(f"unpacking needs {program}, which this machine lacks")
    loader = importlib.util.find_spec("pyopencl")
    if loader is None or loader.origin is None:
        pytest.skip("needs pyopencl, which this interpreter lacks")

    command = [SH, str(SCRIPTS / "pocl.sh"), str(tmp_path / "pocl")]
    try:
        unpacking = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("the packages were not downloaded and unpacked within 60 s")
    if unpacking.returncode == NO_DOWNLOAD:
        pytest.skip(f"nothing could be downloaded: {unpacking.stderr.strip()[-400:]}")
    assert unpacking.returncode == 0, unpacking.stderr

    # A copy without the wheel's PoCL, which the loader inside pyopencl finds in its own folder.
    away = shutil.ignore_patterns("*.icd", "libpocl*", "__pycache__")
    shutil.copytree(Path(loader.origin).parent, tmp_path / "packages" / "pyopencl", ignore=away)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OCL_ICD_VENDORS", raising=False)
        found = pocl_environment(tmp_path, os.environ)
        source = str(Path(tunesmith.__file__).parents[1])
        path = os.pathsep.join(
            filter(None, [str(tmp_path / "packages"), source, os.environ.get("PYTHONPATH")])
        )
        environment = {**os.environ, **found, "PYTHONPATH": path}

    def ran(*words: str, folder: Path = tmp_path) -> str:
        command = [sys.executable, "-m", *words]
        result = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=180
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    devices = json.loads(ran("tunesmith", "devices", "--backend", "opencl", "--json"))
    assert [device["platform"] for device in devices] == ["Portable Computing Language"]
    ran("tunesmith", "check", str(SCRIPTS.parent / "examples" / "opencl" / "transpose" / "problem.toml"))
    suite = ("tests/suites/test_backends.py", "-k", "TestOpenCL", "-q", "-p", "no:cacheprovider")
    passed = re.search(r"(\d+) passed", ran("pytest", *suite, folder=SCRIPTS.parent))
    assert passed
    assert int(passed[1]) > 15
