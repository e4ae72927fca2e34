"""launch.cu: it compiles alone, whatever the sources have in common, and serves as dispatch.json says."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.deliver.cuda_kernels import (
    ARGUMENTS,
    HEADERS,
    KERNEL,
    LAUNCH,
    PROGRAM,
    TEMPLATE,
    WITH_HEADERS,
    a_problem,
    launched,
    scales,
    tuned,
)
from tests.golden.archive import archive_of, read_archive
from tests.samples import a_device
from tunesmith.deliver.expr_text import C_TYPES
from tunesmith.problem.problem import TYPES
from tunesmith.problem.template_file import parse_template
from tunesmith.run.race import Winners

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc")
needs_gpu = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs a GPU")


def compiled(folder: Path, text: str, *flags: str) -> Path:
    source, out = folder / "launch.cu", folder / "launch.o"
    source.write_text(text)
    command = [str(NVCC), "-arch=sm_90", *flags, "-c", str(source), "-o", str(out)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert got.returncode == 0, got.stderr
    return out


def kept(name: str) -> str:
    """What tests/golden shows that it is written still."""
    return read_archive(archive_of("deliveries"))[f"launch.cu/{name}.cu"].decode()


STRICT = ("-Werror", "all-warnings")


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("same names", (*STRICT, "-std=c++17")),
        ("templates", ()),
        ("two launches", ()),
        ("fixed scalars", STRICT),
    ],
)
def test_it_compiles_alone(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    assert compiled(tmp_path, kept(name), *flags).stat().st_size > 0


@pytest.mark.gpu
@needs_gpu
@pytest.mark.slow
@needs_nvcc
def test_it_serves_as_the_dispatch_says(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(scales("2-scale") + PROGRAM)
    program = tmp_path / "program"
    environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    command = [str(NVCC), "-arch=native", str(tmp_path / "program.cu"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=110, env=environment)
    got = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    if got.returncode == 77:
        pytest.skip("needs a GPU")
    assert (got.returncode, got.stdout) == (0, "")


# -- the user's headers -----------------------------------------------------------------------------------


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_the_users_headers_are_written_into_every_variant(tmp_path: Path) -> None:
    text = kept("headers")
    out = compiled(tmp_path, text)
    assert out.stat().st_size > 0
    (tmp_path / "launch.cu").write_text(text.replace("ITEM(n) * n", "ITEM(n) * wrong"))
    command = [str(NVCC), "-arch=sm_90", "-c", str(tmp_path / "launch.cu"), "-o", "/dev/null"]
    got = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert "list.inc(1): error" in got.stderr  # the compiler speaks in the user's files and lines


@pytest.mark.slow
@needs_nvcc
def test_every_source_compiles_with_the_headers_beside_it(tmp_path: Path) -> None:
    problem = a_problem(WITH_HEADERS, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, headers=HEADERS))
    files = launched(problem, TEMPLATE, None, None)[1]
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    command = [str(NVCC), "-arch=sm_90", "-I", "include", "-cubin", "original.cu", "-o", "original.cubin"]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
    assert got.returncode == 0, got.stderr


# -- what is left out, and hostile texts ------------------------------------------------------------------


def test_names_cannot_end_a_comment() -> None:
    problem = replace(a_problem(KERNEL, ARGUMENTS, LAUNCH), name="a\nint b; \\")
    template = parse_template(TEMPLATE, path="template.cu", problem=problem)
    device = replace(a_device(capability=90), name="GPU\r#error no \\ ")
    text = tuned(problem, template, device, Winners(None, ()))["launch.cu"].decode()
    assert "\nint b" not in text
    assert "\n#error" not in text
    assert not any(line.startswith("//") and line.endswith("\\") for line in text.splitlines())
    assert "nvcc -O3 -arch=sm_90 -c launch.cu" in text
    assert 'extern "C" cudaError_t a_int_b____launch(' in text


def test_only_cuda_gets_it_and_every_type_has_a_name() -> None:
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, language="hip"))
    template = parse_template(TEMPLATE, path="template.cu", problem=problem)
    assert set(tuned(problem, template, a_device(), Winners(None, ()))) == {
        "original.cu",
        "dispatch.json",
    }
    assert set(TYPES) <= set(C_TYPES)
