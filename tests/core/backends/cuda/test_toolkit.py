"""CUDA's headers: one set, the one that fits the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.backends.cuda import toolkit


def headers(root: Path, version: int, *, libraries: bool = False) -> Path:
    include = root / "include"
    include.mkdir(parents=True)
    (include / "cuda_fp16.h").write_text("")
    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    if libraries:
        (include / "cccl").mkdir()
    return include


@pytest.fixture(autouse=True)
def _bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(toolkit, "USUAL_PLACE", tmp_path / "usual")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", "")


def test_without_any_there_are_none() -> None:
    assert toolkit.header_folders(None, (13, 0)) == ()
    assert toolkit.find_nvcc() is None


def test_those_beside_the_library_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = headers(tmp_path / "wheel", 13040, libraries=True)
    headers(tmp_path / "usual", 13040)
    library = tmp_path / "wheel" / "lib" / "libnvrtc.so.13"
    assert toolkit.header_folders(str(library), (13, 4)) == (beside, beside / "cccl")


def test_a_set_of_the_right_version_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = headers(tmp_path / "wheel", 13000)
    home = headers(tmp_path / "home", 13030)
    usual = headers(tmp_path / "usual", 12080)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    library = str(tmp_path / "wheel" / "lib" / "libnvrtc.so.13")
    assert toolkit.header_folders(library, (13, 3)) == (home,)
    assert toolkit.header_folders(library, (13, 0)) == (beside,)
    assert toolkit.header_folders(None, (12, 8)) == (usual,)


def test_a_folder_without_headers_for_kernels_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "wheel" / "include").mkdir(parents=True)
    (tmp_path / "wheel" / "include" / "nvrtc.h").write_text("")
    usual = headers(tmp_path / "usual", 13000)
    library = str(tmp_path / "wheel" / "lib" / "libnvrtc.so.13")
    assert toolkit.header_folders(library, (13, 4)) == (usual,)


def test_headers_are_found_beside_nvcc(tmp_path: Path) -> None:
    real = headers(tmp_path / "toolkit", 13000)
    for place in (tmp_path / "toolkit" / "bin", tmp_path / "bin"):
        place.mkdir()
    program = tmp_path / "toolkit" / "bin" / "nvcc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "bin" / "nvcc").symlink_to(program)
    assert toolkit.find_nvcc() == str(tmp_path / "bin" / "nvcc")
    assert toolkit.header_folders(None, (13, 4)) == (real,)
