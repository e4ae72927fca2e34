"""The check of machine code that exports ship: what it says of the same code, of other code, and of none."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.exports.cuda_users import TUNED, USERS, cuda_result, with_binary
from tests.plugins.exports.silu import written
from tests.plugins.exports.test_patch import applied, needs_nvcc, needs_patch
from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.messages import Unit
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.deliver.runtime import check_code
from tunesmith.plugins.exports.patch import TARGET

OTHER = TUNED.replace("alpha * x", "alpha * x + 1")


@cache
def cubin_of(source: str) -> bytes:
    return nvrtc.compile_by_nvrtc(Unit("k.cu", source, "cuda", (), ("scale",)), read_flags((), 90)).cubin


def checked(folder: Path, *words: str, path: str = "") -> tuple[int, str]:
    """In the folder, with the PATH given."""
    script = Path(check_code.__file__)
    command = [sys.executable, "-I", str(script), *words]
    got = subprocess.run(
        command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert got.stderr == ""
    return got.returncode, got.stdout


def a_patch(path: str = "src/scale.cu") -> DeviceResult:
    """A result whose winner has its machine code."""
    return replace(with_binary(code=cubin_of(TUNED)), kernel_path=path, kernel_text=USERS)


def an_nvcc(folder: Path, made: bytes) -> str:
    """A PATH with a compiler that makes this of every source, and says how it was called."""
    (folder / "made.cubin").write_bytes(made)
    program = folder / "nvcc"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        f"pathlib.Path({str(folder / 'called')!r}).write_text(chr(10).join(sys.argv[1:]))\n"
        "to = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        f"to.write_bytes(pathlib.Path({str(folder / 'made.cubin')!r}).read_bytes())\n"
    )
    program.chmod(0o755)
    return str(folder)


@needs_nvrtc
@pytest.mark.slow
def test_the_same_other_and_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")

    def checked(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["check_code.py", *words])
        return check_code.main(), capsys.readouterr().out

    written({"verified/one.cubin": cubin_of(TUNED), "one.cubin": cubin_of(TUNED)}, tmp_path)
    written({"two.cubin": cubin_of(OTHER), "empty/x": b"", "object.o": b"\x7fELF\x02\x01"}, tmp_path)
    same = "the same machine code as was verified: one\n"
    assert checked("--strict", "one.cubin", "verified") == (0, same)
    status, said = checked("--strict", "two.cubin", "verified")
    assert status == 1
    assert said.startswith("the same machine code as was verified: none\nwarning: OTHER machine code")
    assert "than was verified: one. Check and time" in said
    assert checked("two.cubin", "verified") == (0, said)  # another compiler is no error of a build
    for words, why in [
        (("object.o", "verified"), "cuobjdump is not on the PATH"),
        (("kernel.cu", "verified", "-O3"), "nvcc is not on the PATH"),
        (("missing.o", "verified"), "No such file"),
        (("one.cubin", "empty"), "empty holds no cubin"),
    ]:
        status, said = checked("--strict", *words)
        assert status == 2, words
        assert said.startswith("not compared with what was verified: ")
        assert why in said
        assert checked(*words) == (0, said)
    with pytest.raises(SystemExit, match=r"SOURCE\.cu FOLDER"):
        checked("one.cubin")
    with pytest.raises(SystemExit, match=r"SOURCE\.cu FOLDER"):
        checked("one.cubin", "verified", "-O3")


@needs_nvrtc
@pytest.mark.slow
def test_one_source_is_compared_with_its_own_code(tmp_path: Path) -> None:
    """By the nvcc that is named; by cuobjdump beside it, where that is, of what was built already."""
    written({"own.cubin": cubin_of(TUNED), "kernels_v0.cu": b"", "kernels_v0.o": b"\x7fELF"}, tmp_path)
    own = ("kernels_v0.cu", "own.cubin", "-arch=sm_90", "-maxrregcount=32")
    same = "the same machine code as was verified: kernels_v0.cu\n"
    for made, expected in (
        (TUNED, (0, same)),
        (OTHER, (1, "warning: OTHER machine code than was verified: kern")),
    ):
        folder = tmp_path / f"bin{expected[0]}"
        folder.mkdir()
        nvcc = str(Path(an_nvcc(folder, cubin_of(made))) / "nvcc")
        status, said = checked(tmp_path, "--nvcc", nvcc, "--strict", "--object", "kernels_v0.o", *own)
        assert status == expected[0]
        assert said.startswith(expected[1])
        assert said.count("\n") == 1
        options = (folder / "called").read_text().splitlines()
        assert options[:5] == ["-x", "cu", "-cubin", "-arch=sm_90", "-maxrregcount=32"]
        (folder / "called").unlink()
        (folder / "cuobjdump").write_text(f"#!/bin/sh\n/bin/cp {folder}/made.cubin here.cubin\n")
        (folder / "cuobjdump").chmod(0o755)
        again = checked(tmp_path, "--nvcc", nvcc, "--strict", "--object", "kernels_v0.o", *own)
        assert again == (status, said)
        assert not (folder / "called").exists()
    status, said = checked(tmp_path, "--strict", *own)
    assert (status, said) == (
        2, "kernels_v0.cu: not compared with what was verified: nvcc is not on the PATH\n"
    )  # fmt: skip


def commands_in(readme: str, folder: Path) -> list[list[str]]:
    found = re.findall(r"^python3 FOLDER/check_code\.py (.*)$", readme, re.MULTILINE)
    return [[word.replace("FOLDER", str(folder)) for word in shlex.split(line)] for line in found]


@needs_nvrtc
@pytest.mark.slow
def test_a_patch_comes_with_the_verified_code_and_the_command_that_compares_it(tmp_path: Path) -> None:
    files = TARGET.export(Artefact((a_patch("my src/scale.cu"),))).files
    assert files["verified/sm_90/scale-general.cubin"] == cubin_of(TUNED)
    export = written(files, tmp_path / "export")
    (command,) = commands_in(files["README.md"].decode(), export)
    assert command == ["--strict", "my src/scale.cu", f"{export}/verified/sm_90", "-arch=sm_90"]
    (tmp_path / "my src").mkdir()
    (tmp_path / "my src" / "scale.cu").write_text("")
    assert checked(tmp_path, *command, path=an_nvcc(tmp_path, cubin_of(TUNED)))[0] == 0
    called = (tmp_path / "called").read_text().split("\n")
    assert called[:4] == ["-x", "cu", "-cubin", "-arch=sm_90"]
    assert called[-1] == str(tmp_path / "my src" / "scale.cu")
    assert checked(tmp_path, *command, path=an_nvcc(tmp_path, cubin_of(OTHER)))[0] == 1
    # What is not in the patch is not compared, and without machine code there is nothing to compare.
    files = TARGET.export(Artefact((cuda_result(path="k.cu", text=USERS),))).files
    assert set(files) == {"scale.patch", "scale.crlf.patch", "README.md"}
    assert "stored no machine code" in files["README.md"].decode()


@needs_patch
@needs_nvcc
@needs_nvrtc
@pytest.mark.slow
@pytest.mark.long
def test_nvcc_makes_the_verified_code_of_the_patched_file(tmp_path: Path) -> None:
    files = TARGET.export(Artefact((a_patch(),))).files
    export = written(files, tmp_path / "export")
    after = applied(tmp_path, files["scale.patch"].decode(), "src/scale.cu", USERS)
    (command,) = commands_in(files["README.md"].decode(), export)
    path = os.environ["PATH"]
    assert checked(tmp_path, *command, path=path) == (
        0,
        "the same machine code as was verified: scale-general\n",
    )
    (tmp_path / "src" / "scale.cu").write_text(after.replace("{alpha * x}", "{alpha * x + 1}"))
    assert checked(tmp_path, *command, path=path)[0] == 1
    (tmp_path / "src" / "scale.cu").write_text("no C++")
    status, said = checked(tmp_path, *command, path=path)
    assert status == 2
    assert "nvcc does not build src/scale.cu" in said
