"""Disassemblers: found, run within bounds, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.core.backends.cuda.builds import HALF, built
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda import cubin as disassembly
from tunesmith.backends.cuda.cubin import disassemble_cubin, find_disassembler, split_kernels, unpack

needs_disassembler = pytest.mark.skipif(find_disassembler() is None, reason="there is no disassembler here")


def a_tool(folder: Path, body: str) -> str:
    """A program that is called like a disassembler and does something else."""
    path = folder / "nvdisasm"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@needs_nvrtc
@needs_disassembler
@pytest.mark.long
def test_the_code_of_each_kernel() -> None:
    symbols, cubin = unpack(built(HALF, "scale").data)
    found = disassemble_cubin(cubin)
    assert found.fault == ""
    assert set(found.kernels) == set(symbols.values())
    assert "LDG" in found.kernels["scale"]


@needs_disassembler
def test_what_is_no_cubin_has_no_code() -> None:
    found = disassemble_cubin(b"\x7fELF but not really")
    assert found.kernels == {}
    assert "exit status" in found.fault


def test_none_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "find_disassembler", lambda: None)
    assert disassemble_cubin(b"").fault.startswith("there is no disassembler here")


def test_a_deadline(tmp_path: Path) -> None:
    found = disassemble_cubin(b"", a_tool(tmp_path, "print('x', flush=True); time.sleep(60)"), seconds=0.3)
    assert found.fault == "nvdisasm took more than 0.3 s"


def test_endless_text_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "MAX_TEXT", 1000)
    found = disassemble_cubin(b"", a_tool(tmp_path, "while True: print('x' * 4000)"))
    assert found.fault == "nvdisasm prints more than 1000 bytes"


def test_a_tool_that_does_not_start(tmp_path: Path) -> None:
    assert "does not start" in disassemble_cubin(b"", str(tmp_path / "nvdisasm")).fault


def test_a_second_try_without_the_analysis_that_may_fail(tmp_path: Path) -> None:
    text = ".section .text.k,x\\n/*0000*/ EXIT ;"
    tool = a_tool(tmp_path, f"sys.exit(1) if '-ndf' not in sys.argv else print('{text}')")
    assert list(disassemble_cubin(b"", tool).kernels) == ["k"]


def test_the_environment_says_where_else_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    tool = a_tool(tmp_path / "bin", "")
    monkeypatch.setattr(disassembly.toolkit, "in_wheels", lambda _folder: [])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_disassembler() == tool


def test_both_tools_words_for_where_a_kernel_begins() -> None:
    nvdisasm = '\t.section\t.text.first,"ax",@progbits\none\n\t.section\t.text._Z3twov,"ax",@progbits\ntwo\n'
    assert {k: v.split()[-1] for k, v in split_kernels(nvdisasm).items()} == {
        "first": "one",
        "_Z3twov": "two",
    }
    assert list(split_kernels("\t\tFunction : first\none\n\t\tFunction : second\n")) == ["first", "second"]
